// Kernels of operation scale: z is q x bit for bit, as IEEE arithmetic has it, whatever stands beside an element.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "mma_shape.h"
#include "spmv_support.h"
#include "vector.h"

namespace {

using namespace tcbound;
using namespace tcbound::test;

constexpr double nan_value = std::numeric_limits<double>::quiet_NaN(), infinity = std::numeric_limits<double>::infinity();
constexpr double subnormal = std::numeric_limits<double>::denorm_min(), largest = std::numeric_limits<double>::max(),
                 least_normal = std::numeric_limits<double>::min();

struct Variant {
  const Kernel *kernel;
  MmaShape      mma;
};

class Scale : public testing::TestWithParam<Variant> {
protected:
  void SetUp() override {
    std::string why_not;
    if (GetParam().kernel->space() == MemorySpace::host)
      executor_ = make_host_executor();
    else if (cuda_device_count(&why_not) > 0)
      executor_ = make_cuda_executor(0);
    else
      GTEST_SKIP() << why_not;
    const std::string reason = kernel().check_vectors(executor_->device(), 1, GetParam().mma);
    if (!reason.empty()) GTEST_SKIP() << reason;
  }

  const ElementwiseKernel &kernel() const { return dynamic_cast<const ElementwiseKernel &>(*GetParam().kernel); }

  Elementwise call(double *z, const double *const *x, const double *q, std::size_t length) const {
    Elementwise c;
    c.length = static_cast<std::int64_t>(length);
    c.w = z;
    c.v = x;
    c.coefficients = q;
    c.mma = GetParam().mma;
    return c;
  }

  // z, with x and z each at an odd multiple of 8 bytes or not; in place: z is x.
  std::vector<double> scale(const std::vector<double> &x, double q, bool odd_x, bool odd_z, bool in_place = false) {
    Guarded             from(*executor_, x, odd_x), to(*executor_, std::vector<double>(x.size(), -77.0), odd_z);
    double             *pointer = in_place ? from.data() : to.data();
    const double *const pointers[1] = {from.data()};
    kernel().run(*executor_, call(pointer, pointers, &q, x.size()));
    bool                      x_intact = false, z_intact = false;
    const std::vector<double> x_after = from.read(x_intact), z = to.read(z_intact);
    EXPECT_TRUE(x_intact && z_intact) << "something around a vector was written to";
    if (!in_place) expect_bits(x_after, x, "x was written to");
    return in_place ? x_after : z;
  }

  // NaNs are equal whatever their bits: IEEE leaves the payload open, and devices give another one than hosts.
  static void expect_bits(const std::vector<double> &got, const std::vector<double> &want, const std::string &what) {
    ASSERT_EQ(got.size(), want.size());
    for (std::size_t i = 0; i < got.size(); ++i)
      if (std::isnan(want[i]))
        ASSERT_TRUE(std::isnan(got[i])) << what << ": element " << i << " is " << got[i] << " instead of NaN";
      else
        ASSERT_EQ(std::memcmp(&got[i], &want[i], sizeof(double)), 0)
          << what << ": element " << i << " of " << got.size() << " is " << got[i] << ", not " << want[i];
  }

  void expect_scaled(const std::vector<double> &x, double q) {
    std::vector<double> want(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) want[i] = q * x[i];
    const std::string what = std::to_string(x.size()) + " elements by " + std::to_string(q);
    for (const bool odd_x : {false, true})
      for (const bool odd_z : {false, true})
        expect_bits(scale(x, q, odd_x, odd_z), want, what + (odd_x ? ", odd x" : "") + (odd_z ? ", odd z" : ""));
    expect_bits(scale(x, q, true, true, true), want, what + ", in place, odd");
    expect_bits(scale(x, q, false, false, true), want, what + ", in place");
  }

  std::unique_ptr<Executor> executor_;
};

// Around lanes, warps' tiles (128 elements) and blocks (1024).
TEST_P(Scale, IsTheRoundedProductForEverySize) {
  for (const std::int64_t n : {0,   1,   2,   3,   4,   5,   31,  32,   33,   63,   64,   65,   66,   127,
                               128, 129, 130, 255, 256, 257, 511, 1023, 1024, 1025, 1026, 2047, 2049, 100003})
    expect_scaled(random_vector(n, static_cast<unsigned>(n) + 1), n % 2 ? 1.1 : -3.7e-5);
}

const std::vector<double> special = {0.0,           -0.0,       infinity, -infinity, nan_value,
                                     subnormal,     -subnormal, largest,  -largest,  least_normal,
                                     -least_normal, 1e-310,     -1e-310,  1.0,       -1.0};

// Each special value alone among ordinary ones, in every place of a warp's tile: it must not touch its neighbours.
TEST_P(Scale, SpecialValuesTouchNoNeighbour) {
  for (const double value : special)
    for (std::size_t at = 0; at < 128; at += value == infinity || value == -0.0 ? 1 : 37) {
      std::vector<double> x = random_vector(300, 7);
      x[100 + at] = value;
      std::vector<double> want = x;
      for (double &element : want) element *= -2.5;
      expect_bits(scale(x, -2.5, false, false), want, std::to_string(value) + " at " + std::to_string(100 + at));
    }
}

TEST_P(Scale, SpecialValuesSideBySideAndAsFactors) {
  std::vector<double> x = random_vector(1000, 9);
  for (std::size_t i = 0; i < x.size(); i += 3) x[i] = special[i % special.size()];
  for (const double q : special) expect_scaled(x, q);
  for (const double q : {2.0, -0.5, 1e-300, -1e300, 1e308}) expect_scaled(x, q); // results underflow and overflow
  expect_scaled(special, 0.75);
  expect_scaled(std::vector<double>(513, -0.0), 3.0);
}

// Products that fall between two subnormal numbers, and into what rounds to zero: the sign stays.
TEST_P(Scale, RoundsSubnormalResults) {
  std::vector<double> x;
  for (const double size : {1e-300, 1e-307, 3.3e-308, 1e-312, 5e-320, 2 * subnormal, subnormal})
    for (const double sign : {1.0, -1.0})
      for (int i = 1; i < 40; ++i) x.push_back(sign * size * (1.0 + i / 41.0));
  for (const double q : {0.5, -0.3, 1e-10, -1e-17, 1e-200}) expect_scaled(x, q);
}

TEST_P(Scale, SaysWhatItCosts) {
  for (const std::int64_t n : {0, 1, 128, 129, 100000}) {
    const Elementwise c = call(nullptr, nullptr, nullptr, static_cast<std::size_t>(n));
    const Work        work = kernel().work(c);
    EXPECT_EQ(work.useful_flops, n);
    EXPECT_EQ(work.bytes, 16 * n);
    if (kernel().backend() == "tensor_core") {
      EXPECT_EQ(work.padded_flops, (n + 127) / 128 * 128);
      EXPECT_EQ(work.issued_flops, work.padded_flops * (GetParam().mma == MmaShape::m16n8k16 ? 32 : 16));
    } else {
      EXPECT_EQ(work.issued_flops, n);
    }
  }
}

TEST_P(Scale, RefusesOtherOperations) {
  const double        q[2] = {1.0, 1.0};
  const double *const v[2] = {nullptr, nullptr};
  Elementwise         c = call(nullptr, v, q, 0);
  c.terms = 2;
  EXPECT_THROW(kernel().run(*executor_, c), Error);
  c.terms = 1;
  c.scale = 1.0;
  EXPECT_THROW(kernel().run(*executor_, c), Error);
}

TEST_P(Scale, StoresNoMatrix) {
  EXPECT_THROW(kernel().build(*executor_, Problem()), Error);
  EXPECT_THROW(kernel().predict(Problem(), false, false), Error);
  EXPECT_EQ(kernel().check(executor_->device(), Problem()), "it works on vectors");
  EXPECT_EQ(kernel().mma(executor_->device(), GetParam().mma).empty(), kernel().backend() != "tensor_core");
}

std::vector<Variant> variants_in(MemorySpace space) {
  std::vector<Variant> found;
  for (const Kernel *kernel : all_kernels()) {
    if (kernel->op() != "scale" || kernel->space() != space) continue;
    found.push_back({kernel, MmaShape::automatic});
    if (kernel->backend() == "tensor_core")
      for (const MmaShapeFacts &facts : mma_shapes) found.push_back({kernel, facts.shape});
  }
  return found;
}

std::string variant_name(const testing::TestParamInfo<Variant> &info) {
  const std::string name = info.param.kernel->format() + "_" + info.param.kernel->backend();
  return info.param.mma == MmaShape::automatic ? name : name + "_" + facts_of(info.param.mma).name;
}

INSTANTIATE_TEST_SUITE_P(Cpu, Scale, testing::ValuesIn(variants_in(MemorySpace::host)), variant_name);
INSTANTIATE_TEST_SUITE_P(Gpu, Scale, testing::ValuesIn(variants_in(MemorySpace::cuda)), variant_name);

#ifdef TCBOUND_HAVE_CUDA
// No device is needed to know what one has.
TEST(ScaleCheck, NamesWhatADeviceLacks) {
  const auto *kernel = dynamic_cast<const VectorKernel *>(find_kernel("scale/array/tensor_core"));
  ASSERT_NE(kernel, nullptr);
  Device device;
  EXPECT_EQ(kernel->check_vectors(device, 1000, MmaShape::automatic), "it runs on a CUDA device only");
  device.space = MemorySpace::cuda;
  device.name = "an old card";
  device.compute_major = 7;
  device.compute_minor = 5;
  EXPECT_EQ(kernel->check_vectors(device, 1000, MmaShape::automatic),
            "the FP64 matrix instruction m8n8k4 needs compute capability 8.0, and an old card has 7.5");
  device.compute_major = 8;
  device.compute_minor = 0;
  EXPECT_EQ(kernel->check_vectors(device, 1000, MmaShape::automatic), "");
  const MmaShape wide = MmaShape::m16n8k16;
  EXPECT_EQ(kernel->check_vectors(device, 1000, wide),
            "the FP64 matrix instruction m16n8k16 needs compute capability 9.0, and an old card has 8.0");
  device.compute_major = 9;
  EXPECT_EQ(kernel->check_vectors(device, 1000, wide), "");
  EXPECT_NE(kernel->check_vectors(device, std::int64_t(1) << 42, wide), "");
}
#endif

} // namespace
