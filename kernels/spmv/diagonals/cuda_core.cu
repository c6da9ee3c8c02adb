// spmv/diagonals/cuda_core: the kernel, its launch, and the format on a device. What a thread does is in multiply.h.
#include <algorithm>
#include <type_traits>

#include "../csr/with_transpose.h"
#include "cuda/error.h"
#include "cuda_core_tuning.h"
#include "multiply.h"

namespace tcbound {
namespace diagonals {
namespace {

constexpr Tile columns_tile = {32, 4, 2, 1};

// The nodes of a thread lie one above the other in the tile's last direction.
template <class Value, int node, int many, int columns, int batch, Count count, int most>
__global__ void __launch_bounds__(columns > 1 ? columns_tile.threads() : most_threads)
  multiply_nodes(const __grid_constant__ ArgumentsOf<most> a) {
  const std::int64_t x = static_cast<std::int64_t>(blockIdx.x) * blockDim.x, in_line = x + threadIdx.x;
  const std::int64_t y = static_cast<std::int64_t>(blockIdx.y) * a.height, in_plane = (y + threadIdx.y) * a.line + in_line;
  const std::int64_t z = static_cast<std::int64_t>(blockIdx.z) * a.depth, p = (z + threadIdx.z) * a.plane + in_plane;
  const std::int64_t first = z * a.plane + y * a.line + x, last = first + a.reach;
  if (in_line >= a.line) return;
  Nodes<node, many, columns> mine;
#pragma unroll
  for (int r = 0; r < many; ++r) {
    mine.p[r] = p + r * a.step;
    mine.there[r] = in_plane + r * a.step_in_plane < a.plane && mine.p[r] < a.nodes;
    if (!mine.there[r]) mine.p[r] = a.nodes - 1; // as good as any
#pragma unroll
    for (int k = 0; k < columns; ++k)
#pragma unroll
      for (int c = 0; c < node; ++c) mine.sums[r][k][c] = 0.0;
  }
  if (!mine.there[0]) return;
  const bool edge = first < a.below || last + a.above >= a.nodes;
#pragma unroll 1
  for (int k = 0; k < (count == Count::batch ? 1 : a.count); k += batch)
    if (edge)
      add_offsets<Value, node, many, columns, batch, count, true>(a, k, mine);
    else
      add_offsets<Value, node, many, columns, batch, count, false>(a, k, mine);
  store<node, many, columns>(a, mine);
}

template <class Value, int node, int many, int columns, int batch, Count count>
void launch(Executor &executor, const Arguments &a, const Offset *offsets, const dim3 &grid, const dim3 &block) {
  constexpr int     most = count == Count::batch ? batch : most_offsets;
  ArgumentsOf<most> all;
  static_cast<Arguments &>(all) = a;
  std::copy(offsets, offsets + a.count, all.offsets);
  multiply_nodes<Value, node, many, columns, batch, count, most>
    <<<grid, block, 0, static_cast<cudaStream_t>(executor.stream())>>>(all);
  TCBOUND_LAUNCHED();
}

using Launch = void (*)(Executor &, const Arguments &, const Offset *, const dim3 &, const dim3 &);

// The first of the kernels for such nodes that allows this many offsets.
template <class Value> Launch launch_of(int node, int many, int count) {
  static constexpr struct {
    int    node, many, batch;
    Count  count;
    Launch launch;
  } kernels[] = {
    {1, 2, 5, Count::batch, launch<Value, 1, 2, 1, 5, Count::batch>},
    {1, 2, 7, Count::batch, launch<Value, 1, 2, 1, 7, Count::batch>},
    {1, 2, 5, Count::any, launch<Value, 1, 2, 1, 5, Count::any>},
    {1, 1, 9, Count::batches, launch<Value, 1, 1, 1, 9, Count::batches>},
    {1, 1, 9, Count::any, launch<Value, 1, 1, 1, 9, Count::any>},
    {2, 1, 3, Count::batches, launch<Value, 2, 1, 1, 3, Count::batches>},
    {2, 1, 3, Count::any, launch<Value, 2, 1, 1, 3, Count::any>},
    {3, 1, 3, Count::batches, launch<Value, 3, 1, 1, 3, Count::batches>},
    {3, 1, 2, Count::any, launch<Value, 3, 1, 1, 2, Count::any>},
    {4, 1, 1, Count::batches, launch<Value, 4, 1, 1, 1, Count::batches>},
  };
  const auto *kernel = kernels;
  const auto  fits = [&] {
    return kernel->node == node && kernel->many == many &&
           (kernel->count == Count::batch ? count == kernel->batch : kernel->count == Count::any || count % kernel->batch == 0);
  };
  while (!fits()) ++kernel;
  return kernel->launch;
}

Launch launch_of(const DeviceMatrix &matrix, int many) {
  Launch launch = nullptr;
  with_values(matrix, [&](const auto *values) {
    using Value = std::remove_const_t<std::remove_pointer_t<decltype(values)>>;
    launch = launch_of<Value>(matrix.table.node, many, static_cast<int>(matrix.offsets.size()));
  });
  return launch;
}

// Of products with several columns at once.
template <int columns> Launch launch_of_columns(int node) {
  static constexpr Launch launches[] = {
    launch<double, 1, 1, columns, 2, Count::any>, launch<double, 2, 1, columns, 1, Count::batches>,
    launch<double, 3, 1, columns, 1, Count::batches>, launch<double, 4, 1, columns, 1, Count::batches>};
  return launches[node - 1];
}

std::int64_t divide_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

// With few offsets a thread has too few loads under way with one node, and large blocks would end too raggedly. With many, tiles
// are for the first-level cache, and as wide as wastes the fewest threads at the end of a line; without mirror images there is less
// in it to find.
Tile usual_tile(const DeviceMatrix &matrix) {
  if (offset_count(matrix.table) <= (matrix.table.mirrored ? 7 : 11)) return {32, 2, 1, 2};
  const std::int64_t line = matrix.line;
  return divide_up(line, 32) * 32 > divide_up(line, 16) * 16 ? Tile{16, 4, 4, 1} : Tile{32, 4, 4, 1};
}

// Tiles of the grid as far as one is seen.
void choose_tiles(Arguments &a, const DeviceMatrix &matrix, const Tile &tile, int many, dim3 &grid, dim3 &block) {
  const std::int64_t most = 65535; // blocks in the second and third direction
  block = dim3(tile.threads(), 1, 1);
  a.line = a.plane = a.nodes;
  a.height = a.depth = 1;
  a.step_in_plane = 0;
  if (matrix.line > 0 && matrix.plane > 0 && divide_up(a.nodes, matrix.plane) <= most && matrix.plane / matrix.line < most) {
    block = dim3(tile.width, tile.height, tile.depth);
    a.line = matrix.line;
    a.plane = matrix.plane;
    a.height = tile.height;
    a.depth = many * tile.depth;
    a.step = tile.depth * a.plane;
  } else if (matrix.line > 0 && matrix.plane == 0 && divide_up(a.nodes, matrix.line) <= most) {
    block = dim3(tile.width, tile.height * tile.depth, 1);
    a.line = matrix.line;
    a.height = many * tile.height * tile.depth;
    a.step = a.step_in_plane = tile.height * tile.depth * a.line;
  } else {
    a.line = divide_up(a.nodes, many);
    a.plane = a.nodes;
    a.step = a.step_in_plane = a.line;
    a.height = many;
  }
  a.reach = (a.depth - 1) * a.plane + (a.height - 1) * a.line + block.x - 1;
  grid = dim3(static_cast<unsigned>(divide_up(a.line, block.x)),
              static_cast<unsigned>(divide_up(divide_up(a.plane, a.line), a.height)),
              static_cast<unsigned>(divide_up(divide_up(a.nodes, a.plane), a.depth)));
}

Arguments arguments_of(const DeviceMatrix &matrix, const Product &product, const Columns &columns) {
  const Table &table = matrix.table;
  Arguments    a;
  a.values = matrix.values.data();
  a.irregular = matrix.irregular.data();
  a.nodes = matrix.nodes;
  a.stride = matrix.stride;
  a.below = -std::min(offset_of(table, 0), 0);
  a.above = std::max(offset_of(table, offset_count(table) - 1), 0);
  a.x = product.x;
  a.alpha = product.alpha;
  a.beta = product.beta;
  a.y = product.y;
  a.z = product.z;
  a.next_x = columns.x;
  a.next_y = columns.y;
  a.next_z = columns.z;
  a.count = static_cast<int>(matrix.offsets.size());
  return a;
}

// How many of `left` columns a launch takes.
std::int64_t width_of(const DeviceMatrix &matrix, std::int64_t left) {
  if (matrix.census.value_bytes < 8) return 1;
  return left >= 8 ? 8 : left >= 4 ? 4 : left >= 2 ? 2 : 1;
}

} // namespace

void multiply(Executor &executor, DeviceMatrix &matrix, const Product &product, const Tile &asked) {
  if (!all_remainder(matrix.table)) {
    const Tile tile = asked.width > 0 ? asked : usual_tile(matrix);
    const int  node = matrix.table.node, many = node == 1 ? tile.many : 1;
    Arguments  a = arguments_of(matrix, product, {});
    dim3       grid, block;
    choose_tiles(a, matrix, tile, many, grid, block);
    launch_of(matrix, many)(executor, a, matrix.offsets.data(), grid, block);
  }
  if (matrix.remainder.rows > 0)
    matrix.remainder_product.multiply(executor, matrix.remainder, product, matrix.remainder_rows.data());
}

std::int64_t passes_of_columns(const DeviceMatrix &matrix, std::int64_t count) {
  std::int64_t passes = 0;
  for (; count > 0; count -= width_of(matrix, count)) ++passes;
  return passes;
}

void multiply_columns(Executor &executor, DeviceMatrix &matrix, const Product &product, const Columns &columns,
                      const Tile &tile) {
  for (std::int64_t k = 0; k < columns.count && !all_remainder(matrix.table); k += width_of(matrix, columns.count - k)) {
    const std::int64_t width = width_of(matrix, columns.count - k);
    Arguments          a = arguments_of(matrix, from_column(product, columns, k), columns);
    dim3               grid, block;
    const int          node = matrix.table.node;
    const Tile         one = tile.width > 0 ? tile : usual_tile(matrix);
    const int          many = width == 1 && node == 1 ? one.many : 1;
    choose_tiles(a, matrix, width == 1 ? one : columns_tile, many, grid, block);
    const Launch launch = width == 8   ? launch_of_columns<8>(node)
                          : width == 4 ? launch_of_columns<4>(node)
                          : width == 2 ? launch_of_columns<2>(node)
                                       : launch_of(matrix, many);
    launch(executor, a, matrix.offsets.data(), grid, block);
  }
  for (std::int64_t k = 0; k < columns.count && matrix.remainder.rows > 0; ++k)
    matrix.remainder_product.multiply(executor, matrix.remainder, from_column(product, columns, k),
                                      matrix.remainder_rows.data());
}

namespace {

// Whether a matrix is its own transpose for all that is known: blocks of several rows may not be symmetric on the diagonal.
bool is_symmetric(const DeviceMatrix &matrix) {
  return matrix.table.mirrored && matrix.table.node == 1 && matrix.remainder.rows == 0;
}

// The transpose is a matrix of its own, built when first needed, unless the matrix is symmetric.
class CudaCoreFormat final : public Format {
public:
  CudaCoreFormat(Executor &executor, const CsrView &view, const CudaCoreConfig &config)
    : config_(config), matrices_(diagonals::build(executor, csr::bring_to_device(executor, view, csr::needs_wide_offsets(view)),
                                                  view.space == MemorySpace::cuda, config.build)) {}

  const char *name() const override { return "diagonals"; }

  void prepare(Executor &executor, bool transpose) override {
    if (transpose && !is_symmetric(plain()))
      matrices_.prepare(
        executor, [&](csr::DeviceArrays csr) { return diagonals::build(executor, std::move(csr), false, config_.build); });
  }

  void refill(Executor &executor, const double *values, MemorySpace space) override {
    matrices_.refill(executor, values, space,
                     [&](DeviceMatrix &matrix, const double *from) { refill(executor, matrix, from); });
  }

  void diagonal(Executor &executor, double *d) override { diagonals::diagonal(executor, plain(), d); }

  // Of a transpose that is not there yet, the least that it can be.
  Work work(bool transpose, bool accumulate) const override {
    if (!transpose || is_symmetric(plain())) return count_work(plain().census, accumulate);
    if (matrices_.have_transpose()) return count_work(matrices_.of(true).census, accumulate);
    CsrView view;
    view.rows = plain().csr.rows;
    view.columns_count = plain().csr.columns_count;
    view.nonzeros = plain().csr.nonzeros;
    return least_work(view, true, accumulate);
  }

  // The regular part of the matrix is read once for several columns, the remainder for each.
  Work work_of_columns(bool transpose, bool accumulate, std::int64_t count) const override {
    const DeviceMatrix &matrix = matrices_.of(transpose && !is_symmetric(plain()));
    Work                all = count * work(transpose, accumulate);
    all.bytes -= (count - passes_of_columns(matrix, count)) * matrix.census.value_bytes * matrix.census.places;
    all.compulsory_bytes = all.bytes;
    return all;
  }

  std::int64_t stored_bytes() const override { return matrices_.bytes(); }

  double      usual_share() const override { return diagonals::usual_share(plain().census); }
  std::string describe() const override { return diagonals::describe(plain().census); }

  const DeviceMatrix &plain() const { return matrices_.plain(); }

  void multiply(Executor &executor, const Product &product) {
    prepare(executor, product.transpose);
    diagonals::multiply(executor, matrices_.of(product.transpose && !is_symmetric(plain())), product, config_.tile);
  }

  void multiply(Executor &executor, const Product &product, const Columns &columns) {
    prepare(executor, product.transpose);
    diagonals::multiply_columns(executor, matrices_.of(product.transpose && !is_symmetric(plain())), product, columns,
                                config_.tile);
  }

private:
  // Values that are no longer symmetric, or exact in few bits, are not looked at for that again, so that values that change again and
  // again cost no more than two such rebuildings.
  void refill(Executor &executor, DeviceMatrix &matrix, const double *values) {
    const Refilled refilled = diagonals::refill(executor, matrix, values);
    if (refilled == Refilled::done) return;
    csr::DeviceArrays csr = recover(executor, matrix);
    executor.copy(csr.values.data(), MemorySpace::cuda, values, MemorySpace::cuda,
                  static_cast<std::size_t>(csr.values.bytes()));
    matrix = DeviceMatrix(); // memory may not do for both; should it not do for the new one either, none is left
    (refilled == Refilled::not_stored ? config_.build.allow_narrow : config_.build.allow_mirrored) = false;
    matrix = diagonals::build(executor, std::move(csr), false, config_.build);
  }

  CudaCoreConfig                   config_;
  csr::WithTranspose<DeviceMatrix> matrices_;
};

const DeviceMatrix &matrix_of(const Format &format) { return static_cast<const CudaCoreFormat &>(format).plain(); }

} // namespace

const std::vector<CudaCoreVariant> &cuda_core_variants() {
  static const auto make = [](const Tile &tile, BuildChoices build) {
    CudaCoreConfig config;
    config.tile = tile;
    config.build = build;
    return config;
  };
  static const std::vector<CudaCoreVariant> variants = {{"32x4x4", make({32, 4, 4, 1}, {})},
                                                        {"16x4x4", make({16, 4, 4, 1}, {})},
                                                        {"32x2x1-2", make({32, 2, 1, 2}, {})},
                                                        {"256x1x1", make({256, 1, 1, 1}, {})},
                                                        {"both-halves", make({0, 0, 0, 1}, {0, false})},
                                                        {"node1", make({0, 0, 0, 1}, {1, true})}};
  return variants;
}

std::unique_ptr<Format> build_cuda_core(Executor &executor, const CsrView &view, const CudaCoreConfig &config) {
  const Tile &tile = config.tile;
  if (tile.width < 0 || tile.height < 0 || tile.depth < 0 || (tile.many != 1 && tile.many != 2) || tile.depth > 64 ||
      tile.threads() % 32 != 0 || tile.threads() > most_threads || config.build.node < 0 || config.build.node > most_node)
    throw Error(ErrorCode::invalid, "spmv/diagonals/cuda_core: a tuning choice is out of range");
  return std::make_unique<CudaCoreFormat>(executor, view, config);
}

const Census &census_of(const Format &format) { return matrix_of(format).census; }

csr::RecoveredCsr recover_cuda_core(Executor &executor, const Format &format) {
  return csr::read_back(executor, recover(executor, matrix_of(format)));
}

} // namespace diagonals

namespace {

class DiagonalsCudaCore final : public Kernel {
public:
  DiagonalsCudaCore() : Kernel("spmv", "diagonals", "cuda_core") {}

  MemorySpace space() const override { return MemorySpace::cuda; }

  std::string check(const Device &device, const Problem &problem) const override { return csr::check_device(device, problem); }

  Work predict(const Problem &problem, bool transpose, bool accumulate) const override {
    return diagonals::least_work(problem.csr, transpose, accumulate);
  }

  std::unique_ptr<Format> build(Executor &executor, const Problem &problem) const override {
    const std::string why_not = check(executor.device(), problem);
    if (!why_not.empty()) throw Error(ErrorCode::unsupported, name() + ": " + why_not);
    return diagonals::build_cuda_core(executor, problem.csr, {});
  }

  void apply(Executor &executor, Format &format, const Product &product) const override {
    static_cast<diagonals::CudaCoreFormat &>(format).multiply(executor, product);
  }

  void apply_columns(Executor &executor, Format &format, const Product &product, const Columns &columns) const override {
    static_cast<diagonals::CudaCoreFormat &>(format).multiply(executor, product, columns);
  }
};

} // namespace

const Kernel &spmv_diagonals_cuda_core() {
  static const DiagonalsCudaCore kernel;
  return kernel;
}

} // namespace tcbound
