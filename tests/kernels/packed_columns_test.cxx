// Column indices in 16 bits and values in 32: the arithmetic of where columns are stored on the host; products, exact recovery
// and the compact format's remainder on a device.
#include <gtest/gtest.h>

#include <cstring>
#include <memory>

#include "spmv/csr/packed_columns.h"
#include "spmv_support.h"
#ifdef TCBOUND_HAVE_CUDA
#include "spmv/compact/device_matrix.h"
#include "spmv/csr/chunked_product.h"
#endif

namespace {

using namespace tcbound;
using namespace tcbound::test;

// Rows whose columns lie within `width`, which moves from the first columns to the last as rows go on.
Csr banded(std::int64_t rows, std::int64_t columns, std::int64_t length, std::int64_t width) {
  std::mt19937_64    random(31);
  Csr                a = from_lengths("band of " + std::to_string(width), width, std::vector<std::int64_t>(rows, length));
  const std::int64_t last = rows - 1;
  a.columns_count = columns;
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t k = i * length; k < (i + 1) * length; ++k)
      a.columns[static_cast<std::size_t>(k)] += last > 0 ? i * (columns - width) / last : 0;
  return a;
}

void append(Csr &a, const Csr &b) {
  const std::int64_t begin = a.nonzeros();
  a.name += ", " + b.name;
  a.rows += b.rows;
  a.columns_count = std::max(a.columns_count, b.columns_count);
  a.columns.insert(a.columns.end(), b.columns.begin(), b.columns.end());
  a.values.insert(a.values.end(), b.values.begin(), b.values.end());
  for (std::size_t i = 1; i < b.offsets.size(); ++i) a.offsets.push_back(begin + b.offsets[i]);
}

Csr narrow_and_wide() {
  Csr a = banded(3000, 50000, 11, 4000);
  append(a, uniform(2000, 5000000, 13));
  append(a, from_lengths("long and empty rows", 60000, {0, 0, 1500, 0, 30000, 0, 4000, 3, 3}));
  append(a, banded(3000, 5000000, 5, 900));
  append(a, from_lengths("long and empty rows, wide", 4000000, {2000, 0, 0, 20000, 1, 0, 30000, 30000}));
  append(a, banded(3001, 5000000, 9, 900));
  a.name = "narrow and wide";
  return a;
}

std::vector<Csr> matrices() {
  std::vector<Csr> all = {banded(30011, 1000000, 27, 5000),
                          banded(30000, 4000000, 7, 65000),
                          narrow_and_wide(),
                          ragged(),
                          irregular(20000, 20000, 30),
                          uniform(1, 70000, 65536),
                          uniform(70001, 3, 0),
                          uniform(33, 100, 1),
                          uniform(0, 3, 0)};
  for (const std::int64_t at : {0, 499, 999})
    for (const std::int64_t length : {2500, 46500, 300000}) all.push_back(one_long_row(1000, length, at));
  return all;
}

// The chunks of a matrix as chunks.h cuts them, without the plan of how they are summed.
std::vector<csr::Chunk> cut(const Csr &a, std::int64_t span) {
  const auto              key = [&](std::int64_t row) { return a.offsets[static_cast<std::size_t>(row)] + row; };
  const auto              last_chunk = [&](std::int64_t row) { return (key(row + 1) - 1) / span; };
  const std::int64_t      chunks = (a.rows + a.nonzeros() + span - 1) / span;
  std::vector<csr::Chunk> all;
  std::int64_t            row = 0;
  for (std::int64_t c = 0; c < chunks; ++c) {
    csr::Chunk         chunk = {};
    const std::int64_t first = row;
    while (row < a.rows && key(row) < (c + 1) * span) ++row;
    chunk.tail = first > 0 && last_chunk(first - 1) >= key(first - 1) / span + 2 && last_chunk(first - 1) >= c;
    chunk.apart = row > first && key(row) - (c + 1) * span > span / 4;
    chunk.split = chunk.apart && last_chunk(row - 1) >= c + 2;
    chunk.row = static_cast<std::int32_t>(first);
    chunk.rows = static_cast<std::uint16_t>(row - first - chunk.apart);
    chunk.entry = static_cast<std::uint64_t>(a.offsets[static_cast<std::size_t>(first)]);
    chunk.entries = static_cast<std::uint16_t>(a.offsets[static_cast<std::size_t>(first + chunk.rows)] -
                                               a.offsets[static_cast<std::size_t>(first)]);
    all.push_back(chunk);
  }
  return all;
}

TEST(PackedColumns, WidthFollowsTheSpan) {
  EXPECT_EQ(csr::width_of_columns(0, 0), 2);
  EXPECT_EQ(csr::width_of_columns(7, 7 + 65534), 2);
  EXPECT_EQ(csr::width_of_columns(7, 7 + 65535), 2);
  EXPECT_EQ(csr::width_of_columns(7, 7 + 65536), 4);
  EXPECT_EQ(csr::width_of_columns(0, std::numeric_limits<std::int32_t>::max()), 4);
  EXPECT_EQ(csr::width_of_columns(std::numeric_limits<std::int32_t>::max() - 9, std::numeric_limits<std::int32_t>::max()), 2);
}

TEST(PackedColumns, OwnPartsAreCopiedWhole) {
  for (const std::int64_t width : {2, 4})
    for (std::uint64_t entry = 0; entry < 9; ++entry)
      for (const int entries : {0, 1, 2, 3, 4, 5, 7, 8, 9, 1792}) {
        csr::Chunk chunk = {};
        chunk.entry = entry;
        chunk.entries = static_cast<std::uint16_t>(entries);
        const std::int64_t bytes = csr::own_bytes(chunk, width), skipped = static_cast<std::int64_t>(entry % 4);
        EXPECT_EQ(bytes % 16, 0);
        EXPECT_EQ(csr::origin_of(chunk) + skipped, static_cast<std::int64_t>(entry));
        if (entries == 0)
          EXPECT_EQ(bytes, 0);
        else
          EXPECT_TRUE(bytes >= width * (skipped + entries) && bytes < width * (skipped + entries) + 16);
      }
}

// Every entry is one chunk's, and a chunk's three parts follow each other but in the middle of a split row.
TEST(PackedColumns, PartsCoverTheEntriesOnce) {
  for (const Csr &a : matrices())
    for (const std::int64_t span : {64, 130, 2048, 4096}) {
      SCOPED_TRACE(a.name + ", span " + std::to_string(span));
      std::int64_t                  next = 0, c = 0;
      const std::vector<csr::Chunk> chunks = cut(a, span);
      for (const csr::Chunk &chunk : chunks) {
        const csr::ChunkParts parts = csr::parts_of(chunk, c++, span, a.offsets.data());
        for (const csr::EntryRange &part : {parts.tail, parts.own, parts.apart}) {
          ASSERT_GE(part.size(), 0);
          if (part.size() == 0) continue;
          ASSERT_EQ(part.begin, next);
          next = part.end;
        }
        ASSERT_LE(parts.own.size() + parts.apart.size(), 3 * span);
      }
      EXPECT_EQ(next, a.nonzeros());
    }
}

#ifdef TCBOUND_HAVE_CUDA

bool same_bits(const std::vector<double> &a, const std::vector<double> &b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(double)) == 0);
}

void round_to_float(std::vector<double> &values) {
  for (double &value : values) value = static_cast<double>(static_cast<float>(value));
}

std::vector<csr::CudaCoreConfig> configs() {
  using csr::ChunkMode;
  return {csr::CudaCoreConfig{},
          {32, 1, 2, 3, ChunkMode::automatic, true, false},
          {64, 896, 1, 1, ChunkMode::rows, true, false},
          {128, 896, 2, 4, ChunkMode::automatic, false, false},
          {256, 3584, 2, 4, ChunkMode::stream, true, false}};
}

class GpuPackedColumns : public testing::Test {
protected:
  void SetUp() override {
    std::string why_not;
    if (cuda_device_count(&why_not) > 0)
      executor_ = make_cuda_executor(0);
    else
      GTEST_SKIP() << why_not;
  }

  Executor &executor() { return *executor_; }

  csr::DeviceArrays upload(const Csr &a, bool wide) {
    const Stored stored(a);
    return csr::copy_to_device(executor(), stored.problem().csr, wide);
  }

  template <class T> std::vector<T> download(const Array<T> &from) {
    std::vector<T> to(static_cast<std::size_t>(from.size()));
    executor().copy(to.data(), MemorySpace::host, from.data(), MemorySpace::cuda, static_cast<std::size_t>(from.bytes()));
    return to;
  }

  template <class T> Array<T> upload(const std::vector<T> &from) {
    Array<T> to(executor(), static_cast<std::int64_t>(from.size()));
    executor().copy(to.data(), MemorySpace::cuda, from.data(), MemorySpace::host, static_cast<std::size_t>(to.bytes()));
    return to;
  }

  // -0.5 A x + 2 y of what multiply(Product) does; z starts as y.
  template <class F> std::vector<double> multiply(const std::vector<double> &x, const std::vector<double> &y, F &&multiply) {
    Guarded device_x(executor(), x, true), device_z(executor(), y, true);
    Product product;
    product.alpha = -0.5;
    product.beta = 2.0;
    product.x = device_x.data();
    product.y = product.z = device_z.data();
    multiply(product);
    bool                      intact = false;
    const std::vector<double> z = device_z.read(intact);
    EXPECT_TRUE(intact) << "something around z was written to";
    return z;
  }

  void expect_near(const Csr &a, const std::vector<double> &x, const std::vector<double> &y, const std::vector<double> &z) {
    const Expected expected = reference(a, false, -0.5, 2.0, x, y);
    ASSERT_EQ(z.size(), expected.value.size());
    for (std::size_t i = 0; i < z.size(); ++i)
      ASSERT_LE(std::abs(z[i] - expected.value[i]), expected.tolerance[i]) << "element " << i << " of " << a.name;
  }

  std::vector<csr::PackedChunk> packed_chunks(const Csr &a) {
    csr::DeviceArrays  arrays = upload(a, false);
    csr::PackedProduct product;
    product.prepare(executor(), arrays, csr::CudaCoreConfig{});
    return download(product.columns().chunks);
  }

  std::unique_ptr<Executor> executor_;
};

TEST_F(GpuPackedColumns, SameBitsAsPlainColumns) {
  for (const csr::CudaCoreConfig &config : configs())
    for (const Csr &a : matrices())
      for (const bool wide : {false, true}) {
        SCOPED_TRACE(a.name + ", " + std::to_string(config.threads) + " threads" + (wide ? ", wide offsets" : ""));
        const std::vector<double> x = random_vector(a.columns_count, 1), y = random_vector(a.rows, 2);
        csr::DeviceArrays         arrays = upload(a, wide), packed = upload(a, wide);
        csr::ChunkedProduct       plain_product;
        csr::PackedProduct        packed_product;
        plain_product.prepare(executor(), arrays, config);
        packed_product.prepare(executor(), packed, config);
        EXPECT_EQ(packed.columns.size(), 0);
        const std::vector<double> expected =
          multiply(x, y, [&](const Product &product) { plain_product.multiply(executor(), arrays, product); });
        expect_near(a, x, y, expected);
        for (int run = 0; run < 3; ++run)
          ASSERT_TRUE(same_bits(
            multiply(x, y, [&](const Product &product) { packed_product.multiply(executor(), packed, product); }), expected));
      }
}

TEST_F(GpuPackedColumns, SameBitsWithNarrowValues) {
  for (const csr::CudaCoreConfig &config : configs())
    for (Csr a : matrices()) {
      SCOPED_TRACE(a.name + ", " + std::to_string(config.threads) + " threads");
      round_to_float(a.values);
      const std::vector<double> x = random_vector(a.columns_count, 1), y = random_vector(a.rows, 2);
      const Array<float>        narrow = upload(std::vector<float>(a.values.begin(), a.values.end()));
      csr::DeviceArrays         arrays = upload(a, false);
      csr::PackedProduct        packed;
      packed.prepare(executor(), arrays, config);
      const std::vector<double> expected =
        multiply(x, y, [&](const Product &product) { packed.multiply(executor(), arrays, product); });
      arrays.values = Array<double>();
      for (int run = 0; run < 3; ++run)
        ASSERT_TRUE(same_bits(
          multiply(x, y, [&](const Product &product) { packed.multiply(executor(), arrays, product, nullptr, narrow.data()); }),
          expected));
    }
}

// Row i of the matrix is row 2 (n - 1 - i) of y and z; the others of z are left alone.
TEST_F(GpuPackedColumns, ListedRows) {
  const Csr                 a = narrow_and_wide();
  std::vector<std::int32_t> rows(static_cast<std::size_t>(a.rows));
  std::vector<double>       x = random_vector(a.columns_count, 1), y = random_vector(2 * a.rows, 2), y_of_rows, z_of_rows;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    rows[i] = static_cast<std::int32_t>(2 * (rows.size() - 1 - i));
    y_of_rows.push_back(y[static_cast<std::size_t>(rows[i])]);
  }
  const Array<std::int32_t> device_rows = upload(rows);
  csr::DeviceArrays         arrays = upload(a, false);
  csr::PackedProduct        packed_product;
  packed_product.prepare(executor(), arrays, csr::CudaCoreConfig{});
  const std::vector<double> z =
    multiply(x, y, [&](const Product &product) { packed_product.multiply(executor(), arrays, product, device_rows.data()); });
  for (const std::int32_t row : rows) z_of_rows.push_back(z[static_cast<std::size_t>(row)]);
  expect_near(a, x, y_of_rows, z_of_rows);
  for (std::size_t i = 1; i < z.size(); i += 2) ASSERT_EQ(z[i], y[i]) << "element " << i << " is no row's";
}

TEST_F(GpuPackedColumns, WidthOfAChunk) {
  for (const std::int64_t span : {0, 1, 65534, 65535, 65536, 200000}) {
    SCOPED_TRACE(span);
    const std::int64_t first = 100003;
    Csr                a = uniform(40, 1000000, 3); // one chunk
    for (std::size_t k = 0; k < a.columns.size(); ++k)
      a.columns[k] = first + (k % 3 == 2 ? span : static_cast<std::int64_t>(k % 3) * (span > 1));
    const std::vector<csr::PackedChunk> chunks = packed_chunks(a);
    ASSERT_EQ(chunks.size(), 1U);
    EXPECT_EQ(chunks[0].width, span < 65536 ? 2 : 4);
    EXPECT_EQ(chunks[0].base, span < 65536 ? first : 0);
    EXPECT_EQ(chunks[0].own, 0);
  }
}

// One far column costs its own chunk's 16 bits and no other's.
TEST_F(GpuPackedColumns, OneFarColumn) {
  Csr a = banded(20000, 1000000, 8, 1000);
  a.columns[80007] = 999999;
  std::int64_t wide = 0;
  for (const csr::PackedChunk &chunk : packed_chunks(a)) {
    wide += chunk.width == 4;
    EXPECT_EQ(chunk.own % 16, 0);
  }
  EXPECT_EQ(wide, 1);
}

TEST_F(GpuPackedColumns, TenBytesAnEntry) {
  const Csr          a = banded(30011, 1000000, 27, 5000);
  csr::DeviceArrays  arrays = upload(a, false);
  csr::PackedProduct product;
  product.prepare(executor(), arrays, csr::CudaCoreConfig{});
  const std::int64_t bytes = arrays.values.bytes() + product.bytes();
  EXPECT_GT(bytes, 10 * a.nonzeros());
  EXPECT_LT(bytes, 10 * a.nonzeros() + 64 * product.table().cut.chunks);
  EXPECT_EQ(product.bytes(), product.table().bytes() + 16 * product.table().cut.chunks + product.columns().stored.size());
}

TEST_F(GpuPackedColumns, SameBytesInEveryBuild) {
  const Csr                 a = narrow_and_wide();
  csr::DeviceArrays         first = upload(a, false);
  csr::PackedProduct        first_product;
  const std::vector<double> x = random_vector(a.columns_count, 1), y = random_vector(a.rows, 2);
  first_product.prepare(executor(), first, csr::CudaCoreConfig{});
  const std::vector<std::uint8_t> stored = download(first_product.columns().stored);
  const auto                      run = [&](const Product &p) { first_product.multiply(executor(), first, p); };
  const std::vector<double>       expected = multiply(x, y, run);
  for (int build = 0; build < 5; ++build) {
    csr::DeviceArrays  again = upload(a, false);
    csr::PackedProduct product;
    product.prepare(executor(), again, csr::CudaCoreConfig{});
    EXPECT_EQ(download(product.columns().stored), stored);
  }
  for (int repeat = 0; repeat < 100; ++repeat) ASSERT_TRUE(same_bits(multiply(x, y, run), expected)) << "run " << repeat;
}

class GpuPackedRemainder : public GpuPackedColumns {
protected:
  std::vector<std::int64_t> offsets_of(const csr::DeviceArrays &a) {
    if (a.wide) return download(a.wide_offsets);
    const std::vector<std::int32_t> narrow = download(a.narrow_offsets);
    return std::vector<std::int64_t>(narrow.begin(), narrow.end());
  }

  void expect_recovery(const Csr &a, const compact::DeviceMatrix &matrix) {
    const csr::DeviceArrays         recovered = compact::recover(executor(), matrix);
    const std::vector<std::int32_t> columns = download(recovered.columns);
    EXPECT_EQ(offsets_of(recovered), a.offsets);
    EXPECT_EQ(std::vector<std::int64_t>(columns.begin(), columns.end()), a.columns);
    EXPECT_TRUE(same_bits(download(recovered.values), a.values));
  }

  void expect_diagonal(const Csr &a, const compact::DeviceMatrix &matrix) {
    std::vector<double> expected(static_cast<std::size_t>(a.rows), 0.0);
    for (std::size_t i = 0; i < expected.size(); ++i)
      for (auto k = static_cast<std::size_t>(a.offsets[i]); k < static_cast<std::size_t>(a.offsets[i + 1]); ++k)
        if (a.columns[k] == static_cast<std::int64_t>(i)) expected[i] = a.values[k];
    Array<double> d = upload(std::vector<double>(expected.size(), -1.0));
    compact::diagonal(executor(), matrix, d.data());
    EXPECT_TRUE(same_bits(download(d), expected));
  }

  void expect_product(const Csr &a, compact::DeviceMatrix &matrix) {
    const std::vector<double> x = random_vector(a.columns_count, 1), y = random_vector(a.rows, 2);
    expect_near(a, x, y, multiply(x, y, [&](const Product &product) { compact::multiply(executor(), matrix, product); }));
  }
};

TEST_F(GpuPackedRemainder, RecoveryDiagonalProductRefill) {
  for (Csr a : matrices())
    for (const bool wide : {false, true}) {
      SCOPED_TRACE(a.name + (wide ? ", wide offsets" : ""));
      compact::DeviceMatrix matrix = compact::build(executor(), upload(a, wide), {true, 0});
      EXPECT_EQ(matrix.remainder.columns.size(), 0);
      expect_recovery(a, matrix);
      expect_diagonal(a, matrix);
      expect_product(a, matrix);
      for (double &value : a.values) value = 3.0 - 2.0 * value;
      const Array<double> values = upload(a.values);
      if (!compact::refill(executor(), matrix, values.data())) continue; // rows of one entry that had parted
      expect_recovery(a, matrix);
      expect_diagonal(a, matrix);
      expect_product(a, matrix);
    }
}

// Diagonals in the middle of rows of every kind: in a chunk, kept apart, split among chunks.
TEST_F(GpuPackedRemainder, DiagonalOfLongRows) {
  Csr a = irregular(20000, 50000, 12);
  for (const std::int64_t length : {1500, 3000, 25000, 50000})
    append(a, from_lengths("", 50000, std::vector<std::int64_t>(3, length)));
  append(a, irregular(20000, 50000, 7));
  for (std::int64_t i = 0; i < a.rows; ++i) {
    const auto begin = a.columns.begin() + a.offsets[static_cast<std::size_t>(i)];
    const auto end = a.columns.begin() + a.offsets[static_cast<std::size_t>(i) + 1];
    const auto found = std::lower_bound(begin, end, i);
    if (found != end) *found = i;
  }
  compact::DeviceMatrix matrix = compact::build(executor(), upload(a, false), {true, 0});
  EXPECT_GT(matrix.census.remainder_rows, 30000);
  expect_recovery(a, matrix);
  expect_diagonal(a, matrix);
  expect_product(a, matrix);
}

// All values in 32 bits, then one that is not exact there: all in 64 from then on.
TEST_F(GpuPackedRemainder, ValuesWidenWhenTheyMust) {
  for (Csr a : {narrow_and_wide(), ragged(), banded(30011, 1000000, 27, 5000)}) {
    SCOPED_TRACE(a.name);
    round_to_float(a.values);
    compact::DeviceMatrix matrix = compact::build(executor(), upload(a, false), {true, 0});
    const std::int64_t    entries = matrix.census.remainder_nonzeros, bytes = matrix.census.bytes;
    const auto            expect_all = [&] {
      expect_recovery(a, matrix);
      expect_diagonal(a, matrix);
      expect_product(a, matrix);
    };
    const auto refill = [&] {
      const Array<double> values = upload(a.values);
      ASSERT_TRUE(compact::refill(executor(), matrix, values.data()));
      expect_all();
    };
    EXPECT_EQ(matrix.narrow_values.size(), entries);
    EXPECT_EQ(matrix.remainder.values.size(), 0);
    expect_all();
    for (double &value : a.values) value = -2.0 * value;
    refill();
    EXPECT_EQ(matrix.narrow_values.size(), entries);
    a.values.back() = 0.1;
    refill();
    EXPECT_EQ(matrix.narrow_values.size(), 0);
    EXPECT_EQ(matrix.remainder.values.size(), entries);
    EXPECT_EQ(matrix.census.bytes, bytes + 4 * entries);
    a.values.back() = 0.5;
    refill();
    EXPECT_EQ(matrix.remainder.values.size(), entries);
  }
}

TEST_F(GpuPackedRemainder, WhichValuesAreNarrow) {
  const double tiny = static_cast<double>(std::numeric_limits<float>::denorm_min());
  const double huge = static_cast<double>(std::numeric_limits<float>::max());
  const double infinity = std::numeric_limits<double>::infinity();
  Csr          a = banded(5000, 100000, 9, 5000);
  for (double &value : a.values) value = value < 0 ? -1.0 : 1.0;
  const auto is_narrow = [&](double last) {
    a.values.back() = last;
    const compact::DeviceMatrix matrix = compact::build(executor(), upload(a, false), {true, 0});
    EXPECT_EQ(matrix.census.remainder_nonzeros, a.nonzeros());
    expect_recovery(a, matrix);
    return matrix.narrow_values.size() > 0;
  };
  for (const double value : {0.0, -0.0, tiny, -tiny, huge, -huge, infinity, -infinity, 1.0 / 1024})
    EXPECT_TRUE(is_narrow(value)) << value;
  for (const double value :
       {0.1, tiny / 2, 1.5 * tiny, 2 * huge, 1e300, std::numeric_limits<double>::denorm_min(), 1.0 + 1e-15})
    EXPECT_FALSE(is_narrow(value)) << value;
}

TEST_F(GpuPackedRemainder, BytesAreThoseStored) {
  const Csr             a = banded(30011, 1000000, 27, 5000);
  compact::DeviceMatrix matrix = compact::build(executor(), upload(a, false), {true, 0});
  EXPECT_EQ(matrix.census.remainder_nonzeros, a.nonzeros());
  EXPECT_EQ(matrix.census.bytes, matrix.remainder_rows.bytes() + matrix.remainder.bytes() + matrix.remainder_product.bytes());
  EXPECT_LT(matrix.census.bytes, 10 * a.nonzeros() + 8 * (a.rows + 1) + 64 * matrix.remainder_product.table().cut.chunks);
}

#endif

} // namespace
