#pragma once

#include <limits>
#include <map>
#include <string>
#include <vector>

#include "../../kernels/counters.h"
#include "../model/verdict.h"

// What the log prints: plain numbers, already reduced over ranks, and the texts made of them. No PETSc and no MPI here.

namespace tcbound {

struct ReportRow {
  std::string event;
  std::string label; // the object's name or options prefix
  std::string kernel;
  std::string mma; // shape of its MMA instruction; empty without tensor cores
  MemorySpace space = MemorySpace::host;

  double ranks = 0; // that called the kernel
  double calls_min = 0, calls_max = 0;
  double calls_timed = 0;                              // of the rank that timed fewest
  double seconds_min = 0;                              // the fastest timed call of all ranks
  double seconds_median = 0;                           // of a timed call, on the rank where that is largest
  double seconds_total_min = 0, seconds_total_max = 0; // of all calls: the fastest and the slowest rank; see samples.h

  // Sums over calls and ranks.
  double bytes = 0, compulsory_bytes = 0, useful_flops = 0, issued_flops = 0, padded_flops = 0;
  double joules_per_call = std::numeric_limits<double>::quiet_NaN(); // all ranks; NaN where PETSc did not log energy

  // -tcbound_counters: of one call on each of so many ranks, summed; and the work counted for the same calls.
  double counted_ranks = 0, counted_bytes = 0, counted_useful_flops = 0;
  Counts counts;

  model::Verdict verdict; // filled by judge()
};

// What a kernel multiplies in: its name ends with it unless it is FP64.
model::DataType arithmetic_of(const ReportRow &row);

// The ceilings of a memory's ranks together.
struct ReportMachine {
  model::Machine machine;          // FP64 figures, sums over ranks
  std::string    device;           // names as the driver or the operating system spells them
  std::string    files, built_in;  // which of docs/machines.md's sources were used, in words; empty if not
  bool           measured = false; // in this run
};

// What -mat_tcbound_compare cost.
struct ReportCompare {
  double products = 0; // extra ones, all ranks
  double alone = 0;    // matrices that no other kernel could run, all ranks
  double checks = 0;   // results compared, all ranks
  double seconds = 0;  // of the slowest rank: extra products (device time), their set-up, comparisons of results
};

struct Report {
  int                                  ranks = 1;
  bool                                 detail = false;
  std::vector<ReportRow>               rows;
  std::map<MemorySpace, ReportMachine> machines; // of the memories that rows use
  ReportCompare                        compare;
  std::vector<std::string>             counter_notes;       // what counters could not do, on any rank
  double                               counter_seconds = 0; // that they took, of the slowest rank
};

// What the JSON file tells beside the rows.
struct ReportContext {
  std::string              date; // UTC, ISO 8601
  std::vector<std::string> command_line;
  std::string              petsc_version;
};

const char *space_name(MemorySpace space);

// Gives every row its verdict: rows of the same event and label are compared.
void judge(Report &report);

// Each ends with a newline. The table is at most 132 columns wide unless detail is asked for.
std::string report_table(const Report &report);
std::string report_csv(const Report &report);    // first field TCBound in every line; RFC 4180 quoting
std::string report_python(const Report &report); // a list TCBound of dictionaries
std::string report_json(const Report &report, const ReportContext &context);

// For the above.
double      measured_bytes_ratio(const ReportRow &row); // from and to DRAM, measured over counted
double      measured_flops_ratio(const ReportRow &row); // measured over useful
std::string format_number(const char *pattern, double value);

} // namespace tcbound
