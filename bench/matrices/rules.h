#pragma once

// The rules, by where such matrices come from. Sizes are arguments; cases.cxx has those of the suite.

#include "matrix.h"

namespace tcbound::bench {

// grids.cxx: differential equations on n^2 or n^3 points, Dirichlet boundary where nothing else is said.
// Poisson's equation with the 7- or the 27-point stencil. Constant: points - 1 on the diagonal, else -1. Variable: each
// coupling has a random coefficient in [0.5, 1.5).
Matrix poisson(std::int64_t n, int points, bool variable, std::string name);
// Rows like those of the vertices in triquadratic (Q2) elements: the 5 x 5 x 5 points around each, random coefficients.
Matrix q2_vertices(std::int64_t n, std::string name);
// 9-point bilinear elements for div(K grad u) with a diffusion 1000 times as strong along a line at 30 degrees.
Matrix anisotropic(std::int64_t n, std::string name);
// Circuit theory in landscape ecology, as McRae/ecology1 (SuiteSparse): a 5-point network of conductances of a raster of
// habitat classes, no flux at the edges.
Matrix ecology(std::int64_t n, std::string name);
// Linear elasticity, n^3 nodes of trilinear hexahedra, a random Young's modulus for each element, one face on springs.
Matrix elasticity(std::int64_t n, std::string name);
// Species that react with one another and diffuse into each other, as many at each of n^3 points: dense blocks of random values on
// the 27-point stencil.
Matrix reaction(std::int64_t n, int species, std::string name);

// mesh.cxx: linear tetrahedra, n^3 vertices of a cube cut by Kuhn's subdivision (14 neighbours inside), random coefficients.
enum class Numbering { shuffled, reverse_cuthill_mckee };
Matrix tetrahedra(std::int64_t n, Numbering numbering, std::string name);

// graphs.cxx
// The power-law graph of Graph500 (R-MAT, Chakrabarti, Zhan, Faloutsos 2004; 0.57, 0.19, 0.19, 0.05), vertices not renumbered,
// 2^scale rows and `degree` edges a row on average; an edge drawn more than once adds up to one entry.
Matrix rmat(int scale, int degree, std::string name);
// 3 to 22 entries a row at random columns.
Matrix uniform_rows(std::int64_t n, std::string name);
// Streets: a lattice of tiles x tiles tiles of 64 x 64 crossings of which each street exists with probability 0.7, so 2.8 a
// crossing and no diagonal; crossings are numbered at random inside a tile. Random lengths.
Matrix roads(std::int64_t tiles, std::string name);
// A netlist of 2^scale nodes: short wires, some long ones, and two rails that a tenth of all nodes hang on each: two dense rows
// and columns.
Matrix circuit(int scale, std::string name);

// named.cxx: structures of the SuiteSparse collection, from what their groups and papers say of them.
Matrix epidemic(std::int64_t pairs, std::int64_t width, std::string name); // Williams/mc2depi is 1025, 256
Matrix nlpkkt(std::int64_t n, std::string name);                           // Schenk/nlpkkt80 is 80
Matrix wilson_dirac(std::int64_t sites, std::string name);                 // QCD/conf5_4-8x8-05 is 8

// shapes.cxx
// Crews that each cover a few runs of near trips, as Mittelmann/rail4284: `crews` rows of about 10 among `trips` columns.
Matrix crews(std::int64_t crew_count, std::int64_t trips, std::string name);
Matrix arrowhead(std::int64_t n, std::string name);              // dense first row and column, and the diagonal
Matrix banded_with_empty_rows(std::int64_t n, std::string name); // 11 a row, one row in a hundred is empty

} // namespace tcbound::bench
