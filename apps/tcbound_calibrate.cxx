// tcbound-calibrate: measures the ceilings of this machine's CUDA device and host, and keeps them for the roofline.
//   tcbound-calibrate
//   tcbound-calibrate --host --host-threads 8 --output machine.json
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <memory>
#include <unistd.h>

#include "calibrate/device.h"
#include "calibrate/host.h"
#include "calibrate/output_file.h"
#include "calibrate/report.h"
#include "src/model/names.h"
#include "src/model/present.h"

using namespace tcbound;
using namespace tcbound::calibrate;

namespace {

struct Settings {
  bool        host_only = false, device_only = false, json = false;
  int         device = 0, threads = host_cores();
  std::string output, measurements;
};

// One line, on a terminal only, that the next step overwrites.
void show_progress(const std::string &what) {
  if (!isatty(STDERR_FILENO)) return;
  std::fprintf(stderr, "\r\033[K%s%s", what.empty() ? "" : "measuring ", what.c_str());
  std::fflush(stderr);
}

// Of the cache, whose folder is made where there is none yet.
std::string file_in_cache(const std::string &id) {
  const std::filesystem::path file = model::calibration_file(id);
  if (file.empty())
    throw std::runtime_error("neither XDG_CACHE_HOME nor HOME is set: say with --output where the machine file is to go");
  std::error_code error;
  std::filesystem::create_directories(file.parent_path(), error);
  if (error)
    throw std::runtime_error(file.parent_path().string() + ": cannot be made: " + error.message() +
                             "; --output takes another file");
  return file.string();
}

#ifdef TCBOUND_HAVE_CUDA
Subject measure_device(Executor &executor) {
  const Device &d = executor.device();
  Subject       subject;
  subject.name = model::built_in_name_of(d.name);
  if (!subject.name.empty()) subject.vendor = model::find_machine(model::built_in_machines(), subject.name);
  if (subject.name.empty()) subject.name = d.name;
  subject.device = d.name;
  subject.driver = d.driver;
  subject.sm_count = d.multiprocessors;
  subject.facts = {{{"sm_count"}, double(d.multiprocessors)},
                   {{"levels", "dram", "capacity_bytes"}, double(d.memory_bytes)},
                   {{"levels", "l2", "capacity_bytes"}, double(d.l2_bytes)}};
  subject.heading = d.name + " (" + model::calibration_id(d.id) + "), compute capability " + std::to_string(d.compute_major) +
                    "." + std::to_string(d.compute_minor) + ", " + std::to_string(d.multiprocessors) + " SMs, driver " +
                    subject.driver + (subject.vendor ? "; vendor's figures of " + subject.name : "; no vendor's figures known");
  show_progress(d.name + ": warming up");
  warm_up(executor);
  for (const auto &measure : {measure_memory, measure_arithmetic, measure_launch})
    for (Measurement &m : measure(executor, [&](const std::string &what) { show_progress(d.name + ": " + what); }))
      subject.measurements.push_back(std::move(m));
  add_tensor_core_peaks(subject, d.compute_major);
  return subject;
}
#endif

Subject measure_host_with(int threads) {
  Subject subject;
  subject.name = "host/" + std::to_string(threads);
  const auto host = make_host_executor();
  subject.device = host->device().name;
  subject.driver = host->device().driver;
  subject.heading = subject.device + ", " + std::to_string(threads) + (threads == 1 ? " thread" : " threads");
  subject.measurements = measure_host(threads, show_progress);
  return subject;
}

// The machine files of a run: one of --output, or one of the device and one of the host in the cache.
struct Files {
  std::unique_ptr<OutputFile> all, device, host, measurements;
};

Files open_files(const Settings &s, const Executor *device) {
  Files files;
  if (!s.measurements.empty()) files.measurements = std::make_unique<OutputFile>(s.measurements);
  if (!s.output.empty()) {
    files.all = std::make_unique<OutputFile>(s.output);
    return files;
  }
  char hostname[256] = "";
  gethostname(hostname, sizeof(hostname) - 1);
  if (device) files.device = std::make_unique<OutputFile>(file_in_cache(model::calibration_id(device->device().id)));
  if (!s.device_only) files.host = std::make_unique<OutputFile>(file_in_cache(model::host_calibration_id(hostname)));
  return files;
}

void write(OutputFile *file, const std::string &text, std::ostream &log) {
  if (!file) return;
  file->write(text);
  log << "written: " << file->name() << '\n';
}

void run(const Settings &s) {
  std::unique_ptr<Executor> executor;
  if (!s.host_only) {
    std::string why_not;
    if (cuda_device_count(&why_not) == 0)
      throw std::runtime_error("no CUDA device: " + why_not + ". --host measures the host alone");
    executor = make_cuda_executor(s.device);
  }
  Files                files = open_files(s, executor.get());
  std::vector<Subject> device, host;
  std::ostream        &log = s.json ? std::cerr : std::cout;
  const auto           start = std::chrono::steady_clock::now();
#ifdef TCBOUND_HAVE_CUDA
  if (executor) device.push_back(measure_device(*executor));
#endif
  if (!s.device_only)
    for (const int threads : thread_counts(s.threads)) host.push_back(measure_host_with(threads));
  show_progress("");

  std::vector<Subject> all = device;
  all.insert(all.end(), host.begin(), host.end());
  const std::string date = now_utc();
  for (const Subject &subject : all) log << table_text(subject) << '\n';
  log << "Medians. spread: half the distance between the quartiles; a pass: bytes read and written (B) or FLOPs (F).\n";
  if (!device.empty())
    log << "/SM/clk: bytes or FLOPs of one SM in one cycle of the SM clock. MMA: mma.sync of one warp, which in low precision "
           "does\n"
           "not reach the peak of devices from compute capability 9.0 on.\n";
  write(files.all.get(), machine_file_text(all, date), log);
  write(files.device.get(), machine_file_text(device, date), log);
  write(files.host.get(), machine_file_text(host, date), log);
  write(files.measurements.get(), measurements_text(all, date), log);
  log << "took " << std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() << " s\n";
  if (s.json) std::cout << machine_file_text(all, date);
}

// CLI11 says only that an argument was not expected.
void check_options(const CLI::App &app, int argc, char **argv) {
  std::vector<std::string> names;
  for (const CLI::Option *option : app.get_options())
    for (const std::string &name : option->get_lnames()) names.push_back("--" + name);
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i], name = argument.substr(0, argument.find('='));
    if (name.rfind("--", 0) == 0) model::index_of_name("option", name, names);
  }
}

} // namespace

int main(int argc, char **argv) {
  CLI::App app(
    "Measures the ceilings of this machine, its CUDA device and its host, beside the vendor's figures, and keeps them\n"
    "in <cache>/tcbound/machines, <cache> being $XDG_CACHE_HOME or $HOME/.cache, where tcbound finds them.",
    "tcbound-calibrate");
  Settings s;
  auto    *device = app.add_option("--device", s.device, "number of the CUDA device (default 0)");
  auto    *host = app.add_flag("--host", s.host_only, "measure the host alone")->excludes(device);
  app.add_flag("--no-host", s.device_only, "measure the device alone")->excludes(host);
  app.add_option("--host-threads", s.threads, "most threads on the host (default: the cores this process may use)")
    ->check(CLI::Range(1, 4096));
  app.add_option("--output", s.output, "machine file to write instead of those in the cache");
  app.add_flag("--json", s.json, "print the machine file, and all else on standard error");
  app.add_option("--measurements", s.measurements, "write every repeat of every step as JSON to this file");
  try {
    check_options(app, argc, argv);
    CLI11_PARSE(app, argc, argv);
    run(s);
  } catch (const std::exception &e) {
    show_progress("");
    std::cerr << "tcbound-calibrate: " << e.what() << '\n';
    return 1;
  }
  return 0;
}
