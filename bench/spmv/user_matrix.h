#pragma once

#include <string>

#include "matrix.h"

namespace tcbound::bench {

// Reads a file as examples/compare does. Throws std::runtime_error; what is wrong with the file PETSc has printed then.
Matrix load_user_matrix(const std::string &file);

} // namespace tcbound::bench
