#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "../../kernels/work.h"
#include "machine.h"

// Work of the reference kernels: useful FLOPs and compulsory bytes, every array moved once. A fused multiply-add counts two
// FLOPs. Counts that depend on a format as it was built live beside the format (kernels/<op>/<format>/format.cxx).

namespace tcbound::model {

inline std::int64_t checked_size(std::int64_t size, const char name[]) {
  if (size < 1) throw std::invalid_argument(std::string(name) + " must be positive, not " + std::to_string(size));
  return size;
}

inline Work work_of(std::int64_t flops, std::int64_t bytes) { return Work{flops, flops, bytes, bytes}; }

// n results of `inputs` arrays each, `flops` operations a result (J. McCalpin's STREAM: triad has 2 inputs, 2 FLOPs).
inline Work elementwise_work(std::int64_t n, int inputs, int flops, int element_bytes = 8) {
  checked_size(n, "n");
  checked_size(inputs, "inputs");
  checked_size(flops, "flops");
  return work_of(flops * n, element_bytes * (inputs + 1) * n);
}

// y = q x (STREAM scale): one FLOP and two elements, I = 1/16 in FP64.
inline Work scale_work(std::int64_t n, int element_bytes = 8) { return elementwise_work(n, 1, 1, element_bytes); }

// y = A x with a dense m x n matrix: I tends to 1/4 in FP64 (Roofline's dense matrix-vector product).
inline Work gemv_work(std::int64_t m, std::int64_t n, int element_bytes = 8) {
  checked_size(m, "m");
  checked_size(n, "n");
  return work_of(2 * m * n, element_bytes * (m * n + m + n));
}

// C = A B with each matrix moved once.
inline Work gemm_work(std::int64_t m, std::int64_t n, std::int64_t k, int element_bytes = 8) {
  checked_size(m, "m");
  checked_size(n, "n");
  checked_size(k, "k");
  return work_of(2 * m * n * k, element_bytes * (m * k + k * n + m * n));
}

// Y = A X for `vectors` columns of X and a CSR matrix with int32 indices, as kernels/spmv/csr counts it: in FP64 8 + 4 bytes
// an entry, 4 bytes a row offset, 8 bytes an element of X and of Y.
inline Work spmm_work(std::int64_t rows, std::int64_t columns, std::int64_t entries, std::int64_t vectors,
                      int element_bytes = 8) {
  checked_size(rows, "rows");
  checked_size(columns, "columns");
  checked_size(entries, "entries");
  checked_size(vectors, "vectors");
  return work_of(2 * entries * vectors,
                 (element_bytes + 4) * entries + 4 * (rows + 1) + element_bytes * vectors * (rows + columns));
}

inline Work csr_spmv_work(std::int64_t rows, std::int64_t columns, std::int64_t entries, int element_bytes = 8) {
  return spmm_work(rows, columns, entries, 1, element_bytes);
}

// t fused steps of a stencil with constant coefficients: two FLOPs (a multiply and an add) a point, cell and step. That is how
// public stencil benchmarks count (2d5pt 10, 2d9pt 18, 2d25pt 50, 2d49pt 98 FLOPs a cell), and it agrees with what the paper
// on the bound (see bounds.h) says of 2d49pt; an exact count is one FLOP a cell less. One pass reads and writes each cell
// once however many steps it fuses: I_t = t P/8 in FP64 for P points.
inline Work stencil_work(std::int64_t cells, int points, std::int64_t steps = 1, int element_bytes = 8) {
  checked_size(cells, "cells");
  checked_size(points, "points");
  checked_size(steps, "steps");
  return work_of(2 * points * cells * steps, 2 * element_bytes * cells);
}

struct Stencil {
  std::string name;
  int         dimensions, points, radius;
};

// Names of EBISU's benchmarks: "s" marks the star where a box of as many points exists.
inline const std::vector<Stencil> &stencils() {
  static const std::vector<Stencil> all{{"2d5pt", 2, 5, 1},   {"2ds9pt", 2, 9, 2},  {"2d9pt", 2, 9, 1},
                                        {"2d25pt", 2, 25, 2}, {"2d49pt", 2, 49, 3}, {"3d7pt", 3, 7, 1},
                                        {"3d13pt", 3, 13, 2}, {"3d17pt", 3, 17, 1}, {"3d27pt", 3, 27, 1}};
  return all;
}

struct KernelSettings {
  DataType     type = DataType::fp64;
  std::int64_t steps = 1;   // of stencils
  std::int64_t vectors = 8; // of SpMM
};

// Reference problems, all many times a cache: arrays of 2^28 elements, dense matrices of order 16384 (GEMV) and 8192 (GEMM),
// Poisson on 256^3 (7 points) and 160^3 (27 points), stencils on 2^28 cells.
inline std::vector<std::string> kernel_names() {
  std::vector<std::string> names{"scale", "triad", "gemv", "gemm", "csr7", "csr27", "spmm27"};
  for (const Stencil &stencil : stencils()) names.push_back(stencil.name);
  return names;
}

// Throws std::invalid_argument that lists the valid names.
inline Work kernel_work(const std::string &name, const KernelSettings &settings = {}) {
  const std::size_t  index = index_of_name("kernel", name, kernel_names());
  const int          bytes = element_bytes(settings.type);
  const std::int64_t n = std::int64_t(1) << 28;
  // Entries of a Poisson matrix on n^3 cells: whole stencils less the neighbours beyond the faces.
  const std::int64_t rows7 = 256 * 256 * 256, entries7 = 7 * rows7 - 6 * 256 * 256;
  const std::int64_t rows27 = 160 * 160 * 160, entries27 = std::int64_t(478) * 478 * 478; // (3 n - 2)^3
  const std::size_t  first_stencil = 7;
  if (index < first_stencil && settings.steps != 1)
    throw std::invalid_argument("steps must be 1 for " + name + ": only stencils fuse steps");
  switch (index) {
  case 0:
    return scale_work(n, bytes);
  case 1:
    return elementwise_work(n, 2, 2, bytes);
  case 2:
    return gemv_work(16384, 16384, bytes);
  case 3:
    return gemm_work(8192, 8192, 8192, bytes);
  case 4:
    return csr_spmv_work(rows7, rows7, entries7, bytes);
  case 5:
    return csr_spmv_work(rows27, rows27, entries27, bytes);
  case 6:
    return spmm_work(rows27, rows27, entries27, settings.vectors, bytes);
  default:
    return stencil_work(n, stencils()[index - first_stencil].points, settings.steps, bytes);
  }
}

} // namespace tcbound::model
