#pragma once

// The rows of a compact matrix that are stored as CSR: what is done with them besides building and multiplying.

#include "device_matrix.h"

namespace tcbound::compact {

// New values, in the order of the whole matrix's CSR.
void fill_remainder(Executor &executor, DeviceMatrix &matrix, const double *values);

// Writes the remainder's entries to their places in the whole matrix's CSR.
void recover_remainder(Executor &executor, const DeviceMatrix &matrix, csr::DeviceArrays &to);

// Writes the remainder's elements of the diagonal.
void diagonal_of_remainder(Executor &executor, const DeviceMatrix &matrix, double *d);

} // namespace tcbound::compact
