#include "contender.h"

#include <petscmat.h>

#include <cmath>

#include "spmv/csr/format.h"
#ifdef TCBOUND_HAVE_CUDA
#include "spmv/csr/cuda_core_tuning.h"
#include "spmv/fragments/tuning.h"
#endif

namespace tcbound::bench {

Bench::Bench(const Matrix &a, Executor &e)
  : matrix(a), executor(e), x(e, a.columns_count), z(e, a.rows), offsets(e, a.rows + 1), columns(e, a.nonzeros()),
    values(e, a.nonzeros()), doubled(e, a.nonzeros()) {
  Numbers<double> twice(a.values.size());
  parallel_for(a.nonzeros(), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t k = begin; k < end; ++k) twice[k] = 2.0 * a.values[k];
  });
  upload(offsets, a.offsets);
  upload(columns, a.columns);
  upload(values, a.values);
  upload(doubled, twice);
  problem.csr = a.view();
  problem.csr.space = e.space();
  problem.csr.row_offsets.data = offsets.data();
  problem.csr.columns.data = columns.data();
  problem.csr.values = values.data();
}

namespace {

class KernelRunner final : public Runner {
public:
  KernelRunner(Executor &executor, const Kernel &kernel, std::unique_ptr<Format> format)
    : executor_(executor), kernel_(kernel), format_(std::move(format)) {
    format_->prepare(executor_, false);
    executor_.synchronize();
  }

  void multiply(const double *x, double *z) override {
    Product product;
    product.x = x;
    product.z = z;
    kernel_.apply(executor_, *format_, product);
  }
  bool refill(const double *values) override {
    format_->refill(executor_, values, executor_.space());
    return true;
  }
  Work         work() const override { return format_->work(false, false); }
  std::int64_t stored_bytes() const override { return format_->stored_bytes(); }

private:
  Executor               &executor_;
  const Kernel           &kernel_;
  std::unique_ptr<Format> format_;
};

} // namespace

namespace {

std::unique_ptr<Runner> make_runner(Executor &executor, const Kernel &kernel, std::unique_ptr<Format> format) {
  return std::make_unique<KernelRunner>(executor, kernel, std::move(format));
}

#ifdef TCBOUND_HAVE_CUDA

// A kernel on tensor cores with every instruction.
void add_instructions(Bench &bench, const Kernel &kernel, std::vector<Contender> &all) {
  Executor &e = bench.executor;
  for (const MmaShapeFacts &shape : mma_shapes) {
    Problem problem = bench.problem;
    problem.mma = shape.shape;
    all.push_back({kernel.name() + ":" + shape.name, false, kernel.check(e.device(), problem),
                   [&e, &kernel, problem] { return make_runner(e, kernel, kernel.build(e, problem)); }});
  }
}

// A kernel with every tuning choice that is laid open.
void add_variants(Bench &bench, const Kernel &kernel, std::vector<Contender> &all) {
  Executor &e = bench.executor;
  if (kernel.name() == "spmv/csr/cuda_core")
    for (const csr::CudaCoreVariant &v : csr::cuda_core_variants())
      all.push_back({kernel.name() + ":" + v.name, false, "", [&bench, &e, &kernel, &v] {
                       return make_runner(e, kernel, csr::build_cuda_core(e, bench.problem.csr, v.config));
                     }});
  if (kernel.name() == "spmv/fragments/cuda_core")
    for (const fragments::Variant &v : fragments::variants())
      all.push_back({kernel.name() + ":" + v.name, false, "", [&bench, &e, &kernel, &v] {
                       return make_runner(e, kernel, fragments::build(e, bench.problem.csr, MmaShape::automatic, v.config));
                     }});
}

#endif

} // namespace

std::vector<Contender> kernel_contenders(Bench &bench, [[maybe_unused]] bool variants, [[maybe_unused]] bool mma) {
  std::vector<Contender> all;
  Executor              &executor = bench.executor;
  for (const Kernel *kernel : all_kernels()) {
    if (kernel->op() != "spmv" || kernel->space() != executor.space()) continue;
    all.push_back({kernel->name(), false, kernel->check(executor.device(), bench.problem), [&bench, &executor, kernel] {
                     return make_runner(executor, *kernel, kernel->build(executor, bench.problem));
                   }});
#ifdef TCBOUND_HAVE_CUDA
    if (mma && kernel->backend() == "tensor_core") add_instructions(bench, *kernel, all);
    if (variants) add_variants(bench, *kernel, all);
#endif
  }
  return all;
}

namespace {

void check(PetscErrorCode code, const char *call) {
  if (code) throw Error(ErrorCode::invalid, std::string(call) + " returned PETSc's error " + std::to_string(code));
}
#define CHECK(call) check((call), #call)

// PETSc's own host type with its own compiler options and all its special cases (inodes).
class PetscRunner final : public Runner {
public:
  explicit PetscRunner(const Matrix &a)
    : offsets_(a.offsets.begin(), a.offsets.end()), columns_(a.columns.begin(), a.columns.end()) {
    const auto rows = static_cast<PetscInt>(a.rows), columns = static_cast<PetscInt>(a.columns_count);
    work_ = csr::count_work({a.rows, a.columns_count, a.nonzeros(), sizeof(PetscInt), sizeof(PetscInt)}, false, false, 0);
    CHECK(MatCreateSeqAIJWithArrays(PETSC_COMM_SELF, rows, columns, offsets_.data(), columns_.data(),
                                    const_cast<double *>(a.values.data()), &a_));
    CHECK(VecCreateSeqWithArray(PETSC_COMM_SELF, 1, columns, nullptr, &x_));
    CHECK(VecCreateSeqWithArray(PETSC_COMM_SELF, 1, rows, nullptr, &z_));
  }
  ~PetscRunner() override {
    (void)MatDestroy(&a_);
    (void)VecDestroy(&x_);
    (void)VecDestroy(&z_);
  }
  PetscRunner(const PetscRunner &) = delete;
  PetscRunner &operator=(const PetscRunner &) = delete;

  void multiply(const double *x, double *z) override {
    CHECK(VecPlaceArray(x_, x));
    CHECK(VecPlaceArray(z_, z));
    CHECK(MatMult(a_, x_, z_));
    CHECK(VecResetArray(x_));
    CHECK(VecResetArray(z_));
  }
  Work         work() const override { return work_; }
  std::int64_t stored_bytes() const override { return 0; }

private:
  std::vector<PetscInt> offsets_, columns_;
  Work                  work_;
  Mat                   a_ = nullptr;
  Vec                   x_ = nullptr, z_ = nullptr;
};

} // namespace

Contender petsc_contender(Bench &bench) {
  return {"petsc/aij", true, "", [&bench] { return std::make_unique<PetscRunner>(bench.matrix); }};
}

} // namespace tcbound::bench
