// ranks: 1 2 3 5
// Every way to fill a matrix, to make one of a type, to load and to view it.
#include <petscdevice.h>
#include <petscviewer.h>

#include <fstream>
#include <sstream>

#include "mat/matrices.h"

namespace {

class Assembly : public OnBackend {};

void preallocate(Mat A, PetscInt n) {
  OK(MatSeqAIJSetPreallocation(A, n, nullptr));
  OK(MatMPIAIJSetPreallocation(A, n, nullptr, n, nullptr));
}

TEST_P(Assembly, WithPreallocation) {
  for (const Case &c : {random_case(), tall_case()}) {
    Handle<Mat> ours, aij;
    create(c, MATAIJTCBOUND, &ours);
    create(c, MATAIJ, &aij);
    for (Mat A : {Mat(ours), Mat(aij)}) {
      preallocate(A, 12);
      insert(c, A);
    }
    expect_same(ours, aij, vec_types().back());
    // Preallocated anew, with other entries.
    for (Mat A : {Mat(ours), Mat(aij)}) {
      preallocate(A, 3);
      PetscInt begin, end;
      OK(MatGetOwnershipRange(A, &begin, &end));
      for (PetscInt i = begin; i < end; i++) OK(MatSetValue(A, i, (i * 5 + 1) % c.columns, 1.0 + i, INSERT_VALUES));
      assemble(A);
    }
    expect_same(ours, aij, vec_types().back());
  }
}

// Any rank adds to any row; flushed once and assembled several times, with products between.
TEST_P(Assembly, WithEntriesOfOtherRanks) {
  for (bool preallocated : {false, true}) {
    const Case  c = random_case();
    Handle<Mat> ours, aij;
    create(c, MATAIJTCBOUND, &ours);
    create(c, MATAIJ, &aij);
    for (int round = 0; round < 3; round++) {
      for (Mat A : {Mat(ours), Mat(aij)}) {
        if (round == 0 && preallocated) preallocate(A, 12);
        if (round == 0 && !preallocated) OK(MatSetUp(A));
        for (size_t k = world_rank(); k < c.entries.size(); k += world_size()) {
          const Entry &e = c.entries[k];
          OK(MatSetValue(A, e.i, e.j, e.v * (round + 1), ADD_VALUES));
          if (k % 4 == 0) OK(MatSetValue(A, e.i, e.j, 0.5, ADD_VALUES));
          if (k % 9 == 0) OK(MatSetValue(A, e.i, -1, 1e9, ADD_VALUES)); // negative places are left out
        }
        OK(MatAssemblyBegin(A, MAT_FLUSH_ASSEMBLY));
        OK(MatAssemblyEnd(A, MAT_FLUSH_ASSEMBLY));
        const Entry &e = c.entries[c.entries.size() / 2];
        OK(MatSetValue(A, e.i, e.j, 2.0, ADD_VALUES));
        assemble(A);
      }
      expect_same(ours, aij, vec_types().back(), 1e-14); // sums of several ranks may come in any order
    }
  }
}

TEST_P(Assembly, ByLocalNumbersAndBlocks) {
  Handle<Mat> ours, aij;
  Case        c;

  c.rows = c.columns = 60 * world_size(); // divisible by the block size on each rank
  create(c, MATAIJTCBOUND, &ours);
  create(c, MATAIJ, &aij);
  for (Mat A : {Mat(ours), Mat(aij)}) {
    ISLocalToGlobalMapping map;
    std::vector<PetscInt>  global;
    PetscInt               begin, end;

    OK(MatSetBlockSize(A, 2));
    OK(MatSetUp(A));
    OK(MatGetOwnershipRange(A, &begin, &end));
    for (PetscInt b = begin / 2; b < end / 2; b++) global.push_back(b);
    global.push_back(((end / 2) % (c.rows / 2))); // one ghost block
    OK(ISLocalToGlobalMappingCreate(PETSC_COMM_WORLD, 2, static_cast<PetscInt>(global.size()), global.data(), PETSC_COPY_VALUES,
                                    &map));
    OK(MatSetLocalToGlobalMapping(A, map, map));
    OK(ISLocalToGlobalMappingDestroy(&map));
    for (PetscInt b = 0; b < static_cast<PetscInt>(global.size()) - 1; b++) {
      const PetscInt    pair[2] = {b, b + 1};
      const PetscScalar block[16] = {4, 1, -1, 2, 0, 5, 3, -1, -1, 2, 6, 1, 0.5, -2, 1, 7};
      OK(MatSetValuesBlockedLocal(A, 2, pair, 2, pair, block, ADD_VALUES));
      OK(MatSetValueLocal(A, 2 * b, 2 * b + 1, 0.125, ADD_VALUES));
    }
    assemble(A);
  }
  expect_same(ours, aij, vec_types().back(), 1e-14);
}

// COO entries of this rank: duplicates, negative indices, rows of other ranks.
struct Coo {
  std::vector<PetscInt>    i, j;
  std::vector<PetscScalar> v;
  Coo(const Case &c, PetscInt shift, bool distinct) {
    for (size_t k = world_rank(); k < c.entries.size(); k += world_size()) {
      const Entry &e = c.entries[k];
      i.push_back(e.i);
      j.push_back((e.j + shift) % c.columns);
      v.push_back(e.v + static_cast<double>(shift));
      if (distinct) continue;
      if (k % 3 == 0) {
        i.push_back(e.i);
        j.push_back((e.j + shift) % c.columns);
        v.push_back(0.25);
      }
      if (k % 7 == 0) {
        i.push_back(k % 2 ? -1 : e.i);
        j.push_back(k % 2 ? e.j : -1);
        v.push_back(1e9);
      }
    }
  }
  PetscCount n() const { return static_cast<PetscCount>(i.size()); }
};

TEST_P(Assembly, OfCoordinates) {
  for (Case c : {random_case(), tall_case(), wide_case()}) {
    Handle<Mat> ours, aij;
    c.empty_rank = 1;
    create(c, MATAIJTCBOUND, &ours);
    create(c, MATAIJ, &aij);
    for (PetscInt shift : {0, 1, 5}) { // each is another pattern on the same matrix
      SCOPED_TRACE(c.name + " shift " + std::to_string(shift));
      for (Mat A : {Mat(ours), Mat(aij)}) {
        Coo coo(c, shift, false);
        OK(MatSetPreallocationCOO(A, coo.n(), coo.i.data(), coo.j.data()));
      }
      EXPECT_EQ(type_of(object(ours)), ours_name());
      for (InsertMode mode : {INSERT_VALUES, ADD_VALUES, ADD_VALUES, INSERT_VALUES}) {
        Coo coo(c, shift, false);
        for (PetscScalar &v : coo.v) v *= 1.0 + mode;
        for (Mat A : {Mat(ours), Mat(aij)}) OK(MatSetValuesCOO(A, coo.v.data(), mode));
        expect_same(ours, aij, vec_types().back(), 1e-14);
      }
      for (Mat A : {Mat(ours), Mat(aij)}) OK(MatScale(A, 0.5));
      expect_same(ours, aij, vec_types().back(), 1e-14);
    }
    // A matrix made by COO duplicates, and the duplicate takes values by COO as well.
    Handle<Mat> copy_of_ours;
    Coo         coo(c, 5, false);
    OK(MatDuplicate(ours, MAT_DO_NOT_COPY_VALUES, &copy_of_ours));
    OK(MatSetValuesCOO(aij, coo.v.data(), INSERT_VALUES));
    OK(MatSetPreallocationCOO(copy_of_ours, coo.n(), coo.i.data(), coo.j.data()));
    OK(MatSetValuesCOO(copy_of_ours, coo.v.data(), INSERT_VALUES));
    expect_same(copy_of_ours, aij, vec_types().back(), 1e-14);
  }
}

TEST_P(Assembly, OfNoCoordinates) {
  Handle<Mat> ours, aij;

  create(random_case(), MATAIJTCBOUND, &ours);
  create(random_case(), MATAIJ, &aij);
  for (Mat A : {Mat(ours), Mat(aij)}) {
    OK(MatSetPreallocationCOO(A, 0, nullptr, nullptr));
    OK(MatSetValuesCOO(A, nullptr, INSERT_VALUES));
  }
  expect_same(ours, aij, vec_types().back());
}

// Values, and then indices too, in device memory: in the arrays of VECCUDA vectors.
TEST_P(Assembly, OfCoordinatesInDeviceMemory) {
  const Case  c = random_case();
  Handle<Mat> ours, aij;

  if (!on_device()) return;
  create(c, MATAIJTCBOUND, &ours);
  create(c, MATAIJ, &aij);
  for (PetscInt shift : {0, 2}) {
    Coo         host(c, shift, false), again(c, shift, false);
    Handle<Vec> values, rows, columns;
    const auto  upload = [](const void *from, size_t bytes, Vec *to) -> const void  *{
      const PetscScalar *array;
      PetscMemType       memtype;
      PetscInt           n = static_cast<PetscInt>((bytes + 7) / 8);

      OK(VecCreate(PETSC_COMM_SELF, to));
      OK(VecSetSizes(*to, n, n));
      OK(VecSetType(*to, VECSEQCUDA));
      on_host(*to, [&](PetscScalar *a, PetscInt) {
        std::copy_n(static_cast<const char *>(from), bytes, reinterpret_cast<char *>(a));
      });
      OK(VecGetArrayReadAndMemType(*to, &array, &memtype));
      EXPECT_TRUE(PetscMemTypeDevice(memtype));
      const void *device = array;
      OK(VecRestoreArrayReadAndMemType(*to, &array));
      return device;
    };
    const void *i = upload(host.i.data(), host.i.size() * sizeof(PetscInt), &rows);
    const void *j = upload(host.j.data(), host.j.size() * sizeof(PetscInt), &columns);
    OK(MatSetPreallocationCOO(ours, host.n(), static_cast<PetscInt *>(const_cast<void *>(i)),
                              static_cast<PetscInt *>(const_cast<void *>(j))));
    OK(MatSetPreallocationCOO(aij, again.n(), again.i.data(), again.j.data()));
    for (InsertMode mode : {INSERT_VALUES, ADD_VALUES}) {
      OK(VecDestroy(&values));
      const void *v = upload(host.v.data(), host.v.size() * sizeof(PetscScalar), &values);
      OK(MatSetValuesCOO(ours, static_cast<const PetscScalar *>(v), mode));
      OK(MatSetValuesCOO(aij, again.v.data(), mode));
      for (VecType type : vec_types()) expect_same(ours, aij, type, 1e-14);
    }
  }
}

TEST_P(Assembly, FromArraysOfTheCaller) {
  PetscInt    rows[] = {0, 2, 2, 5}, columns[] = {0, 3, 0, 1, 3};
  PetscScalar values[] = {1.5, -2.0, 3.0, 4.0, -0.5};
  Handle<Mat> aij, ours;

  OK(MatCreateSeqAIJWithArrays(PETSC_COMM_SELF, 3, 4, rows, columns, values, &aij));
  OK(MatConvert(aij, MATSEQAIJTCBOUND, MAT_INITIAL_MATRIX, &ours));
  Handle<Vec> x, y;
  OK(MatCreateVecs(ours, &x, &y));
  for (PetscScalar scale : {1.0, 2.0}) {
    values[1] = -2.0 * scale;
    assemble(aij);
    OK(MatCopy(aij, ours, SAME_NONZERO_PATTERN));
    on_host(x, [](PetscScalar *a, PetscInt n) { std::fill(a, a + n, 1.0); });
    OK(MatMult(ours, x, y));
    on_host(y, [&](PetscScalar *a, PetscInt) {
      EXPECT_EQ(a[0], 1.5 - 2.0 * scale);
      EXPECT_EQ(a[1], 0.0);
      EXPECT_EQ(a[2], 6.5);
    });
  }
  // In place, the arrays stay the caller's.
  OK(MatConvert(aij, MATSEQAIJTCBOUND, MAT_INPLACE_MATRIX, &aij));
  EXPECT_EQ(type_of(object(aij)), MATSEQAIJTCBOUND);
  values[0] = 100.0;
  assemble(aij);
  OK(MatMult(aij, x, y));
  on_host(y, [](PetscScalar *a, PetscInt) { EXPECT_EQ(a[0], 96.0); });
}

// Rows of this rank in arrays of the caller, whose values are then replaced.
TEST_P(Assembly, FromParallelArrays) {
  const Case               c = random_case();
  Handle<Mat>              aij, ours;
  std::vector<PetscInt>    offsets{0}, columns;
  std::vector<PetscScalar> values;
  PetscInt                 begin = 0, end;

  create(c, MATAIJ, &aij);
  OK(MatSetUp(aij));
  OK(MatGetOwnershipRange(aij, &begin, &end));
  insert(c, aij);
  for (const Entry &e : c.entries) {
    if (e.i < begin || e.i >= end) continue;
    while (static_cast<PetscInt>(offsets.size()) <= e.i - begin) offsets.push_back(static_cast<PetscInt>(columns.size()));
    columns.push_back(e.j);
    values.push_back(e.v);
  }
  offsets.resize(end - begin + 1, static_cast<PetscInt>(columns.size()));
  OK(MatCreateMPIAIJWithArrays(PETSC_COMM_WORLD, end - begin, end - begin, c.rows, c.columns, offsets.data(), columns.data(),
                               values.data(), &ours));
  OK(MatConvert(ours, MATMPIAIJTCBOUND, MAT_INPLACE_MATRIX, &ours)); // on one rank too
  EXPECT_EQ(type_of(object(ours)), MATMPIAIJTCBOUND);
  for (VecType type : vec_types()) expect_same(ours, aij, type);
  for (PetscScalar &v : values) v *= -2.0;
  OK(MatUpdateMPIAIJWithArray(ours, values.data()));
  OK(MatScale(aij, -2.0));
  for (VecType type : vec_types()) expect_same(ours, aij, type);
}

std::string file_text(const std::string &path) {
  std::ifstream     in(path);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

TEST_P(Assembly, LoadsWhatItSaved) {
  for (const Case &c : {random_case(), tall_case(), wide_case()}) {
    const TemporaryFile file;
    const Pair          m(c);
    for (Mat saved : {Mat(m.ours), Mat(m.aij)}) {
      Handle<PetscViewer> out, in;
      Handle<Mat>         ours;
      OK(PetscViewerBinaryOpen(PETSC_COMM_WORLD, file.path.c_str(), FILE_MODE_WRITE, &out));
      OK(MatScale(m.ours, 2.0)); // what is saved are the values of now
      OK(MatScale(m.aij, 2.0));
      OK(MatView(saved, out));
      OK(PetscViewerFlush(out));
      OK(PetscViewerBinaryOpen(PETSC_COMM_WORLD, file.path.c_str(), FILE_MODE_READ, &in));
      create(c, MATAIJTCBOUND, &ours);
      for (int time = 0; time < 2; time++) { // the second time over the first one's values
        if (time) {
          OK(PetscViewerDestroy(&in));
          OK(PetscViewerBinaryOpen(PETSC_COMM_WORLD, file.path.c_str(), FILE_MODE_READ, &in));
        }
        OK(MatLoad(ours, in));
        EXPECT_EQ(type_of(object(ours)), ours_name());
        expect_same(ours, m.aij, vec_types().back());
        OK(MatScale(ours, 7.0));
        expect_same_products(ours, ours, vec_types().back());
      }
    }
  }
}

TEST_P(Assembly, ViewNamesTheKernel) {
  const TemporaryFile file;
  const Pair          m(random_case());
  Handle<Vec>         x, y;
  const std::string   path = file.path + ".info", kernel = "spmv/csr/" + backend();
  const auto          view = [&](const std::string &format) {
    option("-tcbound_test_view", ("ascii:" + path + format).c_str());
    OK(MatViewFromOptions(m.ours, nullptr, "-tcbound_test_view"));
    MPI_OK(MPI_Barrier(PETSC_COMM_WORLD));
    const std::string text = file_text(path);
    MPI_OK(MPI_Barrier(PETSC_COMM_WORLD));
    return text;
  };

  std::string text = view(":ascii_info");
  EXPECT_TRUE(contains(text, "chosen at the first product")) << text;
  EXPECT_TRUE(contains(text, ours_name())) << text;
  OK(MatCreateVecs(m.ours, &x, &y));
  randomize(x, 1);
  OK(MatTCBoundSetFormat(m.ours, "csr"));
  OK(MatMult(m.ours, x, y));
  text = view(":ascii_info");
  for (const std::string &part : {kernel, ours_name(), std::string("format: csr"), std::string("matrix bytes: ")})
    EXPECT_TRUE(contains(text, part)) << part << " is not in\n" << text;
  MatTCBoundInfo info;
  OK(MatTCBoundGetInfo(m.ours, &info));
  EXPECT_TRUE(contains(text, std::to_string(static_cast<long long>(info.stored_bytes)))) << text;
  text = view(":ascii_info_detail");
  EXPECT_TRUE(contains(text, kernel)) << text;
  EXPECT_TRUE(contains(text, "[0] diagonal block: " + kernel)) << text;
  text = view(":ascii_matlab"); // the entries, and nothing of ours between them
  EXPECT_FALSE(contains(text, "tcbound kernel")) << text;
  OK(MatTCBoundSetFormat(m.ours, "auto")); // whatever that takes; on several ranks maybe more than one
  text = view(":ascii_info");
  EXPECT_TRUE(contains(text, "chosen at the first product")) << text;
  OK(MatMult(m.ours, x, y));
  text = view(":ascii_info");
  OK(MatTCBoundGetInfo(m.ours, &info));
  EXPECT_TRUE(contains(text, std::string("tcbound kernel: ") + info.kernel + ", format: " + info.format + ", ")) << text;
}

TEST_P(Assembly, TakesItsTypeAtAnyTime) {
  const Case  c = random_case();
  Handle<Mat> aij;
  build(c, MATAIJ, &aij);
  { // before the sizes
    Handle<Mat> ours;
    OK(MatCreate(PETSC_COMM_WORLD, &ours));
    OK(MatSetType(ours, MATAIJTCBOUND));
    OK(MatSetSizes(ours, local_size(c.rows, world_rank(), world_size(), -1),
                   local_size(c.columns, world_rank(), world_size(), -1), c.rows, c.columns));
    OK(MatSetUp(ours));
    insert(c, ours);
    EXPECT_EQ(type_of(object(ours)), ours_name());
    expect_same(ours, aij, vec_types().back());
  }
  { // as AIJ first, nothing set
    Handle<Mat> ours;
    create(c, MATAIJ, &ours);
    OK(MatSetType(ours, MATAIJTCBOUND));
    OK(MatSetUp(ours));
    insert(c, ours);
    EXPECT_EQ(type_of(object(ours)), ours_name());
    expect_same(ours, aij, vec_types().back());
  }
  { // an assembled AIJ keeps its values
    Handle<Mat> ours;
    OK(MatDuplicate(aij, MAT_COPY_VALUES, &ours));
    OK(MatSetType(ours, MATAIJTCBOUND));
    EXPECT_EQ(type_of(object(ours)), ours_name());
    expect_same(ours, aij, vec_types().back());
    OK(MatSetType(ours, MATAIJTCBOUND)); // once more changes nothing
    expect_same(ours, aij, vec_types().back());
  }
  { // the type of one rank count by name
    Handle<Mat> ours;
    create(c, ours_name().c_str(), &ours);
    OK(MatSetUp(ours));
    insert(c, ours);
    expect_same(ours, aij, vec_types().back());
  }
}

// MatSetType() throws away what was set before.
TEST_P(Assembly, BeginsAnewWithATypeInMidAssembly) {
  const Case  c = random_case();
  Handle<Mat> ours, aij;

  build(c, MATAIJ, &aij);
  create(c, MATAIJ, &ours);
  OK(MatSetUp(ours)); // without preallocation: entries go to a hash table
  OK(MatSetValue(ours, 0, 0, 1e9, INSERT_VALUES));
  OK(MatSetType(ours, MATAIJTCBOUND));
  OK(MatSetUp(ours));
  insert(c, ours);
  EXPECT_EQ(type_of(object(ours)), ours_name());
  expect_same(ours, aij, vec_types().back());
}

TEST_P(Assembly, TakesTypesFromOptions) {
  const Case  c = random_case();
  Handle<Mat> a, b, aij;
  build(c, MATAIJ, &aij);

  option("-a_mat_type", MATAIJTCBOUND);
  option("-b_mat_type", MATAIJTCBOUND);
  option("-a_mat_tcbound_backend", backend().c_str());
  option("-b_mat_tcbound_backend", "host");
  option("-b_mat_tcbound_format", "csr");
  for (auto &[A, prefix] : {std::pair<Mat *, const char *>{&a, "a_"}, {&b, "b_"}}) {
    OK(MatCreate(PETSC_COMM_WORLD, A));
    OK(MatSetSizes(*A, PETSC_DECIDE, PETSC_DECIDE, c.rows, c.columns));
    OK(MatSetOptionsPrefix(*A, prefix));
    OK(MatSetFromOptions(*A));
    OK(MatSetUp(*A));
    insert(c, *A);
    EXPECT_EQ(type_of(object(*A)), ours_name());
    expect_same(*A, aij, vec_types().back());
  }
  MatTCBoundInfo info;
  OK(MatTCBoundGetInfo(a, &info));
  EXPECT_EQ(info.backend, backend());
  OK(MatTCBoundGetInfo(b, &info));
  EXPECT_STREQ(info.backend, "host");
  // The option holds for a matrix that exists as well.
  OK(MatTCBoundSetBackend(a, "host"));
  OK(MatSetFromOptions(a));
  OK(MatTCBoundGetInfo(a, &info));
  EXPECT_EQ(info.backend, backend());
}

// PETSc's own switch for every sequential AIJ matrix, the blocks of parallel ones too.
TEST_P(Assembly, TakesEverySequentialMatrix) {
  const Case  c = random_case();
  Handle<Mat> reference, aij;

  build(c, MATAIJ, &reference);
  option("-mat_seqaij_type", MATSEQAIJTCBOUND);
  build(c, MATAIJ, &aij);
  for (Mat block : blocks_of(aij)) EXPECT_EQ(type_of(object(block)), MATSEQAIJTCBOUND);
  // Products only: the 1-norm of a plain MATMPIAIJ with device vectors is wrong in PETSc itself (MatNorm_MPIAIJTCBound).
  for (VecType type : vec_types()) expect_same_products(aij, reference, type);
  Handle<Mat> ours;
  build(c, MATAIJTCBOUND, &ours);
  expect_same(ours, reference, vec_types().back());
}

TEST_P(Assembly, SaysThatAStructureHasNoValues) {
  if (!PETSC_VERSION_GE(3, 26, 0) && world_size() > 1) return; // MATMPIAIJ ignored the option
  Mat        A;                                                // not destroyed: after the error a scatter is still under way
  Vec        x, y;
  const Case c = random_case();

  create(c, MATAIJTCBOUND, &A);
  OK(MatSetOption(A, MAT_STRUCTURE_ONLY, PETSC_TRUE));
  preallocate(A, 12);
  insert(c, A);
  OK(MatCreateVecs(A, &x, &y));
  randomize(x, 1);
  const std::string text = message_of([&] { return MatMult(A, x, y); });
  EXPECT_TRUE(contains(text, "MAT_STRUCTURE_ONLY")) << text;
}

INSTANTIATE_TEST_SUITE_P(Cpu, Assembly, testing::Values("host"), backend_name<testing::TestParamInfo<const char *>>);
INSTANTIATE_TEST_SUITE_P(Gpu, Assembly, testing::Values("cuda_core", "cusparse"),
                         backend_name<testing::TestParamInfo<const char *>>);

} // namespace
