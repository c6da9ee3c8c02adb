// The kernel of spmv/csr/cuda_core on packed columns.
#include "packed_product.h"

#include "chunk_kernel.h"

namespace tcbound::csr {
namespace {

PackedColumnsView view_of(const PackedColumns &columns) {
  return {columns.chunks.data(), columns.stored.data(), columns.longest_own};
}

} // namespace

void PackedProduct::prepare(Executor &executor, DeviceArrays &a, const CudaCoreConfig &config) {
  config_ = config;
  table_ = cut_into_chunks(executor, a, config);
  columns_ = pack_columns(executor, a, table_);
  a.columns = Array<std::int32_t>();
  if (a.rows == 0) return; // the first request for a kernel takes milliseconds: it is loaded
  const std::size_t shared = shared_bytes(config, table_, view_of(columns_));
  allow_shared_bytes<PackedColumnsView, double>(executor, a.wide, shared);
  allow_shared_bytes<PackedColumnsView, float>(executor, a.wide, shared);
}

void PackedProduct::multiply(Executor &executor, const DeviceArrays &a, const Product &product, const std::int32_t *rows,
                             const float *narrow_values) {
  if (narrow_values)
    launch(executor, a, view_of(columns_), narrow_values, config_, table_, product, rows);
  else
    launch(executor, a, view_of(columns_), a.values.data(), config_, table_, product, rows);
}

} // namespace tcbound::csr
