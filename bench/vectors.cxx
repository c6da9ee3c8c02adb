static char help[] = "Times vector operations in PETSc, end to end: type tcbound against PETSc's own (cuda, on the host "
                     "standard), in turns, at the\n"
                     "vector lengths of three model problems. Results of the two types are compared first; the exit status is "
                     "0 only when all agree.\n\n"
                     "  -cases a,b,...   64, 160, 256: lengths of that number cubed (default all)\n"
                     "  -host            vectors on the host\n"
                     "  -repeats N       timed rounds (9)      -quick   one small length, to test the benchmark itself\n"
                     "  -output FILE     append results as JSON lines; -git_sha SHA and -git_dirty go into them\n\n";

#include <petscvec.h>

#include <petsc/private/petscimpl.h> // PetscObjectStateIncrease()
#include <petscdevice.h>
#include <petsctime.h>
#include <tcbound.h>

#include <cmath>
#include <cstdio>
#include <functional>

#include "executor.h"
#include "options.h"

namespace {

using namespace tcbound;
using namespace tcbound::bench;

struct Options {
  std::vector<std::string> cases = {"64", "160", "256"};
  bool                     host = false, quick = false;
  int                      repeats = 9;
  Provenance               provenance;
};

constexpr PetscInt many = 30; // vectors of a GMRES(30)

// The vectors of one type that the operations work on.
struct Vectors {
  std::string name, type;
  Vec         w = nullptr, x = nullptr, y = nullptr, *basis = nullptr;
};

struct Operation {
  std::string                                             name;
  int                                                     arrays; // 8 bytes an element each
  int                                                     flops;  // of an element
  std::function<PetscErrorCode(Vectors &, PetscScalar *)> run;    // a result of the operation, or 0
};

std::vector<Operation> operations() {
  static const std::vector<PetscScalar> factors(many, 1e-3);
  static std::vector<PetscScalar>       dots(many);
  return {
    {"VecTDot", 2, 2, [](Vectors &v, PetscScalar *z) { return VecTDot(v.x, v.y, z); }},
    {"VecNorm", 1, 2,
     [](Vectors &v, PetscScalar *z) {
       PetscFunctionBeginUser;
       PetscCall(PetscObjectStateIncrease((PetscObject)v.x)); // or the norm is remembered
       PetscCall(VecNorm(v.x, NORM_2, z));
       PetscFunctionReturn(PETSC_SUCCESS);
     }},
    {"VecAXPY", 3, 2, [](Vectors &v, PetscScalar *) { return VecAXPY(v.w, 1e-3, v.x); }},
    {"VecAYPX", 3, 2, [](Vectors &v, PetscScalar *) { return VecAYPX(v.w, 0.9, v.x); }},
    {"VecWAXPY", 3, 2, [](Vectors &v, PetscScalar *) { return VecWAXPY(v.w, 0.9, v.x, v.y); }},
    {"VecAXPBYPCZ", 4, 5, [](Vectors &v, PetscScalar *) { return VecAXPBYPCZ(v.w, 0.1, 0.2, 0.9, v.x, v.y); }},
    {"VecPointwiseMult", 3, 1, [](Vectors &v, PetscScalar *) { return VecPointwiseMult(v.w, v.x, v.y); }},
    {"VecScale", 2, 1, [](Vectors &v, PetscScalar *) { return VecScale(v.w, 1.0009765625); }},
    {"VecDotNorm2", 2, 4,
     [](Vectors &v, PetscScalar *z) {
       PetscReal squares;
       return VecDotNorm2(v.x, v.y, z, &squares);
     }},
    {"VecMDot-" + std::to_string(many), many + 1, 2 * many,
     [](Vectors &v, PetscScalar *z) {
       PetscFunctionBeginUser;
       PetscCall(VecMDot(v.x, many, v.basis, dots.data()));
       *z = dots[many - 1];
       PetscFunctionReturn(PETSC_SUCCESS);
     }},
    {"VecMAXPY-" + std::to_string(many), many + 2, 2 * many,
     [](Vectors &v, PetscScalar *) { return VecMAXPY(v.w, many, factors.data(), v.basis); }},
  };
}

PetscErrorCode Make(const std::string &name, const std::string &type, PetscInt n, Vectors *v) {
  PetscRandom random;

  PetscFunctionBeginUser;
  v->name = name;
  v->type = type;
  PetscCall(VecCreate(PETSC_COMM_SELF, &v->w));
  PetscCall(VecSetSizes(v->w, n, n));
  PetscCall(VecSetType(v->w, type.c_str()));
  PetscCall(VecDuplicate(v->w, &v->x));
  PetscCall(VecDuplicate(v->w, &v->y));
  PetscCall(VecDuplicateVecs(v->w, many, &v->basis));
  PetscCall(PetscRandomCreate(PETSC_COMM_SELF, &random));
  PetscCall(PetscRandomSetType(random, PETSCRANDER48)); // the same numbers for both types
  PetscCall(PetscRandomSetInterval(random, 0.5, 1.5));
  for (Vec one : {v->w, v->x, v->y}) PetscCall(VecSetRandom(one, random));
  for (PetscInt i = 0; i < many; i++) PetscCall(VecWAXPY(v->basis[i], static_cast<PetscScalar>(i) / many, v->x, v->y));
  PetscCall(PetscRandomDestroy(&random));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode Destroy(Vectors *v) {
  PetscFunctionBeginUser;
  PetscCall(VecDestroyVecs(many, &v->basis));
  for (Vec *one : {&v->w, &v->x, &v->y}) PetscCall(VecDestroy(one));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode Synchronize(bool host) {
  PetscDeviceContext context;

  PetscFunctionBeginUser;
  if (host) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscDeviceContextGetCurrentContext(&context));
  PetscCall(PetscDeviceContextSynchronize(context));
  PetscFunctionReturn(PETSC_SUCCESS);
}

// Microseconds of one call, of a stretch of calls.
PetscErrorCode Time(const Operation &operation, Vectors &v, bool host, int calls, double *time_us) {
  PetscLogDouble start, end;
  PetscScalar    z = 0.0;

  PetscFunctionBeginUser;
  PetscCall(operation.run(v, &z));
  PetscCall(Synchronize(host));
  PetscCall(PetscTime(&start));
  for (int i = 0; i < calls; i++) PetscCall(operation.run(v, &z));
  PetscCall(Synchronize(host));
  PetscCall(PetscTime(&end));
  *time_us = 1e6 * (end - start) / calls;
  PetscFunctionReturn(PETSC_SUCCESS);
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

// Whether both types hold and give the same within rounding, after one call each.
PetscErrorCode Agree(const Operation &operation, Vectors &a, Vectors &b, bool *agree) {
  PetscScalar        z[2] = {0, 0};
  const PetscScalar *wa, *wb;
  PetscInt           n;

  PetscFunctionBeginUser;
  PetscCall(operation.run(a, &z[0]));
  PetscCall(operation.run(b, &z[1]));
  *agree = std::abs(z[0] - z[1]) <= 1e-12 * std::abs(z[0]);
  PetscCall(VecGetLocalSize(a.w, &n));
  PetscCall(VecGetArrayRead(a.w, &wa));
  PetscCall(VecGetArrayRead(b.w, &wb));
  for (PetscInt i = 0; i < n; i++) *agree = *agree && std::abs(wa[i] - wb[i]) <= 1e-13 * (1 + std::abs(wa[i]));
  PetscCall(VecRestoreArrayRead(a.w, &wa));
  PetscCall(VecRestoreArrayRead(b.w, &wb));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode RunCase(const Options &o, const std::string &name, PetscInt n, const Device &device, double roof, bool *good) {
  Vectors petsc, ours;

  PetscFunctionBeginUser;
  PetscCall(Make(std::string("petsc/") + (o.host ? "standard" : "cuda"), o.host ? VECSTANDARD : VECCUDA, n, &petsc));
  PetscCall(Make("tcbound", VECTCBOUND, n, &ours));
  for (const Operation &operation : operations()) {
    const int           calls = n > 5000000 ? 20 : 50;
    std::vector<double> times[2];
    bool                agree = false;
    PetscCall(Agree(operation, petsc, ours, &agree));
    if (!agree) std::printf("%s of %s: the two types DISAGREE\n", operation.name.c_str(), name.c_str());
    *good = *good && agree;
    for (int round = 0; round < o.repeats; round++)
      for (int k = 0; k < 2; k++) {
        const int which = (k + round) % 2;
        double    time_us = 0.0;
        PetscCall(Time(operation, which ? ours : petsc, o.host, o.quick ? 2 : calls, &time_us));
        times[which].push_back(time_us);
      }
    for (int which = 0; which < 2; which++) {
      Line line;
      line.name = name;
      line.op = operation.name;
      line.kernel = which ? ours.name : petsc.name;
      line.device = device.name;
      line.time_us = median(times[which]);
      line.repeats = o.repeats;
      line.bytes = static_cast<std::int64_t>(n) * 8 * operation.arrays;
      line.useful_flops = static_cast<std::int64_t>(n) * operation.flops;
      line.roof = roof;
      line.baseline = petsc.name;
      line.baseline_time_us = median(times[0]);
      try {
        append(o.provenance, line, {{"length", n}});
      } catch (const std::exception &error) {
        SETERRQ(PETSC_COMM_SELF, PETSC_ERR_FILE_WRITE, "%s", error.what());
      }
      if (which)
        std::printf("%-10s %-16s %8.1f us %8.1f us  %6.0f GB/s  %5.2f\n", name.c_str(), line.op.c_str(), line.baseline_time_us,
                    line.time_us, line.gbps(), line.ratio());
    }
  }
  PetscCall(Destroy(&petsc));
  PetscCall(Destroy(&ours));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode ReadOptions(int argc, char **argv, Options *o) {
  PetscFunctionBeginUser;
  PetscCall(ReadList("-cases", &o->cases));
  PetscCall(ReadFlag("-host", &o->host));
  PetscCall(ReadFlag("-quick", &o->quick));
  PetscCall(ReadCount("-repeats", &o->repeats));
  PetscCall(ReadProvenance(argc, argv, &o->provenance));
  PetscCall(RefuseUnread("-cases, -host, -quick, -repeats, -output, -git_sha, -git_dirty"));
  for (const std::string &name : o->cases)
    PetscCheck(name == "64" || name == "160" || name == "256", PETSC_COMM_SELF, PETSC_ERR_USER_INPUT,
               "there is no case %s; the cases are 64, 160, 256", name.c_str());
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode Run(const Options &o, bool *good) {
  std::unique_ptr<Executor> executor;
  double                    roof = 0.0;
  PetscBool                 has;
  const char               *why_not;

  PetscFunctionBeginUser;
  PetscCall(TCBoundHasDevice(&has, &why_not));
  PetscCheck(has || o.host, PETSC_COMM_SELF, PETSC_ERR_SUP, "%s (-host times host vectors)", why_not);
  PetscCall(PetscOptionsSetValue(nullptr, "-vec_tcbound_backend", o.host ? "host" : "auto"));
  try {
    executor = o.host ? make_host_executor() : make_cuda_executor(0);
    roof = executor->measure_bandwidth();
  } catch (const std::exception &error) {
    SETERRQ(PETSC_COMM_SELF, PETSC_ERR_LIB, "%s", error.what());
  }
  std::printf("%s: y = q x at %.0f GB/s\n%-10s %-16s %11s %11s\n", executor->device().name.c_str(), 1e-9 * roof, "case",
              "operation", o.host ? "standard" : "cuda", "tcbound");
  if (o.quick) {
    PetscCall(RunCase(o, "quick-20", 8000, executor->device(), roof, good));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  for (const std::string &name : o.cases) {
    const PetscInt side = std::stoi(name);
    PetscCall(RunCase(o, "vectors-" + name, side * side * side, executor->device(), roof, good));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

} // namespace

int main(int argc, char **argv) {
  Options options;
  bool    good = true;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, nullptr, help));
  PetscCall(TCBoundInitialize());
  PetscCall(ReadOptions(argc, argv, &options));
  PetscCall(Run(options, &good));
  PetscCall(PetscFinalize());
  return good ? 0 : 1;
}
