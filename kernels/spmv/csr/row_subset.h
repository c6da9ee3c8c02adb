#pragma once

// Some rows of a CSR matrix in device memory, as CSR of their own: what becomes of rows that a format has no other place for.

#include "device_format.h"

namespace tcbound::csr {

// A copy in device memory.
template <class T> Array<T> copy_of(Executor &executor, const Array<T> &from) {
  Array<T> to(executor, from.size());
  executor.copy(to.data(), MemorySpace::cuda, from.data(), MemorySpace::cuda, static_cast<std::size_t>(from.bytes()));
  return to;
}

// The rows listed, in that order, with the same width of offsets.
DeviceArrays take_rows(Executor &executor, const DeviceArrays &a, const Array<std::int32_t> &rows);

// New values of the whole matrix, whose row offsets `of` has, for the rows taken from it.
void refill_rows(Executor &executor, DeviceArrays &taken, const Array<std::int32_t> &rows, const DeviceArrays &of,
                 const double *values);

// Writes the rows' entries to their places in the whole matrix, whose row offsets `to` has.
void put_back(Executor &executor, const DeviceArrays &taken, const Array<std::int32_t> &rows, DeviceArrays &to);

// Writes the rows' elements of the diagonal; without a list, the matrix is whole.
void diagonal_of_rows(Executor &executor, const DeviceArrays &taken, const Array<std::int32_t> &rows, double *d);

} // namespace tcbound::csr
