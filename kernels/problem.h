#pragma once

#include <cstdint>

namespace tcbound {

enum class MemorySpace { host, cuda };

// A borrowed array of 32- or 64-bit integers (PETSc's PetscInt has either width).
struct IndexView {
  const void *data = nullptr;
  int         bytes = 4; // of one element: 4 or 8

  std::int64_t operator[](std::int64_t i) const {
    return bytes == 4 ? static_cast<const std::int32_t *>(data)[i] : static_cast<const std::int64_t *>(data)[i];
  }
};

// A borrowed FP64 matrix in compressed sparse row form: row i holds the entries row_offsets[i] .. row_offsets[i+1]-1 of
// columns and values. Columns are 0-based, sorted within a row and without duplicates. All three arrays lie in `space`.
struct CsrView {
  std::int64_t  rows = 0;
  std::int64_t  columns_count = 0;
  std::int64_t  nonzeros = 0;
  IndexView     row_offsets; // rows + 1 elements
  IndexView     columns;     // nonzeros elements
  const double *values = nullptr;
  MemorySpace   space = MemorySpace::host;
};

namespace grid {
struct Stencil; // stencil/grid/stencil.h
}

// The FP64 matrix instructions (PTX: mma.sync). `automatic` leaves the choice to the kernel.
enum class MmaShape { automatic, m8n8k4, m16n8k4, m16n8k8, m16n8k16 };

// What products are computed in. fp64: the values and x as they are. The others are lossy: the values and x are rounded to that type
// (8 bits of exponent and 11 or 8 of significand), their products added up in FP32.
enum class Arithmetic { fp64, tf32, bf16 };

// What a kernel is asked to work on. One member per operation: SpMV uses csr, stencil/grid the stencil (borrowed, on the host).
struct Problem {
  CsrView              csr;
  const grid::Stencil *stencil = nullptr;
  bool                 reproducible = true; // only algorithms that give the same bits in every run
  bool                 in_place = false;    // most products will be (Product::in_place()): those are to be fast
  MmaShape             mma = MmaShape::automatic;
  Arithmetic           arithmetic = Arithmetic::fp64;
};

} // namespace tcbound
