// ranks: 1 2 3 5
// Products against plain AIJ on awkward shapes and vectors, and what a matrix says about its kernel.
#include <petscdevice.h>

#include <cstring>

#include "mat/matrices.h"

namespace {

using Products = OnBackend;

std::vector<PetscScalar> entries_of(Vec x) {
  std::vector<PetscScalar> entries;
  on_host(x, [&](PetscScalar *array, PetscInt n) { entries.assign(array, array + n); });
  return entries;
}

std::string kernel_of(Mat A) {
  MatTCBoundInfo info;
  OK(MatTCBoundGetInfo(A, &info));
  return info.kernel;
}

// Which format suits a matrix is tested with selection; here only that it runs where it was told to.
std::string backend_of(Mat A) {
  MatTCBoundInfo info;
  OK(MatTCBoundGetInfo(A, &info));
  return info.backend;
}

TEST_P(Products, AgreeOnEveryShape) {
  for (const Case &c : all_cases()) {
    SCOPED_TRACE(c.name);
    const Pair m(c);
    EXPECT_EQ(type_of(object(m.ours)), ours_name());
    for (VecType type : vec_types()) expect_same_products(m.ours, m.aij, type);
    EXPECT_EQ(backend_of(m.ours), backend());
  }
}

TEST_P(Products, KeepNaNAndInfWhereTheyBelong) {
  const Pair        m(random_case());
  const Bound       bound(m.aij);
  const PetscScalar inf = std::numeric_limits<double>::infinity();

  for (VecType type : vec_types())
    for (bool transpose : {false, true})
      for (bool add : {false, true}) {
        Handle<Vec> x;
        PetscInt    begin;
        make_vector(m.ours, transpose, type, 5, &x);
        OK(VecGetOwnershipRange(x, &begin, nullptr));
        on_host(x, [&](PetscScalar *array, PetscInt n) {
          for (PetscInt k = 0; k < n; k++) {
            if (begin + k == 3) array[k] = inf;
            if (begin + k == 100) array[k] = -inf;
            if (begin + k == 210) array[k] = std::numeric_limits<double>::quiet_NaN();
          }
        });
        EXPECT_LE(product_excess(m.ours, m.aij, bound, transpose, add, false, false, x), 1.0)
          << type << " transpose " << transpose << " add " << add;
      }
}

// A NaN in y that the product overwrites must not survive, but one that it adds to must.
TEST_P(Products, AddNaNOnlyWhenAsked) {
  const Pair m(random_case());

  for (VecType type : vec_types())
    for (bool transpose : {false, true}) {
      Handle<Vec> x, y, z;
      make_vector(m.ours, transpose, type, 6, &x);
      make_vector(m.ours, !transpose, type, 0, &y);
      make_vector(m.ours, !transpose, type, 0, &z);
      OK((transpose ? MatMultTransposeAdd : MatMultAdd)(m.ours, x, y, z));
      size_t nans = 0;
      for (PetscScalar v : entries_of(z)) nans += std::isnan(v);
      EXPECT_EQ(nans, entries_of(z).size());
      OK((transpose ? MatMultTranspose : MatMult)(m.ours, x, z));
      for (PetscScalar v : entries_of(z)) EXPECT_TRUE(std::isfinite(v));
    }
}

// A double array may begin at any multiple of 8 bytes.
TEST_P(Products, TakeVectorsAlignedToEightBytes) {
  const Pair               m(random_case());
  const Bound              bound(m.aij);
  std::vector<PetscScalar> memory(1000);
  std::vector<PetscScalar> odd_memory(1000);
  const auto               odd = [](std::vector<PetscScalar> &v) {
    return v.data() + (reinterpret_cast<std::uintptr_t>(v.data()) % 16 ? 0 : 1);
  };

  for (VecType type : vec_types()) {
    for (bool transpose : {false, true}) {
      Handle<Vec> x, z, reference, plain, limit;
      make_vector(m.ours, transpose, type, 0, &x);
      make_vector(m.ours, !transpose, type, 0, &z);
      make_vector(m.aij, transpose, VECSTANDARD, 7, &plain);
      make_vector(m.aij, !transpose, VECSTANDARD, 0, &reference);
      make_vector(m.aij, !transpose, VECSTANDARD, 1, &limit);
      bound(transpose, plain, nullptr, limit);
      const std::vector<PetscScalar> entries = entries_of(plain);
      std::copy(entries.begin(), entries.end(), odd(memory));
      std::fill(odd_memory.begin(), odd_memory.end(), std::numeric_limits<double>::quiet_NaN());
      OK(VecPlaceArray(x, odd(memory)));
      OK(VecPlaceArray(z, odd(odd_memory)));
      OK((transpose ? MatMultTranspose : MatMult)(m.ours, x, z));
      OK((transpose ? MatMultTranspose : MatMult)(m.aij, plain, reference));
      EXPECT_LE(excess(z, reference, limit), 1.0) << type << " transpose " << transpose;
      OK(VecResetArray(x));
      OK(VecResetArray(z));
    }
  }
}

#if PetscDefined(HAVE_CUDA)
// The same for device memory: each array begins one element into a longer one.
TEST_P(Products, TakeDeviceArraysAlignedToEightBytes) {
  if (!on_device()) return;
  const Pair  m(random_case());
  const Bound bound(m.aij);

  for (bool transpose : {false, true}) {
    Handle<Vec>  x, z, x_memory, z_memory, reference, plain, limit;
    PetscScalar *x_array, *z_array;
    PetscInt     n;

    make_vector(m.ours, transpose, VECCUDA, 0, &x);
    make_vector(m.ours, !transpose, VECCUDA, 0, &z);
    make_vector(m.aij, transpose, VECSTANDARD, 7, &plain);
    make_vector(m.aij, !transpose, VECSTANDARD, 0, &reference);
    make_vector(m.aij, !transpose, VECSTANDARD, 1, &limit);
    bound(transpose, plain, nullptr, limit);
    for (Vec *memory : {&x_memory, &z_memory}) {
      OK(VecCreate(PETSC_COMM_SELF, memory));
      OK(VecSetSizes(*memory, 1000, 1000));
      OK(VecSetType(*memory, VECSEQCUDA));
      poison(*memory);
    }
    const std::vector<PetscScalar> entries = entries_of(plain);
    on_host(x_memory, [&](PetscScalar *array, PetscInt) { std::copy(entries.begin(), entries.end(), array + 1); });
    OK(VecCUDAGetArray(x_memory, &x_array));
    OK(VecCUDAGetArray(z_memory, &z_array));
    OK(VecCUDAPlaceArray(x, x_array + 1));
    OK(VecCUDAPlaceArray(z, z_array + 1));
    OK((transpose ? MatMultTranspose : MatMult)(m.ours, x, z));
    OK((transpose ? MatMultTranspose : MatMult)(m.aij, plain, reference));
    EXPECT_LE(excess(z, reference, limit), 1.0) << "transpose " << transpose;
    OK(VecCUDAResetArray(x));
    OK(VecCUDAResetArray(z));
    OK(VecCUDARestoreArray(x_memory, &x_array));
    OK(VecCUDARestoreArray(z_memory, &z_array));
    OK(VecGetLocalSize(z, &n));
    const std::vector<PetscScalar> written = entries_of(z_memory);
    EXPECT_TRUE(std::isnan(written[0])) << "wrote before the array";
    EXPECT_TRUE(std::isnan(written[n + 1])) << "wrote behind the array";
  }
}
#endif

// Every second-to-last piece of a longer vector: contiguous from an odd place, and strided.
TEST_P(Products, TakeSubvectors) {
  const Pair  m(random_case());
  const Bound bound(m.aij);

  for (VecType type : vec_types())
    for (PetscInt stride : {1, 2}) {
      Handle<Vec> whole, z, plain, reference, limit;
      Handle<IS>  where;
      Vec         x;
      PetscInt    n, begin;

      make_vector(m.aij, false, VECSTANDARD, 1, &plain);
      make_vector(m.aij, true, VECSTANDARD, 0, &reference);
      make_vector(m.aij, true, VECSTANDARD, 1, &limit);
      make_vector(m.ours, true, type, 0, &z);
      OK(VecGetLocalSize(plain, &n));
      OK(VecCreate(PETSC_COMM_WORLD, &whole));
      OK(VecSetSizes(whole, stride * n + 3, PETSC_DETERMINE));
      OK(VecSetType(whole, type));
      randomize(whole, 21);
      move_to_memory_of_type(whole);
      OK(VecGetOwnershipRange(whole, &begin, nullptr));
      OK(ISCreateStride(PETSC_COMM_WORLD, n, begin + 1, stride, &where));
      OK(VecGetSubVector(whole, where, &x));
      const std::vector<PetscScalar> entries = entries_of(x);
      on_host(plain, [&](PetscScalar *array, PetscInt) { std::copy(entries.begin(), entries.end(), array); });
      move_to_memory_of_type(x);
      OK(MatMult(m.ours, x, z));
      OK(VecRestoreSubVector(whole, where, &x));
      OK(MatMult(m.aij, plain, reference));
      bound(false, plain, nullptr, limit);
      EXPECT_LE(excess(z, reference, limit), 1.0) << type << " stride " << stride;
    }
}

TEST_P(Products, AreTheSameBitsInEveryRun) {
  for (const Case &c : all_cases()) {
    SCOPED_TRACE(c.name);
    const Pair m(c);
    for (bool transpose : {false, true}) {
      Handle<Vec> x, z;
      OK(transpose ? MatCreateVecs(m.ours, &z, &x) : MatCreateVecs(m.ours, &x, &z));
      randomize(x, 30);
      std::vector<PetscScalar> first;
      for (int run = 0; run < 20; run++) {
        poison(z);
        OK((transpose ? MatMultTranspose : MatMult)(m.ours, x, z));
        const std::vector<PetscScalar> now = entries_of(z);
        if (run == 0) first = now;
        // The halo's sums of a transposed product may arrive in any order.
        if (transpose && world_size() > 1) continue;
        EXPECT_TRUE(now.empty() || !std::memcmp(now.data(), first.data(), now.size() * sizeof(PetscScalar)))
          << "run " << run << " transpose " << transpose;
      }
    }
  }
}

TEST_P(Products, CreateVectorsOfTheirOwnPlace) {
  for (const Case &c : {random_case(), tall_case(), wide_case()}) {
    const Pair  m(c);
    Handle<Vec> right, left;
    PetscInt    n, rows, columns;
    const bool  one = world_size() == 1;

    OK(MatCreateVecs(m.ours, &right, &left));
    for (Vec x : {Vec(right), Vec(left)})
      EXPECT_EQ(type_of(object(x)), on_device() ? (one ? VECSEQCUDA : VECMPICUDA) : (one ? VECSEQ : VECMPI));
    OK(MatGetLocalSize(m.ours, &rows, &columns));
    OK(VecGetLocalSize(right, &n));
    EXPECT_EQ(n, columns);
    OK(VecGetLocalSize(left, &n));
    EXPECT_EQ(n, rows);
  }
}

TEST_P(Products, GoToTheHostAndBackWithBindToCPU) {
  const Pair m(random_case());

  for (int round = 0; round < 2; round++) {
    EXPECT_EQ(backend_of(m.ours), backend());
    OK(MatBindToCPU(m.ours, PETSC_TRUE));
    for (VecType type : vec_types()) expect_same_products(m.ours, m.aij, type);
    EXPECT_EQ(backend_of(m.ours), "host");
    for (Mat A : {Mat(m.ours), Mat(m.aij)}) OK(MatScale(A, 1.5)); // the copy on the device is old now
    OK(MatBindToCPU(m.ours, PETSC_FALSE));
    for (VecType type : vec_types()) expect_same(m.ours, m.aij, type);
  }
  EXPECT_EQ(backend_of(m.ours), backend());
}

TEST_P(Products, SwitchBackendsOnOneMatrix) {
  const Pair m(random_case());

  for (const std::string &to : {backend(), std::string("host"), std::string("auto"), backend()}) {
    OK(MatTCBoundSetBackend(m.ours, to.c_str()));
    OK(MatTCBoundSetFormat(m.ours, to == "auto" ? "auto" : "csr"));
    for (VecType type : vec_types()) expect_same_products(m.ours, m.aij, type);
    EXPECT_TRUE(to == "auto" || kernel_of(m.ours) == "spmv/csr/" + to) << kernel_of(m.ours) << " for " << to;
    for (Mat A : {Mat(m.ours), Mat(m.aij)}) OK(MatShift(A, 0.25));
  }
}

double nonempty_rows(Mat A) {
  PetscInt begin, end, entries, found = 0;
  OK(MatGetOwnershipRange(A, &begin, &end));
  for (PetscInt i = begin; i < end; i++) {
    OK(MatGetRow(A, i, &entries, nullptr, nullptr));
    found += entries > 0;
    OK(MatRestoreRow(A, i, &entries, nullptr, nullptr));
  }
  return static_cast<double>(found);
}

TEST_P(Products, HaveExactInfo) {
  for (const Case &c : all_cases()) {
    SCOPED_TRACE(c.name);
    const Pair     m(c);
    MatTCBoundInfo info;
    MatInfo        aij;
    PetscInt       rows, columns;

    OK(MatTCBoundSetFormat(m.ours, "csr"));
    OK(MatTCBoundGetInfo(m.ours, &info));
    OK(MatGetInfo(m.aij, MAT_GLOBAL_SUM, &aij));
    EXPECT_EQ(info.rows, c.rows);
    EXPECT_EQ(info.columns, c.columns);
    EXPECT_EQ(info.nonzeros, static_cast<PetscInt64>(c.entries.size()));
    EXPECT_EQ(static_cast<PetscInt64>(aij.nz_used), info.nonzeros);
    EXPECT_EQ(info.kernel, "spmv/csr/" + backend());
    EXPECT_STREQ(info.format, "csr");
    EXPECT_EQ(info.backend, backend());
    EXPECT_EQ(info.useful_flops, 2.0 * c.entries.size());
    EXPECT_GE(info.setup_seconds, 0.0);
    EXPECT_LT(info.setup_seconds, 60.0);

    // Each block: rows + 1 offsets, for each entry a column and a value; vectors: x, z, and z again where a block adds to it. Of
    // an off-diagonal block csr stores rows with entries only, by number, if that is less, and products touch z there only.
    const double index = on_device() ? 4.0 : sizeof(PetscInt);
    double       matrix = 0.0, vectors = 0.0;
    for (Mat block : blocks_of(m.aij)) {
      MatInfo    local;
      const bool adds = block != blocks_of(m.aij)[0];
      OK(MatGetInfo(block, MAT_LOCAL, &local));
      OK(MatGetLocalSize(block, &rows, &columns));
      double stored = static_cast<double>(rows), numbers = 0.0;
      if (adds && local.nz_used == 0.0) continue; // nothing runs
      if (adds && backend() != "cusparse" && (index + 20.0) * nonempty_rows(block) < (index + 16.0) * stored) {
        stored = nonempty_rows(block);
        numbers = 4.0 * stored;
      }
      matrix += index * (stored + 1.0) + numbers + (index + 8.0) * local.nz_used;
      vectors += 8.0 * ((adds ? 2.0 : 1.0) * stored + static_cast<double>(columns));
    }
    double sums[2] = {matrix, vectors};
    MPI_OK(MPI_Allreduce(MPI_IN_PLACE, sums, 2, MPI_DOUBLE, MPI_SUM, PETSC_COMM_WORLD));
    EXPECT_EQ(info.moved_bytes - info.stored_bytes, sums[1]);
    if (backend() == "cuda_core") { // with its table of work, which is small
      EXPECT_GE(info.stored_bytes, sums[0]);
      EXPECT_LE(info.stored_bytes, 1.5 * sums[0] + 4096.0 * world_size());
    } else {
      EXPECT_EQ(info.stored_bytes, sums[0]);
    }
  }
}

TEST_P(Products, ChooseByTimeToo) {
  option("-mat_tcbound_tune", "measure");
  for (const char *seconds : {"10", "0"}) { // with no time, the first is taken
    option("-mat_tcbound_tune_seconds", seconds);
    for (const Case &c : all_cases()) {
      SCOPED_TRACE(c.name);
      const Pair m(c);
      for (VecType type : vec_types()) expect_same_products(m.ours, m.aij, type);
      EXPECT_EQ(backend_of(m.ours), backend());
    }
  }
}

// To `digits` bits of significand, where no exponent is out of range.
Case rounded(Case c, int digits) {
  for (Entry &e : c.entries) {
    int          exponent;
    const double fraction = std::frexp(e.v, &exponent);
    e.v = std::ldexp(std::nearbyint(std::ldexp(fraction, digits)), exponent - digits);
  }
  return c;
}

// Products are those of the matrix with rounded values, from the first and with new values, and the values stay what they were.
TEST_P(Products, RoundValuesIfAsked) {
  const struct {
    const char *name;
    int         digits;
  } precisions[] = {{"fp32", 24}, {"bf16", 8}, {"fp64", 53}};
  for (const auto &precision : precisions) {
    SCOPED_TRACE(precision.name);
    option("-mat_tcbound_value_precision", precision.name);
    std::vector<Case> cases = all_cases();
    cases.push_back(laplacian_case(17, 9));
    for (Case &c : cases) {
      SCOPED_TRACE(c.name);
      Handle<Mat> ours;
      build(c, MATAIJTCBOUND, &ours);
      for (const double factor : {1.0, 1.0 / 3}) {
        Handle<Mat> exact, near;
        PetscBool   same = PETSC_FALSE;
        for (Entry &e : c.entries) e.v *= factor;
        insert(c, ours);
        build(c, MATAIJ, &exact);
        build(rounded(c, precision.digits), MATAIJ, &near);
        for (VecType type : vec_types()) expect_same_products(ours, near, type);
        Handle<Mat> copy;
        OK(MatConvert(ours, MATAIJ, MAT_INITIAL_MATRIX, &copy));
        OK(MatEqual(copy, exact, &same));
        EXPECT_TRUE(same);
      }
    }
  }
}

// On all ranks the same: none is rounded.
TEST_P(Products, WithDenseMatricesKeepValues) {
  option("-mat_tcbound_value_precision", "bf16");
  const Pair  m(random_case());
  Handle<Mat> dense, ours, reference;
  PetscInt    rows;
  PetscReal   norm, difference;
  OK(MatGetLocalSize(m.aij, nullptr, &rows));
  OK(MatCreateDense(PETSC_COMM_WORLD, rows, PETSC_DECIDE, PETSC_DETERMINE, 4, nullptr, &dense));
  OK(MatSetRandom(dense, nullptr));
  OK(MatMatMult(m.ours, dense, MAT_INITIAL_MATRIX, PETSC_DETERMINE, &ours));
  OK(MatMatMult(m.aij, dense, MAT_INITIAL_MATRIX, PETSC_DETERMINE, &reference));
  OK(MatNorm(reference, NORM_FROBENIUS, &norm));
  OK(MatAXPY(ours, -1.0, reference, SAME_NONZERO_PATTERN));
  OK(MatNorm(ours, NORM_FROBENIUS, &difference));
  EXPECT_LE(difference, 1e-14 * norm);
}

TEST_P(Products, RoundedValuesKeepWhatIsNoNumber) {
  const double inf = std::numeric_limits<double>::infinity();
  option("-mat_tcbound_value_precision", "bf16");
  Case         c = make_case("diagonal", 9, 9, [](PetscInt i, std::set<PetscInt> &chosen) { chosen.insert(i); });
  const double values[] = {inf, -inf, std::nan(""), 0.0, -0.0, 1 + 0x1p-8, 1 + 0x3p-8, 0x1.2p-133, -0x1.8p-133};
  const double expected[] = {inf, -inf, std::nan(""), 0.0, 0.0, 1.0, 1 + 0x1p-6, 0x1p-133, -0x1p-132}; // ties go to even
  for (std::size_t k = 0; k < 9; k++) c.entries[k].v = values[k];
  Handle<Mat> A;
  Handle<Vec> x, y;
  PetscInt    begin;
  build(c, MATAIJTCBOUND, &A);
  OK(MatCreateVecs(A, &x, &y));
  OK(VecSet(x, 1.0));
  OK(VecGetOwnershipRange(y, &begin, nullptr));
  const auto expect = [&](const double *all) {
    const std::vector<PetscScalar> found = entries_of(y);
    for (std::size_t k = 0; k < found.size(); k++) {
      const double e = all[static_cast<std::size_t>(begin) + k];
      EXPECT_TRUE(std::isnan(e) ? std::isnan(found[k]) : found[k] == e) << found[k] << " for " << e;
    }
  };
  OK(MatMult(A, x, y));
  expect(expected);
  OK(MatGetDiagonal(A, y)); // is no product
  expect(values);
}

TEST_P(Products, ValuesTooLargeToRoundAreAnError) {
  if (world_size() > 1) return; // an error of one rank
  for (const char *precision : {"fp32", "bf16"}) {
    option("-mat_tcbound_value_precision", precision);
    Case c = random_case();
    c.entries[5].v = -3.5e38;
    Handle<Mat>    A;
    Handle<Vec>    x, y;
    PetscErrorCode code;
    build(c, MATAIJTCBOUND, &A);
    OK(MatCreateVecs(A, &x, &y));
    OK(VecSet(x, 1.0));
    const std::string text = message_of([&] { return MatMult(A, x, y); }, &code);
    EXPECT_EQ(code, PETSC_ERR_FP);
    EXPECT_TRUE(contains(text, "-3.5e+38 is too large")) << text;
    c.entries[5].v = 3.38e38; // rounds to 3.3895e38 in bf16, its largest number
    insert(c, A);
    OK(MatMult(A, x, y));
  }
}

TEST_P(Products, SayWhichKernelsCanRun) {
  const Pair         m(random_case());
  const char *const *names;
  PetscInt           n;
  const char        *no_device = nullptr;
  const bool         device = has_device(&no_device);

  OK(TCBoundGetKernels("spmv", &n, &names));
  std::vector<std::string> kernels(names, names + n);
  EXPECT_EQ(kernels, (std::vector<std::string>{"spmv/csr/host", "spmv/csr/cuda_core", "spmv/csr/cusparse", "spmv/compact/host",
                                               "spmv/compact/cuda_core", "spmv/diagonals/cuda_core", "spmv/sell/host",
                                               "spmv/sell/cuda_core", "spmv/tiles/cuda_core", "spmv/fragments/cuda_core",
                                               "spmv/fragments/tensor_core"}));
  for (const std::string &name : kernels) {
    PetscBool   can = PETSC_FALSE;
    const char *why_not = nullptr;
    const bool  expected = device || contains(name, "/host");

    OK(MatTCBoundCheckKernel(m.ours, name.c_str(), &can, &why_not));
    EXPECT_EQ(can, expected ? PETSC_TRUE : PETSC_FALSE) << name;
    EXPECT_STREQ(why_not, expected ? nullptr : no_device) << name;
  }
  OK(TCBoundGetKernels("no such operation", &n, &names));
  EXPECT_EQ(n, 0);
}

INSTANTIATE_TEST_SUITE_P(Cpu, Products, testing::Values("host"), backend_name<testing::TestParamInfo<const char *>>);
INSTANTIATE_TEST_SUITE_P(Gpu, Products, testing::Values("cuda_core", "cusparse"),
                         backend_name<testing::TestParamInfo<const char *>>);

} // namespace
