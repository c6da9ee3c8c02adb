#pragma once

#include "../iterated/iterated.h"

namespace tcbound::stencil {

// The stencil that makes `steps` steps at once, away from cells that keep their values: its weights are those convolved with
// themselves, summed in extended precision where the machine has it and rounded once.
Problem compose(const Problem &problem, int steps);

} // namespace tcbound::stencil
