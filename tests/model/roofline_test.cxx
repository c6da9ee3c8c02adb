#include "src/model/roofline.h"

#include <cmath>
#include <gtest/gtest.h>

using namespace tcbound;

TEST(Roofline, IntensityOfTheTextbookKernels) {
  EXPECT_DOUBLE_EQ(arithmetic_intensity(2.0, 24.0), 1.0 / 12.0); // triad a = b + s c: 2 FLOPs, 3 doubles
  EXPECT_DOUBLE_EQ(arithmetic_intensity(1.0, 16.0), 0.0625);     // scale y = q x
}

TEST(Roofline, ShareOfTheCeiling) {
  const double reached = achieved_bandwidth(3e9, 2.0);
  EXPECT_DOUBLE_EQ(reached, 1.5e9);
  EXPECT_DOUBLE_EQ(ceiling_share(reached, 2e9), 0.75);
  EXPECT_DOUBLE_EQ(ceiling_share(reached, 1e9), 1.5); // out of a cache
}

TEST(Roofline, UndefinedFiguresAreNaN) {
  EXPECT_TRUE(std::isnan(arithmetic_intensity(1.0, 0.0)));
  EXPECT_TRUE(std::isnan(achieved_bandwidth(0.0, 0.0)));
  EXPECT_TRUE(std::isnan(ceiling_share(1.0, 0.0)));
  EXPECT_TRUE(std::isnan(ceiling_share(std::nan(""), 0.0)));
}
