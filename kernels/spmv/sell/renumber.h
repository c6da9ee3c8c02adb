#pragma once

#include "../csr/device_format.h"

namespace tcbound::sell {

// The rows of a square matrix in an order in which neighbours in its graph are near each other; empty where the graph does not lend
// itself to that. Only a proposal: whether it helps must be measured.
Array<std::int32_t> renumber(Executor &executor, const csr::DeviceArrays &a);

// to[order[i]] = i.
Array<std::int32_t> inverse(Executor &executor, const Array<std::int32_t> &order);

} // namespace tcbound::sell
