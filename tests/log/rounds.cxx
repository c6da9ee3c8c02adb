// Whole lives of the log: PetscInitialize() to PetscFinalize(), several times in one process, which needs a main of its own.
#include <petscviewer.h>
#include <tcbound.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <unistd.h>
#include <vector>

#include "log/fake.h"
#include "src/log/log.h"

namespace {

FakeExecutor device;
FakeKernel   kernel("host");
int          rank;

std::string temporary(const std::string &ending) {
  return testing::TempDir() + "tcbound-rounds-" + std::to_string(getpid()) + ending;
}

std::string read_and_remove(const std::string &name) {
  std::ifstream      in(name);
  std::ostringstream text;
  text << in.rdbuf();
  std::remove(name.c_str());
  return text.str();
}

void start(std::vector<std::string> arguments) {
  static std::vector<std::string> kept; // PETSc holds pointers to its arguments
  static std::vector<char *>      pointers;
  arguments.insert(arguments.begin(), "rounds");
  kept = std::move(arguments);
  pointers.clear();
  for (auto &a : kept) pointers.push_back(&a[0]);
  pointers.push_back(nullptr);
  int    argc = static_cast<int>(kept.size());
  char **argv = pointers.data();
  ASSERT_EQ(PetscInitialize(&argc, &argv, nullptr, nullptr), PETSC_SUCCESS);
}

void run_calls(const char *label, int calls) {
  TCBoundLogRow row;
  ASSERT_EQ(TCBoundLogGetRow("MatMult", label, kernel, &row), PETSC_SUCCESS);
  for (int i = 0; i < calls; ++i) {
    device.next_seconds = 1.0;
    ASSERT_EQ(TCBoundLogBegin(row, device), PETSC_SUCCESS);
    ASSERT_EQ(TCBoundLogEnd(row, device, {2, 2, 24, 24}), PETSC_SUCCESS);
  }
}

// Keeps the message of the last error.
std::string    message;
PetscErrorCode keep_message(MPI_Comm, int, const char *, const char *, PetscErrorCode code, PetscErrorType type,
                            const char *text, void *) {
  if (type == PETSC_ERROR_INITIAL) message = text;
  return code;
}

bool log_is_active() {
  PetscBool active = PETSC_FALSE;
  EXPECT_EQ(TCBoundLogActive(&active), PETSC_SUCCESS);
  return active;
}

} // namespace

TEST(Rounds, EachStartsAfresh) {
  for (int round = 1; round <= 3; ++round) {
    const std::string        json = temporary(".json"), table = temporary(".txt"), csv = temporary(".csv");
    const bool               with_json = round != 2;
    std::vector<std::string> arguments = {"-log_view", ":" + table + ",:" + csv + ":ascii_csv"};
    if (with_json) arguments.insert(arguments.end(), {"-tcbound_log_json", json});
    start(arguments);
    ASSERT_EQ(TCBoundInitialize(), PETSC_SUCCESS);
    ASSERT_EQ(TCBoundInitialize(), PETSC_SUCCESS);
    EXPECT_TRUE(log_is_active());
    run_calls(("round " + std::to_string(round)).c_str(), round);
    ASSERT_EQ(PetscFinalize(), PETSC_SUCCESS);
    EXPECT_FALSE(log_is_active());
    EXPECT_EQ(device.alive, 0); // no interval outlives the finalizer
    if (rank) continue;
    const std::string table_text = read_and_remove(table), csv_text = read_and_remove(csv);
    EXPECT_NE(table_text.find("\ntcbound: roofline of each kernel, and the bound on tensor cores\n"), std::string::npos)
      << table_text;
    EXPECT_NE(table_text.find("\nMatMult round " + std::to_string(round) + " "), std::string::npos) << table_text;
    EXPECT_NE(table_text.find("\nCeilings, host: memory "), std::string::npos) << table_text;
    EXPECT_NE(csv_text.find("\nTCBound,MatMult,round " + std::to_string(round) + ","), std::string::npos) << csv_text;
    EXPECT_EQ(csv_text.find("round " + std::to_string(round - 1)), std::string::npos) << csv_text;
    if (!with_json) continue;
    const auto document = nlohmann::json::parse(read_and_remove(json));
    ASSERT_EQ(document["rows"].size(), 1u);
    EXPECT_EQ(document["rows"][0]["calls_max"], round);
    EXPECT_EQ(document["command_line"][3], "-tcbound_log_json");
  }
}

TEST(Rounds, JsonAloneNeedsNoLogView) {
  const std::string json = temporary(".json");
  start({"-tcbound_log_json", json});
  ASSERT_EQ(TCBoundInitialize(), PETSC_SUCCESS);
  EXPECT_TRUE(log_is_active());
  run_calls("alone", 2);
  PetscInt unused;
  EXPECT_EQ(PetscOptionsAllUsed(nullptr, &unused), PETSC_SUCCESS);
  EXPECT_EQ(unused, 0);
  ASSERT_EQ(PetscFinalize(), PETSC_SUCCESS);
  if (rank) return;
  const auto document = nlohmann::json::parse(read_and_remove(json));
  EXPECT_EQ(document["rows"][0]["seconds_total_max"], 2.0);
  EXPECT_GT(document["machines"][0]["levels"]["dram"]["bandwidth_bytes_per_s"].get<double>(), 0.0);
}

TEST(Rounds, NestedFormatsStayAsPetscWritesThemAndHaveAFileBeside) {
  const std::string xml = temporary(".xml"), table = temporary(".txt"), python = temporary(".py"), flame = temporary(".flame");
  start(
    {"-log_view", ":" + xml + ":ascii_xml,:" + table + ",:" + python + ":ascii_info_detail,:" + flame + ":ascii_flamegraph"});
  ASSERT_EQ(TCBoundInitialize(), PETSC_SUCCESS);
  run_calls("nested", 1);
  ASSERT_EQ(PetscFinalize(), PETSC_SUCCESS);
  EXPECT_EQ(device.alive, 0);
  if (rank) return;
  const std::string xml_text = read_and_remove(xml);
  EXPECT_FALSE(xml_text.empty());
  EXPECT_EQ(xml_text.find("TCBound"), std::string::npos);
  EXPECT_EQ(xml_text.find("roofline"), std::string::npos);
  read_and_remove(flame);
  for (const std::string &name : {xml, flame}) {
    const auto document = nlohmann::json::parse(read_and_remove(name + ".tcbound.json"));
    EXPECT_EQ(document["rows"][0]["matrix"], "nested");
  }
  EXPECT_NE(read_and_remove(table).find("\nMatMult nested "), std::string::npos);
  EXPECT_NE(read_and_remove(python).find("\nTCBound.append({\"event\" : \"MatMult\", \"matrix\" : \"nested\""),
            std::string::npos);
}

// Nothing but a nested handler: the first use of the log's own hooks of it.
TEST(Rounds, XmlAlone) {
  const std::string xml = temporary(".xml");
  start({"-log_view", ":" + xml + ":ascii_xml"});
  ASSERT_EQ(TCBoundInitialize(), PETSC_SUCCESS);
  EXPECT_TRUE(log_is_active());
  run_calls("alone", 2);
  ASSERT_EQ(PetscFinalize(), PETSC_SUCCESS);
  EXPECT_FALSE(log_is_active());
  EXPECT_EQ(device.alive, 0);
  if (rank) return;
  EXPECT_FALSE(read_and_remove(xml).empty());
  EXPECT_EQ(nlohmann::json::parse(read_and_remove(xml + ".tcbound.json"))["rows"][0]["calls_max"], 2);
}

TEST(Rounds, StagesAndViewsByTheApplication) {
  const std::string table = temporary(".txt"), csv = temporary(".csv");
  start({});
  ASSERT_EQ(TCBoundInitialize(), PETSC_SUCCESS);
  ASSERT_EQ(PetscLogDefaultBegin(), PETSC_SUCCESS);
  PetscLogStage stages[2];
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(PetscLogStageRegister(i ? "Second" : "First", &stages[i]), PETSC_SUCCESS);
    ASSERT_EQ(PetscLogStagePush(stages[i]), PETSC_SUCCESS);
    run_calls("staged", i + 1);
    ASSERT_EQ(PetscLogStagePop(), PETSC_SUCCESS);
  }
  for (const auto &[file, format] :
       {std::make_pair(table, PETSC_VIEWER_DEFAULT), std::make_pair(csv, PETSC_VIEWER_ASCII_CSV)}) {
    PetscViewer viewer;
    ASSERT_EQ(PetscViewerASCIIOpen(PETSC_COMM_WORLD, file.c_str(), &viewer), PETSC_SUCCESS);
    ASSERT_EQ(PetscViewerPushFormat(viewer, format), PETSC_SUCCESS);
    ASSERT_EQ(PetscLogView(viewer), PETSC_SUCCESS);
    ASSERT_EQ(PetscViewerPopFormat(viewer), PETSC_SUCCESS);
    ASSERT_EQ(PetscViewerDestroy(&viewer), PETSC_SUCCESS);
  }
  ASSERT_EQ(PetscFinalize(), PETSC_SUCCESS);
  if (rank) return;
  const std::string table_text = read_and_remove(table), csv_text = read_and_remove(csv);
  EXPECT_NE(table_text.find("Event Stage 2: Second"), std::string::npos) << table_text;
  EXPECT_NE(table_text.find("\n  = latency-bound, too small to judge: "), std::string::npos) << table_text;
  EXPECT_NE(csv_text.find("\nTCBound,MatMult,staged,spmv/fake/host,host,"), std::string::npos) << csv_text;
  EXPECT_NE(csv_text.find(",3,3,"), std::string::npos) << csv_text; // the calls of both stages
}

// A cache folder with a calibration of this host, by its name.
class Calibrated : public testing::Test {
protected:
  void SetUp() override {
    cache_ = temporary("-cache");
    char host[256];
    gethostname(host, sizeof(host));
    file_ = cache_ + "/tcbound/machines/host-" + host + ".json";
    std::filesystem::create_directories(cache_ + "/tcbound/machines");
    setenv("XDG_CACHE_HOME", cache_.c_str(), 1);
  }
  void TearDown() override {
    unsetenv("XDG_CACHE_HOME");
    std::filesystem::remove_all(cache_);
  }
  void        write(const std::string &text) const { std::ofstream(file_) << text; }
  std::string cache_, file_;
};

TEST_F(Calibrated, FilesDecideTheCeilings) {
  int size = 1;
  ASSERT_EQ(MPI_Comm_size(MPI_COMM_WORLD, &size), MPI_SUCCESS);
  const std::string name = R"({"machines": [{"name": "host/)" + std::to_string(size) + R"(", )";
  write(name + R"("measured": {"date": "2026-12-01", "driver": "other"},
    "levels": {"dram": {"bandwidth_bytes_per_s": 96}}, "peaks_flops_per_s": {"host": {"fp64": 64}}}]})");
  const std::string user = temporary("-machine.json");
  std::ofstream(user) << name + R"("peaks_flops_per_s": {"host": {"fp64": 32}}}]})";
  for (const bool with_user : {false, true}) {
    const std::string        json = temporary(".json");
    std::vector<std::string> arguments{"-tcbound_log_json", json};
    if (with_user) arguments.insert(arguments.end(), {"-tcbound_machine", user});
    start(arguments);
    ASSERT_EQ(TCBoundInitialize(), PETSC_SUCCESS);
    run_calls("calibrated", 1); // 24 bytes and 2 FLOP in 1 s on each rank
    ASSERT_EQ(PetscFinalize(), PETSC_SUCCESS);
    if (rank) continue;
    const auto  document = nlohmann::json::parse(read_and_remove(json));
    const auto &row = document["rows"][0], &machine = document["machines"][0];
    EXPECT_DOUBLE_EQ(row["roof_share"].get<double>(), 0.25 * size) << document.dump(1);
    EXPECT_DOUBLE_EQ(row["ridge_flops_per_byte"].get<double>(), (with_user ? 32 : 64) / 96.0);
    EXPECT_EQ(machine["measured"], false);
    EXPECT_EQ(machine["files"].get<std::string>().find("calibrated 2026-12-01 with driver other, now Linux"), 0u) << machine;
    EXPECT_EQ(machine["files"].get<std::string>().find(user) != std::string::npos, with_user);
  }
  std::remove(user.c_str());
}

TEST_F(Calibrated, AMalformedFileIsAnErrorAtTheStart) {
  write(R"({"machines": [{"name": "host/1", "levels": {"dram": {"bandwidth": 1}}}]})");
  start({"-tcbound_log_json", temporary(".json")});
  ASSERT_EQ(TCBoundInitialize(), PETSC_SUCCESS);
  TCBoundLogRow row;
  ASSERT_EQ(PetscPushErrorHandler(keep_message, nullptr), PETSC_SUCCESS);
  EXPECT_EQ(TCBoundLogGetRow("MatMult", "A", kernel, &row), PETSC_ERR_FILE_UNEXPECTED);
  EXPECT_NE(message.find(file_ + ": machines[0].levels.dram.bandwidth is no field; did you mean"), std::string::npos)
    << message;
  ASSERT_EQ(PetscPopErrorHandler(), PETSC_SUCCESS);
  std::filesystem::remove(file_);
  ASSERT_EQ(PetscFinalize(), PETSC_SUCCESS);
  if (!rank) std::remove(temporary(".json").c_str());

  start({"-tcbound_machine", "/nowhere/machine.json"});
  ASSERT_EQ(PetscPushErrorHandler(keep_message, nullptr), PETSC_SUCCESS);
  EXPECT_EQ(TCBoundInitialize(), PETSC_ERR_USER_INPUT);
  EXPECT_EQ(message, "-tcbound_machine: /nowhere/machine.json: cannot be opened");
  ASSERT_EQ(PetscPopErrorHandler(), PETSC_SUCCESS);
  ASSERT_EQ(PetscFinalize(), PETSC_SUCCESS);
}

TEST(Rounds, SwitchedOffPetscsLogIsAsItWas) {
  const std::string table = temporary(".txt");
  start({"-log_view", ":" + table, "-tcbound_log", "false"});
  ASSERT_EQ(TCBoundInitialize(), PETSC_SUCCESS);
  EXPECT_FALSE(log_is_active());
  run_calls("off", 2);
  ASSERT_EQ(PetscFinalize(), PETSC_SUCCESS);
  for (const auto &[option, value] :
       {std::make_pair("-tcbound_log_json", "/nowhere/rows.json"), std::make_pair("-tcbound_counters", "true")}) {
    start({"-tcbound_log", "false", option, value});
    ASSERT_EQ(PetscPushErrorHandler(keep_message, nullptr), PETSC_SUCCESS);
    EXPECT_EQ(TCBoundInitialize(), PETSC_ERR_USER_INPUT);
    EXPECT_EQ(message, std::string(option) + " needs -tcbound_log true");
    ASSERT_EQ(PetscPopErrorHandler(), PETSC_SUCCESS);
    ASSERT_EQ(PetscFinalize(), PETSC_SUCCESS);
  }
  if (rank) return;
  const std::string text = read_and_remove(table);
  EXPECT_NE(text.find("PETSc Performance Summary"), std::string::npos);
  EXPECT_EQ(text.find("roofline"), std::string::npos);
}

TEST(Rounds, WithoutCallsNothingIsAdded) {
  const std::string table = temporary(".txt");
  start({"-log_view", ":" + table});
  ASSERT_EQ(TCBoundInitialize(), PETSC_SUCCESS);
  ASSERT_EQ(PetscFinalize(), PETSC_SUCCESS);
  if (rank) return;
  const std::string text = read_and_remove(table);
  EXPECT_NE(text.find("PETSc Performance Summary"), std::string::npos);
  EXPECT_EQ(text.find("roofline"), std::string::npos);
}

// And TCBoundInitialize() works again in the next round.
TEST(Rounds, UnwritableJsonFailsAtTheStart) {
  start({"-tcbound_log_json", "/nowhere/rows.json"});
  ASSERT_EQ(PetscPushErrorHandler(PetscReturnErrorHandler, nullptr), PETSC_SUCCESS);
  EXPECT_EQ(TCBoundInitialize(), PETSC_ERR_FILE_OPEN);
  ASSERT_EQ(PetscPopErrorHandler(), PETSC_SUCCESS);
  ASSERT_EQ(PetscFinalize(), PETSC_SUCCESS);

  const std::string json = temporary(".json");
  start({"-tcbound_log_json", json});
  ASSERT_EQ(TCBoundInitialize(), PETSC_SUCCESS);
  EXPECT_TRUE(log_is_active());
  ASSERT_EQ(PetscFinalize(), PETSC_SUCCESS);
  if (rank) return;
  EXPECT_TRUE(nlohmann::json::accept(read_and_remove(json)));
}

int main(int argc, char **argv) {
  testing::InitGoogleTest(&argc, argv);
  if (MPI_Init(&argc, &argv) || MPI_Comm_rank(MPI_COMM_WORLD, &rank)) return 2;
  auto &listeners = testing::UnitTest::GetInstance()->listeners();
  if (rank) delete listeners.Release(listeners.default_result_printer());
  int failed = RUN_ALL_TESTS(), any = 0;
  if (MPI_Allreduce(&failed, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD)) return 2;
  if (MPI_Finalize()) return 2;
  return any;
}
