// Whole lives of the log: PetscInitialize() to PetscFinalize(), several times in one process, which needs a main of its own.
#include <petscsys.h>
#include <tcbound.h>

#include <cstdio>
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
    EXPECT_NE(table_text.find("\ntcbound: roofline of each kernel\n"), std::string::npos) << table_text;
    EXPECT_NE(table_text.find("\nMatMult round " + std::to_string(round) + " "), std::string::npos) << table_text;
    EXPECT_EQ(table_text.find("not measured"), std::string::npos) << table_text;
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
  EXPECT_GT(document["ceilings"][0]["bytes_per_second"].get<double>(), 0.0);
}

TEST(Rounds, NestedFormatsStayAsPetscWritesThem) {
  const std::string xml = temporary(".xml"), table = temporary(".txt"), python = temporary(".py");
  start({"-log_view", ":" + xml + ":ascii_xml,:" + table + ",:" + python + ":ascii_info_detail"});
  ASSERT_EQ(TCBoundInitialize(), PETSC_SUCCESS);
  run_calls("nested", 1);
  ASSERT_EQ(PetscFinalize(), PETSC_SUCCESS);
  if (rank) return;
  const std::string xml_text = read_and_remove(xml);
  EXPECT_FALSE(xml_text.empty());
  EXPECT_EQ(xml_text.find("TCBound"), std::string::npos);
  EXPECT_EQ(xml_text.find("roofline"), std::string::npos);
  EXPECT_NE(read_and_remove(table).find("\nMatMult nested "), std::string::npos);
  EXPECT_NE(read_and_remove(python).find("\nTCBound.append({\"event\" : \"MatMult\", \"matrix\" : \"nested\""),
            std::string::npos);
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
