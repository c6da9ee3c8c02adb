#pragma once

#include <map>
#include <string>
#include <vector>

#include "../../kernels/problem.h"

// What the log prints: plain numbers, already reduced over ranks, and the texts made of them. No PETSc and no MPI here.

namespace tcbound {

struct ReportRow {
  std::string event;
  std::string label; // the matrix's name or options prefix
  std::string kernel;
  MemorySpace space = MemorySpace::host;

  double ranks = 0; // that called the kernel
  double calls_min = 0, calls_max = 0;
  double seconds_min = 0;                              // the fastest call of all ranks
  double seconds_median = 0;                           // of a call, on the rank where that is largest
  double seconds_total_min = 0, seconds_total_max = 0; // of all calls: the fastest and the slowest rank

  // Sums over calls and ranks.
  double bytes = 0, compulsory_bytes = 0, useful_flops = 0, issued_flops = 0;
};

struct Report {
  int                           ranks = 1;
  std::vector<ReportRow>        rows;
  std::map<MemorySpace, double> ceilings; // bytes per second, summed over ranks; the memories that rows use
};

struct ReportDevice {
  MemorySpace space = MemorySpace::host;
  std::string name;
};

// What the JSON file tells beside the rows.
struct ReportContext {
  std::string               date; // UTC, ISO 8601
  std::vector<std::string>  command_line;
  std::string               petsc_version;
  std::vector<ReportDevice> devices;
};

const char *space_name(MemorySpace space);

// At most 132 columns wide; each ends with a newline.
std::string report_table(const Report &report);
std::string report_csv(const Report &report);    // first field TCBound in every line; RFC 4180 quoting
std::string report_python(const Report &report); // a list TCBound of dictionaries
std::string report_json(const Report &report, const ReportContext &context);

} // namespace tcbound
