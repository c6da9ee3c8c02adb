// spmv/compact/cuda_core: the kernels, which give each block its part of a section, their launch, and the format on a device. What
// a warp does is in multiply_slices.h and multiply_columns.h.
#include <algorithm>
#include <type_traits>
#include <utility>
#include <vector>

#include "../../stencil/grid/device_view.h"
#include "../csr/with_transpose.h"
#include "cuda/error.h"
#include "device_matrix.h"
#include "multiply_columns.h"
#include "multiply_slices.h"
#include "sample.h"

namespace tcbound {
namespace compact {
namespace {

// Blocks of a section's product: first its exceptions, a thread each, then slices that are in no column, then columns, a warp
// each. What takes long for its size comes first.
struct Blocks {
  std::int64_t exceptions, slices, columns;

  std::int64_t count() const { return columns + slices + exceptions; }
};

constexpr int threads = 32 * block_slices;

// What a warp of constant slices waits for is latency: as many as fit.
constexpr int constant_blocks = 6; // of a multiprocessor's threads and registers

template <bool constant> __device__ void multiply_slices(const Arguments<constant> &a, std::int64_t part) {
  const int          depth = a.section.depth;
  const std::int64_t first = part * (depth * block_slices) + threadIdx.x / 32;
  for (int level = 0; level < depth; ++level) {
    const std::int64_t i = first + level * block_slices;
    if (i < a.rest_count) multiply_slice(a, a.rest ? __ldg(a.rest + i) : i);
  }
}

template <bool constant> __device__ void multiply_exceptions(const Arguments<constant> &a, std::int64_t part) {
  const std::int64_t e = part * threads + threadIdx.x;
  if (e < a.section.exception_count) multiply_exception(a, e);
}

template <bool constant>
__global__ void __launch_bounds__(threads, constant ? constant_blocks : 1)
  multiply_section(const __grid_constant__ Arguments<constant> a, const __grid_constant__ Blocks blocks) {
  if (blockIdx.x < blocks.exceptions)
    multiply_exceptions(a, blockIdx.x);
  else
    multiply_slices(a, blockIdx.x - blocks.exceptions);
}

template <int shape>
__global__ void __launch_bounds__(threads)
  multiply_columns(const __grid_constant__ Arguments<true> a, const __grid_constant__ ColumnsView columns,
                   const __grid_constant__ Blocks blocks) {
  const std::int64_t slices = blockIdx.x - blocks.exceptions, group = slices - blocks.slices;
  const std::int64_t column = group * block_slices + threadIdx.x / 32;
  if (slices < 0)
    multiply_exceptions(a, blockIdx.x);
  else if (group < 0)
    multiply_slices(a, slices);
  else if (column < columns.count)
    climb<shape>(columns, a.x, load(columns.columns + column), [&](std::int64_t row, const Rows2 &rows, const Sums2 &sums) {
      store(a, row, rows.has_first, rows.has_second, sums.first, sums.second);
    });
}

template <int shape>
void launch_columns(const Arguments<true> &a, const Columns &columns, const Blocks &blocks, cudaStream_t stream) {
  if constexpr (shape < shape_count) {
    if (columns.stencil.shape == shape)
      multiply_columns<shape><<<static_cast<unsigned>(blocks.count()), threads, 0, stream>>>(a, view_of(columns), blocks);
    else
      launch_columns<shape + 1>(a, columns, blocks, stream);
  }
}

std::int64_t divide_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

// The march writes all rows of the box; what it writes to those of others is overwritten next, unless that is what they add to.
void march_through(const Marched &m, const Product &p, cudaStream_t stream) {
  grid::DeviceGrid       cells = {};
  grid::DeviceBox        box = {};
  grid::DeviceExceptions others = {};
  for (int d = 0; d < 3; ++d) cells.n[d] = box.end[d] = static_cast<int>(m.n[d]);
  cells.pitch = cells.n[0];
  cells.dof = 1;
  if (p.beta != 0.0 && p.y == p.z && m.others.size() > 0) others.bits = m.others.data();
  m.marcher->launch(stream, cells, {p.alpha, p.beta, p.x, nullptr, p.y, p.z}, others, box);
}

template <bool constant> void launch(Executor &executor, const Section &section, std::int64_t columns, const Product &p) {
  if (section.slices.size() == 0) return;
  const auto                 stream = static_cast<cudaStream_t>(executor.stream());
  const bool                 marched = section.marched.marcher != nullptr;
  const std::int64_t         columns_count = section.columns.count();
  const Array<std::int32_t> *rest = marched ? &section.marched.rest : columns_count > 0 ? &section.columns.rest : nullptr;
  const std::int64_t         rest_count = rest ? rest->size() : section.slices.size();
  Arguments<constant>        arguments = {
           view_of(section), rest ? rest->data() : nullptr, rest_count, p.x, columns, p.alpha, p.beta, p.y, p.z, {}};
  if (marched) {
    march_through(section.marched, p, stream);
    arguments.section.exceptions = section.marched.exceptions.data();
    arguments.section.exception_count = section.marched.exceptions.size();
  }
  const Blocks blocks = {divide_up(arguments.section.exception_count, threads),
                         divide_up(rest_count, section.depth * block_slices), divide_up(columns_count, block_slices)};
  if (blocks.count() == 0) return;
  if constexpr (constant) {
    std::copy(section.hot_segments.begin(), section.hot_segments.end(), arguments.hot.segments);
    if (columns_count > 0) {
      launch_columns<0>(arguments, section.columns, blocks, stream);
      TCBOUND_LAUNCHED();
      return;
    }
  }
  multiply_section<constant><<<static_cast<unsigned>(blocks.count()), threads, 0, stream>>>(arguments, blocks);
  TCBOUND_LAUNCHED();
}

} // namespace

void multiply(Executor &executor, DeviceMatrix &matrix, const Product &product) {
  launch<true>(executor, matrix.constant, matrix.csr.columns_count, product);
  launch<false>(executor, matrix.explicit_, matrix.csr.columns_count, product);
  matrix.remainder_product.multiply(executor, matrix.remainder, product, matrix.remainder_rows.data(),
                                    matrix.narrow_values.data());
}

namespace {

// The transpose is a compact matrix of its own, built when first needed.
class CudaCoreFormat final : public Format {
public:
  CudaCoreFormat(Executor &executor, const CsrView &view, const BuildChoices &choices)
    : choices_(choices),
      matrices_(compact::build(executor, csr::bring_to_device(executor, view, csr::needs_wide_offsets(view)), choices)) {}

  const char *name() const override { return "compact"; }

  void prepare(Executor &executor, bool transpose) override {
    if (transpose)
      matrices_.prepare(executor, [&](csr::DeviceArrays csr) { return compact::build(executor, std::move(csr), choices_); });
  }

  void refill(Executor &executor, const double *values, MemorySpace space) override {
    matrices_.refill(executor, values, space,
                     [&](DeviceMatrix &matrix, const double *from) { refill(executor, matrix, from); });
  }

  void diagonal(Executor &executor, double *d) override { compact::diagonal(executor, plain(), d); }

  // Of a transpose that is not there yet, the least that it can be.
  Work work(bool transpose, bool accumulate) const override {
    if (!transpose) return count_work(plain().census, accumulate);
    if (matrices_.have_transpose()) return count_work(matrices_.of(true).census, accumulate);
    Census least;
    least.rows = plain().csr.columns_count;
    least.columns = plain().csr.rows;
    least.nonzeros = plain().csr.nonzeros;
    return count_work(least, accumulate);
  }

  std::int64_t stored_bytes() const override { return matrices_.bytes(); }

  double      usual_share() const override { return compact::usual_share(plain().census); }
  std::string describe() const override { return compact::describe(plain().census); }

  const DeviceMatrix &plain() const { return matrices_.plain(); }

  void multiply(Executor &executor, const Product &product) {
    prepare(executor, product.transpose);
    compact::multiply(executor, matrices_.of(product.transpose), product);
  }

private:
  // Rows that shared a row pattern may have parted; then constant slices are given up for good, so that values that change again
  // and again cost no more than one such rebuilding.
  void refill(Executor &executor, DeviceMatrix &matrix, const double *values) {
    if (compact::refill(executor, matrix, values)) return;
    csr::DeviceArrays csr = recover(executor, matrix);
    executor.copy(csr.values.data(), MemorySpace::cuda, values, MemorySpace::cuda,
                  static_cast<std::size_t>(csr.values.bytes()));
    matrix = DeviceMatrix(); // memory may not do for both; should it not do for the new one either, none is left
    choices_.allow_constant = false;
    matrix = compact::build(executor, std::move(csr), choices_);
  }

  BuildChoices                     choices_;
  csr::WithTranspose<DeviceMatrix> matrices_;
};

const DeviceMatrix &matrix_of(const Format &format) { return static_cast<const CudaCoreFormat &>(format).plain(); }

} // namespace

std::unique_ptr<Format> build_cuda_core(Executor &executor, const CsrView &view, const BuildChoices &choices) {
  return std::make_unique<CudaCoreFormat>(executor, view, choices);
}

const Census &census_of(const Format &format) { return matrix_of(format).census; }

std::int64_t slices_in_columns(const Format &format) {
  const Section &section = matrix_of(format).constant;
  return section.columns.count() > 0 ? section.slices.size() - section.columns.rest.size() : 0;
}

std::int64_t marched_rows(const Format &format) {
  const Marched &marched = matrix_of(format).constant.marched;
  return marched.marcher ? marched.rows : 0;
}

std::int64_t patterns_with_hot_values(Executor &executor, const Format &format) {
  const Array<Pattern> &from = matrix_of(format).constant.patterns;
  std::vector<Pattern>  patterns(static_cast<std::size_t>(from.size()));
  executor.copy(patterns.data(), MemorySpace::host, from.data(), MemorySpace::cuda, static_cast<std::size_t>(from.bytes()));
  return std::count_if(patterns.begin(), patterns.end(), [](const Pattern &pattern) { return pattern.hot >= 0; });
}

csr::RecoveredCsr recover_cuda_core(Executor &executor, const Format &format) {
  return csr::read_back(executor, recover(executor, matrix_of(format)));
}

} // namespace compact

namespace {

class CompactCudaCore final : public Kernel {
public:
  CompactCudaCore() : Kernel("spmv", "compact", "cuda_core") {}

  MemorySpace space() const override { return MemorySpace::cuda; }

  std::string check(const Device &device, const Problem &problem) const override { return csr::check_device(device, problem); }

  Work predict(const Problem &problem, bool transpose, bool accumulate) const override {
    return compact::least_work(problem.csr, transpose, accumulate);
  }

  bool suits(Executor &executor, const Problem &problem) const override {
    return compact::repeats_patterns(executor, problem.csr);
  }

  std::unique_ptr<Format> build(Executor &executor, const Problem &problem) const override {
    const std::string why_not = check(executor.device(), problem);
    if (!why_not.empty()) throw Error(ErrorCode::unsupported, name() + ": " + why_not);
    return compact::build_cuda_core(executor, problem.csr, {});
  }

  void apply(Executor &executor, Format &format, const Product &product) const override {
    static_cast<compact::CudaCoreFormat &>(format).multiply(executor, product);
  }
};

} // namespace

const Kernel &spmv_compact_cuda_core() {
  static const CompactCudaCore kernel;
  return kernel;
}

} // namespace tcbound
