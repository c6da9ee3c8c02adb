// Finds the patterns of a CSR matrix in device memory and stores it by them.
//
// Rows are hashed and each slice votes for its most frequent hash. The hashes of the slices and of their exceptions are sorted
// to number the patterns. A hash only proposes: every row is then compared with the row that represents its pattern.
#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "build_columns.h"
#include "cuda/algorithms.h"
#include "cuda/error.h"
#include "device_matrix.h"
#include "dictionary.h"
#include "grid.h"
#include "rows.h"
#include "votes.h"

namespace tcbound::compact {
namespace {

// What the slices voted for.
struct Votes {
  Array<std::uint64_t> hash; // of each slice's main pattern
  Array<std::uint64_t> rows; // that have it
  Array<Kind>          kind;
  Array<std::uint64_t> row_hash; // of each exception, at its row; not set elsewhere
};

template <class Offset>
__global__ void measure_remainder(const Offset *offsets, const std::int32_t *rows, std::int64_t count, std::int64_t *lengths) {
  const std::int64_t i = global_index<block>();
  if (i <= count) lengths[i] = i < count ? static_cast<std::int64_t>(offsets[rows[i] + 1] - offsets[rows[i]]) : 0;
}

template <class To> __global__ void narrow(const std::int64_t *from, To *to, std::int64_t size) {
  const std::int64_t i = global_index<block>();
  if (i < size) to[i] = static_cast<To>(from[i]);
}

template <class Offset>
__global__ void copy_columns(const Rows<Offset> a, const std::int32_t *rows, std::int64_t count, const std::int64_t *begin,
                             std::int32_t *columns) {
  for_entries<block>(begin, count,
                     [&](std::int64_t i, std::int64_t k) { columns[k] = a.columns[a.offsets[rows[i]] + (k - begin[i])]; });
}

struct HasKind {
  const Kind *kinds;
  Kind        kind;

  __device__ bool operator()(std::int32_t slice) const { return kinds[slice] == kind; }
};

struct IsMarked {
  const std::uint8_t *marks;

  __device__ bool operator()(std::int32_t row) const { return marks[row] != 0; }
};

class Builder {
public:
  Builder(Executor &executor, csr::DeviceArrays csr)
    : executor_(executor), algorithms_(executor), stream_(algorithms_.stream()) {
    matrix_.csr = std::move(csr);
  }

  DeviceMatrix build(const BuildChoices &choices) {
    choices_ = choices;
    const csr::DeviceArrays &a = matrix_.csr;
    csr::with_offsets(a, [&](const auto *offsets) {
      const auto rows = rows_of(a, offsets);
      grid_ = look_at_rows(rows);
      cut_ = cut_rows(grid_, a.rows);
      slices_ = cut_.slices();
      if (a.rows > 0) classify_slices(rows, choices.allow_constant);
      build_section(rows, constant_kind, matrix_.constant);
      build_section(rows, explicit_kind, matrix_.explicit_);
      build_remainder(rows);
    });
    fill_values(executor_, matrix_, a.values.data());
    executor_.synchronize(); // before the arrays that only building needs go
    matrix_.csr.columns = Array<std::int32_t>();
    matrix_.csr.values = Array<double>();
    matrix_.remainder_product.prepare(executor_, matrix_.remainder, csr::CudaCoreConfig{});
    take_census();
    return std::move(matrix_);
  }

private:
  // `rows` of the work, a thread each or a warp each.
  template <class F> void launch(std::int64_t threads, F &&f) {
    if (threads == 0) return;
    f(static_cast<unsigned>((threads + block - 1) / block));
    TCBOUND_LAUNCHED();
  }

  template <class Offset> void classify_slices(const Rows<Offset> &a, bool allow_constant) {
    votes_.hash = Array<std::uint64_t>(executor_, slices_);
    votes_.rows = Array<std::uint64_t>(executor_, slices_);
    votes_.kind = Array<Kind>(executor_, slices_);
    votes_.row_hash = Array<std::uint64_t>(executor_, a.count);
    in_remainder_ = Array<std::uint8_t>(executor_, a.count);
    TCBOUND_CUDA(cudaMemsetAsync(in_remainder_.data(), 0, static_cast<std::size_t>(in_remainder_.bytes()), stream_));
    int lanes = 2; // of a row: about half its entries, so that most lanes have two
    while (lanes < 32 && 4 * lanes * a.count <= 2 * matrix_.csr.nonzeros) lanes *= 2;
    launch(32 * slices_, [&](unsigned grid) {
      classify<<<grid, block, 0, stream_>>>(a, slices_, cut_, lanes, allow_constant, votes_.hash.data(), votes_.rows.data(),
                                            votes_.kind.data(), votes_.row_hash.data());
    });
    launch(a.count,
           [&](unsigned grid) { mark_remainder<<<grid, block, 0, stream_>>>(votes_.kind.data(), cut_, in_remainder_.data()); });
  }

  // Guesses the grid from the offsets of the fullest of a few rows, and whether values repeat from two such rows.
  template <class Offset> Grid look_at_rows(const Rows<Offset> &a) {
    std::vector<std::int32_t> best;
    std::vector<double>       best_values;
    bool                      repeats = false;
    for (const double place : {0.3819660113, 0.6180339887, 0.4530818394, 0.5469181606, 0.2360679775, 0.7639320225}) {
      if (a.count == 0) break;
      const auto         row = static_cast<std::int64_t>(place * static_cast<double>(a.count));
      const std::int64_t begin = algorithms_.read(a.offsets + row), length = algorithms_.read(a.offsets + row + 1) - begin;
      if (length > longest_patterned || length < static_cast<std::int64_t>(best.size())) continue;
      std::vector<std::int32_t> offsets(static_cast<std::size_t>(length));
      std::vector<double>       values(offsets.size());
      executor_.copy(offsets.data(), MemorySpace::host, a.columns + begin, MemorySpace::cuda,
                     offsets.size() * sizeof(std::int32_t));
      executor_.copy(values.data(), MemorySpace::host, a.values + begin, MemorySpace::cuda, values.size() * sizeof(double));
      for (std::int32_t &column : offsets) column -= static_cast<std::int32_t>(row);
      if (offsets.size() == best.size())
        repeats =
          repeats || (offsets == best && std::memcmp(values.data(), best_values.data(), values.size() * sizeof(double)) == 0);
      else
        repeats = false;
      best = std::move(offsets);
      best_values = std::move(values);
    }
    Grid grid = guess_grid(best);
    grid.repeats = repeats && choices_.allow_constant;
    return grid;
  }

  // Puts the slices that a block multiplies next to each other in the grid, so that they share x in the first-level cache.
  void put_in_tiles(Array<std::int32_t> &listed, std::int64_t count, int depth) {
    if (grid_.line == 0) return;
    Array<std::uint64_t> keys(executor_, count), sorted_keys(executor_, count);
    Array<std::int32_t>  sorted(executor_, count);
    launch(count, [&](unsigned grid) {
      number_tiles<<<grid, block, 0, stream_>>>(listed.data(), count, cut_, grid_, depth, keys.data());
    });
    algorithms_.sort_pairs(keys.data(), sorted_keys.data(), listed.data(), sorted.data(), count);
    executor_.synchronize(); // the keys are freed on return
    listed = std::move(sorted);
  }

  template <class Offset> void build_section(const Rows<Offset> &a, Kind kind, Section &section) {
    Array<std::int32_t> listed(executor_, slices_);
    const std::int64_t  count = algorithms_.select_numbers(listed.data(), slices_, HasKind{votes_.kind.data(), kind});
    if (count == 0) return;
    // Deep enough that a block finds most of x in its first-level cache, and still several blocks for each that can run at once.
    const std::int64_t wanted = 16 * static_cast<std::int64_t>(executor_.device().multiprocessors);
    section.depth = static_cast<int>(std::clamp<std::int64_t>(count / (block_slices * wanted), 1, 8));
    put_in_tiles(listed, count, section.depth);
    section.slices = Array<Slice>(executor_, count);

    Array<std::int64_t> begin(executor_, count + 1);
    launch(count + 1, [&](unsigned grid) {
      count_exceptions<<<grid, block, 0, stream_>>>(listed.data(), count, cut_, votes_.rows.data(), begin.data());
    });
    algorithms_.exclusive_sum(begin.data(), begin.data(), count + 1);
    const std::int64_t exceptions = algorithms_.read(begin.data() + count), keys = count + exceptions;

    Array<std::int32_t> key_row(executor_, keys), pattern_of_key(executor_, keys);
    number_patterns_of(section, listed.data(), begin.data(), exceptions, key_row, pattern_of_key);

    Array<Odd> odd(executor_, exceptions);
    launch(32 * count, [&](unsigned grid) {
      verify<<<grid, block, 0, stream_>>>(a, count, begin.data(), pattern_of_key.data(), key_row.data(),
                                          section.patterns.data(), kind == constant_kind, section.slices.data(), odd.data(),
                                          in_remainder_.data());
    });
    write_dictionary(a, kind, section);
    launch(count, [&](unsigned grid) {
      mark_outside<<<grid, block, 0, stream_>>>(count, section.patterns.data(), matrix_.csr.columns_count,
                                                section.slices.data());
    });
    Array<std::int64_t> place(executor_, exceptions + 1);
    TCBOUND_CUDA(cudaMemsetAsync(place.data(), 0, static_cast<std::size_t>(place.bytes()), stream_));
    place_partials_of(section, begin.data(), odd.data(), key_row.data() + count, place.data());
    algorithms_.exclusive_sum(place.data(), place.data(), exceptions + 1);
    section.exceptions = Array<Exception>(executor_, algorithms_.read(place.data() + exceptions));
    launch(exceptions, [&](unsigned grid) {
      place_exceptions<<<grid, block, 0, stream_>>>(exceptions, place.data(), pattern_of_key.data() + count,
                                                    key_row.data() + count, section.exceptions.data());
    });
    if (kind == explicit_kind)
      place_values(section, begin, place);
    else if (!choices_.march || !find_march(executor_, algorithms_, grid_, a.count, matrix_.csr.columns_count, section))
      build_columns(executor_, algorithms_, grid_, cut_, listed.data(), choices_, section);
    executor_.synchronize(); // the temporary arrays are freed on return
  }

  void number_patterns_of(Section &section, const std::int32_t *listed, const std::int64_t *begin, std::int64_t exceptions,
                          Array<std::int32_t> &key_row, Array<std::int32_t> &pattern_of_key) {
    const std::int64_t   count = section.slices.size(), keys = count + exceptions;
    Array<std::uint64_t> hash(executor_, keys), sorted_hash(executor_, keys);
    Array<std::int64_t>  number(executor_, keys), sorted(executor_, keys);
    launch(count, [&](unsigned grid) {
      list_keys<<<grid, block, 0, stream_>>>(listed, count, cut_, votes_.hash.data(), votes_.rows.data(),
                                             votes_.row_hash.data(), begin, section.slices.data(),
                                             Keys{hash.data(), key_row.data(), number.data()});
    });
    algorithms_.sort_pairs(hash.data(), sorted_hash.data(), number.data(), sorted.data(), keys);
    Array<std::int64_t> run_length(executor_, keys);
    const std::int64_t  runs = algorithms_.run_lengths(sorted_hash.data(), hash.data(), run_length.data(), keys);
    Array<std::int64_t> run_begin(executor_, runs), kept(executor_, runs + 1), weight(executor_, runs),
      sorted_weight(executor_, runs);
    Array<std::int32_t> run(executor_, runs), sorted_run(executor_, runs), pattern_of_run(executor_, runs);
    algorithms_.exclusive_sum(run_length.data(), run_begin.data(), runs);
    launch(runs + 1, [&](unsigned grid) {
      choose_patterns<<<grid, block, 0, stream_>>>(run_begin.data(), run_length.data(), sorted.data(), hash.data(), runs, count,
                                                   weight.data(), run.data(), kept.data());
    });
    algorithms_.exclusive_sum(kept.data(), kept.data(), runs + 1);
    algorithms_.sort_pairs_descending(weight.data(), sorted_weight.data(), run.data(), sorted_run.data(), runs);
    section.patterns = Array<Pattern>(executor_, algorithms_.read(kept.data() + runs));
    launch(runs, [&](unsigned grid) {
      rank_patterns<<<grid, block, 0, stream_>>>(sorted_run.data(), runs, section.patterns.size(), pattern_of_run.data());
    });
    launch(keys, [&](unsigned grid) {
      number_keys<<<grid, block, 0, stream_>>>(run_begin.data(), pattern_of_run.data(), runs, sorted.data(), keys,
                                               key_row.data(), pattern_of_key.data(), section.patterns.data());
    });
    executor_.synchronize(); // the temporary arrays are freed on return
  }

  void place_partials_of(Section &section, const std::int64_t *begin, const Odd *odd, const std::int32_t *odd_row,
                         std::int64_t *kept) {
    const std::int64_t count = section.slices.size();
    Array<Partial>     partials(executor_, count * most_partials);
    section.partial_begin = Array<std::int32_t>(executor_, count + 1);
    launch(count + 1, [&](unsigned grid) {
      sort_odd_rows<<<grid, block, 0, stream_>>>(count, begin, odd, odd_row, section.slices.data(), partials.data(),
                                                 section.partial_begin.data(), kept, in_remainder_.data());
    });
    algorithms_.exclusive_sum(section.partial_begin.data(), section.partial_begin.data(), count + 1);
    section.partials = Array<Partial>(executor_, algorithms_.read(section.partial_begin.data() + count));
    launch(count, [&](unsigned grid) {
      place_partials<<<grid, block, 0, stream_>>>(count, partials.data(), section.partial_begin.data(),
                                                  section.partials.data());
    });
    executor_.synchronize(); // `partials` is freed on return
  }

  template <class Offset> void write_dictionary(const Rows<Offset> &a, Kind kind, Section &section) {
    const std::int64_t  count = section.patterns.size();
    Array<std::int64_t> first(executor_, count + 1);
    launch(count + 1, [&](unsigned grid) {
      measure_patterns<<<grid, block, 0, stream_>>>(a, count, section.patterns.data(), first.data());
    });
    algorithms_.exclusive_sum(first.data(), first.data(), count + 1);
    const std::int64_t segments = algorithms_.read(first.data() + count);
    if (kind == constant_kind)
      section.constant_segments = Array<ConstantSegment>(executor_, segments);
    else
      section.segments = Array<Segment>(executor_, segments);
    launch(count, [&](unsigned grid) {
      write_patterns<<<grid, block, 0, stream_>>>(a, count, first.data(), section.patterns.data(), section.segments.data(),
                                                  section.constant_segments.data());
    });
    read_hot_segments(executor_, section);
    executor_.synchronize(); // `first` is freed on return
  }

  void place_values(Section &section, const Array<std::int64_t> &begin, const Array<std::int64_t> &place) {
    const std::int64_t count = section.slices.size();
    section.value_begin = Array<std::int64_t>(executor_, count + 1);
    section.exception_values = Array<std::int64_t>(executor_, section.exceptions.size());
    launch(count + 1, [&](unsigned grid) {
      count_values<<<grid, block, 0, stream_>>>(section.slices.data(), count, section.patterns.data(), begin.data(),
                                                place.data(), section.exceptions.data(), section.value_begin.data());
    });
    algorithms_.exclusive_sum(section.value_begin.data(), section.value_begin.data(), count + 1);
    section.values = Array<double>(executor_, algorithms_.read(section.value_begin.data() + count));
    launch(count, [&](unsigned grid) {
      place_exception_values<<<grid, block, 0, stream_>>>(section.slices.data(), count, begin.data(), place.data(),
                                                          section.exceptions.data(), section.value_begin.data(),
                                                          section.exception_values.data());
    });
  }

  template <class Offset> void build_remainder(const Rows<Offset> &a) {
    csr::DeviceArrays  &to = matrix_.remainder;
    Array<std::int32_t> listed(executor_, a.count);
    to.rows = algorithms_.select_numbers(listed.data(), a.count, IsMarked{in_remainder_.data()});
    to.columns_count = matrix_.csr.columns_count;
    to.wide = matrix_.csr.wide;
    if (to.rows == 0) return;
    matrix_.remainder_rows = Array<std::int32_t>(executor_, to.rows);
    executor_.copy(matrix_.remainder_rows.data(), MemorySpace::cuda, listed.data(), MemorySpace::cuda,
                   static_cast<std::size_t>(matrix_.remainder_rows.bytes()));
    Array<std::int64_t> begin(executor_, to.rows + 1);
    launch(to.rows + 1, [&](unsigned grid) {
      measure_remainder<<<grid, block, 0, stream_>>>(a.offsets, listed.data(), to.rows, begin.data());
    });
    algorithms_.exclusive_sum(begin.data(), begin.data(), to.rows + 1);
    to.nonzeros = algorithms_.read(begin.data() + to.rows);
    const auto write_offsets = [&](auto &offsets) {
      launch(to.rows + 1,
             [&](unsigned grid) { narrow<<<grid, block, 0, stream_>>>(begin.data(), offsets.data(), to.rows + 1); });
    };
    if (to.wide)
      write_offsets(to.wide_offsets = Array<std::int64_t>(executor_, to.rows + 1));
    else
      write_offsets(to.narrow_offsets = Array<std::int32_t>(executor_, to.rows + 1));
    to.columns = Array<std::int32_t>(executor_, to.nonzeros);
    launch(32 * ((to.nonzeros + warp_entries - 1) / warp_entries), [&](unsigned grid) {
      copy_columns<<<grid, block, 0, stream_>>>(a, listed.data(), to.rows, begin.data(), to.columns.data());
    });
    executor_.synchronize(); // the temporary arrays are freed on return
  }

  std::int64_t count_partial_rows(const Section &section) {
    std::vector<Partial> partials(static_cast<std::size_t>(section.partials.size()));
    executor_.copy(partials.data(), MemorySpace::host, section.partials.data(), MemorySpace::cuda,
                   static_cast<std::size_t>(section.partials.bytes()));
    std::int64_t rows = 0;
    for (const Partial &partial : partials) rows += __builtin_popcountll(partial.rows);
    return rows;
  }

  std::int64_t count_rows(const Section &section) {
    std::vector<Slice> slices(static_cast<std::size_t>(section.slices.size()));
    executor_.copy(slices.data(), MemorySpace::host, section.slices.data(), MemorySpace::cuda,
                   static_cast<std::size_t>(section.slices.bytes()));
    std::int64_t rows = 0;
    for (const Slice &slice : slices) rows += __builtin_popcountll(slice.rows);
    return rows;
  }

  void take_census() {
    Census &census = matrix_.census;
    census.rows = matrix_.csr.rows;
    census.columns = matrix_.csr.columns_count;
    census.nonzeros = matrix_.csr.nonzeros;
    census.constant_rows = count_rows(matrix_.constant);
    census.explicit_rows = count_rows(matrix_.explicit_);
    census.partial_rows = count_partial_rows(matrix_.constant) + count_partial_rows(matrix_.explicit_);
    census.exceptions = matrix_.constant.exceptions.size() + matrix_.explicit_.exceptions.size();
    census.remainder_rows = matrix_.remainder.rows;
    census.remainder_nonzeros = matrix_.remainder.nonzeros;
    census.patterns = matrix_.constant.patterns.size() + matrix_.explicit_.patterns.size();
    matrix_.count_bytes();
  }

  Executor           &executor_;
  Algorithms          algorithms_;
  cudaStream_t        stream_;
  BuildChoices        choices_;
  Grid                grid_;
  Cut                 cut_;
  std::int64_t        slices_ = 0;
  DeviceMatrix        matrix_;
  Votes               votes_;
  Array<std::uint8_t> in_remainder_;
};

} // namespace

DeviceMatrix build(Executor &executor, csr::DeviceArrays csr, const BuildChoices &choices) {
  return Builder(executor, std::move(csr)).build(choices);
}

} // namespace tcbound::compact
