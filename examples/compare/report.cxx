#include "report.h"

#include <tcbound.h>

#include <cstdio>

#include <algorithm>

#include <nlohmann/json.hpp>

namespace compare {

namespace {

PetscReal gigabytes_per_second(const Result &r) { return r.product_time > 0 ? r.moved_bytes / r.product_time * 1e-9 : 0.0; }

PetscReal share(const Scale &scale, const Result &r) {
  const PetscReal ceiling = r.candidate.device ? scale.device_bandwidth : scale.host_bandwidth;
  return ceiling > 0 ? gigabytes_per_second(r) * 1e9 / ceiling : 0.0;
}

PetscReal bytes_per_nonzero(const Reference &a, const Result &r) {
  return a.nonzeros ? r.matrix_bytes / (PetscReal)a.nonzeros : 0.0;
}

PetscReal speed(const Scale &scale, const Result &r) {
  return r.product_time > 0 ? scale.baseline_product / r.product_time : 0.0;
}

// Format and backend that really ran, where the library chose.
std::string kernel_part(const Result &r, bool backend) {
  const std::string &asked = backend ? r.candidate.backend : r.candidate.format;
  return asked == "auto" ? "auto:" + (backend ? r.backend : r.format) : asked;
}

PetscErrorCode PrintRow(MPI_Comm comm, const Reference &a, const Scale &scale, const Result &r) {
  char        iterations[64] = "          -      -";
  const char *mark = r.failures.empty() ? r.warnings.empty() ? "" : " ?" : " !";

  PetscFunctionBeginUser;
  if (r.solved)
    PetscCall(PetscSNPrintf(iterations, sizeof(iterations), "%11.1f %5" PetscInt_FMT "%s", 1e6 * r.iteration_time, r.iterations,
                            r.converged ? " " : "x"));
  PetscCall(PetscPrintf(comm, "%-11s %-15s %-13s %6.2f %10.2f %11.1f %18s %8.1f %7.1f %8.2f%s\n", r.candidate.type.c_str(),
                        kernel_part(r, true).c_str(), kernel_part(r, false).c_str(), bytes_per_nonzero(a, r),
                        1e3 * r.setup_time, 1e6 * r.product_time, iterations, gigabytes_per_second(r), 100 * share(scale, r),
                        speed(scale, r), mark));
  PetscFunctionReturn(PETSC_SUCCESS);
}

std::string matrix_name(const Options &o) { return o.mat.empty() ? o.problem_name + ", n = " + std::to_string(o.n) : o.mat; }

PetscErrorCode PrintNotes(MPI_Comm comm, const Scale &scale, const std::vector<Result> &results,
                          const std::vector<std::string> &left_out) {
  PetscFunctionBeginUser;
  PetscCall(PetscPrintf(
    comm,
    "B/nz: matrix bytes a product reads, per nonzero; for PETSc's own types those of CSR (%d a nonzero, %d a row).\n"
    "set-up: conversion and first product. GB/s: bytes of one product, x and y included.\n",
    (int)(8 + sizeof(PetscInt)), (int)sizeof(PetscInt)));
  PetscCall(PetscPrintf(comm, "share: of the measured bandwidth ceiling, host %.1f GB/s", 1e-9 * scale.host_bandwidth));
  if (scale.device_bandwidth > 0) PetscCall(PetscPrintf(comm, ", device %.1f GB/s", 1e-9 * scale.device_bandwidth));
  PetscCall(PetscPrintf(comm, "; over 100 where a cache holds it all.\nspeed: of a product, relative to PETSc's %s.\n",
                        scale.baseline.c_str()));
  for (const std::string &kernel : left_out) PetscCall(PetscPrintf(comm, "left out: %s\n", kernel.c_str()));
  for (const Result &r : results) {
    if (r.solved && !r.converged)
      PetscCall(PetscPrintf(comm, "x not converged: %s stopped with %s after %" PetscInt_FMT " iterations\n",
                            r.candidate.name().c_str(), r.reason.c_str(), r.iterations));
    for (const std::string &text : r.warnings)
      PetscCall(PetscPrintf(comm, "? WARNING: %s: %s\n", r.candidate.name().c_str(), text.c_str()));
    for (const std::string &text : r.failures)
      PetscCall(PetscPrintf(comm, "! FAILED: %s: %s\n", r.candidate.name().c_str(), text.c_str()));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode PrintVerdict(MPI_Comm comm, const std::vector<Result> &results) {
  const int total = (int)results.size();
  int       failed = 0, solved = 0, converged = 0;
  PetscReal error = 0, residual = 0;

  PetscFunctionBeginUser;
  for (const Result &r : results) {
    failed += !r.failures.empty();
    solved += r.solved;
    converged += r.converged;
    error = PetscMax(error, PetscMax(r.product_ratio, r.transpose_ratio));
    if (r.converged) residual = PetscMax(residual, r.residual);
  }
  if (failed) {
    PetscCall(PetscPrintf(comm, "%d of %d candidates do not agree with PETSc's aij\n", failed, total));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(
    PetscPrintf(comm, "All %d agree with PETSc's aij: products within %.2f of their rounding bounds", total, (double)error));
  if (converged)
    PetscCall(PetscPrintf(comm, ", true residuals at most %.1e", (double)residual));
  else if (solved)
    PetscCall(PetscPrintf(comm, ", but not one solve converged"));
  PetscCall(PetscPrintf(comm, "\n"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

nlohmann::ordered_json to_json(const Reference &a, const Scale &scale, const Result &r) {
  nlohmann::ordered_json j;
  j["type"] = r.candidate.type;
  j["backend"] = r.candidate.backend;
  j["format"] = r.candidate.format;
  j["kernel"] = r.kernel;
  j["device"] = r.candidate.device;
  j["bytes_per_nonzero"] = bytes_per_nonzero(a, r);
  j["matrix_bytes"] = r.matrix_bytes;
  j["moved_bytes"] = r.moved_bytes;
  j["setup_seconds"] = r.setup_time;
  j["spmv_seconds"] = r.product_time;
  j["gigabytes_per_second"] = gigabytes_per_second(r);
  j["share_of_ceiling"] = share(scale, r);
  j["speed_relative_to_baseline"] = speed(scale, r);
  j["product_error_over_bound"] = r.product_ratio;
  j["transposed_product_error_over_bound"] = r.transpose_ratio;
  if (r.solved) {
    nlohmann::ordered_json s;
    s["ksp"] = r.ksp;
    s["pc"] = r.pc;
    s["converged"] = r.converged;
    s["reason"] = r.reason;
    s["iterations"] = static_cast<std::int64_t>(r.iterations);
    s["seconds_per_iteration"] = r.iteration_time;
    s["setup_seconds"] = r.solver_setup_time;
    s["true_relative_residual"] = r.residual;
    s["relative_error"] = r.error;
    j["solve"] = s;
  }
  j["failures"] = r.failures;
  j["warnings"] = r.warnings;
  return j;
}

nlohmann::ordered_json to_json(MPI_Comm comm, const Options &o, const Reference &a, const Scale &scale,
                               const std::vector<Result> &results, const std::vector<std::string> &left_out) {
  nlohmann::ordered_json j;
  PetscMPIInt            size = 0;
  int                    argc = 0;
  char                 **argv = nullptr;
  if (MPI_Comm_size(comm, &size) == MPI_SUCCESS) j["ranks"] = size;
  if (!PetscGetArgs(&argc, &argv)) j["argv"] = std::vector<std::string>(argv, argv + argc);
  j["matrix"] = matrix_name(o);
  j["rows"] = static_cast<std::int64_t>(a.rows);
  j["columns"] = static_cast<std::int64_t>(a.columns);
  j["nonzeros"] = static_cast<std::int64_t>(a.nonzeros);
  j["baseline"] = scale.baseline;
  j["host_ceiling_bytes_per_second"] = scale.host_bandwidth;
  if (scale.device_bandwidth > 0) j["device_ceiling_bytes_per_second"] = scale.device_bandwidth;
  j["agree"] = std::all_of(results.begin(), results.end(), [](const Result &r) { return r.failures.empty(); });
  j["left_out"] = left_out;
  j["candidates"] = nlohmann::ordered_json::array();
  for (const Result &r : results) j["candidates"].push_back(to_json(a, scale, r));
  return j;
}

} // namespace

PetscErrorCode MeasureScale(MPI_Comm comm, const std::vector<Result> &results, Scale *scale) {
  PetscFunctionBeginUser;
  PetscCall(Progress(comm, "measuring the bandwidth ceiling"));
  PetscCall(TCBoundGetBandwidth(comm, PETSC_MEMTYPE_HOST, &scale->host_bandwidth));
  if (std::any_of(results.begin(), results.end(), [](const Result &r) { return r.candidate.device; }))
    PetscCall(TCBoundGetBandwidth(comm, PETSC_MEMTYPE_CUDA, &scale->device_bandwidth));
  for (const Result &r : results) {
    if (r.candidate.tcbound) continue;
    scale->baseline = r.candidate.type;
    scale->baseline_product = r.product_time;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode PrintReport(MPI_Comm comm, const Options &o, const Reference &a, const Scale &scale,
                           const std::vector<Result> &results, const std::vector<std::string> &left_out) {
  PetscMPIInt       size;
  const std::string heading = "vs " + scale.baseline;

  PetscFunctionBeginUser;
  PetscCallMPI(MPI_Comm_size(comm, &size));
  PetscCall(PetscPrintf(comm, "%s: %" PetscInt_FMT " by %" PetscInt_FMT ", %" PetscInt64_FMT " nonzeros, %d rank%s",
                        matrix_name(o).c_str(), a.rows, a.columns, a.nonzeros, size, size > 1 ? "s" : ""));
  if (results.front().solved)
    PetscCall(PetscPrintf(comm, ", %s + %s", results.front().ksp.c_str(), results.front().pc.c_str()));
  PetscCall(PetscPrintf(comm, "\n%-11s %-15s %-13s %6s %10s %11s %11s %6s %8s %7s %8s\n", "type", "backend", "format", "B/nz",
                        "set-up ms", "SpMV us", "iter. us", "its", "GB/s", "share %",
                        scale.baseline == "aij" ? heading.c_str() : "vs cusp."));
  for (const Result &r : results) PetscCall(PrintRow(comm, a, scale, r));
  PetscCall(PrintNotes(comm, scale, results, left_out));
  PetscCall(PrintVerdict(comm, results));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode WriteJson(MPI_Comm comm, const Options &o, const Reference &a, const Scale &scale,
                         const std::vector<Result> &results, const std::vector<std::string> &left_out) {
  PetscMPIInt rank;
  int         written = 1;

  PetscFunctionBeginUser;
  PetscCallMPI(MPI_Comm_rank(comm, &rank));
  if (!rank) {
    const std::string text =
      to_json(comm, o, a, scale, results, left_out).dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
    std::FILE *file = std::fopen(o.json.c_str(), "w");
    written = file && std::fwrite(text.data(), 1, text.size(), file) == text.size();
    if (file && std::fclose(file)) written = 0;
  }
  PetscCallMPI(MPI_Bcast(&written, 1, MPI_INT, 0, comm));
  PetscCheck(written, comm, PETSC_ERR_FILE_WRITE, "-json %s could not be written", o.json.c_str());
  PetscFunctionReturn(PETSC_SUCCESS);
}

} // namespace compare
