// -mat_tcbound_compare: every product also runs on the other kernels that can, so that the log compares kernels on the
// application's own matrices and vectors.
#include "aijtcbound.h"

#include <cmath>
#include <limits>

#include <petsctime.h>

std::vector<const tcbound::Kernel *> tcbound_mat_compare_more;

// One of the other kernels.
struct TCBoundMatRival {
  const tcbound::Kernel           *kernel = nullptr;
  std::unique_ptr<tcbound::Format> format;
  tcbound::Array<double>           z;
  TCBoundLogRow                    rows[TCBOUND_MAT_OPS] = {};
};

struct TCBoundMatCompare {
  std::vector<TCBoundMatRival> rivals;
  PetscInt                     builds = -1, refills = -1;   // of the matrix's own format, when these were made
  PetscInt64                   calls[TCBOUND_MAT_OPS] = {}; // with this pattern
  std::size_t                  turn = 0;                    // so many rivals run before the matrix's own kernel
  bool                         check = false;               // this product's results are compared
  std::vector<double>          x, y;                        // on the host, if so
};

// Brings the rivals in step with the matrix's own format.
static PetscErrorCode CompareUpdate(Mat A, TCBoundMatCompare *c) {
  Mat_SeqAIJTCBound *t = static_cast<Mat_SeqAIJTCBound *>(A->spptr);
  tcbound::Problem   problem;
  TCBoundMatSource   source;
  PetscLogDouble     start, end;

  PetscFunctionBegin;
  if (c->builds == t->builds && c->refills == t->refills) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscTime(&start));
  PetscCall(MatSeqAIJTCBoundGetProblem(A, &problem, &source));
  if (c->builds == t->builds) {
    c->builds = -1; // if a refill fails, all are built anew
    for (TCBoundMatRival &rival : c->rivals)
      TCBoundCallCXX(rival.format->refill(*t->executor, problem.csr.values, problem.csr.space));
  } else {
    std::vector<const tcbound::Kernel *> kernels = tcbound::all_kernels();
    kernels.insert(kernels.end(), tcbound_mat_compare_more.begin(), tcbound_mat_compare_more.end());
    *c = TCBoundMatCompare();
    for (const tcbound::Kernel *kernel : kernels) {
      const bool other = kernel != t->kernel && kernel->op() == t->kernel->op() && kernel->space() == t->executor->space();
      if (!other || !kernel->check(t->executor->device(), problem).empty()) continue;
      TCBoundMatRival rival;
      rival.kernel = kernel;
      TCBoundCallCXX(rival.format = kernel->build(*t->executor, problem));
      c->rivals.push_back(std::move(rival));
    }
    if (c->rivals.empty()) PetscCall(TCBoundLogAddAlone());
  }
  TCBoundCallCXX(t->executor->synchronize());
  c->builds = t->builds;
  c->refills = t->refills;
  PetscCall(PetscTime(&end));
  PetscCall(TCBoundLogAddCompare(0, end - start));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode RunRival(Mat A, TCBoundMatOp op, const tcbound::Product &own, TCBoundMatRival &rival) {
  Mat_SeqAIJTCBound *t = static_cast<Mat_SeqAIJTCBound *>(A->spptr);
  tcbound::Product   product = own;
  TCBoundLogRow      row;

  PetscFunctionBegin;
  product.z = rival.z.data();
  if (own.in_place()) { // so is the rival's product, on a copy of y: it is not the same work otherwise
    const PetscInt outputs = own.transpose ? A->cmap->n : A->rmap->n;
    TCBoundCallCXX(t->executor->copy(product.z, t->executor->space(), own.y, t->executor->space(),
                                     static_cast<std::size_t>(outputs) * sizeof(double)));
    product.y = product.z;
  }
  PetscCall(MatSeqAIJTCBoundGetLogRow(A, op, *rival.kernel, *rival.format, &rival.rows[op], &row));
  PetscCall(TCBoundLogSetExtra(row));
  PetscCall(MatSeqAIJTCBoundCount(A, *rival.kernel, *rival.format, product, row));
  if (row) PetscCall(TCBoundLogBegin(row, *t->executor));
  TCBoundCallCXX(rival.kernel->apply(*t->executor, *rival.format, product));
  if (row) PetscCall(TCBoundLogEnd(row, *t->executor, tcbound::work_of(*rival.format, product)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ToHost(tcbound::Executor &executor, const double *from, PetscInt n, std::vector<double> *to) {
  PetscFunctionBegin;
  TCBoundCallCXX(to->resize(static_cast<std::size_t>(n)));
  TCBoundCallCXX(executor.copy(to->data(), tcbound::MemorySpace::host, from, executor.space(),
                               static_cast<std::size_t>(n) * sizeof(double)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatSeqAIJTCBoundCompareBefore(Mat A, TCBoundMatOp op, const tcbound::Product &product, bool in_place) {
  Mat_SeqAIJTCBound *t = static_cast<Mat_SeqAIJTCBound *>(A->spptr);
  const PetscInt inputs = product.transpose ? A->rmap->n : A->cmap->n, outputs = product.transpose ? A->cmap->n : A->rmap->n;
  PetscLogDouble start, end;

  PetscFunctionBegin;
  if (!t->compare) TCBoundCallCXX(t->compare = std::make_shared<TCBoundMatCompare>());
  TCBoundMatCompare *c = t->compare.get();
  PetscCall(CompareUpdate(A, c));
  const PetscInt64 call = c->calls[op]++;
  // In turns, so that none always finds its input in a cache. What is overwritten must have been read before.
  c->turn = in_place ? c->rivals.size() : static_cast<std::size_t>(call) % (c->rivals.size() + 1);
  c->check = !c->rivals.empty() && ((call + 1) & call) == 0; // the first, second, fourth, ...
  for (TCBoundMatRival &rival : c->rivals) {
    TCBoundCallCXX(if (rival.z.size() < outputs) rival.z = tcbound::Array<double>(*t->executor, outputs);
                   rival.format->prepare(*t->executor, product.transpose));
  }
  if (c->check) {
    PetscCall(PetscTime(&start));
    PetscCall(ToHost(*t->executor, product.x, inputs, &c->x));
    if (product.beta != 0) PetscCall(ToHost(*t->executor, product.y, outputs, &c->y));
    PetscCall(PetscTime(&end));
    PetscCall(TCBoundLogAddCompare(0, end - start));
  }
  for (std::size_t i = 0; i < c->turn; i++) PetscCall(RunRival(A, op, product, c->rivals[i]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode TCBoundCompareResults(const tcbound::Problem &problem, const tcbound::Product &product, const double z[],
                                     const double other[], PetscInt *row, double *allowed) {
  const tcbound::CsrView   &csr = problem.csr;
  const bool                lossy = problem.arithmetic != tcbound::Arithmetic::fp64;
  const std::int64_t        outputs = product.transpose ? csr.columns_count : csr.rows;
  const double              eps = std::numeric_limits<double>::epsilon();
  double                    worst = 1.0;
  std::vector<double>       sizes;
  std::vector<std::int64_t> entries;

  PetscFunctionBegin;
  TCBoundCallCXX(sizes.resize(static_cast<std::size_t>(outputs)); entries.resize(static_cast<std::size_t>(outputs)));
  for (std::int64_t i = 0; i < csr.rows; i++) {
    for (std::int64_t k = csr.row_offsets[i]; k < csr.row_offsets[i + 1]; k++) {
      const std::int64_t output = product.transpose ? csr.columns[k] : i, input = product.transpose ? i : csr.columns[k];
      sizes[static_cast<std::size_t>(output)] += std::abs(csr.values[k] * product.x[input]);
      entries[static_cast<std::size_t>(output)]++;
    }
  }
  *row = -1;
  *allowed = 0;
  for (std::int64_t i = 0; i < outputs; i++) {
    const std::size_t at = static_cast<std::size_t>(i);
    const double      size = sizes[at] + (product.y && product.beta != 0 ? std::abs(product.y[i]) : 0);
    // Where sums overflow or are not numbers, their order may decide what comes out.
    if (z[i] == other[i] || !std::isfinite(size)) continue;
    if (lossy && (sizes[at] > 1e38 || (std::isnan(z[i]) && std::isnan(other[i])))) continue; // the same, at FP32's end
    double bound = 2 * static_cast<double>(entries[at] + 2) * eps * size;
    if (lossy)
      bound += 2 * (tcbound::lossy_sum_error(entries[at], tcbound::summed_in_fp32) * sizes[at] +
                    static_cast<double>(entries[at]) * 0x1p-126);
    const double difference = std::abs(z[i] - other[i]);
    const double over = bound > 0 ? difference / bound : std::numeric_limits<double>::infinity();
    if (!std::isnan(over) && over <= worst) continue;
    worst = over;
    *row = static_cast<PetscInt>(i);
    *allowed = bound;
    if (std::isnan(over)) break; // a result that is not a number
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CheckRivals(Mat A, TCBoundMatOp op, const tcbound::Product &own, TCBoundMatCompare *c) {
  static const char *const what[TCBOUND_MAT_OPS] = {"A x", "A x + y", "A^T x", "A^T x + y"};
  Mat_SeqAIJTCBound       *t = static_cast<Mat_SeqAIJTCBound *>(A->spptr);
  const PetscInt           outputs = own.transpose ? A->cmap->n : A->rmap->n;
  tcbound::Problem         problem;
  TCBoundMatSource         source;
  tcbound::Product         product = own;
  std::vector<double>      z, other;
  PetscInt                 row;
  double                   allowed;

  PetscFunctionBegin;
  PetscCall(MatSeqAIJTCBoundGetProblem(A, &problem, &source));
  product.x = c->x.data();
  product.y = product.beta != 0 ? c->y.data() : NULL;
  PetscCall(ToHost(*t->executor, own.z, outputs, &z));
  for (TCBoundMatRival &rival : c->rivals) {
    PetscCall(ToHost(*t->executor, rival.z.data(), outputs, &other));
    PetscCall(TCBoundCompareResults(problem, product, z.data(), other.data(), &row, &allowed));
    PetscCheck(row < 0, PETSC_COMM_SELF, PETSC_ERR_PLIB,
               "-mat_tcbound_compare: %s and %s differ in row %" PetscInt_FMT
               " of %s: %.17g and %.17g, by %g where rounding allows %g",
               t->kernel->name().c_str(), rival.kernel->name().c_str(), row, what[op], z[static_cast<std::size_t>(row)],
               other[static_cast<std::size_t>(row)],
               std::abs(z[static_cast<std::size_t>(row)] - other[static_cast<std::size_t>(row)]), allowed);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatSeqAIJTCBoundCompareAfter(Mat A, TCBoundMatOp op, const tcbound::Product &product) {
  TCBoundMatCompare *c = static_cast<Mat_SeqAIJTCBound *>(A->spptr)->compare.get();
  PetscLogDouble     start, end;

  PetscFunctionBegin;
  for (std::size_t i = c->turn; i < c->rivals.size(); i++) PetscCall(RunRival(A, op, product, c->rivals[i]));
  if (!c->check) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscTime(&start));
  PetscCall(CheckRivals(A, op, product, c));
  PetscCall(PetscTime(&end));
  PetscCall(TCBoundLogAddCompare(static_cast<PetscLogDouble>(c->rivals.size()), end - start));
  PetscFunctionReturn(PETSC_SUCCESS);
}
