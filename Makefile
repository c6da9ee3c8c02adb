# make demo   sets everything up, builds, and solves a real system with every backend this machine can run
# make test   sets everything up, builds, and runs the tests
# Everything else is listed by `make help`. A set PETSC_DIR (and PETSC_ARCH) is used as it is; otherwise PETSc is built once
# into TCBOUND_CACHE (default ~/.cache/tcbound).
.PHONY: help all setup demo test test-sanitize test-debug conformance bundle format check-format clean

help:
	@echo 'make demo           build, then solve a real system with every backend of this machine'
	@echo 'make test           build and run the tests (gpu tests skip without a device)'
	@echo 'make test-sanitize  the host tests under AddressSanitizer and UndefinedBehaviorSanitizer'
	@echo 'make test-debug     the host tests against the oldest PETSc, with debugging and 64-bit integers'
	@echo "make conformance    PETSc's own tests and tutorials with this matrix type"
	@echo 'make bundle         one folder with all that a GPU node needs, in build/release/bundle'
	@echo 'make format         clang-format all sources (check-format only looks)'
	@echo 'make setup          only the packages and PETSc'

all:
	tools/build release
setup:
	tools/setup
demo:
	tools/build release compare
	tools/demo
test: check-format
	tools/build release
	tools/run-tests release
test-sanitize:
	tools/build sanitize
	tools/run-tests sanitize
test-debug:
	tools/build debug
	tools/run-tests debug
conformance:
	tools/build release tcbound
	tools/conformance
bundle:
	tools/build release bundle
format:
	tools/format
check-format:
	tools/format --check
clean:
	rm -rf build
