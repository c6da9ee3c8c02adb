// Every kernel of stencil/grid against a long double reference.
#include "spmv_fixture.h"
#include "stencil/grid/format.h"
#include "stencil/grid/host_product.h"
#include "stencil_cases.h"
#ifdef TCBOUND_HAVE_CUDA
#include "stencil/grid/cuda_core_tuning.h"
#endif

namespace {

// x of every cell with its layers, and of the owned ones alone.
struct Vectors {
  std::vector<double> ghosted, owned, ghosts;
};

std::size_t ghosted_at(const Extents &e, std::int64_t i, std::int64_t j, std::int64_t k) {
  return static_cast<std::size_t>((((k + e.low[2]) * e.ghosted(1) + j + e.low[1]) * e.ghosted(0) + i + e.low[0]) * e.dof);
}

Vectors vectors_of(const Extents &e) {
  Vectors v;
  v.ghosted = random_vector(e.ghosted_cells() * e.dof, 5);
  v.ghosts = v.ghosted;
  for (std::int64_t k = 0; k < e.n[2]; ++k)
    for (std::int64_t j = 0; j < e.n[1]; ++j)
      for (std::int64_t i = 0; i < e.n[0]; ++i)
        for (int c = 0; c < e.dof; ++c) {
          const std::size_t at = ghosted_at(e, i, j, k) + static_cast<std::size_t>(c);
          v.owned.push_back(v.ghosted[at]);
          v.ghosts[at] = nan_value; // only layers may be read there
        }
  return v;
}

Expected reference(const Extents &e, const std::vector<Slot> &slots, const std::vector<std::vector<double>> &arrays,
                   double alpha, double beta, const std::vector<double> &ghosted, const std::vector<double> &y) {
  Stencil  shape;
  Expected expected;
  shape.extents = e;
  for (std::int64_t k = 0; k < e.n[2]; ++k)
    for (std::int64_t j = 0; j < e.n[1]; ++j)
      for (std::int64_t i = 0; i < e.n[0]; ++i)
        for (int c = 0; c < e.dof; ++c) {
          const auto  row = static_cast<std::size_t>(((k * e.n[1] + j) * e.n[0] + i) * e.dof + c);
          long double sum = 0, magnitude = 0;
          for (std::size_t s = 0; s < slots.size(); ++s) {
            const Slot &slot = slots[s];
            if (!shape.exists(slot, i, j, k)) continue;
            const std::size_t from = ghosted_at(e, i + slot.offset[0], j + slot.offset[1], k + slot.offset[2]);
            const long double term =
              static_cast<long double>(arrays[s][row]) * ghosted[from + static_cast<std::size_t>(slot.component)];
            sum += term;
            magnitude += std::abs(term);
          }
          const long double added = beta == 0.0 ? 0.0L : static_cast<long double>(beta) * y[row];
          expected.value.push_back(alpha * sum + added);
          expected.tolerance.push_back(
            4.0L * static_cast<long double>(slots.size() + 2) *
            (std::numeric_limits<double>::epsilon() * (std::abs(alpha) * magnitude + std::abs(added)) +
             std::numeric_limits<double>::denorm_min()));
        }
  return expected;
}

class StencilGrid : public Spmv {
protected:
  void apply(Format &format, const Product &product) override {
    auto &own = static_cast<grid::GridFormat &>(format);
    if (in_parts_) {
      own.multiply(executor(), product, ghosts_, Part::shell);
      own.multiply(executor(), product, ghosts_, Part::interior);
    } else {
      own.multiply(executor(), product, ghosts_, Part::all);
    }
  }

  void expect_case(const Case &c) {
    SCOPED_TRACE(c.describe());
    const std::vector<Slot> slots = slots_of(c);
    const auto              arrays = values_of(c, slots);
    const Stencil           stencil = compress(c.extents, slots, arrays);
    const Vectors           v = vectors_of(c.extents);
    Guarded                 ghosts(executor(), v.ghosts, true);
    Problem                 problem;
    problem.stencil = &stencil;
    ASSERT_EQ(kernel().check(executor().device(), problem), "");
    const auto format = build(problem);
    if (as_registered()) {
      EXPECT_EQ(format->work(false, true), kernel().predict(problem, false, true));
    }
    ghosts_ = ghosts.data();
    for (const Call &call : {Call{}, Call{false, -0.5, 1.0, true, true}, Call{false, 2.0, -3.0, false, false}}) {
      std::vector<double> y = random_vector(c.extents.rows(), 2);
      if (call.beta == 0.0) std::fill(y.begin(), y.end(), nan_value);
      const Expected expected = reference(c.extents, slots, arrays, call.alpha, call.beta, v.ghosted, y);
      in_parts_ = false;
      const std::vector<double> whole = multiply(*format, call, v.owned, y);
      expect_near(whole, expected);
      in_parts_ = true;
      expect_near(multiply(*format, call, v.owned, y), expected);
      in_parts_ = false;
      EXPECT_TRUE(same_bits(whole, multiply(*format, call, v.owned, y))) << "another run gives other bits";
    }
    expect_diagonal(c, slots, arrays, *format);
    for (const bool has_inverse : {true, false})
      for (const bool in_parts : {false, true}) {
        in_parts_ = in_parts;
        expect_relaxation(c, slots, arrays, v, has_inverse, static_cast<grid::GridFormat &>(*format));
      }
  }

  // With D^-1, and without.
  void expect_relaxation(const Case &c, const std::vector<Slot> &slots, const std::vector<std::vector<double>> &arrays,
                         const Vectors &v, bool has_inverse, grid::GridFormat &format) {
    const std::int64_t  rows = c.extents.rows();
    const double        factor = 0.7;
    std::vector<double> inverse(static_cast<std::size_t>(rows), 1.0), diagonal = diagonal_of(c, slots, arrays);
    if (has_inverse)
      for (std::size_t row = 0; row < inverse.size(); ++row) inverse[row] = diagonal[row] == 0.0 ? 1.0 : 1.0 / diagonal[row];
    const std::vector<double> b = random_vector(rows, 8);
    Expected                  expected = reference(c.extents, slots, arrays, -1.0, 1.0, v.ghosted, b);
    for (std::size_t row = 0; row < inverse.size(); ++row) {
      const double scale = factor * inverse[row], own = v.owned[row], near = std::abs(own) + std::abs(factor * own);
      expected.value[row] = own + static_cast<long double>(scale) * expected.value[row];
      expected.tolerance[row] = std::abs(scale) * expected.tolerance[row] + 4 * std::numeric_limits<double>::epsilon() * near;
      if (has_inverse && diagonal[row] == 0.0) expected.tolerance[row] = 1e300; // it has no inverse, and the row no meaning
    }
    grid::Relaxation relaxation;
    Guarded          x(executor(), v.owned, true), right(executor(), b, true), scales(executor(), inverse, true);
    for (int run = 0; run < 2; ++run) {
      Guarded z(executor(), std::vector<double>(b.size(), nan_value), true);
      bool    intact = false;
      relaxation.factors[0] = factor;
      relaxation.inverse = has_inverse ? scales.data() : nullptr;
      relaxation.x = x.data();
      relaxation.b = right.data();
      relaxation.z = z.data();
      for (const Part part : in_parts_ ? std::vector<Part>{Part::shell, Part::interior} : std::vector<Part>{Part::all})
        format.relax(executor(), relaxation, ghosts_, part);
      expect_near(z.read(intact), expected);
      EXPECT_TRUE(intact);
    }
  }

  // Two sweeps at once against one after the other, from x and from 0; whether there are such.
  bool expect_two_sweeps(const Case &c) {
    SCOPED_TRACE(c.describe());
    const std::vector<Slot> slots = slots_of(c);
    const auto              arrays = values_of(c, slots);
    const Stencil           stencil = compress(c.extents, slots, arrays);
    Problem                 problem;
    problem.stencil = &stencil;
    const auto format = build(problem);
    auto      &own = static_cast<grid::GridFormat &>(*format);
    if (own.most_sweeps() < 2) return false;
    std::vector<double> inverse = diagonal_of(c, slots, arrays), zero(inverse.size(), 0.0);
    for (double &d : inverse) d = d == 0.0 ? 1.0 : 1.0 / d;
    const std::vector<double> b = random_vector(c.extents.rows(), 8), x = random_vector(c.extents.rows(), 9);
    Guarded                   right(executor(), b, true), scales(executor(), inverse, true);
    for (const bool from_zero : {false, true}) {
      Guarded from(executor(), from_zero ? zero : x, true), between(executor(), zero, true), single(executor(), zero, true);
      Guarded z(executor(), std::vector<double>(b.size(), nan_value), true);
      grid::Relaxation one, two;
      two.sweeps = 2;
      two.factors[0] = one.factors[0] = 0.7;
      two.factors[1] = 0.6;
      two.inverse = one.inverse = scales.data();
      two.b = one.b = right.data();
      one.x = from.data();
      one.z = between.data();
      own.relax(executor(), one, nullptr, Part::all);
      one.factors[0] = 0.6;
      one.x = between.data();
      one.z = single.data();
      own.relax(executor(), one, nullptr, Part::all);
      two.x = from_zero ? nullptr : from.data();
      two.z = z.data();
      own.relax(executor(), two, nullptr, Part::all);
      bool                      intact = false, read = false;
      const std::vector<double> found = z.read(intact), expected = single.read(read), first = between.read(read);
      double                    worst = 0, largest = 0;
      for (std::size_t row = 0; row < found.size(); ++row) {
        worst = std::max(worst, found[row] == expected[row]
                                  ? 0.0
                                  : std::abs(found[row] - expected[row]) + (std::isnan(found[row]) ? 1e300 : 0.0));
        largest = std::max({largest, std::abs(expected[row]), std::abs(first[row]) * std::abs(inverse[row])});
      }
      EXPECT_LE(worst, 40 * std::numeric_limits<double>::epsilon() * largest) << (from_zero ? "from 0" : "from x");
      EXPECT_TRUE(intact);
      own.relax(executor(), two, nullptr, Part::all);
      EXPECT_TRUE(same_bits(found, z.read(intact))) << "another run gives other bits";
    }
    return true;
  }

  static std::vector<double> diagonal_of(const Case &c, const std::vector<Slot> &slots,
                                         const std::vector<std::vector<double>> &arrays) {
    const auto          dof = static_cast<std::size_t>(c.extents.dof);
    std::vector<double> diagonal(static_cast<std::size_t>(c.extents.rows()));
    for (std::size_t s = 0; s < slots.size(); ++s)
      if (grid::is_centre(slots[s]))
        for (std::size_t row = static_cast<std::size_t>(slots[s].component); row < diagonal.size(); row += dof)
          diagonal[row] = arrays[s][row];
    return diagonal;
  }

  void expect_diagonal(const Case &c, const std::vector<Slot> &slots, const std::vector<std::vector<double>> &arrays,
                       Format &format) {
    const std::vector<double> expected = diagonal_of(c, slots, arrays);
    Guarded                   d(executor(), std::vector<double>(expected.size(), nan_value), true);
    bool                      intact = false;
    format.diagonal(executor(), d.data());
    EXPECT_TRUE(same_bits(d.read(intact), expected));
    EXPECT_TRUE(intact);
  }

  virtual std::unique_ptr<Format> build(const Problem &problem) { return kernel().build(executor(), problem); }
  virtual bool as_registered() const { return true; } // what is built stores what the registered kernel's does

  const double *ghosts_ = nullptr;
  bool          in_parts_ = false;
};

TEST_P(StencilGrid, OneCellAway) {
  const std::int64_t sizes[][3] = {{1, 1, 1},    {2, 1, 1},    {300, 1, 1},  {2, 2, 1},   {33, 17, 1},
                                   {255, 5, 1},  {257, 40, 1}, {600, 70, 1}, {512, 6, 1}, {514, 13, 1},
                                   {510, 5, 1},  {2, 2, 2},    {3, 4, 5},    {31, 33, 9}, {32, 32, 8},
                                   {65, 34, 20}, {40, 3, 33},  {64, 8, 6},   {66, 9, 13}, {62, 16, 7}};
  for (const auto &n : sizes)
    for (const bool box : {false, true})
      for (const Values values : all_values) expect_case({{{n[0], n[1], n[2]}}, 1, box, values});
}

TEST_P(StencilGrid, FurtherAway) {
  for (const int width : {2, 3})
    for (const bool box : {false, true})
      for (const Values values :
           {Values::constant, Values::dirichlet, Values::framed, Values::faces, Values::scattered, Values::variable}) {
        expect_case({{{3, 3, 3}}, width, box, values});
        expect_case({{{300, 20, 1}}, width, box, values});
        expect_case({{{255, 5, 1}}, width, box, values});
        expect_case({{{500, 1, 1}}, width, box, values});
        expect_case({{{34, 35, 7}}, width, box, values});
        expect_case({{{67, 20, 8}}, width, box, values});
        expect_case({{{70, 23, 13}}, width, box, values});
      }
}

TEST_P(StencilGrid, Layers) {
  std::mt19937_64 random(3);
  for (int repeat = 0; repeat < 120; ++repeat) {
    Case c;
    c.width = 1 + static_cast<int>(random() % 3);
    const int dimensions = 1 + static_cast<int>(random() % 3);
    for (int d = 0; d < dimensions; ++d) {
      c.extents.n[d] = c.width + static_cast<std::int64_t>(random() % (dimensions == 3 ? 12 : 60)) + 1;
      c.extents.low[d] = random() % 2 ? c.width : 0;
      c.extents.high[d] = random() % 2 ? c.width : 0;
    }
    c.box = random() % 2;
    c.extents.dof = random() % 3 ? 1 : 1 + static_cast<int>(random() % 3);
    c.values = all_values[random() % std::size(all_values)];
    expect_case(c);
  }
}

TEST_P(StencilGrid, SeveralComponents) {
  for (const int dof : {2, 3, 5})
    for (const bool box : {false, true})
      for (const Values values : all_values) {
        expect_case({{{11, 7, 5}, {1, 0, 1}, {0, 1, 1}, dof}, 1, box, values});
        expect_case({{{50, 1, 1}, {0, 0, 0}, {0, 0, 0}, dof}, 2, box, values});
      }
}

TEST_P(StencilGrid, NoCells) { expect_case({{{0, 5, 5}}, 1, true, Values::constant}); }

// What is not finite stays where it belongs: neighbours that do not exist are not multiplied with.
TEST_P(StencilGrid, CoefficientsThatAreNotFinite) {
  Case       c{{{20, 9, 6}}, 1, false, Values::constant};
  const auto slots = slots_of(c);
  auto       arrays = values_of(c, slots);
  for (double &value : arrays[0]) value = infinity;
  const Stencil stencil = compress(c.extents, slots, arrays);
  Problem       problem;
  problem.stencil = &stencil;
  const auto                format = kernel().build(executor(), problem);
  const Vectors             v = vectors_of(c.extents);
  const std::vector<double> y(static_cast<std::size_t>(c.extents.rows()));
  expect_near(multiply(*format, {}, v.owned, y), reference(c.extents, slots, arrays, 1.0, 0.0, v.ghosted, y));
}

TEST_P(StencilGrid, VectorsThatAreNotFinite) {
  // Zeros may or may not meet an x, but those of arrays do.
  for (const Values values : {Values::constant, Values::variable, Values::symmetric}) {
    const Case    c{{{40, 9, 6}}, 1, true, values};
    const auto    slots = slots_of(c);
    const auto    arrays = values_of(c, slots);
    const Stencil stencil = compress(c.extents, slots, arrays);
    Problem       problem;
    problem.stencil = &stencil;
    const auto format = kernel().build(executor(), problem);
    Vectors    v = vectors_of(c.extents);
    v.owned[7] = v.ghosted[7] = nan_value;
    v.owned[1000] = v.ghosted[1000] = infinity;
    const std::vector<double> y(static_cast<std::size_t>(c.extents.rows()));
    expect_near(multiply(*format, {}, v.owned, y), reference(c.extents, slots, arrays, 1.0, 0.0, v.ghosted, y));
  }
}

std::vector<const Kernel *> grid_kernels(MemorySpace space) {
  std::vector<const Kernel *> kernels;
  for (const Kernel *kernel : all_kernels())
    if (kernel->op() == "stencil" && kernel->format() == "grid" && kernel->space() == space) kernels.push_back(kernel);
  return kernels;
}

INSTANTIATE_TEST_SUITE_P(Host, StencilGrid, testing::ValuesIn(grid_kernels(MemorySpace::host)), test_name);
INSTANTIATE_TEST_SUITE_P(Gpu, StencilGrid, testing::ValuesIn(grid_kernels(MemorySpace::cuda)), test_name);

#ifdef TCBOUND_HAVE_CUDA

// Every way that cuda_core can be tuned gives the same results.
class GpuGridVariants : public StencilGrid {
protected:
  std::unique_ptr<Format> build(const Problem &problem) override {
    return grid::build_cuda_core(executor(), *problem.stencil, choices_);
  }
  bool                  as_registered() const override { return choices_.march; }
  grid::CudaCoreChoices choices_;
};

TEST_P(GpuGridVariants, Products) {
  for (const int columns : {32, 64})
    for (const int planes : {1, 3, 7, 100}) {
      choices_ = {true, columns, planes};
      SCOPED_TRACE(std::to_string(columns) + " columns, " + std::to_string(planes) + " planes");
      for (const bool box : {false, true})
        for (const Values values : {Values::constant, Values::dirichlet, Values::faces, Values::scattered}) {
          expect_case({{{130, 34, 20}}, 1, box, values});
          expect_case({{{63, 17, 9}, {1, 0, 1}, {1, 1, 0}}, 1, box, values});
          expect_case({{{300, 50, 1}}, 1, box, values});
        }
    }
  choices_ = {false, 0, 0};
  for (const bool box : {false, true})
    for (const Values values : {Values::constant, Values::dirichlet, Values::faces, Values::scattered}) {
      expect_case({{{130, 34, 20}}, 1, box, values});
      expect_case({{{300, 50, 1}}, 1, box, values});
    }
}

TEST_P(GpuGridVariants, HalfOfSymmetricCoefficients) {
  const std::int64_t cells = 40 * 33 * 30, faces = cells - 38 * 31 * 28;
  for (const auto &[values, arrays, exceptions] : {std::tuple{Values::symmetric, 14, std::int64_t(0)},
                                                   {Values::symmetric_mixed, 9, std::int64_t(0)},
                                                   {Values::nearly, 14, std::int64_t(1)},
                                                   {Values::replaced, 14, faces},
                                                   {Values::variable, 27, std::int64_t(0)}}) {
    const Case    c{{{40, 33, 30}}, 1, true, values};
    const auto    slots = slots_of(c);
    const Stencil stencil = compress(c.extents, slots, values_of(c, slots));
    const auto    patterns = static_cast<std::int64_t>(stencil.patterns.size());
    Problem       problem;
    problem.stencil = &stencil;
    const auto format = build(problem);
    EXPECT_EQ(format->work(false, false).bytes, (16 + 8 * arrays) * cells + 12 * exceptions + 8 * patterns);
    EXPECT_EQ(format->describe().find("symmetric: half of the arrays") != std::string::npos, values != Values::variable);
    EXPECT_EQ(format->work(false, true), kernel().predict(problem, false, true));
  }
}

// Around the ends of blocks, with and without neighbours beyond them; also gathered.
TEST_P(GpuGridVariants, CoefficientsThatVary) {
  const std::int64_t sizes[][3] = {{96, 12, 12}, {97, 13, 13}, {98, 16, 9}, {33, 33, 33},
                                   {48, 8, 8},   {100, 40, 1}, {64, 24, 1}};
  for (const bool march : {true, false}) {
    choices_ = {march, 0, 0};
    for (const auto &n : sizes)
      for (const bool box : {false, true})
        for (const Values values : {Values::symmetric, Values::symmetric_mixed, Values::replaced, Values::variable}) {
          expect_case({{{n[0], n[1], n[2]}}, 1, box, values});
          if (n[2] > 1) expect_case({{{n[0], n[1], n[2]}, {1, 0, 1}, {0, 1, 1}}, 1, box, values});
        }
  }
}

// Around the ends of tiles and of marches.
TEST_P(GpuGridVariants, TwoSweepsAtOnce) {
  const std::int64_t sizes[][3] = {{2, 2, 2},    {3, 2, 5},    {30, 8, 4},   {31, 9, 9},   {29, 7, 70},
                                   {60, 16, 24}, {61, 17, 25}, {125, 21, 3}, {40, 33, 30}, {130, 34, 20},
                                   {1, 30, 30},  {30, 1, 12},  {200, 64, 66}};
  for (const auto &n : sizes)
    for (const Values values : {Values::variable, Values::symmetric, Values::replaced, Values::nearly}) {
      const Case    c{{{n[0], n[1], n[2]}}, 1, false, values};
      const Stencil stencil = compress(c.extents, slots_of(c), values_of(c, slots_of(c)));
      EXPECT_EQ(expect_two_sweeps(c), stencil.array_count() == 7 && stencil.diagonal_exceptions()) << c.describe();
      if (values == Values::nearly) {
        EXPECT_FALSE(stencil.diagonal_exceptions());
      }
    }
  EXPECT_FALSE(expect_two_sweeps({{{40, 33, 30}}, 1, true, Values::symmetric}));
  EXPECT_FALSE(expect_two_sweeps({{{40, 33, 30}, {1, 0, 0}, {0, 0, 0}}, 1, false, Values::symmetric}));
  EXPECT_FALSE(expect_two_sweeps({{{40, 33, 30}}, 1, false, Values::mixed}));
  EXPECT_FALSE(expect_two_sweeps({{{300, 40, 1}}, 1, false, Values::variable}));
}

INSTANTIATE_TEST_SUITE_P(Gpu, GpuGridVariants, testing::ValuesIn(grid_kernels(MemorySpace::cuda)), test_name);

#endif

} // namespace
