// spmv/compact/cuda_core: a warp multiplies a slice, two neighbouring rows a lane.
//
// All lanes of a warp read the same segment of the same pattern, so a segment of m columns takes m + 1 neighbouring elements of x
// for a lane's two rows, and pairs of them come with one 16-byte load where they are aligned. What bounds a constant slice is the
// rate at which the first-level cache delivers x; what bounds an explicit one is memory.
#include <algorithm>
#include <type_traits>
#include <utility>

#include "cuda/error.h"
#include "device_matrix.h"
#include "multiply_columns.h"
#include "section_view.h"

namespace tcbound {
namespace compact {
namespace {

// Segments of the constant section's most frequent patterns, in the kernel's parameters: broadcasting from there costs the
// first-level cache nothing, while there a broadcast takes as long as any other load.
struct HotSegments {
  int             count;
  ConstantSegment segments[most_hot_segments];
};
struct NoHotSegments {};

template <bool constant> struct Arguments {
  SectionView                                              section;
  const std::int32_t                                      *rest; // numbers of the slices that are in no column, or null for all
  std::int64_t                                             rest_count;
  const double                                            *x;
  std::int64_t                                             columns;
  double                                                   alpha, beta;
  const double                                            *y;
  double                                                  *z;
  std::conditional_t<constant, HotSegments, NoHotSegments> hot;
};

template <bool constant> __device__ double scale(const Arguments<constant> &a, std::int64_t row, double sum) {
  const double result = a.alpha * sum;
  return a.beta != 0.0 ? result + a.beta * a.y[row] : result;
}

// A lane's two rows, those that it has; by a whole warp. Pairs go out together: half-written sectors cost the second-level cache
// as much as whole ones.
template <bool constant>
__device__ void store(const Arguments<constant> &a, std::int64_t row, bool has_first, bool has_second, double first,
                      double second) {
  constexpr unsigned all = 0xffffffffU;
  first = has_first ? scale(a, row, first) : 0.0;
  second = has_second ? scale(a, row + 1, second) : 0.0;
  double *z = a.z + row;
  if (!__all_sync(all, has_first && has_second)) {
    if (has_first) z[0] = first;
    if (has_second) z[1] = second;
  } else if (reinterpret_cast<std::uintptr_t>(z) % 16 == 0) {
    *reinterpret_cast<double2 *>(z) = make_double2(first, second);
  } else { // pairs of a lane's second row and the next lane's first
    const int    lane = static_cast<int>(threadIdx.x % 32);
    const double next = __shfl_down_sync(all, first, 1);
    if (lane == 0) z[0] = first;
    if (lane < 31)
      *reinterpret_cast<double2 *>(z + 1) = make_double2(second, next);
    else
      z[1] = second;
  }
}

template <class T> __device__ T load(const T *from) {
  static_assert(sizeof(T) % 16 == 0 || sizeof(T) == 8);
  if constexpr (sizeof(T) == 8) {
    const int2 words = __ldg(reinterpret_cast<const int2 *>(from));
    T          to;
    memcpy(&to, &words, 8);
    return to;
  } else {
    int4 words[sizeof(T) / 16];
    T    to;
    for (int i = 0; i < static_cast<int>(sizeof(T) / 16); ++i) words[i] = __ldg(reinterpret_cast<const int4 *>(from) + i);
    memcpy(&to, words, sizeof(T));
    return to;
  }
}

__device__ double2 load_pair(const double *x) { return __ldg(reinterpret_cast<const double2 *>(x)); }

// w[i] = x[i] for i <= m.
template <int m, bool aligned> __device__ void load_run(const double *x, double (&w)[longest_run + 1]) {
  if (!aligned) w[0] = __ldg(x);
#pragma unroll
  for (int at = !aligned; at <= m; at += 2) {
    if (at == m) {
      w[at] = __ldg(x + at);
    } else {
      const double2 pair = load_pair(x + at);
      w[at] = pair.x;
      w[at + 1] = pair.y;
    }
  }
}

// The same where some of the elements may lie outside x; the rows of the slice do not need those.
template <int m>
__device__ void load_guarded(const double *x, std::int64_t row, int offset, std::int64_t columns,
                             double (&w)[longest_run + 1]) {
#pragma unroll
  for (int i = 0; i <= m; ++i) w[i] = row + offset + i >= 0 && row + offset + i < columns ? __ldg(x + offset + i) : 0.0;
}

struct Sums {
  double first = 0.0, second = 0.0; // of a lane's two rows
};

// Entries that a lane's two rows have, the next one in bit 0. Only patterns of at most 64 entries have rows that lack some, so
// all that follows the 64th is there.
struct Masks {
  std::uint64_t first, second;

  __device__ void advance(int entries) {
    const std::uint64_t more = ~std::uint64_t(0) << (64 - entries);
    first = first >> entries | more;
    second = second >> entries | more;
  }
};

// Where the segments of a slice's pattern and a lane's matrix values come from.
template <class From> struct ConstantSource {
  From from;

  __device__ ConstantSegment       next() { return from.next(); }
  template <int m> __device__ void values(const ConstantSegment &segment, double2 (&v)[m]) {
#pragma unroll
    for (int j = 0; j < m; ++j) v[j] = make_double2(segment.values[j], segment.values[j]);
  }
};

struct FromTable {
  const ConstantSegment     *at;
  __device__ ConstantSegment next() { return load(at++); }
};

struct FromParameters {
  const HotSegments                &hot;
  int                               at;
  __device__ const ConstantSegment &next() { return hot.segments[at++]; }
};

// Matrix values are read once: they pass by the first-level cache and leave the second first. Those of the next segment are on
// their way while one is used, so that a warp always has something to wait for.
struct ExplicitSource {
  const Segment *at;
  const double  *from;
  int            left; // segments not yet loaded
  std::uint64_t  policy;
  Segment        ahead = {0, 0};
  double2        ready[longest_run], now[longest_run];

  __device__ ExplicitSource(const Segment *segments, int count, const double *values)
    : at(segments), from(values), left(count) {
    asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
    load_ahead();
  }
  __device__ void load_ahead() {
    if (left-- <= 0) return;
    ahead = load(at++);
#pragma unroll
    for (int j = 0; j < longest_run; ++j)
      if (j < ahead.count)
        asm volatile("ld.global.nc.L1::no_allocate.L2::cache_hint.v2.f64 {%0, %1}, [%2], %3;"
                     : "=d"(ready[j].x), "=d"(ready[j].y)
                     : "l"(from + j * slice_rows), "l"(policy));
    from += ahead.count * slice_rows;
  }
  __device__ Segment next() {
    const Segment segment = ahead;
#pragma unroll
    for (int j = 0; j < longest_run; ++j) now[j] = ready[j];
    load_ahead();
    return segment;
  }
  template <int m> __device__ void values(const Segment &, double2 (&v)[m]) {
#pragma unroll
    for (int j = 0; j < m; ++j) v[j] = now[j];
  }
};

// A lane's place: x of its first row, whether that is not aligned to 16 bytes, the row, and how long x is.
struct Place {
  const double *x;
  bool          odd;
  std::int64_t  row, columns;
};

template <int m, bool inside, bool masked, class Source, class Segment>
__device__ void add_segment(const Place &place, const Segment &segment, Source &source, Masks &masks, Sums &sums) {
  double  w[longest_run + 1];
  double2 v[m];
  source.values(segment, v);
  if (!inside)
    load_guarded<m>(place.x, place.row, segment.offset, place.columns, w);
  else if (place.odd == (segment.offset & 1))
    load_run<m, true>(place.x + segment.offset, w);
  else
    load_run<m, false>(place.x + segment.offset, w);
#pragma unroll
  for (int j = 0; j < m; ++j) {
    if (!masked || masks.first >> j & 1) sums.first = fma(v[j].x, w[j], sums.first);
    if (!masked || masks.second >> j & 1) sums.second = fma(v[j].y, w[j + 1], sums.second);
  }
  if (masked) masks.advance(m);
}

template <bool inside, bool masked, class Source>
__device__ Sums add_segments(const Place &place, int segments, Source source, Masks masks) {
  Sums sums;
  for (int i = 0; i < segments; ++i) {
    const auto segment = source.next();
    if (segment.count == 3)
      add_segment<3, inside, masked>(place, segment, source, masks, sums);
    else if (segment.count == 1)
      add_segment<1, inside, masked>(place, segment, source, masks, sums);
    else
      add_segment<2, inside, masked>(place, segment, source, masks, sums);
  }
  return sums;
}

// The part of a pattern that a product needs.
struct Stretch {
  std::int64_t first_segment;
  std::int32_t segments, entries;
};

template <bool constant> __device__ void multiply_slice(const Arguments<constant> &a, std::int64_t s) {
  const Slice   slice = load(a.section.slices + s);
  const Stretch stretch = load(reinterpret_cast<const Stretch *>(a.section.patterns + number_of(slice)));
  const int     lane = static_cast<int>(threadIdx.x % 32);
  Place         place;
  place.row = slice.first_row + 2 * static_cast<std::int64_t>(lane); // of the last slice it may be more than 32 bits hold
  place.x = a.x + place.row;
  place.odd = (reinterpret_cast<std::uintptr_t>(place.x) / 8) & 1;
  place.columns = a.columns;
  const bool masked = slice.pattern & Slice::has_partials, inside = !(slice.pattern & Slice::reaches_outside);
  RowEntries first = {(slice.rows >> (2 * lane) & 1) != 0, ~std::uint64_t(0)}, second = first;
  second.present = slice.rows >> (2 * lane + 1) & 1;
  if (masked) {
    first = row_of(a.section, s, slice, 2 * lane);
    second = row_of(a.section, s, slice, 2 * lane + 1);
  }
  const auto add = [&](const auto &source) {
    const Masks masks = {first.entries, second.entries};
    if (!inside) return add_segments<false, true>(place, stretch.segments, source, masks);
    return masked ? add_segments<true, true>(place, stretch.segments, source, masks)
                  : add_segments<true, false>(place, stretch.segments, source, masks);
  };
  Sums sums;
  if constexpr (!constant)
    sums = add(ExplicitSource(a.section.segments + stretch.first_segment, stretch.segments,
                              a.section.values + __ldg(a.section.value_begin + s) + 2 * lane));
  else if (stretch.first_segment + stretch.segments <= a.hot.count)
    sums = add(ConstantSource<FromParameters>{{a.hot, static_cast<int>(stretch.first_segment)}});
  else
    sums = add(ConstantSource<FromTable>{{a.section.constant_segments + stretch.first_segment}});
  store(a, place.row, first.present, second.present, sums.first, sums.second);
}

template <bool constant> __device__ auto segments_of(const SectionView &section) {
  if constexpr (constant)
    return section.constant_segments;
  else
    return section.segments;
}

// One thread an exception.
template <bool constant> __device__ void multiply_exception(const Arguments<constant> &a, std::int64_t e) {
  const Exception exception = load(a.section.exceptions + e);
  const Stretch   stretch = load(reinterpret_cast<const Stretch *>(a.section.patterns + exception.pattern));
  const double   *values = constant ? nullptr : a.section.values + __ldg(a.section.exception_values + e);
  double          sum = 0.0;
  for (std::int64_t i = stretch.first_segment; i < stretch.first_segment + stretch.segments; ++i) {
    const auto    segment = load(segments_of<constant>(a.section) + i);
    const double *x = a.x + exception.row + segment.offset;
#pragma unroll
    for (int j = 0; j < longest_run; ++j) {
      if (j >= segment.count) continue;
      double v;
      if constexpr (constant)
        v = segment.values[j];
      else
        v = __ldg(values + j * slice_rows);
      sum = fma(v, __ldg(x + j), sum);
    }
    if (!constant) values += segment.count * slice_rows;
  }
  a.z[exception.row] = scale(a, exception.row, sum);
}

// Blocks of a section's product: first its exceptions, a thread each, then slices that are in no column, then columns, a warp
// each. What takes long for its size comes first.
struct Blocks {
  std::int64_t exceptions, slices, columns;

  std::int64_t count() const { return columns + slices + exceptions; }
};

constexpr int threads = 32 * block_slices;

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
__global__ void __launch_bounds__(threads)
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

template <bool constant> void launch(Executor &executor, const Section &section, std::int64_t columns, const Product &p) {
  if (section.slices.size() == 0) return;
  const auto          stream = static_cast<cudaStream_t>(executor.stream());
  const std::int64_t  columns_count = section.columns.count();
  const std::int64_t  rest = columns_count > 0 ? section.columns.rest.size() : section.slices.size();
  const Blocks        blocks = {divide_up(section.exceptions.size(), threads), divide_up(rest, section.depth * block_slices),
                                divide_up(columns_count, block_slices)};
  Arguments<constant> arguments = {view_of(section),
                                   columns_count > 0 ? section.columns.rest.data() : nullptr,
                                   rest,
                                   p.x,
                                   columns,
                                   p.alpha,
                                   p.beta,
                                   p.y,
                                   p.z,
                                   {}};
  if constexpr (constant) {
    arguments.hot.count = static_cast<int>(section.hot_segments.size());
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
      plain_(compact::build(executor, csr::copy_to_device(executor, view, csr::needs_wide_offsets(view)), choices)) {}

  const char *name() const override { return "compact"; }

  void prepare(Executor &executor, bool transpose) override {
    if (!transpose || have_transpose_) return;
    // In two steps, so that the recovered CSR is freed before building takes its memory.
    csr::DeviceArrays csr = transposition_.transpose(executor, recover(executor, plain_));
    transposed_ = compact::build(executor, std::move(csr), choices_);
    have_transpose_ = true;
  }

  void refill(Executor &executor, const double *values, MemorySpace space) override {
    Array<double> copied;
    if (space == MemorySpace::host) {
      copied = Array<double>(executor, plain_.csr.nonzeros);
      executor.copy(copied.data(), MemorySpace::cuda, values, MemorySpace::host, static_cast<std::size_t>(copied.bytes()));
      values = copied.data();
    }
    refill(executor, plain_, values);
    if (have_transpose_) {
      Array<double> gathered(executor, plain_.csr.nonzeros);
      transposition_.gather(executor, values, gathered.data());
      refill(executor, transposed_, gathered.data());
    }
    executor.synchronize(); // the arrays here are freed on return
  }

  void diagonal(Executor &executor, double *d) override { compact::diagonal(executor, plain_, d); }

  // Of a transpose that is not there yet, the least that it can be.
  Work work(bool transpose, bool accumulate) const override {
    if (!transpose) return count_work(plain_.census, accumulate);
    if (have_transpose_) return count_work(transposed_.census, accumulate);
    Census least;
    least.rows = plain_.csr.columns_count;
    least.columns = plain_.csr.rows;
    least.nonzeros = plain_.csr.nonzeros;
    return count_work(least, accumulate);
  }

  std::int64_t stored_bytes() const override { return plain_.bytes() + transposed_.bytes() + transposition_.bytes(); }

  std::string describe() const override { return compact::describe(plain_.census); }

  const DeviceMatrix &plain() const { return plain_; }

  void multiply(Executor &executor, const Product &product) {
    prepare(executor, product.transpose);
    compact::multiply(executor, product.transpose ? transposed_ : plain_, product);
  }

private:
  // Rows that shared a row pattern may have parted; then constant slices are given up for good, so that values that change again
  // and again cost no more than one such rebuilding.
  void refill(Executor &executor, DeviceMatrix &matrix, const double *values) {
    if (compact::refill(executor, matrix, values)) return;
    csr::DeviceArrays csr = recover(executor, matrix);
    executor.copy(csr.values.data(), MemorySpace::cuda, values, MemorySpace::cuda,
                  static_cast<std::size_t>(csr.values.bytes()));
    executor.synchronize();  // what still reads the matrix
    matrix = DeviceMatrix(); // memory may not do for both; should it not do for the new one either, none is left
    choices_.allow_constant = false;
    matrix = compact::build(executor, std::move(csr), choices_);
  }

  BuildChoices       choices_;
  DeviceMatrix       plain_, transposed_;
  csr::Transposition transposition_;
  bool               have_transpose_ = false;
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

RecoveredCsr recover_cuda_core(Executor &executor, const Format &format) {
  const csr::DeviceArrays a = recover(executor, matrix_of(format));
  RecoveredCsr            to;
  const auto              copy = [&](auto &host, const auto &device) {
    using T = std::remove_cv_t<std::remove_pointer_t<decltype(device.data())>>;
    std::vector<std::remove_const_t<T>> read(static_cast<std::size_t>(device.size()));
    executor.copy(read.data(), MemorySpace::host, device.data(), MemorySpace::cuda, static_cast<std::size_t>(device.bytes()));
    host.assign(read.begin(), read.end());
  };
  if (a.wide)
    copy(to.offsets, a.wide_offsets);
  else
    copy(to.offsets, a.narrow_offsets);
  copy(to.columns, a.columns);
  copy(to.values, a.values);
  return to;
}

} // namespace compact

namespace {

class CompactCudaCore final : public Kernel {
public:
  CompactCudaCore() : Kernel("spmv", "compact", "cuda_core") {}

  MemorySpace space() const override { return MemorySpace::cuda; }

  std::string check(const Device &device, const Problem &problem) const override {
    return csr::check_device(device, problem.csr);
  }

  Work predict(const Problem &problem, bool transpose, bool accumulate) const override {
    return compact::least_work(problem.csr, transpose, accumulate);
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
