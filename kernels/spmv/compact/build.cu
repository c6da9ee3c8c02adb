// Finds the patterns of a CSR matrix in device memory and stores it by them.
//
// Rows are hashed and each slice votes for its most frequent hash. The hashes of the slices and of their exceptions are sorted
// to number the patterns. A hash only proposes: every row is then compared with the row that represents its pattern.
#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "build_columns.h"
#include "cuda/algorithms.h"
#include "cuda/error.h"
#include "device_matrix.h"
#include "dictionary.h"
#include "grid.h"
#include "hot.h"
#include "rows.h"
#include "votes.h"

namespace tcbound::compact {
namespace {

// Memory for SliceVotes.
struct Votes {
  Array<std::uint64_t> hash, rows, all, row_hash;
  Array<Kind>          kind;

  Votes() = default;
  Votes(Executor &executor, std::int64_t slices, std::int64_t matrix_rows)
    : hash(executor, slices), rows(executor, slices), all(executor, slices), row_hash(executor, matrix_rows),
      kind(executor, slices) {}
  SliceVotes view() { return {hash.data(), rows.data(), all.data(), kind.data(), row_hash.data()}; }
};

template <class Offset>
__global__ void measure_remainder(const Offset *offsets, const std::int32_t *rows, std::int64_t count, Offset *lengths) {
  const std::int64_t i = global_index<block>();
  if (i <= count) lengths[i] = i < count ? offsets[rows[i] + 1] - offsets[rows[i]] : 0;
}

template <class Offset>
__global__ void copy_columns(const Rows<Offset> a, const std::int32_t *rows, std::int64_t count, const Offset *begin,
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

// Rows that are looked at first.
constexpr int    sampled_rows = 6;
constexpr double sampled_places[sampled_rows] = {0.3819660113, 0.6180339887, 0.4530818394,
                                                 0.5469181606, 0.2360679775, 0.7639320225}; // in a matrix of one row
struct SampledRows {
  std::int64_t row[sampled_rows];
};
struct RowSample {
  std::int64_t length; // if it is more than longest_patterned, that is all
  double       values[longest_patterned];
  std::int32_t offsets[longest_patterned];
};

// One block a row.
template <class Offset>
__global__ void __launch_bounds__(block) sample_rows(const Rows<Offset> a, const SampledRows rows, RowSample *samples) {
  const std::int64_t row = rows.row[blockIdx.x], begin = a.offsets[row], length = a.offsets[row + 1] - begin;
  RowSample         &sample = samples[blockIdx.x];
  if (threadIdx.x == 0) sample.length = length;
  for (std::int64_t k = threadIdx.x; length <= longest_patterned && k < length; k += block) {
    sample.values[k] = a.values[begin + k];
    sample.offsets[k] = a.columns[begin + k] - static_cast<std::int32_t>(row);
  }
}

// Of two of one length.
bool same(const RowSample &a, const RowSample &b) {
  const auto size = static_cast<std::size_t>(a.length);
  return std::memcmp(a.offsets, b.offsets, size * sizeof(std::int32_t)) == 0 &&
         std::memcmp(a.values, b.values, size * sizeof(double)) == 0;
}

// Rows of each kind, counted when all is known of them.
struct RowCounts {
  std::int64_t whole[2], partial[2]; // of the constant and of the explicit slices
  std::int64_t remainder, remainder_nonzeros;
};

__global__ void __launch_bounds__(block) count_rows(const Slice *slices, std::int64_t slice_count, const Partial *partials,
                                                    std::int64_t partial_count, std::int64_t *whole, std::int64_t *partial) {
  const std::int64_t i = global_index<block>();
  add(whole, i < slice_count ? __popcll(slices[i].rows) : 0);
  add(partial, i < partial_count ? __popcll(partials[i].rows) : 0);
}

template <class Offset>
__global__ void __launch_bounds__(block)
  count_remainder(const Rows<Offset> a, const std::uint8_t *in_remainder, RowCounts *counts) {
  std::int64_t rows = 0, nonzeros = 0;
  for (std::int64_t row = global_index<block>(); row < a.count; row += gridDim.x * static_cast<std::int64_t>(block)) {
    if (!in_remainder[row]) continue;
    ++rows;
    nonzeros += a.offsets[row + 1] - a.offsets[row];
  }
  add(&counts->remainder, rows);
  add(&counts->remainder_nonzeros, nonzeros);
}

class Builder {
public:
  Builder(Executor &executor, csr::DeviceArrays csr)
    : executor_(executor), algorithms_(executor), stream_(algorithms_.stream()) {
    matrix_.csr = std::move(csr);
  }

  DeviceMatrix build(const BuildChoices &choices) {
    choices_ = choices;
    const csr::DeviceArrays &a = matrix_.csr;
    matrix_.remainder.columns_count = a.columns_count;
    matrix_.remainder.wide = a.wide;
    csr::with_offsets(a, [&](const auto *offsets) {
      const auto rows = rows_of(a, offsets);
      grid_ = look_at_rows(rows);
      cut_ = cut_rows(grid_, a.rows);
      slices_ = cut_.slices();
      lanes_ = lanes_of_row(a.rows, a.nonzeros);
      if (a.rows > 0) build_parts(rows);
    });
    fill_values(executor_, matrix_, a.values.data());
    matrix_.csr.columns = Array<std::int32_t>();
    matrix_.csr.values = Array<double>();
    matrix_.remainder_product.prepare(executor_, matrix_.remainder, csr::CudaCoreConfig{});
    executor_.synchronize(); // what was read may go, and the executor may be on another stream when the matrix is used
    take_census();
    return std::move(matrix_);
  }

private:
  template <class Offset> void build_parts(const Rows<Offset> &rows) {
    Tally tally = classify_slices(rows, false);
    build_section(rows, constant_kind, tally, matrix_.constant);
    const std::int64_t exceptions = matrix_.constant.exceptions.size();
    if (are_many(exceptions, slice_rows * tally.slices[constant_kind]) && 2 * second_rows_ > exceptions) {
      matrix_.constant = Section();
      tally = classify_slices(rows, true);
      build_section(rows, constant_kind, tally, matrix_.constant);
    }
    build_section(rows, explicit_kind, tally, matrix_.explicit_);
    build_remainder(rows);
  }

  // `rows` of the work, a thread each or a warp each.
  template <class F> void launch(std::int64_t threads, F &&f) {
    if (threads == 0) return;
    f(static_cast<unsigned>((threads + block - 1) / block));
    TCBOUND_LAUNCHED();
  }

  template <class Offset> Tally classify_slices(const Rows<Offset> &a, bool seconds) {
    Array<Tally> tally(executor_, 1);
    numbers_ = seconds ? 2 * slices_ : slices_;
    votes_ = Votes(executor_, numbers_, a.count);
    in_remainder_ = Array<std::uint8_t>(executor_, a.count);
    TCBOUND_CUDA(cudaMemsetAsync(tally.data(), 0, sizeof(Tally), stream_));
    launch(32 * slices_, [&](unsigned grid) {
      classify<<<grid, block, 0, stream_>>>(a, slices_, cut_, lanes_, choices_.allow_constant, seconds, votes_.view(),
                                            in_remainder_.data());
    });
    launch(numbers_, [&](unsigned grid) { tally_slices<<<grid, block, 0, stream_>>>(votes_.view(), numbers_, tally.data()); });
    return algorithms_.read(tally.data());
  }

  // Guesses the grid from the offsets of the fullest of a few rows, and whether values repeat from two such rows.
  template <class Offset> Grid look_at_rows(const Rows<Offset> &a) {
    if (a.count == 0) return {};
    Array<RowSample>                   taken(executor_, sampled_rows);
    const std::unique_ptr<RowSample[]> samples(new RowSample[sampled_rows]);
    SampledRows                        numbers = {};
    for (int i = 0; i < sampled_rows; ++i)
      numbers.row[i] = static_cast<std::int64_t>(sampled_places[i] * static_cast<double>(a.count));
    sample_rows<<<sampled_rows, block, 0, stream_>>>(a, numbers, taken.data());
    TCBOUND_LAUNCHED();
    executor_.copy(samples.get(), MemorySpace::host, taken.data(), MemorySpace::cuda, static_cast<std::size_t>(taken.bytes()));
    const RowSample *best = nullptr;
    bool             repeats = false;
    for (int i = 0; i < sampled_rows; ++i) {
      const RowSample &sample = samples[i];
      if (sample.length > longest_patterned || (best && sample.length < best->length)) continue;
      if (best && sample.length == best->length)
        repeats = repeats || same(sample, *best);
      else
        repeats = false;
      best = &sample;
    }
    Grid grid =
      guess_grid(best ? std::vector<std::int32_t>(best->offsets, best->offsets + best->length) : std::vector<std::int32_t>());
    grid.repeats = repeats && choices_.allow_constant;
    return grid;
  }

  // Puts the slices that a block multiplies next to each other in the grid, so that they share x in the first-level cache.
  void put_in_tiles(Array<std::int32_t> &listed, std::int64_t count, int depth) {
    if (grid_.line == 0) return;
    const Tiling         tiling(grid_, cut_.rows, depth);
    Array<std::uint64_t> keys(executor_, count), sorted_keys(executor_, count);
    Array<std::int32_t>  sorted(executor_, count);
    launch(count,
           [&](unsigned grid) { number_tiles<<<grid, block, 0, stream_>>>(listed.data(), count, cut_, tiling, keys.data()); });
    algorithms_.sort_pairs(keys.data(), sorted_keys.data(), listed.data(), sorted.data(), count, tiling.bits);
    listed = std::move(sorted);
  }

  template <class Offset> void build_section(const Rows<Offset> &a, Kind kind, const Tally &tally, Section &section) {
    const std::int64_t count = tally.slices[kind], exceptions = tally.exceptions[kind], keys = count + exceptions;
    if (count == 0) return;
    Array<std::int32_t> listed(executor_, count);
    algorithms_.list_numbers(listed.data(), numbers_, HasKind{votes_.kind.data(), kind});
    // Deep enough that a block finds most of x in its first-level cache, and still several blocks for each that can run at once.
    const std::int64_t wanted = 16 * static_cast<std::int64_t>(executor_.device().multiprocessors);
    section.depth = static_cast<int>(std::clamp<std::int64_t>(count / (block_slices * wanted), 1, 8));
    put_in_tiles(listed, count, section.depth);
    section.slices = Array<Slice>(executor_, count);

    Array<std::int64_t> begin(executor_, count + 1), place(executor_, exceptions + 1);
    launch(count + 1, [&](unsigned grid) {
      count_exceptions<<<grid, block, 0, stream_>>>(listed.data(), count, votes_.view(), begin.data());
    });
    algorithms_.exclusive_sum(begin.data(), begin.data(), count + 1);
    Array<std::int32_t> key_row(executor_, keys), pattern_of_key(executor_, keys);
    const bool          spare_remainder = kind == constant_kind && tally.slices[remainder_kind] == 0;
    number_patterns_of(a, section, listed.data(), begin.data(), exceptions, spare_remainder, key_row, pattern_of_key);
    Array<Odd> odd(executor_, exceptions);
    launch(32 * count, [&](unsigned grid) {
      verify<<<grid, block, 0, stream_>>>(a, count, begin.data(), pattern_of_key.data(), key_row.data(),
                                          section.patterns.data(), kind == constant_kind, lanes_, section.slices.data(),
                                          odd.data(), in_remainder_.data());
    });
    write_section(a, kind, begin.data(), odd.data(), key_row.data() + count, pattern_of_key.data() + count, place, section);
    if (kind == explicit_kind) return place_values(section, begin, place);
    choose_hot_segments(executor_, section);
    if (!choices_.march || !find_march(executor_, algorithms_, grid_, a.count, matrix_.csr.columns_count, section))
      build_columns(executor_, algorithms_, grid_, cut_, listed.data(), choices_, section);
  }

  template <class Offset>
  void number_patterns_of(const Rows<Offset> &a, Section &section, const std::int32_t *listed, const std::int64_t *begin,
                          std::int64_t exceptions, bool spare_remainder, Array<std::int32_t> &key_row,
                          Array<std::int32_t> &pattern_of_key) {
    const std::int64_t   count = section.slices.size(), keys = count + exceptions;
    const int            hash_bits = hash_bits_for(keys);
    Array<std::uint64_t> hash(executor_, keys), sorted_hash(executor_, keys);
    Array<std::uint32_t> number(executor_, keys), sorted(executor_, keys);
    launch(count, [&](unsigned grid) {
      list_keys<<<grid, block, 0, stream_>>>(listed, count, cut_, votes_.view(), begin, hash_bits, section.slices.data(),
                                             Keys{hash.data(), key_row.data(), number.data()});
    });
    algorithms_.sort_pairs(hash.data(), sorted_hash.data(), number.data(), sorted.data(), keys, hash_bits);
    Array<std::int64_t> run_length(executor_, keys), run_begin(executor_, keys), kept(executor_, keys + 1),
      weight(executor_, keys), run_count(executor_, 1);
    Array<std::int32_t> run(executor_, keys);
    algorithms_.run_lengths(sorted_hash.data(), hash.data(), run_length.data(), keys, run_count.data());
    algorithms_.exclusive_sum(run_length.data(), run_begin.data(), keys); // of what is no run it means nothing
    launch(keys + 1, [&](unsigned grid) {
      choose_patterns<<<grid, block, 0, stream_>>>(a.offsets, key_row.data(), run_begin.data(), run_length.data(),
                                                   sorted.data(), hash.data(), run_count.data(), keys, count, spare_remainder,
                                                   weight.data(), run.data(), kept.data());
    });
    algorithms_.exclusive_sum(kept.data(), kept.data(), keys + 1);
    const auto         counts = algorithms_.read_all(run_count.data(), kept.data() + keys);
    const std::int64_t runs = counts[0], patterns = counts[1];
    section.patterns = Array<Pattern>(executor_, patterns);
    Array<std::int64_t> sorted_weight(executor_, runs);
    Array<std::int32_t> sorted_run(executor_, runs), pattern_of_run(executor_, runs);
    algorithms_.sort_pairs_descending(weight.data(), sorted_weight.data(), run.data(), sorted_run.data(), runs,
                                      bits_of(slice_rows * count + keys));
    launch(runs, [&](unsigned grid) {
      rank_patterns<<<grid, block, 0, stream_>>>(sorted_run.data(), runs, patterns, pattern_of_run.data());
    });
    launch(keys, [&](unsigned grid) {
      number_keys<<<grid, block, 0, stream_>>>(run_begin.data(), pattern_of_run.data(), runs, sorted.data(), keys,
                                               key_row.data(), pattern_of_key.data(), section.patterns.data());
    });
  }

  // Partial rows, exceptions and the dictionary; place[e] then is where exception e is.
  template <class Offset>
  void write_section(const Rows<Offset> &a, Kind kind, const std::int64_t *begin, const Odd *odd, const std::int32_t *odd_row,
                     const std::int32_t *odd_pattern, Array<std::int64_t> &place, Section &section) {
    const std::int64_t  count = section.slices.size(), patterns = section.patterns.size(), exceptions = place.size() - 1;
    Array<Partial>      partials(executor_, count * most_partials);
    Array<std::int64_t> first(executor_, patterns + 1);
    section.partial_begin = Array<std::int32_t>(executor_, count + 1);
    Array<std::int64_t> second_rows(executor_, 1);
    TCBOUND_CUDA(cudaMemsetAsync(second_rows.data(), 0, sizeof(std::int64_t), stream_));
    launch(count + 1, [&](unsigned grid) {
      sort_odd_rows<<<grid, block, 0, stream_>>>(count, begin, odd, odd_row, odd_pattern, section.slices.data(),
                                                 partials.data(), section.partial_begin.data(), place.data(),
                                                 in_remainder_.data(), second_rows.data());
    });
    launch(patterns + 1, [&](unsigned grid) {
      measure_patterns<<<grid, block, 0, stream_>>>(a, patterns, section.patterns.data(), first.data());
    });
    algorithms_.exclusive_sum(section.partial_begin.data(), section.partial_begin.data(), count + 1);
    algorithms_.exclusive_sum(place.data(), place.data(), exceptions + 1);
    algorithms_.exclusive_sum(first.data(), first.data(), patterns + 1);
    const auto [partial_count, kept, segments, first_segments, could_be_second] =
      algorithms_.read_all(section.partial_begin.data() + count, place.data() + exceptions, first.data() + patterns,
                           &section.patterns.data()->segments, second_rows.data());
    second_rows_ = could_be_second;
    section.first_segments = static_cast<int>(first_segments);
    section.partials = Array<Partial>(executor_, partial_count);
    section.exceptions = Array<Exception>(executor_, kept);
    if (kind == constant_kind)
      section.constant_segments = Array<ConstantSegment>(executor_, segments);
    else
      section.segments = Array<Segment>(executor_, segments);
    launch(patterns, [&](unsigned grid) {
      write_patterns<<<grid, block, 0, stream_>>>(a, patterns, first.data(), section.patterns.data(), section.segments.data(),
                                                  section.constant_segments.data());
    });
    launch(count, [&](unsigned grid) {
      finish_slices<<<grid, block, 0, stream_>>>(count, section.patterns.data(), matrix_.csr.columns_count, partials.data(),
                                                 section.partial_begin.data(), section.slices.data(), section.partials.data());
    });
    launch(exceptions, [&](unsigned grid) {
      place_exceptions<<<grid, block, 0, stream_>>>(exceptions, place.data(), odd_pattern, odd_row, section.exceptions.data());
    });
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

  // Counts the rows of each kind; then those of the remainder are put together.
  template <class Offset> void build_remainder(const Rows<Offset> &a) {
    csr::DeviceArrays &to = matrix_.remainder;
    counts_ = count(a);
    to.rows = counts_.remainder;
    to.nonzeros = counts_.remainder_nonzeros;
    if (to.rows == 0) return;
    matrix_.remainder_rows = Array<std::int32_t>(executor_, to.rows);
    algorithms_.list_numbers(matrix_.remainder_rows.data(), a.count, IsMarked{in_remainder_.data()});
    to.columns = Array<std::int32_t>(executor_, to.nonzeros);
    const auto gather = [&](auto &begin) {
      begin = std::decay_t<decltype(begin)>(executor_, to.rows + 1);
      launch(to.rows + 1, [&](unsigned grid) {
        measure_remainder<<<grid, block, 0, stream_>>>(a.offsets, matrix_.remainder_rows.data(), to.rows, begin.data());
      });
      algorithms_.exclusive_sum(begin.data(), begin.data(), to.rows + 1);
      launch(32 * ((to.nonzeros + warp_entries - 1) / warp_entries), [&](unsigned grid) {
        copy_columns<<<grid, block, 0, stream_>>>(a, matrix_.remainder_rows.data(), to.rows, begin.data(), to.columns.data());
      });
    };
    if constexpr (sizeof(Offset) == sizeof(std::int64_t))
      gather(to.wide_offsets);
    else
      gather(to.narrow_offsets);
  }

  template <class Offset> RowCounts count(const Rows<Offset> &a) {
    Array<RowCounts> device_counts(executor_, 1);
    RowCounts       *counts = device_counts.data();
    int              i = 0;
    TCBOUND_CUDA(cudaMemsetAsync(counts, 0, sizeof(RowCounts), stream_));
    for (const Section *section : {&matrix_.constant, &matrix_.explicit_}) {
      launch(std::max(section->slices.size(), section->partials.size()), [&](unsigned grid) {
        count_rows<<<grid, block, 0, stream_>>>(section->slices.data(), section->slices.size(), section->partials.data(),
                                                section->partials.size(), counts->whole + i, counts->partial + i);
      });
      ++i;
    }
    const std::int64_t resident = 2048 * static_cast<std::int64_t>(executor_.device().multiprocessors);
    launch(std::min(a.count, resident),
           [&](unsigned grid) { count_remainder<<<grid, block, 0, stream_>>>(a, in_remainder_.data(), counts); });
    return algorithms_.read(counts);
  }

  void take_census() {
    Census &census = matrix_.census;
    census.rows = matrix_.csr.rows;
    census.columns = matrix_.csr.columns_count;
    census.nonzeros = matrix_.csr.nonzeros;
    census.constant_rows = counts_.whole[0];
    census.explicit_rows = counts_.whole[1];
    census.partial_rows = counts_.partial[0] + counts_.partial[1];
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
  std::int64_t        slices_ = 0, numbers_ = 0; // of the cut; with second ones
  int                 lanes_ = 0;                // of a row
  std::int64_t        second_rows_ = 0;          // exceptions of the last section that could be in second slices
  DeviceMatrix        matrix_;
  Votes               votes_;
  Array<std::uint8_t> in_remainder_;
  RowCounts           counts_ = {};
};

} // namespace

DeviceMatrix build(Executor &executor, csr::DeviceArrays csr, const BuildChoices &choices) {
  return Builder(executor, std::move(csr)).build(choices);
}

} // namespace tcbound::compact
