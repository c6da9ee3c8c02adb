#!/usr/bin/env python3
"""Solves a 3D Poisson problem from petsc4py with tcbound's matrix type.

    python3 petsc4py_poisson.py LIBTCBOUND [PETSc options]

LIBTCBOUND is the path of libtcbound.so. Add -log_view to see the roofline table, -mat_tcbound_backend host to stay on the
host. Runs under mpiexec too.
"""
import sys

import petsc4py

if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
    sys.exit(__doc__)
petsc4py.init([sys.argv[0], "-dll_append", sys.argv[1], *sys.argv[2:]])
from petsc4py import PETSc  # noqa: E402 (PETSc starts at the import, with the options above)

n = PETSc.Options().getInt("n", 40)
grid = PETSc.DMDA().create([n, n, n], stencil_width=1, stencil_type=PETSc.DMDA.StencilType.STAR)
grid.setMatType("aijtcbound")
A = grid.createMat()

(i0, i1), (j0, j1), (k0, k1) = grid.getRanges()
row, column = PETSc.Mat.Stencil(), PETSc.Mat.Stencil()
for k in range(k0, k1):
    for j in range(j0, j1):
        for i in range(i0, i1):
            row.index = (i, j, k)
            A.setValueStencil(row, row, 6.0)
            for di, dj, dk in ((-1, 0, 0), (1, 0, 0), (0, -1, 0), (0, 1, 0), (0, 0, -1), (0, 0, 1)):
                if 0 <= i + di < n and 0 <= j + dj < n and 0 <= k + dk < n:
                    column.index = (i + di, j + dj, k + dk)
                    A.setValueStencil(row, column, -1.0)
A.assemble()

x, b = A.createVecs()
b.set(1.0)
ksp = PETSc.KSP().create(A.comm)
ksp.setOperators(A)
ksp.setType("cg")
ksp.getPC().setType("jacobi")
ksp.setFromOptions()
ksp.solve(b, x)
residual = b.duplicate()
A.mult(x, residual)
residual.axpy(-1.0, b)
PETSc.Sys.Print(
    f"{A.getType()}, {n}^3 unknowns, vectors {x.getType()}: {ksp.getIterationNumber()} iterations, "
    f"relative residual {residual.norm() / b.norm():.1e}"
)
if ksp.getConvergedReason() < 0:
    sys.exit(1)
