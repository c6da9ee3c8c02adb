// ranks: 1 2 3
// The log between its calls and its views, on a fake device. The process's one log keeps its rows from test to test, so that
// each test has its own labels and the tests run in this order.
#include <petscviewer.h>
#include <tcbound.h>

#include <petsc/private/logimpl.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sstream>
#include <unistd.h>

#include "log/fake.h"
#include "src/log/logimpl.h"

namespace {

FakeExecutor device;
FakeKernel   kernel("cuda_core"), other_kernel("host");

const tcbound::Work work = {200, 800, 1600, 1000}; // useful, issued, bytes, compulsory

int world_rank() {
  int rank = 0;
  EXPECT_EQ(MPI_Comm_rank(PETSC_COMM_WORLD, &rank), MPI_SUCCESS);
  return rank;
}

int world_size() {
  int size = 0;
  EXPECT_EQ(MPI_Comm_size(PETSC_COMM_WORLD, &size), MPI_SUCCESS);
  return size;
}

bool log_is_active() {
  PetscBool active = PETSC_FALSE;
  EXPECT_EQ(TCBoundLogActive(&active), PETSC_SUCCESS);
  return active;
}

TCBoundLogRow row_of(const char *label, const tcbound::Kernel &k = kernel) {
  TCBoundLogRow row = nullptr;
  EXPECT_EQ(TCBoundLogGetRow("MatMult", label, k, &row), PETSC_SUCCESS);
  return row;
}

void call(TCBoundLogRow row, double seconds) {
  device.next_seconds = seconds;
  EXPECT_EQ(TCBoundLogBegin(row, device), PETSC_SUCCESS);
  EXPECT_EQ(TCBoundLogEnd(row, device, work), PETSC_SUCCESS);
}

tcbound::Report reduced(MPI_Comm comm = PETSC_COMM_WORLD) {
  tcbound::Report report;
  EXPECT_EQ(TCBoundLogReduce(comm, &report), PETSC_SUCCESS);
  return report;
}

// The row of that label, empty if there is none.
tcbound::ReportRow find(const tcbound::Report &report, const std::string &label) {
  for (const auto &row : report.rows)
    if (row.label == label) return row;
  return {};
}

std::string read_file(const std::string &name) {
  std::ifstream      in(name);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

// What PetscLogView() writes; only on the first rank of `comm`.
std::string view(PetscViewerFormat format, MPI_Comm comm = PETSC_COMM_WORLD) {
  const std::string file = testing::TempDir() + "tcbound-log-" + std::to_string(getpid()) + ".txt";
  PetscViewer       viewer;
  EXPECT_EQ(PetscViewerASCIIOpen(comm, file.c_str(), &viewer), PETSC_SUCCESS);
  EXPECT_EQ(PetscViewerPushFormat(viewer, format), PETSC_SUCCESS);
  EXPECT_EQ(PetscLogView(viewer), PETSC_SUCCESS);
  EXPECT_EQ(PetscViewerPopFormat(viewer), PETSC_SUCCESS);
  EXPECT_EQ(PetscViewerDestroy(&viewer), PETSC_SUCCESS);
  const std::string text = read_file(file);
  std::remove(file.c_str());
  return text;
}

long count(const std::string &text, const std::string &word) {
  long n = 0;
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++n;
  return n;
}

} // namespace

TEST(Log, NothingIsMeasuredWithoutALog) {
  ASSERT_FALSE(log_is_active());
  TCBoundLogRow row = row_of("unlogged");
  call(row, 1.0);
  call(nullptr, 1.0);
  EXPECT_EQ(device.made, 0);
  EXPECT_TRUE(reduced().rows.empty());
}

TEST(Log, SwitchingOnBetweenBeginAndEndLogsNothing) {
  TCBoundLogRow row = row_of("switched");
  EXPECT_EQ(TCBoundLogBegin(row, device), PETSC_SUCCESS);
  ASSERT_EQ(PetscLogDefaultBegin(), PETSC_SUCCESS);
  EXPECT_TRUE(log_is_active());
  EXPECT_EQ(TCBoundLogEnd(row, device, work), PETSC_SUCCESS);
  EXPECT_EQ(device.made, 0);
}

TEST(Log, ViewsWithoutRowsAreAsPetscWritesThem) {
  for (PetscViewerFormat format : {PETSC_VIEWER_DEFAULT, PETSC_VIEWER_ASCII_CSV, PETSC_VIEWER_ASCII_INFO_DETAIL}) {
    const std::string text = view(format);
    EXPECT_EQ(count(text, "TCBound"), 0);
    EXPECT_EQ(count(text, "roofline"), 0);
  }
}

TEST(Log, RowsReduceOverRanks) {
  const int     rank = world_rank(), size = world_size();
  TCBoundLogRow row = row_of("everywhere");
  // Rank r: r + 2 calls of (r + 1) s.
  for (int i = 0; i < rank + 2; ++i) call(row, rank + 1.0);
  const auto r = find(reduced(), "everywhere");
  const int  calls = size * 2 + size * (size - 1) / 2;
  EXPECT_EQ(r.event, "MatMult");
  EXPECT_EQ(r.kernel, "spmv/fake/cuda_core");
  EXPECT_EQ(r.ranks, size);
  EXPECT_EQ(r.calls_min, 2);
  EXPECT_EQ(r.calls_max, size + 1);
  EXPECT_EQ(r.seconds_min, 1.0);
  EXPECT_EQ(r.seconds_median, size);
  EXPECT_EQ(r.seconds_total_min, 2.0);
  EXPECT_EQ(r.seconds_total_max, size * (size + 1.0));
  EXPECT_EQ(r.bytes, 1600.0 * calls);
  EXPECT_EQ(r.compulsory_bytes, 1000.0 * calls);
  EXPECT_EQ(r.useful_flops, 200.0 * calls);
  EXPECT_EQ(r.issued_flops, 800.0 * calls);
}

// The host's ranks together: what they measured, or a calibration of so many processes.
TEST(Log, RowsAreHeldAgainstTheHost) {
  TCBoundLogRow row = row_of("held");
  device.next_seconds = 1.0;
  ASSERT_EQ(TCBoundLogBegin(row, device), PETSC_SUCCESS);
  ASSERT_EQ(TCBoundLogEnd(row, device, {20000000, 20000000, 160000000, 160000000}), PETSC_SUCCESS);
  const auto   report = reduced();
  const auto   r = find(report, "held");
  const auto  &machine = report.machines.at(tcbound::MemorySpace::host).machine;
  const double bandwidth = machine.at(tcbound::model::Level::dram).bandwidth.value();
  EXPECT_DOUBLE_EQ(r.verdict.intensity, 0.125);
  EXPECT_NEAR(r.verdict.attainable, 0.125 * bandwidth, 1e-9 * bandwidth);
  EXPECT_NEAR(r.verdict.roof_share, 1.6e8 * world_size() / bandwidth, 1e-9);
  EXPECT_TRUE(r.verdict.judged);
  EXPECT_EQ(r.verdict.regime, "memory");
  EXPECT_NE(r.verdict.words.find("no tensor cores here"), std::string::npos) << r.verdict.words;
}

TEST(Log, TheCostOfComparingIsSummed) {
  TCBoundLogRow row = row_of("extra");
  ASSERT_EQ(TCBoundLogSetExtra(row), PETSC_SUCCESS);
  for (int i = 0; i < 3; ++i) call(row, world_rank() + 1.0);
  ASSERT_EQ(TCBoundLogAddCompare(2, 0.5), PETSC_SUCCESS);
  const auto compare = reduced().compare;
  EXPECT_EQ(compare.products, 3 * world_size());
  EXPECT_EQ(compare.checks, 2 * world_size());
  EXPECT_DOUBLE_EQ(compare.seconds, 3.0 * world_size() + 0.5);
}

TEST(Log, AnMmaShapeGoesWithItsRow) {
  FakeKernel    tensor("tensor_core");
  TCBoundLogRow row = row_of("shaped", tensor);
  ASSERT_EQ(TCBoundLogSetMMA(row, "m16n8k16"), PETSC_SUCCESS);
  call(row, 1.0);
  const auto r = find(reduced(), "shaped");
  EXPECT_EQ(r.mma, "m16n8k16");
  EXPECT_EQ(r.verdict.rho, 4); // 800 issued, 200 useful
  EXPECT_EQ(r.padded_flops, r.useful_flops);
}

TEST(Log, MedianOfKnownSamples) {
  TCBoundLogRow row = row_of("median");
  for (double seconds : {5.0, 1.0, 4.0, 2.0, 100.0}) call(row, seconds);
  const auto r = find(reduced(), "median");
  EXPECT_EQ(r.seconds_median, 4.0);
  EXPECT_EQ(r.seconds_min, 1.0);
  EXPECT_EQ(r.seconds_total_max, 112.0);
}

// The last rank has no row at all where there are several, and the others have one of their own.
TEST(Log, RanksMayHaveDifferentRowsOrNone) {
  const int  rank = world_rank(), size = world_size();
  const bool empty = size > 1 && rank == size - 1;
  if (!empty) {
    call(row_of("shared by some"), 1.0);
    call(row_of(("only on " + std::to_string(rank)).c_str(), other_kernel), 3.0);
  }
  const auto report = reduced();
  const auto shared = find(report, "shared by some");
  EXPECT_EQ(shared.ranks, std::max(1, size - 1));
  EXPECT_EQ(shared.calls_min, 1);
  EXPECT_EQ(shared.seconds_total_min, 1.0);
  for (int r = 0; r < std::max(1, size - 1); ++r) {
    const auto own = find(report, "only on " + std::to_string(r));
    EXPECT_EQ(own.ranks, 1);
    EXPECT_EQ(own.kernel, "spmv/fake/host");
    EXPECT_EQ(own.seconds_total_max, 3.0);
    EXPECT_EQ(own.bytes, 1600.0);
  }
  EXPECT_TRUE(std::is_sorted(report.rows.begin(), report.rows.end(), [](const auto &a, const auto &b) {
    return std::tie(a.event, a.label, a.kernel) < std::tie(b.event, b.label, b.kernel);
  }));
}

TEST(Log, LaterCallsAreNeverWaitedFor) {
  reduced();
  TCBoundLogRow row = row_of("asynchronous");
  const long    waits = device.waits, ended = device.ended;
  for (int i = 0; i < 1000; ++i) call(row, 0.5);
  EXPECT_EQ(device.waits, waits); // the device has finished none
  device.finished = ended + 900;
  call(row, 0.5); // takes those
  EXPECT_EQ(row->samples.count(), 900);
  const long made = device.made;
  for (int i = 0; i < 700; ++i) call(row, 0.5);
  EXPECT_EQ(device.made, made); // recycled
  EXPECT_EQ(device.waits, waits);
  const auto r = find(reduced(), "asynchronous");
  EXPECT_EQ(r.calls_max, 1701);
  EXPECT_EQ(r.seconds_total_max, 0.5 * 1701);
  EXPECT_GT(device.waits, waits); // the report waited
}

// Events on a device cost time: not every call has them.
TEST(Log, OnADeviceCallsAreTimedBySamples) {
  FakeExecutor  cuda(tcbound::MemorySpace::cuda);
  FakeKernel    cuda_kernel("cuda_core", tcbound::MemorySpace::cuda);
  TCBoundLogRow row = row_of("sampled", cuda_kernel);
  const long    first = tcbound::CallSample::all, later = 8064, timed = first + later / tcbound::CallSample::one_in;
  for (long i = 0; i < first + later; ++i) {
    cuda.next_seconds = i < first ? 3.0 : 1.0;
    EXPECT_EQ(TCBoundLogBegin(row, cuda), PETSC_SUCCESS);
    EXPECT_EQ(TCBoundLogEnd(row, cuda, work), PETSC_SUCCESS);
    if (i % 100 == 0) cuda.finished = cuda.ended;
  }
  EXPECT_EQ(cuda.ended, timed);
  EXPECT_LT(cuda.made, 300); // recycled
  const auto r = find(reduced(), "sampled");
  EXPECT_EQ(r.calls_min, first + later);
  EXPECT_EQ(r.calls_timed, timed);
  EXPECT_EQ(r.seconds_total_max, 3.0 * first + later);
  EXPECT_EQ(r.seconds_total_min, 3.0 * first + later);
  EXPECT_EQ(r.seconds_median, 1.0);
  EXPECT_EQ(r.bytes, 1600.0 * static_cast<double>(first + later) * world_size()); // of all calls
  const std::string table = view(PETSC_VIEWER_DEFAULT), csv = view(PETSC_VIEWER_ASCII_CSV);
  if (!world_rank()) {
    EXPECT_EQ(count(table, "\nOn a device the first 32 calls are timed and then one in 128; in Total the others"), 1) << table;
    const std::string calls = std::to_string(first + later);
    EXPECT_EQ(count(csv, "," + calls + "," + calls + "," + std::to_string(timed) + ","), 1) << csv;
  }
  tcbound_log->queues.erase(&cuda);
}

// A call that is not timed and never ends leaves nothing behind either.
TEST(Log, OnADeviceABeginWithoutEndIsForgotten) {
  FakeExecutor  cuda(tcbound::MemorySpace::cuda);
  FakeKernel    cuda_kernel("cuda_core", tcbound::MemorySpace::cuda);
  TCBoundLogRow row = row_of("interrupted on a device", cuda_kernel);
  const int     groups = 3, calls = tcbound::CallSample::all + groups * tcbound::CallSample::one_in;
  for (int i = 0; i < calls; ++i) {
    EXPECT_EQ(TCBoundLogBegin(row, cuda), PETSC_SUCCESS); // then the kernel failed
    EXPECT_EQ(TCBoundLogBegin(row, cuda), PETSC_SUCCESS);
    EXPECT_EQ(TCBoundLogEnd(row, cuda, work), PETSC_SUCCESS);
    EXPECT_EQ(TCBoundLogEnd(row, cuda, work), PETSC_SUCCESS); // nothing to end
  }
  const auto r = find(reduced(), "interrupted on a device");
  EXPECT_EQ(r.calls_max, calls);
  EXPECT_EQ(r.calls_timed, cuda.ended);
  EXPECT_EQ(cuda.ended, tcbound::CallSample::all + groups);
  tcbound_log->queues.erase(&cuda);
}

#if PETSC_VERSION_GE(3, 26, 0) && PetscDefined(USE_LOG) && PetscDefined(HAVE_DEVICE)
// What PETSc's meter moves between Begin and End belongs to the row, and nothing while PETSc logs no energy.
TEST(Log, JoulesAreThoseOfThePetscMeter) {
  TCBoundLogRow row = row_of("metered");
  for (const bool metered : {false, true}) {
    PetscLogGpuEnergyFlag = metered ? PETSC_TRUE : PETSC_FALSE;
    for (int i = 0; i < 2; ++i) {
      petsc_genergy += 100; // someone else's
      ASSERT_EQ(TCBoundLogEnergyBegin(row), PETSC_SUCCESS);
      if (metered) petsc_genergy += 1 + world_rank();
      call(row, 1.0);
      ASSERT_EQ(TCBoundLogEnergyEnd(row), PETSC_SUCCESS);
    }
    const int    size = world_size();
    const double joules = find(reduced(), "metered").joules_per_call;
    if (metered)
      EXPECT_EQ(joules, size + size * (size - 1) / 2);
    else
      EXPECT_TRUE(std::isnan(joules));
  }
  PetscLogGpuEnergyFlag = PETSC_FALSE;
  petsc_genergy = 0;
}
#endif

TEST(Log, ApplicationsMaySwitchItOffForAWhile) {
  TCBoundLogRow row = row_of("paused");
  call(row, 1.0);
  ASSERT_EQ(TCBoundSetLog(PETSC_FALSE), PETSC_SUCCESS);
  EXPECT_FALSE(log_is_active());
  const long ended = device.ended;
  for (int i = 0; i < 5; ++i) call(row, 7.0);
  EXPECT_EQ(device.ended, ended);
  ASSERT_EQ(TCBoundSetLog(PETSC_TRUE), PETSC_SUCCESS);
  EXPECT_TRUE(log_is_active());
  call(row, 1.0);
  const auto r = find(reduced(), "paused");
  EXPECT_EQ(r.calls_max, 2);
  EXPECT_EQ(r.seconds_total_max, 2.0);
}

// Says what the test says, on the host.
class FakeCounters final : public tcbound::Counters {
public:
  tcbound::Counts counts;
  std::string     failure;

  tcbound::MemorySpace space() const override { return tcbound::MemorySpace::host; }
  tcbound::Counts      measure(const std::function<void()> &run) override {
    for (int pass = 0; pass < 3; ++pass) run();
    if (!failure.empty()) throw tcbound::Error(tcbound::ErrorCode::unsupported, failure);
    return counts;
  }
  std::vector<std::string> lacks;
  std::vector<std::string> missing() const override { return lacks; }
};

class LogCounters : public testing::Test {
protected:
  void SetUp() override {
    auto made = std::make_unique<FakeCounters>();
    counters = made.get();
    tcbound_log->count = PETSC_TRUE;
    tcbound_log->counters = std::move(made);
  }
  void TearDown() override {
    tcbound_log->count = PETSC_FALSE;
    tcbound_log->counters.reset();
    tcbound_log->counter_notes.clear();
    tcbound_log->counter_seconds = 0;
  }
  FakeCounters *counters = nullptr;
};

TEST_F(LogCounters, OneCallOfEachRowIsMeasured) {
  TCBoundLogRow row = row_of("measured");
  int           runs = 0;
  counters->counts.dram_read_bytes = 1000;
  counters->counts.dram_write_bytes = 280;
  counters->counts.l2_bytes = 4000;
  counters->counts.fma = 100;
  counters->counts.add = 20;
  counters->counts.multiply = 0;
  counters->counts.mma_instructions = 3;
  counters->counts.mma_flops = 180;
  for (int i = 0; i < 4; ++i) {
    ASSERT_EQ(TCBoundLogCount(row, device, work, [&] { ++runs; }), PETSC_SUCCESS);
    call(row, 1.0);
  }
  EXPECT_EQ(runs, 3);
  const auto r = find(reduced(), "measured");
  const int  size = world_size();
  EXPECT_EQ(r.calls_max, 4); // replays are no calls
  EXPECT_EQ(r.counted_ranks, size);
  EXPECT_EQ(r.counts.dram_bytes(), 1280.0 * size);
  EXPECT_EQ(r.counts.flops(), 400.0 * size);
  EXPECT_EQ(r.counted_bytes, 1600.0 * size);
  EXPECT_EQ(tcbound::measured_bytes_ratio(r), 0.8);
  EXPECT_EQ(tcbound::measured_flops_ratio(r), 2.0);
  const std::string table = view(PETSC_VIEWER_DEFAULT);
  if (world_rank()) return;
  EXPECT_EQ(count(table, "of the useful FLOPs"), 1) << table;
  EXPECT_EQ(count(table, "\n-tcbound_counters: lines with # are of one call"), 1) << table;
}

// One rank lacks a counter: its sum is unknown, the others are not.
TEST_F(LogCounters, WhatARankCannotCountIsUnknown) {
  TCBoundLogRow row = row_of("partly measured");
  counters->lacks = {"this chip does not count bytes asked of L2", "this one neither"};
  counters->counts.dram_read_bytes = 1;
  if (world_rank() == 0) counters->counts.dram_write_bytes = 1;
  ASSERT_EQ(TCBoundLogCount(row, device, work, [] {}), PETSC_SUCCESS);
  call(row, 1.0);
  const auto report = reduced();
  const auto r = find(report, "partly measured");
  EXPECT_EQ(report.counter_notes, counters->lacks);
  EXPECT_EQ(r.counts.dram_read_bytes, world_size());
  EXPECT_EQ(std::isnan(r.counts.dram_write_bytes), world_size() > 1);
  EXPECT_TRUE(std::isnan(r.counts.l2_bytes));
  EXPECT_TRUE(std::isnan(r.counts.flops()));
}

TEST_F(LogCounters, AFailureIsSaidOnceAndTheRunGoesOn) {
  TCBoundLogRow row = row_of("forbidden");
  counters->failure = "the driver says no";
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(TCBoundLogCount(row, device, work, [] {}), PETSC_SUCCESS);
    call(row, 1.0);
  }
  const auto report = reduced();
  EXPECT_EQ(find(report, "forbidden").counted_ranks, 0);
  const std::vector<std::string> notes = {"spmv/fake/cuda_core is not measured: the driver says no"};
  EXPECT_EQ(report.counter_notes, notes);
  const std::string table = view(PETSC_VIEWER_DEFAULT);
  if (world_rank()) return;
  EXPECT_EQ(count(table, "-tcbound_counters: spmv/fake/cuda_core is not measured: the driver says no.\n"), 1);
}

TEST_F(LogCounters, AKernelsOwnErrorIsAnError) {
  TCBoundLogRow row = row_of("failing");
  ASSERT_EQ(PetscPushErrorHandler(PetscReturnErrorHandler, nullptr), PETSC_SUCCESS);
  EXPECT_EQ(TCBoundLogCount(row, device, work, [] { throw tcbound::Error(tcbound::ErrorCode::device, "broken"); }),
            PETSC_ERR_GPU);
  ASSERT_EQ(PetscPopErrorHandler(), PETSC_SUCCESS);
}

TEST_F(LogCounters, KernelsOnTheHostAreSaidNotToBeMeasured) {
  tcbound_log->counters.reset();
  TCBoundLogRow row = row_of("on the host");
  ASSERT_EQ(TCBoundLogCount(row, device, work, [] { FAIL() << "nothing to run it for"; }), PETSC_SUCCESS);
  const std::vector<std::string> notes = {"kernels on the host are not measured"};
  EXPECT_EQ(reduced().counter_notes, notes);
}

TEST(Log, WithoutTheOptionNothingIsRepeated) {
  TCBoundLogRow row = row_of("not measured");
  EXPECT_FALSE(TCBoundLogWantsCount(row));
  ASSERT_EQ(TCBoundLogCount(row, device, work, [] { FAIL() << "nobody asked"; }), PETSC_SUCCESS);
}

TEST(Log, ABeginWithoutEndIsForgotten) {
  TCBoundLogRow row = row_of("interrupted");
  EXPECT_EQ(TCBoundLogBegin(row, device), PETSC_SUCCESS); // then the kernel failed
  call(row, 2.0);
  EXPECT_EQ(TCBoundLogEnd(row, device, work), PETSC_SUCCESS); // nothing to end
  const auto r = find(reduced(), "interrupted");
  EXPECT_EQ(r.calls_max, 1);
  EXPECT_EQ(r.seconds_total_max, 2.0);
  EXPECT_EQ(r.bytes, 1600.0 * world_size());
}

TEST(Log, ApplicationViewsInMidRunAndAgain) {
  TCBoundLogRow row = row_of("viewed");
  call(row, 1.0);
  const std::string before = view(PETSC_VIEWER_ASCII_CSV), table = view(PETSC_VIEWER_DEFAULT);
  for (int i = 0; i < 4; ++i) call(row, 1.0);
  const std::string after = view(PETSC_VIEWER_ASCII_CSV), info = view(PETSC_VIEWER_ASCII_INFO);
  if (world_rank()) return;
  const std::string key = "\nTCBound,MatMult,viewed,spmv/fake/cuda_core,host," + std::to_string(world_size());
  EXPECT_EQ(count(before, key + ",1,1,"), 1) << before;
  EXPECT_EQ(count(after, key + ",5,5,"), 1) << after;
  for (const std::string &text : {table, info}) {
    EXPECT_EQ(count(text, "\ntcbound: roofline of each kernel, and the bound on tensor cores\n"), 1);
    EXPECT_EQ(count(text, "\nMatMult viewed "), 1);
    EXPECT_GT(text.find("tcbound: roofline"), text.find("Configure options")); // at the end
  }
}

// The whole view parses and our lines run. (PETSc 3.26's own lines may stop with a KeyError in a view in mid-run.)
TEST(Log, PythonViewIsPython) {
  const std::string text = view(PETSC_VIEWER_ASCII_INFO_DETAIL);
  if (world_rank()) return;
  const std::string file = testing::TempDir() + "tcbound-log-" + std::to_string(getpid()) + ".py";
  std::ofstream(file) << text;
  const std::string check = "lines = open('" + file +
                            "').readlines(); compile(''.join(lines), 'view', 'exec'); "
                            "exec(''.join(l for l in lines if l.startswith('TCBound'))); "
                            "assert any(row['matrix'] == 'viewed' and row['calls_max'] == 5 for row in TCBound)";
  EXPECT_EQ(std::system(("python3 -c \"" + check + '"').c_str()), 0) << text;
  std::remove(file.c_str());
}

TEST(Log, EachRankMayViewForItself) {
  const std::string text = view(PETSC_VIEWER_ASCII_CSV, PETSC_COMM_SELF);
  EXPECT_EQ(count(text, "\nTCBound,MatMult,viewed,spmv/fake/cuda_core,host,1,5,5,"), 1) << text;
  EXPECT_EQ(find(reduced(PETSC_COMM_SELF), "viewed").bytes, 1600.0 * 5);
}

TEST(Log, StoppedHandlerIsNoLog) {
  PetscLogHandler handler;
  ASSERT_EQ(PetscLogGetDefaultHandler(&handler), PETSC_SUCCESS);
  ASSERT_EQ(PetscObjectReference((PetscObject)handler), PETSC_SUCCESS);
  ASSERT_EQ(PetscLogHandlerStop(handler), PETSC_SUCCESS);
  EXPECT_FALSE(log_is_active());
  ASSERT_EQ(PetscLogHandlerStart(handler), PETSC_SUCCESS);
  EXPECT_TRUE(log_is_active());
  ASSERT_EQ(PetscLogHandlerDestroy(&handler), PETSC_SUCCESS);
  EXPECT_EQ(find(reduced(), "viewed").calls_max, 5);
}

TEST(Log, JsonHasTheRows) {
  const std::string file = testing::TempDir() + "tcbound-log-" + std::to_string(getpid()) + ".json";
  ASSERT_EQ(TCBoundLogWriteJSON(PETSC_COMM_WORLD, file.c_str()), PETSC_SUCCESS);
  const auto report = reduced();
  if (world_rank()) return;
  const auto json = nlohmann::json::parse(read_file(file));
  std::remove(file.c_str());
  EXPECT_EQ(json["ranks"], world_size());
  ASSERT_EQ(json["rows"].size(), report.rows.size());
  for (std::size_t i = 0; i < report.rows.size(); ++i) {
    EXPECT_EQ(json["rows"][i]["matrix"], report.rows[i].label);
    EXPECT_EQ(json["rows"][i]["seconds_median"], report.rows[i].seconds_median);
    EXPECT_EQ(json["rows"][i]["bytes"], report.rows[i].bytes);
  }
  EXPECT_FALSE(json["machines"][0]["device"].get<std::string>().empty());
  EXPECT_GT(json["machines"][0]["levels"]["dram"]["bandwidth_bytes_per_s"].get<double>(), 0.0);
  EXPECT_GT(json["machines"][0]["peaks_flops_per_s"]["host"].get<double>(), 0.0);
  EXPECT_NE(json["command_line"][0].get<std::string>().find("log_test"), std::string::npos);
}

TEST(Log, UnwritableJsonFailsOnEveryRank) {
  ASSERT_EQ(PetscPushErrorHandler(PetscReturnErrorHandler, nullptr), PETSC_SUCCESS);
  EXPECT_EQ(TCBoundLogWriteJSON(PETSC_COMM_WORLD, "/nowhere/rows.json"), PETSC_ERR_FILE_OPEN);
  EXPECT_EQ(TCBoundLogCheckJSON(PETSC_COMM_WORLD, "/nowhere/rows.json"), PETSC_ERR_FILE_OPEN);
  ASSERT_EQ(PetscPopErrorHandler(), PETSC_SUCCESS);
}
