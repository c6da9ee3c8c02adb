// Values for products rounded to fewer bits (-mat_tcbound_value_precision, -mat_tcbound_product_precision): what is lossy.
#include "aijtcbound.h"

#include <cmath>
#include <cstring>
#include <limits>

// To the nearest number with `precision` bits of significand, ties to even, exponents as in IEEE binary32 (bfloat16 has the same).
// Infinities and NaN stay; what overflows becomes an infinity.
static double Round(double value, int precision) {
  const double least_normal = std::numeric_limits<float>::min();
  if (!std::isfinite(value)) return value;
  if (std::abs(value) < least_normal) {
    const double unit = std::ldexp(least_normal, 1 - precision); // of subnormal numbers
    return std::copysign(std::nearbyint(value / unit) * unit, value);
  }
  const int     dropped = std::numeric_limits<double>::digits - precision;
  std::uint64_t bits;
  double        rounded;
  std::memcpy(&bits, &value, sizeof bits);
  bits += (std::uint64_t(1) << (dropped - 1)) - 1 + (bits >> dropped & 1); // a carry goes into the exponent, as it should
  bits = bits >> dropped << dropped;
  std::memcpy(&rounded, &bits, sizeof bits);
  return std::abs(rounded) > std::numeric_limits<float>::max() ? std::copysign(std::numeric_limits<double>::infinity(), value)
                                                               : rounded;
}

const std::vector<std::string> &TCBoundValuePrecisions() {
  static const std::vector<std::string> names{"fp64", "fp32", "bf16"};
  return names;
}

const std::vector<std::string> &TCBoundProductPrecisions() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const tcbound::ArithmeticFacts &facts : tcbound::arithmetics) all.push_back(facts.name);
    return all;
  }();
  return names;
}

PetscErrorCode TCBoundRoundValues(const TCBoundMatSettings &settings, const PetscScalar values[], PetscInt n,
                                  std::vector<double> *rounded) {
  const bool         of_products = settings.product_precision != "fp64";
  const char        *option = of_products ? "-mat_tcbound_product_precision" : "-mat_tcbound_value_precision";
  const std::string &precision = of_products ? settings.product_precision : settings.value_precision;
  const int          digits = precision == "fp32" ? 24 : tcbound::facts_of(tcbound::arithmetic_named(precision)).digits;

  PetscFunctionBegin;
  TCBoundCallCXX(rounded->resize(static_cast<std::size_t>(n)));
  for (PetscInt k = 0; k < n; k++) {
    const double value = Round(values[k], digits);
    PetscCheck(std::isfinite(value) || !std::isfinite(values[k]), PETSC_COMM_SELF, PETSC_ERR_FP,
               "%s %s: the value %g is too large for it", option, precision.c_str(), values[k]);
    (*rounded)[static_cast<std::size_t>(k)] = value;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}
