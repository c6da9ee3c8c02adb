#pragma once

#include <petscsys.h>

#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

// Matrix Market files, right ones with what they hold and wrong ones with what their error must say.

namespace {

const std::string banner = "%%MatrixMarket matrix coordinate real general\n";
const double      nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();

using Entries = std::map<std::pair<int, int>, double>; // counted from 1, as in the files

struct Valid {
  const char *what;
  std::string text;
  int         rows, columns;
  Entries     entries;
};

const std::vector<Valid> &valid_files() {
  static const std::vector<Valid> cases = {
    {"real general", banner + "2 3 3\n1 1 1.5\n2 3 -2e-3\n1 2 7\n", 2, 3, {{{1, 1}, 1.5}, {{2, 3}, -2e-3}, {{1, 2}, 7}}},
    {"banner in any case, comments, blank lines, tabs, CRLF, plus signs",
     "%%MatrixMarket  MATRIX Coordinate\tReal GENERAL\r\n% c\r\n\r\n  %d\r\n  2\t2 2 \r\n\r\n% later\r\n +1 1\t+.5e+1 \r\n2 2 "
     "-1.\r\n\r\n",
     2,
     2,
     {{{1, 1}, 5}, {{2, 2}, -1}}},
    {"one percent sign", "%MatrixMarket matrix coordinate real general\n1 1 1\n1 1 2", 1, 1, {{{1, 1}, 2}}},
    {"blanks and no newline at the end", banner + "1 2 1\n1 2 3   ", 1, 2, {{{1, 2}, 3}}},
    {"integer", "%%MatrixMarket matrix coordinate integer general\n2 2 2\n1 1 -3\n2 1 4\n", 2, 2, {{{1, 1}, -3}, {{2, 1}, 4}}},
    {"pattern", "%%MatrixMarket matrix coordinate pattern general\n3 2 2\n3 2\n1 1\n", 3, 2, {{{3, 2}, 1}, {{1, 1}, 1}}},
    {"symmetric, lower",
     "%%MatrixMarket matrix coordinate real symmetric\n3 3 3\n1 1 1\n3 1 2\n3 2 4\n",
     3,
     3,
     {{{1, 1}, 1}, {{3, 1}, 2}, {{1, 3}, 2}, {{3, 2}, 4}, {{2, 3}, 4}}},
    {"symmetric, upper",
     "%%MatrixMarket matrix coordinate pattern symmetric\n2 2 2\n1 2\n2 2\n",
     2,
     2,
     {{{1, 2}, 1}, {{2, 1}, 1}, {{2, 2}, 1}}},
    {"skew-symmetric",
     "%%MatrixMarket matrix coordinate integer skew-symmetric\n3 3 2\n2 1 -5\n3 2 7\n",
     3,
     3,
     {{{2, 1}, -5}, {{1, 2}, 5}, {{3, 2}, 7}, {{2, 3}, -7}}},
    {"duplicates", banner + "2 2 4\n2 1 1\n1 1 4\n2 1 2\n2 1 -5\n", 2, 2, {{{2, 1}, -2}, {{1, 1}, 4}}},
    {"explicit zero", banner + "1 2 2\n1 1 0\n1 2 -0.0\n", 1, 2, {{{1, 1}, 0}, {{1, 2}, 0}}},
    {"array",
     "%%MatrixMarket matrix array real general\n2 3\n1\n2\n3\n4\n5\n6\n",
     2,
     3,
     {{{1, 1}, 1}, {{2, 1}, 2}, {{1, 2}, 3}, {{2, 2}, 4}, {{1, 3}, 5}, {{2, 3}, 6}}},
    {"symmetric array",
     "%%MatrixMarket matrix array integer symmetric\n2 2\n1\n2\n3\n",
     2,
     2,
     {{{1, 1}, 1}, {{2, 1}, 2}, {{1, 2}, 2}, {{2, 2}, 3}}},
    {"skew-symmetric array",
     "%%MatrixMarket matrix array real skew-symmetric\n3 3\n1\n2\n3\n",
     3,
     3,
     {{{2, 1}, 1}, {{1, 2}, -1}, {{3, 1}, 2}, {{1, 3}, -2}, {{3, 2}, 3}, {{2, 3}, -3}}},
    {"one by one skew-symmetric array", "%%MatrixMarket matrix array real skew-symmetric\n1 1\n", 1, 1, {}},
    {"not a number, infinite, subnormal",
     banner + "1 4 4\n1 1 nan\n1 2 -inf\n1 3 4.9e-324\n1 4 Infinity\n",
     1,
     4,
     {{{1, 1}, nan}, {{1, 2}, -inf}, {{1, 3}, 4.9406564584124654e-324}, {{1, 4}, inf}}},
    {"no entries", banner + "3 4 0\n", 3, 4, {}},
    {"no rows", banner + "0 4 0\n", 0, 4, {}},
    {"no rows, array", "%%MatrixMarket matrix array real general\n0 3\n", 0, 3, {}},
  };
  return cases;
}

struct Malformed {
  std::string text;
  int         line; // 0: the message names no line
  const char *fragment;
};

const std::vector<Malformed> &malformed_files() {
  const std::string                   huge(100, '9');
  static const std::vector<Malformed> cases = {
    {"", 0, "the file is empty"},
    {"1 1 1\n1 1 1\n", 1, "not a Matrix Market file"},
    {std::string("\0\x12{P\0\0\0\4", 8), 1, "not a Matrix Market file"},
    {"%%MatrixMarket matrix coordinate real\n1 1 1\n1 1 1\n", 1, "header element"},
    {"%%MatrixMarket matrix coordinates real general\n1 1 1\n1 1 1\n", 1, "header element: coordinates"},
    {"%%MatrixMarket matrix coordinate complex general\n1 1 1\n1 1 1 0\n", 1, "complex"},
    {"%%MatrixMarket matrix coordinate complex hermitian\n1 1 1\n1 1 1 0\n", 1, "complex"},
    {"%%MatrixMarket vector coordinate real general\n3 1\n1 1\n", 1, "a vector"},
    {"%%MatrixMarket matrix array pattern general\n1 1\n1\n", 1, "pattern"},
    {"%%MatrixMarket matrix coordinate pattern skew-symmetric\n2 2 1\n2 1\n", 1, "skew-symmetric"},
    {banner, 1, "before its size line"},
    {banner + "% only\n\n", 3, "before its size line"},
    {banner + "2 2\n1 1 1\n", 2, "size line"},
    {banner + "2 2 1 9\n1 1 1\n", 2, "size line"},
    {banner + "% c\n2 x 1\n1 1 1\n", 3, "size line"},
    {banner + "-2 2 1\n1 1 1\n", 2, "negative"},
    {banner + "2 2 " + huge + "\n1 1 1\n", 2, "out of range"},
    {banner + "9223372036854775807 3000000000000000000 1\n1 1 1\n", sizeof(PetscInt) == 4 ? 2 : 0,
     sizeof(PetscInt) == 4 ? "32-bit PetscInt" : "more memory"},
    {"%%MatrixMarket matrix coordinate real symmetric\n2 3 1\n1 1 1\n", 2, "must be square"},
    {banner + "2 2 1\n0 1 1\n", 3, "0-based"},
    {banner + "2 2 2\n1 1 1\n\n2 0 1\n", 5, "column index is 0"},
    {banner + "2 2 1\n3 1 1\n", 3, "row index 3 is outside 1..2"},
    {banner + "2 2 1\n1 -1 1\n", 3, "column index -1 is outside 1..2"},
    {banner + "2 2 1\n" + huge + " 1 1\n", 3, "does not fit 64 bits"},
    {banner + "2 2 1\n4294967297 1 1\n", 3, "outside 1..2"},
    {banner + "2 2 1\n1.0 1 1\n", 3, "\"1.0\" is not an integer"},
    {banner + "2 2 1\n1 1\n", 3, "the value is missing"},
    {banner + "2 2 2\n1 1 1\n2\n", 4, "the column index is missing"},
    {banner + "2 2 1\n1 1 abc\n", 3, "\"abc\" is not a number"},
    {banner + "2 2 1\n1 1 1.0x\n", 3, "\"1.0x\" is not a number"},
    {banner + "2 2 1\n1 1 1,5\n", 3, "is not a number"},
    {banner + "2 2 1\n1 1 1e999\n", 3, "overflows double"},
    {banner + "2 2 1\n1 1 1 0\n", 3, "unexpected text \"0\""},
    {"%%MatrixMarket matrix coordinate pattern general\n2 2 1\n1 1 5\n", 3, "unexpected text \"5\""},
    {"%%MatrixMarket matrix coordinate integer general\n2 2 1\n1 1 5.5\n", 3, "is not an integer"},
    {"%%MatrixMarket matrix coordinate integer general\n2 2 1\n1 1 9223372036854775808\n", 3, "does not fit 64 bits"},
    {banner + "2 2 1\n1 1 1\n\n2 2 2\n", 5, "more lines than the 1 entries"},
    {banner + "2 2 3\n1 1 1\n2 2 2\n", 4, "promises 3 entries, the file ends after 2"},
    {banner + "2 2 1000000000000\n1 1 1", 3, "truncated"},
    {banner + std::string("2 2 1\n1 1 \0\n", 12), 3, "is not a number"},
    {"%%MatrixMarket matrix coordinate real symmetric\n3 3 2\n2 1 1\n1 3 1\n", 4, "other triangle"},
    {"%%MatrixMarket matrix coordinate real skew-symmetric\n2 2 1\n2 2 1\n", 3, "diagonal"},
    {"%%MatrixMarket matrix array real general\n2 2\n1\n2\n3\n", 5, "promises 4 values, the file ends after 3"},
    {"%%MatrixMarket matrix array real symmetric\n2 2\n1\n2\n", 4, "promises 3 values"},
    {"%%MatrixMarket matrix array real skew-symmetric\n2 2\n1\n2\n", 4, "more lines than the 1 values"},
    {"%%MatrixMarket matrix array real general\n1 2\n1 2\n", 3, "unexpected text \"2\""},
  };
  return cases;
}

} // namespace
