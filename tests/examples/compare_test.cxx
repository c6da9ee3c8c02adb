// The parts of examples/compare that read files and assemble problems.
// ranks: 1 2 3
#include <gtest/gtest.h>
#include <petscksp.h>
#include <sys/stat.h>
#include <zlib.h>

#include <cmath>
#include <cstdio>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "examples/compare/load.h"
#include "examples/compare/matrix_market.h"
#include "examples/compare/problems.h"
#include "matrix_market_cases.h"

namespace {

int rank() {
  int r = 0;
  MPI_Comm_rank(PETSC_COMM_WORLD, &r);
  return r;
}

// A folder that every rank sees, removed at the end.
class Folder {
public:
  Folder() {
    char name[] = "/tmp/tcbound-compare-XXXXXX";
    if (!rank()) {
      EXPECT_NE(mkdtemp(name), nullptr);
    }
    MPI_Bcast(name, sizeof(name), MPI_CHAR, 0, PETSC_COMM_WORLD);
    name_ = name;
  }
  ~Folder() {
    MPI_Barrier(PETSC_COMM_WORLD);
    if (rank()) return;
    for (const std::string &file : files_) std::remove(file.c_str());
    std::remove(name_.c_str());
  }
  const std::string &name() const { return name_; }
  // Written by rank 0.
  std::string write(const std::string &name, const std::string &content) {
    const std::string file = path(name);
    if (!rank()) std::ofstream(file, std::ios::binary) << content;
    MPI_Barrier(PETSC_COMM_WORLD);
    return file;
  }
  std::string path(const std::string &name) {
    files_.push_back(name_ + "/" + name);
    return files_.back();
  }

private:
  std::string              name_;
  std::vector<std::string> files_;
};

struct Caught {
  PetscErrorCode code = PETSC_SUCCESS;
  std::string    message;
};

PetscErrorCode Catch(MPI_Comm, int, const char *, const char *, PetscErrorCode code, PetscErrorType type, const char *message,
                     void *data) {
  Caught *caught = static_cast<Caught *>(data);
  if (type == PETSC_ERROR_INITIAL) {
    caught->code = code;
    caught->message = message ? message : "";
  }
  return code;
}

// The error that LoadMatrix gives, the same on every rank.
Caught error_of(const std::string &file) {
  Caught caught;
  Mat    A = nullptr;
  PetscPushErrorHandler(Catch, &caught);
  const PetscErrorCode code = compare::LoadMatrix(PETSC_COMM_WORLD, file, &A);
  PetscPopErrorHandler();
  EXPECT_EQ(code, caught.code);
  int low = code, high = code;
  MPI_Allreduce(MPI_IN_PLACE, &low, 1, MPI_INT, MPI_MIN, PETSC_COMM_WORLD);
  MPI_Allreduce(MPI_IN_PLACE, &high, 1, MPI_INT, MPI_MAX, PETSC_COMM_WORLD);
  EXPECT_EQ(low, high) << "ranks differ";
  if (!code) MatDestroy(&A);
  return caught;
}

std::string gzip(const std::string &text, const std::string &file) {
  gzFile out = gzopen(file.c_str(), "wb");
  gzwrite(out, text.data(), static_cast<unsigned>(text.size()));
  gzclose(out);
  std::ifstream in(file, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(in), {});
}

void expect_matrix(Mat A, int rows, int columns, const Entries &expected, const std::string &what) {
  PetscInt  m, n, begin, end;
  long long stored = 0;
  ASSERT_EQ(MatGetSize(A, &m, &n), PETSC_SUCCESS);
  EXPECT_EQ(m, rows) << what;
  EXPECT_EQ(n, columns) << what;
  ASSERT_EQ(MatGetOwnershipRange(A, &begin, &end), PETSC_SUCCESS);
  for (PetscInt i = begin; i < end; i++) {
    PetscInt           length;
    const PetscInt    *cols;
    const PetscScalar *values;
    ASSERT_EQ(MatGetRow(A, i, &length, &cols, &values), PETSC_SUCCESS);
    stored += length;
    for (PetscInt k = 0; k < length; k++) {
      const auto found = expected.find({int(i) + 1, int(cols[k]) + 1});
      if (found == expected.end()) {
        ADD_FAILURE() << what << ": (" << i + 1 << ", " << cols[k] + 1 << ") is too many";
        continue;
      }
      const double want = found->second;
      EXPECT_TRUE(values[k] == want || (std::isnan(want) && std::isnan(values[k])))
        << what << ": (" << i + 1 << ", " << cols[k] + 1 << ") is " << values[k] << ", not " << want;
    }
    ASSERT_EQ(MatRestoreRow(A, i, &length, &cols, &values), PETSC_SUCCESS);
  }
  MPI_Allreduce(MPI_IN_PLACE, &stored, 1, MPI_LONG_LONG, MPI_SUM, PETSC_COMM_WORLD);
  EXPECT_EQ(stored, (long long)expected.size()) << what;
}

TEST(MatrixMarket, reads_every_variant) {
  Folder folder;
  for (const Valid &c : valid_files()) {
    Mat A;
    ASSERT_EQ(compare::LoadMatrix(PETSC_COMM_WORLD, folder.write("valid.mtx", c.text), &A), PETSC_SUCCESS) << c.what;
    expect_matrix(A, c.rows, c.columns, c.entries, c.what);
    ASSERT_EQ(MatDestroy(&A), PETSC_SUCCESS);
    const std::string zipped = folder.path("valid.mtx.gz");
    if (!rank()) gzip(c.text, zipped);
    ASSERT_EQ(compare::LoadMatrix(PETSC_COMM_WORLD, zipped, &A), PETSC_SUCCESS) << c.what;
    expect_matrix(A, c.rows, c.columns, c.entries, std::string(c.what) + ", gzipped");
    ASSERT_EQ(MatDestroy(&A), PETSC_SUCCESS);
  }
}

TEST(MatrixMarket, counts_integers_that_doubles_cannot_hold) {
  Folder            folder;
  const std::string text =
    "%%MatrixMarket matrix coordinate integer general\n1 5 5\n1 1 9007199254740993\n"
    "1 2 9223372036854775807\n1 3 -9223372036854775800\n1 4 9007199254740994\n1 5 -9223372036854775808\n";
  EXPECT_EQ(compare::read_matrix_market(folder.write("big.mtx", text)).rounded_integers, 3);
}

TEST(MatrixMarket, large_file_matches_direct_assembly) {
  Folder           folder;
  const int        m = 3001, n = 1999, entries = 200000; // some 4 MB: several of the reader's chunks
  std::mt19937     random(7);
  std::string      text = banner + std::to_string(m) + " " + std::to_string(n) + " " + std::to_string(entries) + "\n";
  std::vector<int> rows, columns;
  Mat              A, B;
  PetscBool        equal;
  ASSERT_EQ(MatCreate(PETSC_COMM_WORLD, &B), PETSC_SUCCESS);
  ASSERT_EQ(MatSetSizes(B, PETSC_DECIDE, PETSC_DECIDE, m, n), PETSC_SUCCESS);
  ASSERT_EQ(MatSetType(B, MATAIJ), PETSC_SUCCESS);
  ASSERT_EQ(MatSetUp(B), PETSC_SUCCESS);
  for (int k = 0; k < entries; k++) {
    const PetscInt i = random() % m, j = random() % n;
    const double   v = random() % 1000; // whole numbers: the order of summation does not matter
    text += std::to_string(i + 1) + " " + std::to_string(j + 1) + " " + std::to_string(v) + "\n";
    if (!rank()) {
      ASSERT_EQ(MatSetValues(B, 1, &i, 1, &j, &v, ADD_VALUES), PETSC_SUCCESS);
    }
  }
  ASSERT_EQ(MatAssemblyBegin(B, MAT_FINAL_ASSEMBLY), PETSC_SUCCESS);
  ASSERT_EQ(MatAssemblyEnd(B, MAT_FINAL_ASSEMBLY), PETSC_SUCCESS);
  ASSERT_EQ(compare::LoadMatrix(PETSC_COMM_WORLD, folder.write("large.mtx", text), &A), PETSC_SUCCESS);
  ASSERT_EQ(MatEqual(A, B, &equal), PETSC_SUCCESS);
  EXPECT_TRUE(equal);
  ASSERT_EQ(MatDestroy(&A), PETSC_SUCCESS);
  ASSERT_EQ(MatDestroy(&B), PETSC_SUCCESS);
}

TEST(MatrixMarket, refuses_malformed_files_by_line) {
  Folder folder;
  for (const Malformed &c : malformed_files()) {
    const std::string file = folder.write("malformed.mtx", c.text);
    const Caught      caught = error_of(file);
    EXPECT_NE(caught.code, PETSC_SUCCESS) << c.text;
    const std::string place = c.line ? file + ", line " + std::to_string(c.line) + ": " : file + ": ";
    EXPECT_EQ(caught.message.compare(0, place.size(), place), 0) << c.text << "gave: " << caught.message;
    EXPECT_NE(caught.message.find(c.fragment), std::string::npos) << c.text << "gave: " << caught.message;
  }
}

TEST(MatrixMarket, refuses_damaged_gzip) {
  Folder       folder;
  std::string  text = banner + "1000 1000 20000\n", zipped;
  std::mt19937 random(3);
  for (int k = 0; k < 20000; k++) {
    text +=
      std::to_string(random() % 1000 + 1) + " " + std::to_string(random() % 1000 + 1) + " " + std::to_string(random()) + "\n";
  }
  const std::string file = folder.path("damaged.mtx.gz");
  if (!rank()) zipped = gzip(text, file);
  EXPECT_EQ(error_of(file).code, PETSC_SUCCESS);
  for (const double part : {0.999, 0.5, 0.01}) {
    folder.write("damaged.mtx.gz", zipped.substr(0, static_cast<std::size_t>(part * zipped.size())));
    EXPECT_NE(error_of(file).message.find("truncated"), std::string::npos) << part << error_of(file).message;
  }
  std::string corrupt = zipped;
  if (!rank()) corrupt[corrupt.size() - 6] ^= 0x55; // the checksum
  folder.write("damaged.mtx.gz", corrupt);
  EXPECT_NE(error_of(file).message.find("corrupt"), std::string::npos) << error_of(file).message;
  if (!rank()) corrupt[corrupt.size() / 2] ^= 0x55;
  folder.write("damaged.mtx.gz", corrupt);
  EXPECT_NE(error_of(file).code, PETSC_SUCCESS);
}

TEST(MatrixMarket, refuses_what_is_no_file) {
  Folder folder;
  for (const char *name : {"/none.mtx", "/none.mtx.gz", "/none.petsc"}) {
    const Caught caught = error_of(folder.name() + name);
    EXPECT_EQ(caught.code, PETSC_ERR_FILE_OPEN);
    EXPECT_NE(caught.message.find("No such file"), std::string::npos) << caught.message;
  }
  const std::string directory = folder.path("directory.mtx");
  if (!rank()) {
    EXPECT_EQ(mkdir(directory.c_str(), 0700), 0);
  }
  EXPECT_NE(error_of(directory).message.find("is a directory"), std::string::npos);
  EXPECT_NE(error_of(folder.name()).message.find("is a directory"), std::string::npos);
}

std::string big_endian(const std::vector<long long> &numbers, int bytes) {
  std::string text;
  for (const long long number : numbers)
    for (int i = bytes - 1; i >= 0; i--) text += static_cast<char>(static_cast<unsigned long long>(number) >> (8 * i));
  return text;
}

void write_binary(Mat A, const std::string &file) {
  PetscViewer viewer;
  ASSERT_EQ(PetscViewerBinaryOpen(PETSC_COMM_WORLD, file.c_str(), FILE_MODE_WRITE, &viewer), PETSC_SUCCESS);
  ASSERT_EQ(MatView(A, viewer), PETSC_SUCCESS);
  ASSERT_EQ(PetscViewerDestroy(&viewer), PETSC_SUCCESS);
}

TEST(PetscBinary, reads_what_matview_wrote) {
  Folder            folder;
  const std::string file = folder.path("matrix.petsc");
  folder.path("matrix.petsc.info");
  for (const Valid &c : valid_files()) {
    Mat A, B;
    ASSERT_EQ(compare::LoadMatrix(PETSC_COMM_WORLD, folder.write("valid.mtx", c.text), &A), PETSC_SUCCESS) << c.what;
    write_binary(A, file);
    ASSERT_EQ(compare::LoadMatrix(PETSC_COMM_WORLD, file, &B), PETSC_SUCCESS) << c.what;
    expect_matrix(B, c.rows, c.columns, c.entries, c.what);
    ASSERT_EQ(MatDestroy(&A), PETSC_SUCCESS);
    ASSERT_EQ(MatDestroy(&B), PETSC_SUCCESS);
  }
}

TEST(PetscBinary, reads_a_built_in_problem) {
  Folder            folder;
  const std::string file = folder.path("problem.petsc");
  compare::Options  options;
  Mat               A, B;
  PetscReal         wrote, read;
  folder.path("problem.petsc.info");
  options.problem = compare::Problem::convection;
  options.n = 5;
  ASSERT_EQ(compare::AssembleProblem(PETSC_COMM_WORLD, options, &A), PETSC_SUCCESS);
  write_binary(A, file);
  ASSERT_EQ(compare::LoadMatrix(PETSC_COMM_WORLD, file, &B), PETSC_SUCCESS);
  for (const NormType type : {NORM_1, NORM_INFINITY}) {
    ASSERT_EQ(MatNorm(A, type, &wrote), PETSC_SUCCESS);
    ASSERT_EQ(MatNorm(B, type, &read), PETSC_SUCCESS);
    EXPECT_NEAR(wrote, read, 1e-13 * wrote);
  }
  ASSERT_EQ(MatDestroy(&A), PETSC_SUCCESS);
  ASSERT_EQ(MatDestroy(&B), PETSC_SUCCESS);
}

TEST(PetscBinary, refuses_malformed_files) {
  Folder            folder;
  const int         w = sizeof(PetscInt);
  const std::string values(16, '\0');
  const struct {
    std::string text;
    const char *fragment;
  } cases[] = {
    {"", "empty"},
    {"hello", "neither Matrix Market"},
    {banner + "1 1 0\n", "neither Matrix Market"},
    {big_endian({VEC_FILE_CLASSID, 2}, w) + values, "vector"},
    {big_endian({MAT_FILE_CLASSID, 2, 2, 2, 1, 1, 0, 1}, 12 - w) + values, "-bit PetscInt"},
    {big_endian({MAT_FILE_CLASSID, 2}, w), "truncated"},
    {big_endian({MAT_FILE_CLASSID, 2, 2, -1}, w), "special format"},
    {big_endian({MAT_FILE_CLASSID, -2, 2, 2}, w), "negative"},
    {big_endian({MAT_FILE_CLASSID, 2, 2, 2, 1, 2, 0, 1}, w) + values, "row lengths sum to 3"},
    {big_endian({MAT_FILE_CLASSID, 2, 2, 2, -1, 3, 0, 1}, w) + values, "row of -1"},
    {big_endian({MAT_FILE_CLASSID, 2, 2, 2, 1, 1, 0, 2}, w) + values, "column index 2, outside 0..1"},
    {big_endian({MAT_FILE_CLASSID, 2, 2, 2, 1, 1, 0, -1}, w) + values, "column index -1"},
    {big_endian({MAT_FILE_CLASSID, 2, 2, 2, 1, 1, 0}, w), "truncated"},
    {big_endian({MAT_FILE_CLASSID, 2, 2, 2, 1, 1, 0, 1}, w) + values.substr(1), "truncated"},
  };
  for (const auto &c : cases) {
    const Caught caught = error_of(folder.write("malformed.petsc", c.text));
    EXPECT_NE(caught.code, PETSC_SUCCESS) << c.fragment;
    EXPECT_NE(caught.message.find(c.fragment), std::string::npos) << c.fragment << ": " << caught.message;
  }
  EXPECT_EQ(error_of(folder.write("right.petsc", big_endian({MAT_FILE_CLASSID, 2, 2, 2, 1, 1, 0, 1}, w) + values)).code,
            PETSC_SUCCESS);
}

TEST(Problems, have_their_pattern_and_symmetry) {
  const long long n = 5, edge = (3 * n - 2) * (3 * n - 2) * (3 * n - 2), star = 7 * n * n * n - 6 * n * n;
  const struct {
    compare::Problem problem;
    long long        nonzeros;
    bool             symmetric;
  } cases[] = {{compare::Problem::poisson7, star, true},
               {compare::Problem::poisson27, edge, true},
               {compare::Problem::elasticity, 9 * edge, true},
               {compare::Problem::convection, star, false}};
  for (const auto &c : cases) {
    compare::Options options;
    Mat              A;
    MatInfo          info;
    PetscBool        symmetric;
    options.problem = c.problem;
    options.n = n;
    ASSERT_EQ(compare::AssembleProblem(PETSC_COMM_WORLD, options, &A), PETSC_SUCCESS);
    ASSERT_EQ(MatGetInfo(A, MAT_GLOBAL_SUM, &info), PETSC_SUCCESS);
    EXPECT_EQ((long long)info.nz_used, c.nonzeros) << int(c.problem);
    ASSERT_EQ(MatIsSymmetric(A, 1e-14, &symmetric), PETSC_SUCCESS);
    EXPECT_EQ(bool(symmetric), c.symmetric) << int(c.problem);
    ASSERT_EQ(MatDestroy(&A), PETSC_SUCCESS);
  }
}

// A rigid shift strains nothing: away from the held face the rows sum to zero. The matrix is positive definite: Cholesky's
// stand-in, CG, reaches a tiny residual.
TEST(Problems, elasticity_is_elasticity) {
  compare::Options options;
  Mat              A;
  Vec              x, y;
  KSP              ksp;
  PetscReal        sum, norm, residual;
  options.problem = compare::Problem::elasticity;
  options.n = 4;
  ASSERT_EQ(compare::AssembleProblem(PETSC_COMM_WORLD, options, &A), PETSC_SUCCESS);
  ASSERT_EQ(MatCreateVecs(A, &x, &y), PETSC_SUCCESS);
  ASSERT_EQ(VecSet(x, 1.0), PETSC_SUCCESS);
  ASSERT_EQ(MatMult(A, x, y), PETSC_SUCCESS);
  const PetscScalar *values;
  PetscInt           local, zeros = 0;
  ASSERT_EQ(VecGetLocalSize(y, &local), PETSC_SUCCESS);
  ASSERT_EQ(VecGetArrayRead(y, &values), PETSC_SUCCESS);
  for (PetscInt i = 0; i < local; i++) zeros += std::fabs(values[i]) < 1e-13;
  ASSERT_EQ(VecRestoreArrayRead(y, &values), PETSC_SUCCESS);
  MPI_Allreduce(MPI_IN_PLACE, &zeros, 1, MPIU_INT, MPI_SUM, PETSC_COMM_WORLD);
  EXPECT_GE(zeros, 3 * 2 * 4 * 4); // the nodes with i >= 2
  ASSERT_EQ(VecSum(y, &sum), PETSC_SUCCESS);
  EXPECT_GT(sum, 0.0);
  ASSERT_EQ(KSPCreate(PETSC_COMM_WORLD, &ksp), PETSC_SUCCESS);
  ASSERT_EQ(KSPSetType(ksp, KSPCG), PETSC_SUCCESS);
  ASSERT_EQ(KSPSetOperators(ksp, A, A), PETSC_SUCCESS);
  PC pc;
  ASSERT_EQ(KSPGetPC(ksp, &pc), PETSC_SUCCESS);
  ASSERT_EQ(PCSetType(pc, PCJACOBI), PETSC_SUCCESS);
  ASSERT_EQ(KSPSetTolerances(ksp, 1e-12, PETSC_CURRENT, PETSC_CURRENT, 300), PETSC_SUCCESS);
  ASSERT_EQ(VecNorm(y, NORM_2, &norm), PETSC_SUCCESS);
  ASSERT_EQ(VecSet(x, 0.0), PETSC_SUCCESS);
  ASSERT_EQ(KSPSolve(ksp, y, x), PETSC_SUCCESS);
  ASSERT_EQ(VecShift(x, -1.0), PETSC_SUCCESS);
  ASSERT_EQ(VecNorm(x, NORM_INFINITY, &residual), PETSC_SUCCESS);
  EXPECT_LT(residual, 1e-8);
  ASSERT_EQ(KSPDestroy(&ksp), PETSC_SUCCESS);
  ASSERT_EQ(VecDestroy(&x), PETSC_SUCCESS);
  ASSERT_EQ(VecDestroy(&y), PETSC_SUCCESS);
  ASSERT_EQ(MatDestroy(&A), PETSC_SUCCESS);
}

} // namespace
