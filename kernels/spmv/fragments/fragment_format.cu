#include "fragment_format.h"

#include <cstdio>

#include "columns.h"
#include "spmv/csr/pack_rows.h"

namespace tcbound::fragments {

namespace {

std::int64_t slots_of(const DeviceMatrix &m) { return m.counts.steps() * warp_lanes * values_of_lane(m.node); }

// As mma.h has it. Rows that share a fragment row take an instruction each.
std::int64_t issued_flops(const DeviceMatrix &m, MmaShape mma) {
  if (mma == MmaShape::automatic) return 2 * slots_of(m);
  const MmaShapeFacts &shape = facts_of(mma);
  const std::int64_t   steps = shape.k / 4; // of one instruction
  const std::int64_t   of_steps = shape.m == 16 && m.node > 1 ? slices / 2 : values_of_lane(m.node);
  std::int64_t         instructions = 0;
  for (std::size_t c = 0; c < m.counts.groups.size(); ++c)
    for (std::int64_t s = 1; s <= max_step_count; ++s) {
      const std::int64_t each = c == 0 ? 4 * slices : (c == 1 ? 2 * slices : (s + steps - 1) / steps * of_steps);
      instructions += m.counts.groups[c][static_cast<std::size_t>(s)] * each;
    }
  return instructions * 2 * shape.m * shape.n * shape.k;
}

// An instruction takes the rows of one node (of siblings, of both) in 4 columns of the matrix a step, and as many columns of x as it
// has rows.
std::int64_t issued_flops_of_columns(const DeviceMatrix &m, MmaShape mma, std::int64_t padded) {
  const MmaShapeFacts &shape = facts_of(mma);
  const std::int64_t   steps = shape.k / 4, units = warp_lanes / 4 * columns_of_lane(m.node) / m.siblings;
  std::int64_t         instructions = 0;
  for (std::int64_t s = 1; s <= max_step_count; ++s)
    instructions += m.counts.groups[2][static_cast<std::size_t>(s)] * ((s + steps - 1) / steps) * units;
  return padded / shape.m * instructions * 2 * shape.m * shape.n * shape.k;
}

} // namespace

FragmentFormat::FragmentFormat(Executor &executor, const CsrView &view, MmaShape mma, const Config &config,
                               Arithmetic arithmetic)
  : mma_(mma), config_(config) {
  csr::DeviceArrays a = csr::bring_to_device(executor, view, csr::needs_wide_offsets(view));
  plain_ = DeviceMatrix(executor, a, config_, arithmetic);
}

void FragmentFormat::prepare(Executor &executor, bool transpose) {
  if (!transpose || have_transpose_) return;
  const csr::DeviceArrays a = plain_.recover(executor);
  csr::DeviceArrays       of_transpose = transposition_.transpose(executor, a);
  transposed_ = DeviceMatrix(executor, of_transpose, config_, arithmetic());
  have_transpose_ = true;
}

void FragmentFormat::refill(Executor &executor, const double *values, MemorySpace space) {
  Array<double> uploaded(executor, space == MemorySpace::cuda ? 0 : plain_.nonzeros);
  if (space != MemorySpace::cuda) {
    executor.copy(uploaded.data(), MemorySpace::cuda, values, space, static_cast<std::size_t>(uploaded.bytes()));
    values = uploaded.data();
  }
  plain_.refill(executor, values);
  if (have_transpose_) {
    Array<double> in_order(executor, plain_.nonzeros);
    transposition_.gather(executor, values, in_order.data());
    transposed_.refill(executor, in_order.data());
  }
  executor.synchronize(); // the values may change, and the executor may be on another stream when the matrix is used
}

Work FragmentFormat::work(bool transpose, bool accumulate) const {
  if (transpose && !have_transpose_) { // not known before it is built
    Problem sizes;
    sizes.csr.rows = plain_.rows;
    sizes.csr.columns_count = plain_.columns_count;
    sizes.csr.nonzeros = plain_.nonzeros;
    sizes.arithmetic = arithmetic();
    return predict(sizes, true, accumulate);
  }
  const DeviceMatrix &m = transpose ? transposed_ : plain_;
  const std::int64_t  outputs = transpose ? plain_.columns_count : plain_.rows;
  Work                work;
  work.useful_flops = 2 * plain_.nonzeros;
  work.issued_flops = issued_flops(m, mma_);
  work.padded_flops = 2 * slots_of(m);
  work.bytes = m.product_bytes() + 8 * (plain_.rows + plain_.columns_count) + (accumulate ? 8 * outputs : 0);
  work.compulsory_bytes = work.bytes;
  return work;
}

// The matrix is read once for all columns; x is read, written side by side and read again.
Work FragmentFormat::work_of_columns(bool transpose, bool accumulate, std::int64_t count) const {
  const DeviceMatrix &m = transpose ? transposed_ : plain_;
  if (count <= 1 || (transpose && !have_transpose_) || m.node == 1 || arithmetic() != Arithmetic::fp64)
    return Format::work_of_columns(transpose, accumulate, count);
  const std::int64_t padded = padded_columns(mma_, count), outputs = transpose ? plain_.columns_count : plain_.rows;
  Work               work;
  work.useful_flops = count * 2 * plain_.nonzeros;
  work.padded_flops = padded * 2 * slots_of(m);
  work.issued_flops = mma_ == MmaShape::automatic ? work.padded_flops : issued_flops_of_columns(m, mma_, padded);
  work.bytes = m.product_bytes() + count * 8 * (plain_.rows + plain_.columns_count) + 2 * 8 * padded * inputs(transpose) +
               (accumulate ? count * 8 * outputs : 0);
  work.compulsory_bytes = work.bytes;
  return work;
}

const double *FragmentFormat::pack(Executor &executor, const Product &product, const Columns &by) {
  const std::int64_t rows = inputs(product.transpose), padded = padded_columns(mma_, by.count);
  if (packed_.size() < padded * rows) packed_ = Array<double>(executor, padded * rows);
  csr::pack_rows(executor, product.x, rows, by, columns_at_a_time(mma_, by.count), padded, packed_.data());
  return packed_.data();
}

std::int64_t FragmentFormat::stored_bytes() const {
  return plain_.stored_bytes() + transposed_.stored_bytes() + transposition_.bytes() + packed_.bytes();
}

// rho of a product, and in FP64 of one with 16 columns.
std::string FragmentFormat::redundancy() const {
  if (mma_ == MmaShape::automatic || plain_.nonzeros == 0) return {};
  const auto rho = [](const Work &w) { return static_cast<double>(w.issued_flops) / static_cast<double>(w.useful_flops); };
  char       text[120];
  int        length = std::snprintf(text, sizeof text, "; %.1f operations issued for a useful one", rho(work(false, false)));
  if (arithmetic() == Arithmetic::fp64)
    std::snprintf(text + length, sizeof text - static_cast<std::size_t>(length), ", %.1f with 16 columns of x",
                  rho(work_of_columns(false, false, 16)));
  return text;
}

std::string FragmentFormat::describe() const {
  const Counts      &c = plain_.counts;
  const std::int64_t groups = plain_.groups.size(), slots = slots_of(plain_);
  const double       filled = slots > 0 ? static_cast<double>(plain_.nonzeros) / static_cast<double>(slots) : 1.0;
  const std::string  nodes = plain_.node == 1 ? "" : " of rows in nodes of " + std::to_string(plain_.node * plain_.siblings);
  const std::string  kind = plain_.ragged_sorted > 0 ? "ragged groups" : "groups",
                    medium =
                      plain_.ragged_sorted == ragged_window ? ", " + std::to_string(c.medium_groups) + " with 24-bit ones" : "";
  char text[300];
  std::snprintf(text, sizeof text,
                "%lld %s of fragments%s, %.1f %% of their slots filled, %lld of them with 16-bit columns%s; %lld long rows in "
                "%lld parts",
                static_cast<long long>(groups), kind.c_str(), nodes.c_str(), 100 * filled,
                static_cast<long long>(groups - c.wide_groups - c.medium_groups), medium.c_str(),
                static_cast<long long>(c.long_rows), static_cast<long long>(c.long_parts));
  const std::string lossy = arithmetic() == Arithmetic::fp64
                              ? ""
                              : std::string("; lossy: values and x in ") + facts_of(arithmetic()).name + ", sums in fp32";
  return text + redundancy() + lossy;
}

Work predict(const Problem &problem, bool transpose, bool accumulate) {
  const CsrView     &view = problem.csr;
  const std::int64_t half_bytes = 2 * facts_of(problem.arithmetic).value_bytes + 1; // of an entry
  const std::int64_t outputs = transpose ? view.columns_count : view.rows;
  Work               work;
  work.useful_flops = 2 * view.nonzeros;
  work.issued_flops = work.useful_flops;
  work.bytes = half_bytes * view.nonzeros / 2 +
               (outputs + step_slots - 1) / step_slots * static_cast<std::int64_t>(sizeof(Group)) +
               8 * (view.rows + view.columns_count) + (accumulate ? 8 * outputs : 0);
  work.compulsory_bytes = work.bytes;
  return work;
}

const std::vector<Variant> &variants() {
  using Ragged = Config::Ragged;
  static const std::int64_t         all_rows = std::int64_t(1) << 31;
  static const std::vector<Variant> all = {
    {"s12", {12, 16384, 4, true, false}},
    {"s16", {16, 16384, 4, true, false}},
    {"s48", {48, 16384, 4, true, false}},
    {"r1", {24, 16384, 1, true, false}},
    {"r2", {24, 16384, 2, true, false}},
    {"r8", {24, 16384, 8, true, false}},
    {"w4096", {24, 4096, 4, true, false}},
    {"w-all", {24, all_rows, 4, true, false, Ragged::never}},
    {"wide", {24, 16384, 4, true, true, Ragged::never}},
    {"rows", {24, 16384, 4, false, false}},
    {"even", {24, 16384, 4, true, false, Ragged::never}},
    {"ragged", {24, 16384, 4, true, false, Ragged::always}},
    {"ragged-63", {63, 16384, 4, true, false, Ragged::always}},
  };
  return all;
}

std::unique_ptr<Format> build(Executor &executor, const CsrView &view, MmaShape mma, const Config &config,
                              Arithmetic arithmetic) {
  if (config.max_steps < 1 || config.max_steps > max_step_count || config.window < 1 || config.rounds < 1)
    throw Error(ErrorCode::invalid, "spmv/fragments: a tuning choice is out of range");
  return std::make_unique<FragmentFormat>(executor, view, mma, config, arithmetic);
}

} // namespace tcbound::fragments
