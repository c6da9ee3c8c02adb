#pragma once

#include <vector>

#include "host_format.h"

namespace tcbound::sell {

// The product, compiled for an instruction set. Every variant adds up the entries of a row in a slice from the first to the last, in
// one fused multiply-add each where the processor has that, so variants with it give the same bits, whatever the width of their
// vectors.
struct HostVariant {
  const char *name;
  void (*multiply)(const HostArrays &arrays, const Product &product);
};

// Those that this processor can run, the fastest first.
const std::vector<HostVariant> &host_variants();

} // namespace tcbound::sell
