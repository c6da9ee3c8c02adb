// Which kernel a matrix takes, and its format: by what the kernels promise, or by timing them on the matrix.
#include "aijtcbound.h"

#include <limits>

#include <petsctime.h>

// The matrix that candidates are built from. Where several on a device may be, it is brought there once for all of them.
struct BuildSource {
  tcbound::Problem       host, device;
  tcbound::Array<char>   offsets, columns; // of `device`; empty: each candidate brings the matrix there for itself
  tcbound::Array<double> values;

  bool on_device(const tcbound::Candidate &candidate) const {
    return candidate.kernel->space() == tcbound::MemorySpace::cuda && offsets.size() > 0;
  }
  const tcbound::Problem &of(const tcbound::Candidate &candidate) const { return on_device(candidate) ? device : host; }
};

static tcbound::Array<char> Upload(tcbound::Executor &executor, const tcbound::IndexView &from, std::int64_t size) {
  tcbound::Array<char> to(executor, size * from.bytes);
  executor.copy(to.data(), executor.space(), from.data, tcbound::MemorySpace::host, static_cast<std::size_t>(to.bytes()));
  return to;
}

// Nothing is uploaded where there is no memory for it beside what candidates need, nor where rows with entries are to be listed, which
// is done in host memory.
static PetscErrorCode MakeSource(Mat A, const std::vector<tcbound::Candidate> &candidates, const tcbound::Problem &problem,
                                 BuildSource *source) {
  const tcbound::CsrView &csr = problem.csr;

  PetscFunctionBegin;
  source->host = problem;
  if (problem.in_place || candidates.size() < 2 || candidates[1].kernel->space() != tcbound::MemorySpace::cuda || !csr.nonzeros)
    PetscFunctionReturn(PETSC_SUCCESS);
  tcbound::Executor &executor = *candidates[0].executor;
  PetscCall(TCBoundUsePetscStream(executor));
  try {
    tcbound::Array<char> offsets = Upload(executor, csr.row_offsets, csr.rows + 1);
    source->columns = Upload(executor, csr.columns, csr.nonzeros);
    source->values = tcbound::Array<double>(executor, csr.nonzeros);
    executor.copy(source->values.data(), executor.space(), csr.values, tcbound::MemorySpace::host,
                  static_cast<std::size_t>(source->values.bytes()));
    source->offsets = std::move(offsets);
  } catch (const tcbound::Error &error) {
    PetscCheck(error.code() == tcbound::ErrorCode::out_of_memory, PETSC_COMM_SELF, TCBoundErrorCode(error), "%s", error.what());
    PetscCall(PetscInfo(A, "The matrix is brought to the device anew for each candidate: %s\n", error.what()));
    source->columns = tcbound::Array<char>();
    source->values = tcbound::Array<double>();
    PetscFunctionReturn(PETSC_SUCCESS);
  } catch (const std::bad_alloc &) {
    SETERRQ(PETSC_COMM_SELF, PETSC_ERR_MEM, "out of host memory");
  }
  source->device = problem;
  source->device.csr.space = tcbound::MemorySpace::cuda;
  source->device.csr.row_offsets.data = source->offsets.data();
  source->device.csr.columns.data = source->columns.data();
  source->device.csr.values = source->values.data();
  PetscFunctionReturn(PETSC_SUCCESS);
}

static std::unique_ptr<tcbound::Format> Build(const tcbound::Candidate &candidate, const tcbound::Problem &problem) {
  std::unique_ptr<tcbound::Format> format = candidate.kernel->build(*candidate.executor, problem);

  format->prepare(*candidate.executor, false);
  candidate.executor->synchronize();
  return format;
}

// Without memory for what was uploaded and the format, tries again without the former.
static std::unique_ptr<tcbound::Format> Build(const tcbound::Candidate &candidate, BuildSource &source) {
  const tcbound::Problem &problem = source.of(candidate);

  try {
    return Build(candidate, problem);
  } catch (const tcbound::Error &error) {
    if (error.code() != tcbound::ErrorCode::out_of_memory || &problem == &source.host) throw;
  }
  source.offsets = tcbound::Array<char>();
  source.columns = tcbound::Array<char>();
  source.values = tcbound::Array<double>();
  return Build(candidate, source.host);
}

// Without memory for a look at it, it may suit.
static bool Suits(const tcbound::Candidate &candidate, const tcbound::Problem &problem) {
  try {
    return candidate.kernel->suits(*candidate.executor, problem);
  } catch (const tcbound::Error &error) {
    if (error.code() != tcbound::ErrorCode::out_of_memory) throw;
  }
  return true;
}

// Without memory for its format, or with a matrix that this turns out not to take, a candidate is none.
static bool MayBeLeftOut(const tcbound::Error &error) {
  return error.code() == tcbound::ErrorCode::out_of_memory || error.code() == tcbound::ErrorCode::unsupported;
}

// Bytes that loading x row by row takes of the second-level cache, if one of the candidates knows.
static double GatheredBytes(const std::vector<tcbound::Candidate> &candidates, const BuildSource &source) {
  double sectors = 0;

  for (const tcbound::Candidate &candidate : candidates) {
    if (!source.on_device(candidate)) continue;
    try {
      sectors = std::max(sectors, candidate.kernel->gathered_sectors(*candidate.executor, source.device));
    } catch (const tcbound::Error &error) {
      if (error.code() != tcbound::ErrorCode::out_of_memory) throw;
    }
  }
  return 32.0 * sectors * static_cast<double>(source.host.csr.nonzeros);
}

// Whether no later candidate has the same executor.
static bool IsLast(const std::vector<tcbound::Candidate> &candidates, std::size_t i) {
  return i + 1 == candidates.size() || candidates[i + 1].executor != candidates[i].executor;
}

static void Take(Mat_SeqAIJTCBound *t, const tcbound::Candidate &candidate, std::unique_ptr<tcbound::Format> format) {
  t->kernel = candidate.kernel;
  t->executor = candidate.executor;
  t->on_device = t->executor->space() == tcbound::MemorySpace::cuda;
  t->format = std::move(format);
}

// The candidates come by what they promise. They are built in turn while the next one promises to cost less than the best so far
// does; the best is kept. One that cannot be built is left out, unless none on its side can.
static PetscErrorCode ChooseByModel(Mat A, const std::vector<tcbound::Candidate> &candidates, const tcbound::Problem &problem) {
  Mat_SeqAIJTCBound *t = static_cast<Mat_SeqAIJTCBound *>(A->spptr);
  double             best = std::numeric_limits<double>::max(), gathered;
  BuildSource        source;

  PetscFunctionBegin;
  t->format.reset();
  PetscCall(MakeSource(A, candidates, problem, &source));
  TCBoundCallCXX(gathered = GatheredBytes(candidates, source));
  for (std::size_t i = 0; i < candidates.size(); i++) {
    const tcbound::Candidate        &candidate = candidates[i];
    const bool                       last = IsLast(candidates, i);
    std::unique_ptr<tcbound::Format> format;

    if (t->format && candidate.executor != t->executor) break;
    if (t->format && !tcbound::worth_building(candidate, best, gathered)) continue;
    if (!last && gathered == 0 && candidate.kernel->instead_of_gathering()) {
      PetscCall(PetscInfo(A, "%s is not built: no samples say that others would gather x\n", candidate.kernel->name().c_str()));
      continue;
    }
    PetscCall(TCBoundUsePetscStream(*candidate.executor));
    if (!last && source.on_device(candidate)) {
      bool suits;

      TCBoundCallCXX(suits = Suits(candidate, source.device));
      if (!suits) {
        PetscCall(PetscInfo(A, "%s is not built: samples of the matrix promise nothing\n", candidate.kernel->name().c_str()));
        continue;
      }
    }
    try {
      format = Build(candidate, source);
    } catch (const tcbound::Error &error) {
      PetscCheck(MayBeLeftOut(error) && (t->format || !last), PETSC_COMM_SELF, TCBoundErrorCode(error), "%s", error.what());
      PetscCall(PetscInfo(A, "%s is left out: %s\n", candidate.kernel->name().c_str(), error.what()));
      continue;
    } catch (const std::bad_alloc &) {
      SETERRQ(PETSC_COMM_SELF, PETSC_ERR_MEM, "out of host memory");
    }
    const double cost = tcbound::cost(*format, problem.in_place, gathered);
    PetscCall(PetscInfo(A, "%s costs as much as %g bytes at full bandwidth\n", candidate.kernel->name().c_str(), cost));
    if (cost >= best) continue;
    best = cost;
    Take(t, candidate, std::move(format));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

// Seconds of a product, or of one in place: the least of a few, after one that warms up.
static double TimeProduct(const tcbound::Candidate &candidate, tcbound::Format &format, const tcbound::Problem &problem) {
  tcbound::Executor        &executor = *candidate.executor;
  const tcbound::CsrView   &csr = problem.csr;
  tcbound::Array<double>    x(executor, csr.columns_count), z(executor, csr.rows);
  const std::vector<double> ones(static_cast<std::size_t>(csr.columns_count), 1.0);
  const std::vector<double> zeros(static_cast<std::size_t>(problem.in_place ? csr.rows : 0));
  const auto                interval = executor.interval();
  tcbound::Product          product;
  double                    least = std::numeric_limits<double>::max();

  executor.copy(x.data(), executor.space(), ones.data(), tcbound::MemorySpace::host, ones.size() * sizeof(double));
  product.x = x.data();
  product.z = z.data();
  if (problem.in_place) {
    executor.copy(z.data(), executor.space(), zeros.data(), tcbound::MemorySpace::host, zeros.size() * sizeof(double));
    product.beta = 1.0;
    product.y = z.data();
  }
  candidate.kernel->apply(executor, format, product);
  for (int repeat = 0; repeat < 4; repeat++) {
    interval->begin();
    candidate.kernel->apply(executor, format, product);
    interval->end();
    least = std::min(least, interval->seconds());
  }
  return least;
}

// Times all candidates of the first one's side while there is time, and keeps the fastest. One that finds no memory beside the
// fastest so far is left out.
static PetscErrorCode ChooseByTime(Mat A, const std::vector<tcbound::Candidate> &candidates, const tcbound::Problem &problem) {
  Mat_SeqAIJTCBound *t = static_cast<Mat_SeqAIJTCBound *>(A->spptr);
  PetscLogDouble     start, now;
  double             fastest = std::numeric_limits<double>::max();
  BuildSource        source;

  PetscFunctionBegin;
  PetscCall(PetscTime(&start));
  t->format.reset();
  PetscCall(MakeSource(A, candidates, problem, &source));
  for (std::size_t i = 0; i < candidates.size(); i++) {
    const tcbound::Candidate        &candidate = candidates[i];
    std::unique_ptr<tcbound::Format> format;
    double                           seconds = 0;

    if (candidate.kernel->space() != candidates[0].kernel->space()) break;
    PetscCall(PetscTime(&now));
    if (t->format && now - start > t->settings.tune_seconds) {
      PetscCall(PetscInfo(A, "No time left to try %s\n", candidate.kernel->name().c_str()));
      continue;
    }
    PetscCall(TCBoundUsePetscStream(*candidate.executor));
    try {
      format = Build(candidate, source);
      seconds = TimeProduct(candidate, *format, problem);
    } catch (const tcbound::Error &error) {
      PetscCheck(MayBeLeftOut(error) && (t->format || !IsLast(candidates, i)), PETSC_COMM_SELF, TCBoundErrorCode(error), "%s",
                 error.what());
      PetscCall(PetscInfo(A, "%s is left out: %s\n", candidate.kernel->name().c_str(), error.what()));
      continue;
    } catch (const std::bad_alloc &) {
      SETERRQ(PETSC_COMM_SELF, PETSC_ERR_MEM, "out of host memory");
    }
    PetscCall(PetscInfo(A, "%s takes %g s a product\n", candidate.kernel->name().c_str(), seconds));
    if (seconds >= fastest) continue;
    fastest = seconds;
    Take(t, candidate, std::move(format));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatSeqAIJTCBoundChooseFormat(Mat A, const tcbound::Problem &problem) {
  Mat_SeqAIJTCBound              *t = static_cast<Mat_SeqAIJTCBound *>(A->spptr);
  PetscLogDouble                  start, end;
  std::vector<tcbound::Candidate> candidates;

  PetscFunctionBegin;
  PetscCall(PetscTime(&start));
  PetscCall(TCBoundMatSettingsRank(t->settings, t->bound, problem, &candidates));
  PetscErrorCode status;
  if (t->settings.tune == "measure" && problem.csr.nonzeros > 0) {
    status = ChooseByTime(A, candidates, problem);
  } else {
    tcbound::leave_out_tensor_cores(candidates);
    status = ChooseByModel(A, candidates, problem);
  }
  if (status) t->format.reset(); // it may be there, but not what belongs to it
  PetscCall(status);
  PetscCall(PetscTime(&end));
  t->setup_seconds = end - start;
  t->builds++;
  t->nonempty_rows = 0;
  for (PetscInt row = 0; row < A->rmap->n; row++) t->nonempty_rows += t->source.i[row + 1] > t->source.i[row];
  PetscCall(PetscInfo(A, "Built %s for %" PetscInt_FMT " nonzeros in %g s\n", t->kernel->name().c_str(), t->source.nonzeros,
                      (double)t->setup_seconds));
  PetscFunctionReturn(PETSC_SUCCESS);
}
