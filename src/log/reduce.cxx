// From the rows of each rank to one report.
#include <algorithm>
#include <iterator>
#include <set>

#include "logimpl.h"

// Every string followed by a NUL.
static std::string TCBoundLogPack(const std::vector<std::string> &strings) {
  std::string packed;
  for (const std::string &s : strings) packed.append(s.c_str(), s.size() + 1);
  return packed;
}

static void TCBoundLogUnpack(const std::string &packed, std::set<std::string> *strings) {
  for (std::size_t at = 0; at < packed.size(); at += strlen(packed.c_str() + at) + 1) strings->insert(packed.c_str() + at);
}

PetscErrorCode TCBoundLogUnion(MPI_Comm comm, std::vector<std::string> *strings) {
  PetscMPIInt           rank, size, length, total = 0;
  std::set<std::string> all, mine(strings->begin(), strings->end());

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_rank(comm, &rank));
  PetscCallMPI(MPI_Comm_size(comm, &size));
  // Ranks mostly agree, so that all take rank 0's strings first and then gather only what it lacks.
  std::string first = rank ? std::string() : TCBoundLogPack({mine.begin(), mine.end()});
  PetscCall(PetscMPIIntCast((MPIU_Count)first.size(), &length));
  PetscCallMPI(MPI_Bcast(&length, 1, MPI_INT, 0, comm));
  first.resize((std::size_t)length);
  PetscCallMPI(MPI_Bcast(&first[0], length, MPI_CHAR, 0, comm));
  TCBoundLogUnpack(first, &all);

  std::vector<std::string> lacking;
  std::set_difference(mine.begin(), mine.end(), all.begin(), all.end(), std::back_inserter(lacking));
  std::string      more = TCBoundLogPack(lacking);
  std::vector<int> lengths((std::size_t)size), offsets((std::size_t)size);
  PetscCall(PetscMPIIntCast((MPIU_Count)more.size(), &length));
  PetscCallMPI(MPI_Allgather(&length, 1, MPI_INT, lengths.data(), 1, MPI_INT, comm));
  for (PetscMPIInt r = 0; r < size; r++) {
    offsets[(std::size_t)r] = total;
    total += lengths[(std::size_t)r];
  }
  std::string gathered((std::size_t)total, '\0');
  PetscCallMPI(MPI_Allgatherv(more.data(), length, MPI_CHAR, &gathered[0], lengths.data(), offsets.data(), MPI_CHAR, comm));
  TCBoundLogUnpack(gathered, &all);
  strings->assign(all.begin(), all.end());
  PetscFunctionReturn(PETSC_SUCCESS);
}

// A row's key as one string, with the memory and the MMA shape because ranks without the row need them too. The unit separator
// (ASCII 31) sorts below every printable character: the order is that of event, label, kernel.
static std::string TCBoundLogKey(const _n_TCBoundLogRow &row) {
  const char *space = row.space == tcbound::MemorySpace::host ? "h" : "c";
  return row.event + '\x1f' + row.label + '\x1f' + row.kernel + '\x1f' + space + '\x1f' + row.mma;
}

static tcbound::ReportRow TCBoundLogRowFromKey(const std::string &key) {
  tcbound::ReportRow row;
  std::string        parts[5];
  std::size_t        at = 0;
  for (std::string &part : parts) {
    const std::size_t end = key.find('\x1f', at);
    part = key.substr(at, end - at);
    at = end + 1;
  }
  row.event = parts[0];
  row.label = parts[1];
  row.kernel = parts[2];
  row.space = parts[3] == "h" ? tcbound::MemorySpace::host : tcbound::MemorySpace::cuda;
  row.mma = parts[4];
  return row;
}

// Keys of the rows that were called; a row may have been made and never used while the log ran.
static std::map<std::string, const _n_TCBoundLogRow *> TCBoundLogCalledRows() {
  std::map<std::string, const _n_TCBoundLogRow *> called;
  for (const auto &[key, row] : tcbound_log->rows) {
    (void)key;
    if (row->calls) called[TCBoundLogKey(*row)] = row.get();
  }
  return called;
}

// What one rank contributes to a row. A rank without the row is neutral: infinite where the minimum is taken (the maximum of
// the negated value), zero elsewhere.
enum {
  SUM_RANKS,
  SUM_BYTES,
  SUM_COMPULSORY,
  SUM_USEFUL,
  SUM_ISSUED,
  SUM_PADDED,
  SUM_JOULES,
  SUM_JOULES_RANKS,
  SUM_COUNTED_RANKS,
  SUM_COUNTED_BYTES,
  SUM_COUNTED_USEFUL,
  SUM_DRAM_READ,
  SUM_DRAM_WRITE,
  SUM_L2,
  SUM_FMA,
  SUM_ADD,
  SUM_MULTIPLY,
  SUM_MMA,
  SUM_MMA_FLOPS,
  SUMS
};
enum { MAX_CALLS, MAX_MEDIAN, MAX_TOTAL, MIN_CALLS, MIN_TIMED, MIN_SECONDS, MIN_TOTAL, MAXIMA };

// The counters in the order of SUM_DRAM_READ ...; one that a chip lacks is not a number, and then neither is the sum.
static constexpr double tcbound::Counts::*counts_in_order[] = {&tcbound::Counts::dram_read_bytes,
                                                               &tcbound::Counts::dram_write_bytes,
                                                               &tcbound::Counts::l2_bytes,
                                                               &tcbound::Counts::fma,
                                                               &tcbound::Counts::add,
                                                               &tcbound::Counts::multiply,
                                                               &tcbound::Counts::mma_instructions,
                                                               &tcbound::Counts::mma_flops};
static_assert(SUMS - SUM_DRAM_READ == sizeof(counts_in_order) / sizeof(counts_in_order[0]));

static void TCBoundLogContribute(const _n_TCBoundLogRow *row, double sums[], double maxima[]) {
  std::fill(sums, sums + SUMS, 0.);
  std::fill(maxima, maxima + MIN_CALLS, 0.);
  std::fill(maxima + MIN_CALLS, maxima + MAXIMA, -std::numeric_limits<double>::infinity());
  if (!row) return;
  sums[SUM_RANKS] = 1;
  sums[SUM_BYTES] = row->bytes;
  sums[SUM_COMPULSORY] = row->compulsory_bytes;
  sums[SUM_USEFUL] = row->useful_flops;
  sums[SUM_ISSUED] = row->issued_flops;
  sums[SUM_PADDED] = row->padded_flops;
  sums[SUM_JOULES] = row->joules_calls > 0 ? row->joules / row->joules_calls : 0;
  sums[SUM_JOULES_RANKS] = row->joules_calls > 0;
  if (row->counted) {
    sums[SUM_COUNTED_RANKS] = 1;
    sums[SUM_COUNTED_BYTES] = static_cast<double>(row->counted_work.bytes);
    sums[SUM_COUNTED_USEFUL] = static_cast<double>(row->counted_work.useful_flops);
    for (int c = SUM_DRAM_READ; c < SUMS; c++) sums[c] = row->counts.*counts_in_order[c - SUM_DRAM_READ];
  }
  maxima[MAX_CALLS] = static_cast<double>(row->calls);
  maxima[MAX_MEDIAN] = row->samples.median();
  maxima[MAX_TOTAL] = row->samples.total(row->calls);
  maxima[MIN_CALLS] = -maxima[MAX_CALLS];
  maxima[MIN_TIMED] = -static_cast<double>(row->samples.count());
  maxima[MIN_SECONDS] = -row->samples.minimum();
  maxima[MIN_TOTAL] = -maxima[MAX_TOTAL];
}

static void TCBoundLogFillRow(const double sums[], const double maxima[], tcbound::ReportRow *row) {
  row->ranks = sums[SUM_RANKS];
  row->bytes = sums[SUM_BYTES];
  row->compulsory_bytes = sums[SUM_COMPULSORY];
  row->useful_flops = sums[SUM_USEFUL];
  row->issued_flops = sums[SUM_ISSUED];
  row->padded_flops = sums[SUM_PADDED];
  if (sums[SUM_JOULES_RANKS] > 0) row->joules_per_call = sums[SUM_JOULES];
  row->counted_ranks = sums[SUM_COUNTED_RANKS];
  row->counted_bytes = sums[SUM_COUNTED_BYTES];
  row->counted_useful_flops = sums[SUM_COUNTED_USEFUL];
  for (int c = SUM_DRAM_READ; c < SUMS; c++)
    row->counts.*counts_in_order[c - SUM_DRAM_READ] = row->counted_ranks > 0 ? sums[c] : tcbound::Counts::unknown;
  row->calls_max = maxima[MAX_CALLS];
  row->seconds_median = maxima[MAX_MEDIAN];
  row->seconds_total_max = maxima[MAX_TOTAL];
  row->calls_min = -maxima[MIN_CALLS];
  row->calls_timed = -maxima[MIN_TIMED];
  row->seconds_min = -maxima[MIN_SECONDS];
  row->seconds_total_min = -maxima[MIN_TOTAL];
}

static PetscErrorCode TCBoundLogReduceCompare(MPI_Comm comm, tcbound::ReportCompare *compare) {
  PetscLogDouble sums[3] = {0, tcbound_log->compare.checks, tcbound_log->compare.alone};

  PetscFunctionBegin;
  *compare = tcbound_log->compare;
  for (const auto &[key, row] : tcbound_log->rows) {
    (void)key;
    if (!row->extra) continue;
    sums[0] += static_cast<PetscLogDouble>(row->calls);
    compare->seconds += row->samples.total(row->calls);
  }
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, sums, 3, MPI_DOUBLE, MPI_SUM, comm));
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &compare->seconds, 1, MPI_DOUBLE, MPI_MAX, comm));
  compare->products = sums[0];
  compare->checks = sums[1];
  compare->alone = sums[2];
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TCBoundLogReduceCounters(MPI_Comm comm, tcbound::Report *report) {
  PetscFunctionBegin;
  report->counter_notes.assign(tcbound_log->counter_notes.begin(), tcbound_log->counter_notes.end());
  PetscCall(TCBoundLogUnion(comm, &report->counter_notes));
  report->counter_seconds = tcbound_log->counter_seconds;
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &report->counter_seconds, 1, MPI_DOUBLE, MPI_MAX, comm));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode TCBoundLogReduce(MPI_Comm comm, tcbound::Report *report) {
  std::vector<std::string> keys;
  PetscMPIInt              size, count;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_size(comm, &size));
  report->ranks = size;
  PetscCall(TCBoundLogDrain());
  const auto called = TCBoundLogCalledRows();
  for (const auto &[key, row] : called) {
    (void)row;
    keys.push_back(key);
  }
  PetscCall(TCBoundLogUnion(comm, &keys));

  const std::size_t   n = keys.size();
  std::vector<double> sums(n * SUMS), maxima(n * MAXIMA);
  for (std::size_t i = 0; i < n; i++) {
    const auto found = called.find(keys[i]);
    TCBoundLogContribute(found == called.end() ? NULL : found->second, &sums[i * SUMS], &maxima[i * MAXIMA]);
  }
  PetscCall(PetscMPIIntCast((MPIU_Count)sums.size(), &count));
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, sums.data(), count, MPI_DOUBLE, MPI_SUM, comm));
  PetscCall(PetscMPIIntCast((MPIU_Count)maxima.size(), &count));
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, maxima.data(), count, MPI_DOUBLE, MPI_MAX, comm));

  report->rows.clear();
  for (std::size_t i = 0; i < n; i++) {
    report->rows.push_back(TCBoundLogRowFromKey(keys[i]));
    TCBoundLogFillRow(&sums[i * SUMS], &maxima[i * MAXIMA], &report->rows.back());
  }
  report->machines.clear();
  for (const tcbound::ReportRow &row : report->rows) {
    if (report->machines.count(row.space)) continue;
    PetscCall(TCBoundLogGetMachine(comm, row.space, &report->machines[row.space]));
  }
  judge(*report);
  report->detail = tcbound_log->detail;
  PetscCall(TCBoundLogReduceCompare(comm, &report->compare));
  PetscCall(TCBoundLogReduceCounters(comm, report));
  PetscFunctionReturn(PETSC_SUCCESS);
}
