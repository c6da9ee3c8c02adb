#pragma once

#include "kernel.h"

namespace tcbound::csr {

// Products of a CSR in host memory by one thread, and its diagonal, any mixture of 32- and 64-bit indices. With `rows` the CSR holds only some
// rows of a matrix: its row i is the matrix's row rows[i]. Without, it is the matrix.

// z = alpha A x + beta y for the rows that the CSR holds.
void multiply(const CsrView &a, const std::int32_t *rows, const Product &product);

// The same for several columns, up to 8 of them a pass through the matrix; passes_of_columns(): how many passes that makes.
void         multiply_columns(const CsrView &a, const std::int32_t *rows, const Product &product, const Columns &columns);
std::int64_t passes_of_columns(std::int64_t count);

// z += alpha transpose(A) x, for the rows that the CSR holds: entries are read in stored order and z is scattered to.
void add_transpose(const CsrView &a, const std::int32_t *rows, const Product &product);

// z = beta y, as many as `size` elements: where a transposed product starts.
void begin_transpose(const Product &product, std::int64_t size);

// z = beta y in those of `size` elements that are not among the `listed` rows, which ascend.
void begin_others(const Product &product, std::int64_t size, const std::int32_t *rows, std::size_t listed);

// d[i] = a_ii, 0 where it is not stored, for the rows i that the CSR holds.
void diagonal(const CsrView &a, const std::int32_t *rows, double *d);

} // namespace tcbound::csr
