"""Machine code of CUDA kernels, as cuobjdump prints it."""
import collections
import glob
import os
import re
import shutil
import subprocess
import sys

MATRIX = re.compile(r"[A-Z]*MMA\b")
LOCAL_MEMORY = re.compile(r"(LDL|STL)\b")


def find_cuobjdump(folders):
    """In the folders, in PATH, or where the Python package nvidia-cuda-cuobjdump puts it; without it the test is skipped."""
    folders = list(folders) + os.environ.get("PATH", "").split(os.pathsep)
    for path in sys.path:
        folders += glob.glob(os.path.join(path, "nvidia", "*", "bin"))
    found = shutil.which("cuobjdump", path=os.pathsep.join(folders))
    if not found:
        print("skipped: there is no cuobjdump (CUDA toolkit, or PyPI: nvidia-cuda-cuobjdump and nvidia-cuda-nvdisasm)")
        sys.exit(77)
    return found


def kernels_of(cuobjdump, file):
    """{architecture: {kernel: Counter of instructions}}"""
    folder = os.path.dirname(cuobjdump)  # cuobjdump calls nvdisasm, which stands beside it
    environment = dict(os.environ, PATH=folder + os.pathsep + os.environ.get("PATH", ""))
    dump = subprocess.run([cuobjdump, "--dump-sass", file], env=environment, capture_output=True, text=True)
    if dump.returncode != 0:
        print(f"skipped: {cuobjdump} fails: {dump.stderr.strip()}")
        sys.exit(77)
    found, kernel, architecture = collections.defaultdict(dict), None, 0
    for line in dump.stdout.splitlines():
        if match := re.search(r"^arch = sm_(\d+)", line):
            architecture = int(match[1])
        elif match := re.search(r"Function : (\S+)", line):
            kernel = found[architecture].setdefault(match[1], collections.Counter())
        elif (match := re.match(r"\s+/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z][\w.]*)", line)) and kernel is not None:
            kernel[match[1]] += 1
    return found
