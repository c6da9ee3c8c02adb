#include "apps/calibrate/output_file.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <stdexcept>

using namespace tcbound::calibrate;
namespace fs = std::filesystem;

namespace {

class OutputFileTest : public testing::Test {
protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "tcbound-output-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder = name;
  }
  void     TearDown() override { fs::remove_all(folder); }
  fs::path folder;

  std::string content(const std::string &name) const {
    std::ifstream file(folder / name);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  std::ptrdiff_t files() const { return std::distance(fs::directory_iterator(folder), fs::directory_iterator()); }
};

} // namespace

TEST_F(OutputFileTest, ReplacesTheFileOnlyWhenWritten) {
  std::ofstream(folder / "m.json") << "old";
  {
    OutputFile abandoned((folder / "m.json").string());
    EXPECT_EQ(content("m.json"), "old");
  }
  EXPECT_EQ(content("m.json"), "old");
  EXPECT_EQ(files(), 1);
  OutputFile file((folder / "m.json").string());
  file.write("new");
  EXPECT_EQ(content("m.json"), "new");
  EXPECT_EQ(files(), 1);
}

TEST_F(OutputFileTest, SaysWhatCannotBeWritten) {
  EXPECT_THROW(OutputFile(folder.string()), std::runtime_error);
  EXPECT_THROW(OutputFile((folder / "nowhere" / "m.json").string()), std::runtime_error);
  OutputFile full("/dev/full"); // no regular file: written to as it is
  EXPECT_THROW(full.write("text"), std::runtime_error);
  EXPECT_TRUE(fs::exists("/dev/full"));
}
