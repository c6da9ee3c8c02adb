#include "fragment_format.h"

#include <cstdio>

namespace tcbound::fragments {

namespace {

// Rows that share a fragment row take an instruction each; the sums are those of multiply.h.
std::int64_t issued_flops(const Counts &counts, MmaShape mma) {
  if (mma == MmaShape::automatic) return 2 * counts.slots();
  const MmaShapeFacts &shape = facts_of(mma);
  const std::int64_t   steps = shape.k / 4; // of one instruction
  std::int64_t         instructions = 0;
  for (std::size_t c = 0; c < counts.groups.size(); ++c)
    for (std::int64_t s = 1; s <= max_step_count; ++s) {
      const std::int64_t of_slice = c == 0 ? 4 : (c == 1 ? 2 : (s + steps - 1) / steps);
      instructions += counts.groups[c][static_cast<std::size_t>(s)] * slices * of_slice;
    }
  return instructions * 2 * shape.m * shape.n * shape.k;
}

} // namespace

FragmentFormat::FragmentFormat(Executor &executor, const CsrView &view, MmaShape mma, const Config &config)
  : mma_(mma), config_(config) {
  csr::DeviceArrays a = csr::copy_to_device(executor, view, csr::needs_wide_offsets(view));
  plain_ = DeviceMatrix(executor, a, config_);
}

void FragmentFormat::prepare(Executor &executor, bool transpose) {
  if (!transpose || have_transpose_) return;
  const csr::DeviceArrays a = plain_.recover(executor);
  csr::DeviceArrays       of_transpose = transposition_.transpose(executor, a);
  transposed_ = DeviceMatrix(executor, of_transpose, config_);
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
    executor.synchronize(); // `in_order` is freed on return
  }
  executor.synchronize(); // the values may change, and the executor may be on another stream when the matrix is used
}

Work FragmentFormat::work(bool transpose, bool accumulate) const {
  if (transpose && !have_transpose_) { // not known before it is built
    CsrView sizes;
    sizes.rows = plain_.rows;
    sizes.columns_count = plain_.columns_count;
    sizes.nonzeros = plain_.nonzeros;
    return predict(sizes, true, accumulate);
  }
  const DeviceMatrix &m = transpose ? transposed_ : plain_;
  const std::int64_t  outputs = transpose ? plain_.columns_count : plain_.rows;
  Work                work;
  work.useful_flops = 2 * plain_.nonzeros;
  work.issued_flops = issued_flops(m.counts, mma_);
  work.padded_flops = 2 * m.counts.slots();
  work.bytes = m.product_bytes() + 8 * (plain_.rows + plain_.columns_count) + (accumulate ? 8 * outputs : 0);
  work.compulsory_bytes = work.bytes;
  return work;
}

std::int64_t FragmentFormat::stored_bytes() const {
  return plain_.stored_bytes() + transposed_.stored_bytes() + transposition_.bytes();
}

std::string FragmentFormat::describe() const {
  const Counts      &c = plain_.counts;
  const std::int64_t groups = plain_.groups.size(), slots = c.slots();
  const double       filled = slots > 0 ? static_cast<double>(plain_.nonzeros) / static_cast<double>(slots) : 1.0;
  char               text[200];
  std::snprintf(text, sizeof text,
                "%lld groups of fragments, %.1f %% of their slots filled, %lld of them with 16-bit columns; "
                "%lld long rows in %lld parts",
                static_cast<long long>(groups), 100 * filled, static_cast<long long>(groups - c.wide_groups),
                static_cast<long long>(c.long_rows), static_cast<long long>(c.long_parts));
  return text;
}

Work predict(const CsrView &view, bool transpose, bool accumulate) {
  const std::int64_t outputs = transpose ? view.columns_count : view.rows;
  Work               work;
  work.useful_flops = 2 * view.nonzeros;
  work.issued_flops = work.useful_flops;
  work.bytes = 10 * view.nonzeros + (outputs + step_slots - 1) / step_slots * static_cast<std::int64_t>(sizeof(Group)) +
               8 * (view.rows + view.columns_count) + (accumulate ? 8 * outputs : 0);
  work.compulsory_bytes = work.bytes;
  return work;
}

const std::vector<Variant> &variants() {
  static const std::vector<Variant> all = {
    {"s8", {8, 16384, 8, false}},    {"s12", {12, 16384, 8, false}},
    {"s48", {48, 16384, 8, false}},  {"r1", {24, 16384, 1, false}},
    {"r4", {24, 16384, 4, false}},   {"r16", {24, 16384, 16, false}},
    {"w4096", {24, 4096, 8, false}}, {"w-all", {24, std::int64_t(1) << 31, 8, false}},
    {"wide", {24, 16384, 8, true}},
  };
  return all;
}

std::unique_ptr<Format> build(Executor &executor, const CsrView &view, MmaShape mma, const Config &config) {
  if (config.max_steps < 1 || config.max_steps > max_step_count || config.window < 1 || config.rounds < 1)
    throw Error(ErrorCode::invalid, "spmv/fragments: a tuning choice is out of range");
  return std::make_unique<FragmentFormat>(executor, view, mma, config);
}

} // namespace tcbound::fragments
