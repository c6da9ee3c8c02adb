#pragma once

// Which rows of a matrix share their columns (layout.h).

#include "device_matrix.h"

namespace tcbound {
class Algorithms;
}

namespace tcbound::fragments {

struct Sharing {
  int node, siblings;
};

// The most rows that share their columns, if all do and none is too long to be in a node. A look at the first rows spares most
// matrices the look at all of them.
Sharing find_sharing(Algorithms &algorithms, Executor &executor, const DeviceMatrix &m, const std::int32_t *columns);

// Whether the first rows of a matrix in device memory come in nodes.
bool seem_to_share(Executor &executor, const CsrView &view, int max_steps);

} // namespace tcbound::fragments
