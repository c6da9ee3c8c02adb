#include "contender.h"

#include <petscmat.h>

#include <cmath>

#include "spmv/csr/format.h"
#ifdef TCBOUND_HAVE_CUDA
#include "spmv/csr/cuda_core_tuning.h"
#include "spmv/diagonals/cuda_core_tuning.h"
#include "spmv/fragments/tuning.h"
#include "spmv/sell/cuda_core_tuning.h"
#endif

namespace tcbound::bench {

Bench::Bench(const Matrix &a, Executor &e, std::int64_t n)
  : matrix(a), executor(e), count(n), x(e, n * a.columns_count), z(e, n * a.rows), offsets(e, a.rows + 1),
    columns(e, a.nonzeros()), values(e, a.nonzeros()), doubled(e, a.nonzeros()) {
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
  KernelRunner(const Bench &bench, const Kernel &kernel, std::unique_ptr<Format> format)
    : executor_(bench.executor), kernel_(kernel),
      format_(std::move(format)), columns_{bench.count, bench.matrix.columns_count, 0, bench.matrix.rows} {
    format_->prepare(executor_, false);
    executor_.synchronize();
  }

  void multiply(const double *x, double *z) override {
    Product product;
    product.x = x;
    product.z = z;
    if (columns_.count == 1)
      kernel_.apply(executor_, *format_, product);
    else
      kernel_.apply_columns(executor_, *format_, product, columns_);
  }
  bool refill(const double *values) override {
    format_->refill(executor_, values, executor_.space());
    return true;
  }
  Arithmetic   arithmetic() const override { return format_->arithmetic(); }
  Work         work() const override { return format_->work_of_columns(false, false, columns_.count); }
  std::int64_t stored_bytes() const override { return format_->stored_bytes(); }

private:
  Executor               &executor_;
  const Kernel           &kernel_;
  std::unique_ptr<Format> format_;
  Columns                 columns_;
};

} // namespace

std::vector<Contender> kernel_contenders(Bench &bench, [[maybe_unused]] bool variants, [[maybe_unused]] bool mma, bool lossy) {
  std::vector<Contender> all;
  Executor              &executor = bench.executor;
  for (const Kernel *kernel : all_kernels()) {
    if (kernel->op() != "spmv" || kernel->space() != executor.space()) continue;
    all.push_back({kernel->name(), false, kernel->check(executor.device(), bench.problem), [&bench, &executor, kernel] {
                     return std::make_unique<KernelRunner>(bench, *kernel, kernel->build(executor, bench.problem));
                   }});
    for (const ArithmeticFacts &facts : arithmetics) {
      Problem problem = bench.problem;
      problem.arithmetic = facts.arithmetic;
      const std::string why_not = kernel->check(executor.device(), problem);
      if (!lossy || facts.arithmetic == Arithmetic::fp64 || !why_not.empty()) continue; // most kernels have no other
      all.push_back({kernel->name() + ":" + facts.name, false, "", [&bench, &executor, kernel, problem] {
                       return std::make_unique<KernelRunner>(bench, *kernel, kernel->build(executor, problem));
                     }});
    }
#ifdef TCBOUND_HAVE_CUDA
    for (const MmaShapeFacts &shape : mma_shapes) {
      if (!mma || kernel->backend() != "tensor_core") break;
      Problem problem = bench.problem;
      problem.mma = shape.shape;
      all.push_back({kernel->name() + ":" + shape.name, false, kernel->check(executor.device(), problem),
                     [&bench, &executor, kernel, problem] {
                       return std::make_unique<KernelRunner>(bench, *kernel, kernel->build(executor, problem));
                     }});
    }
    if (!variants) continue;
    const auto add_variants = [&](const auto &of, const auto &build) {
      for (const auto &variant : of)
        all.push_back({kernel->name() + ":" + variant.name, false, "", [&bench, &executor, kernel, &variant, build] {
                         return std::make_unique<KernelRunner>(bench, *kernel,
                                                               build(executor, bench.problem.csr, variant.config));
                       }});
    };
    if (kernel->name() == "spmv/csr/cuda_core") add_variants(csr::cuda_core_variants(), csr::build_cuda_core);
    if (kernel->name() == "spmv/diagonals/cuda_core") add_variants(diagonals::cuda_core_variants(), diagonals::build_cuda_core);
    if (kernel->name() == "spmv/sell/cuda_core") add_variants(sell::cuda_core_variants(), sell::build_cuda_core);
    if (kernel->format() == "fragments") {
      const MmaShape shape = kernel->backend() == "tensor_core" ? MmaShape::m8n8k4 : MmaShape::automatic;
      add_variants(fragments::variants(), [shape](Executor &e, const CsrView &view, const fragments::Config &config) {
        return fragments::build(e, view, shape, config);
      });
    }
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
  const std::string why_not = bench.count > 1 ? "it is timed with one column only" : "";
  return {"petsc/aij", true, why_not, [&bench] { return std::make_unique<PetscRunner>(bench.matrix); }};
}

} // namespace tcbound::bench
