static char help[] =
  "Times SCALE, z = q x, over sizes from inside the cache to far beyond it: each tensor-core kernel (one an MMA shape) beside "
  "its\n"
  "CUDA-core twin, in turns. Every kernel is checked bit for bit first; the exit status is 0 only when all are right.\n\n"
  "  -least BYTES  -most BYTES   of both arrays together, doubled from one to the other (64 KiB to 8 GiB; on the host 512 "
  "MiB)\n"
  "  -host         the host kernel\n"
  "  -offset N     x and z start N elements past an aligned address (0), -offset_x N only x\n"
  "  -repeats N    timed rounds (15)        -quick   few small sizes, to test the benchmark itself\n"
  "  -output FILE  append results as JSON lines; -git_sha SHA and -git_dirty go into them\n\n";

#include <petscsys.h>

#include <cmath>
#include <cstdio>
#include <cstring>

#include "mma_shape.h"
#include "options.h"
#include "vector.h"

namespace {

using namespace tcbound;
using namespace tcbound::bench;

struct Options {
  std::int64_t least = 64 << 10, most = 0;
  int          offset = 0, offset_x = 0, repeats = 15;
  bool         host = false, quick = false;
  Provenance   provenance;
};

PetscErrorCode ReadBytes(const char name[], std::int64_t *bytes) {
  PetscReal given = static_cast<PetscReal>(*bytes);
  PetscBool set;

  PetscFunctionBeginUser;
  PetscCall(PetscOptionsGetReal(nullptr, nullptr, name, &given, &set));
  PetscCheck(!set || (given >= 16 && given <= 1e12), PETSC_COMM_SELF, PETSC_ERR_USER_INPUT,
             "%s %g must lie between 16 and 1e12", name, static_cast<double>(given));
  *bytes = static_cast<std::int64_t>(given);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode ReadOffset(const char name[], int *offset) {
  PetscInt given = *offset;

  PetscFunctionBeginUser;
  PetscCall(PetscOptionsGetInt(nullptr, nullptr, name, &given, nullptr));
  PetscCheck(given >= 0 && given <= 1000, PETSC_COMM_SELF, PETSC_ERR_USER_INPUT,
             "%s %" PetscInt_FMT " must lie between 0 and 1000", name, given);
  *offset = static_cast<int>(given);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode ReadOptions(int argc, char **argv, Options *o) {
  PetscFunctionBeginUser;
  PetscCall(ReadFlag("-host", &o->host));
  PetscCall(ReadFlag("-quick", &o->quick));
  o->most = o->quick ? std::int64_t(1) << 20 : std::int64_t(1) << (o->host ? 29 : 33);
  PetscCall(ReadBytes("-least", &o->least));
  PetscCall(ReadBytes("-most", &o->most));
  PetscCall(ReadOffset("-offset", &o->offset));
  o->offset_x = o->offset;
  PetscCall(ReadOffset("-offset_x", &o->offset_x));
  PetscCall(ReadCount("-repeats", &o->repeats));
  PetscCall(ReadProvenance(argc, argv, &o->provenance));
  PetscCall(RefuseUnread("-least, -most, -host, -offset, -offset_x, -repeats, -quick, -output, -git_sha, -git_dirty"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

// A kernel with one MMA shape.
struct Contender {
  std::string               name;
  const ElementwiseKernel  *kernel = nullptr;
  MmaShape                  mma = MmaShape::automatic;
  std::unique_ptr<Interval> interval;
  std::vector<double>       times; // us
};

std::vector<Contender> contenders_on(Executor &executor) {
  std::vector<Contender> all;
  for (const Kernel *kernel : all_kernels()) {
    const auto *scale = dynamic_cast<const ElementwiseKernel *>(kernel);
    if (!scale || kernel->op() != "scale" || kernel->space() != executor.space()) continue;
    const auto add = [&](const std::string &name, MmaShape mma) {
      const std::string why_not = scale->check_vectors(executor.device(), 0, mma);
      if (why_not.empty())
        all.push_back({name, scale, mma, executor.interval(), {}});
      else
        std::printf("left out: %s: %s\n", name.c_str(), why_not.c_str());
    };
    if (kernel->backend() != "tensor_core")
      add(kernel->name(), MmaShape::automatic);
    else
      for (const MmaShapeFacts &facts : mma_shapes) add(kernel->name() + ":" + facts.name, facts.shape);
  }
  return all;
}

// Two arrays of the largest size, with random numbers (no zeros) in x.
class Arrays {
public:
  Arrays(Executor &executor, const Options &o, std::int64_t length)
    : executor_(executor), x_(executor, length + o.offset_x), z_(executor, length + o.offset), x(x_.data() + o.offset_x),
      z(z_.data() + o.offset), block_(static_cast<std::size_t>(std::min<std::int64_t>(length, 1 << 20))) {
    std::uint64_t state = 12345;
    for (double &value : block_) {
      state = state * 6364136223846793005ULL + 1442695040888963407ULL;
      value = 0.5 + static_cast<double>(state >> 11) * 0x1p-53; // 0.5 to 1.5
    }
    for (std::int64_t i = 0; i < length; i += size()) move(x + i, block_.data(), true, std::min(size(), length - i));
  }

  // z = q x once on a z full of NaN: every element of the first and the last block, and what is around z is left alone.
  void verify(const Contender &c, std::int64_t length, double q) {
    const std::vector<double> poison(block_.size(), std::nan(""));
    std::vector<double>       got(block_.size());
    const std::int64_t        count = std::min(size(), length), last = length - count;
    for (const std::int64_t at : {std::int64_t(0), last}) move(z + at, poison.data(), true, count);
    apply(c, length, q);
    for (const std::int64_t at : {std::int64_t(0), last}) {
      move(z + at, got.data(), false, count);
      for (std::int64_t i = 0; i < count; ++i) {
        const double want = q * block_[static_cast<std::size_t>((at + i) % size())];
        if (std::memcmp(&got[static_cast<std::size_t>(i)], &want, sizeof want) == 0) continue;
        throw std::runtime_error(c.name + ": element " + std::to_string(at + i) + " of " + std::to_string(length) + " is " +
                                 std::to_string(got[static_cast<std::size_t>(i)]) + " and should be " + std::to_string(want));
      }
    }
  }

  void apply(const Contender &c, std::int64_t length, double q) {
    const double *v[1] = {x};
    Elementwise   call;
    call.length = length;
    call.w = z;
    call.v = v;
    call.coefficients = &q;
    call.mma = c.mma;
    c.kernel->run(executor_, call);
  }

private:
  std::int64_t size() const { return static_cast<std::int64_t>(block_.size()); }
  void         move(double *device, const double *host, bool up, std::int64_t count) {
            const auto bytes = static_cast<std::size_t>(count) * sizeof(double);
            if (up)
      executor_.copy(device, executor_.space(), host, MemorySpace::host, bytes);
    else
      executor_.copy(const_cast<double *>(host), MemorySpace::host, device, executor_.space(), bytes);
  }

  Executor     &executor_;
  Array<double> x_, z_;
  double       *x, *z;

  std::vector<double> block_;
};

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

// All in turns; each time a stretch of calls back to back that is long beside the events around it.
void race(std::vector<Contender> &contenders, Arrays &arrays, const Options &o, std::int64_t length) {
  const int batch =
    static_cast<int>(std::clamp<std::int64_t>((std::int64_t(256) << 20) / (16 * length), 1, o.host ? 200 : 100));
  for (Contender &c : contenders) c.times.clear();
  for (int round = 0; round < o.repeats; ++round) {
    for (std::size_t i = 0; i < contenders.size(); ++i) {
      Contender &c = contenders[(i + static_cast<std::size_t>(round)) % contenders.size()];
      arrays.apply(c, length, 1.25); // what the one before left in the caches is of no account
      c.interval->begin();
      for (int b = 0; b < batch; ++b) arrays.apply(c, length, 1.25);
      c.interval->end();
    }
    for (Contender &c : contenders) c.times.push_back(1e6 * c.interval->seconds() / batch);
  }
}

std::string size_name(std::int64_t bytes) {
  const char *unit[] = {"B", "KiB", "MiB", "GiB"};
  int         at = 0;
  for (; at < 3 && bytes >= 1024 && bytes % 1024 == 0; ++at) bytes /= 1024;
  return std::to_string(bytes) + unit[at];
}

void report(const std::vector<Contender> &contenders, const Options &o, const Device &device, double roof, std::int64_t bytes) {
  const std::string name =
    (o.quick ? "quick-" : "") + ("scale-" + size_name(bytes)) + (o.offset || o.offset_x ? "-unaligned" : "");
  const Contender *twin = nullptr;
  for (const Contender &c : contenders)
    if (c.kernel->backend() == "cuda_core") twin = &c;
  std::printf("%-16s", name.c_str());
  for (const Contender &c : contenders) {
    Elementwise call;
    call.length = bytes / 16;
    call.mma = c.mma;
    const Work work = c.kernel->work(call);
    Line       line;
    line.name = name;
    line.op = "scale";
    line.kernel = c.name;
    line.device = device.name;
    line.time_us = median(c.times);
    line.repeats = o.repeats;
    line.bytes = work.bytes;
    line.useful_flops = work.useful_flops;
    line.roof = roof;
    if (twin && twin != &c) {
      line.baseline = twin->name;
      line.baseline_time_us = median(twin->times);
    }
    append(o.provenance, line,
           {{"length", bytes / 16},
            {"mma", c.kernel->mma(device, c.mma)},
            {"rho", static_cast<double>(work.issued_flops) / static_cast<double>(work.useful_flops)},
            {"in_cache", bytes <= static_cast<std::int64_t>(device.l2_bytes)}});
    if (line.baseline.empty())
      std::printf(" %9.2f us %7.1f GB/s", line.time_us, line.gbps());
    else
      std::printf(" %10.3f", line.ratio());
  }
  std::printf("\n");
}

std::unique_ptr<Executor> make_executor(bool host) {
  std::string why_not;
  if (host) return make_host_executor();
  if (cuda_device_count(&why_not) == 0) throw Error(ErrorCode::unsupported, why_not + " (-host times the host kernel)");
  return make_cuda_executor(0);
}

void run(const Options &o) {
  const std::unique_ptr<Executor> executor = make_executor(o.host);
  const double                    roof = executor->measure_bandwidth();
  std::vector<Contender>          contenders = contenders_on(*executor);
  Arrays                          arrays(*executor, o, o.most / 16);
  std::printf("%s: y = q x at %.0f GB/s on long arrays, L2 %.0f MiB\n%-16s", executor->device().name.c_str(), 1e-9 * roof,
              static_cast<double>(executor->device().l2_bytes) / (1 << 20), "both arrays");
  for (const Contender &c : contenders) std::printf(" %s", c.name.c_str());
  std::printf("\n(time and bandwidth; of kernels on tensor cores the twin's time over theirs)\n");
  for (std::int64_t bytes = o.least; bytes <= o.most; bytes *= 2) {
    for (const Contender &c : contenders)
      for (const double q : {1.25, -0.1}) arrays.verify(c, bytes / 16, q);
    race(contenders, arrays, o, bytes / 16);
    report(contenders, o, executor->device(), roof, bytes);
  }
  executor->synchronize();
}

} // namespace

int main(int argc, char **argv) {
  Options options;
  bool    good = true;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, nullptr, help));
  PetscCall(ReadOptions(argc, argv, &options));
  try {
    run(options);
  } catch (const std::exception &error) {
    std::fprintf(stderr, "scale: %s\n", error.what());
    good = false;
  }
  PetscCall(PetscFinalize());
  return good ? 0 : 1;
}
