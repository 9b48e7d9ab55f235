// Are the pictures of docs/studies what their studies draw? (What the page says of them, docs_commands_test.cpp checks.)
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/support/program.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

namespace fs = std::filesystem;

TEST(Studies, PicturesAreThoseOfTheirFiles) {
  const fs::path source = fs::path(MEMWALL_SOURCE) / "docs/studies";
  const ScratchFolder folder;
  fs::create_directories(folder.path() / "docs/studies");
  std::size_t studies = 0;
  for (const auto& entry : fs::directory_iterator(source)) {
    if (entry.path().extension() != ".study") continue;
    ++studies;
    const std::string name = entry.path().stem().string();
    fs::copy(entry.path(), folder.path() / "docs/studies");
    const CommandOutcome o =
        run_command("'" MEMWALL_PROGRAM "' sweep docs/studies/" + name + ".study --no-journal", folder.path());
    EXPECT_EQ(o.code, 0) << name << o.err;
    EXPECT_EQ(content_of(folder.path() / "docs/studies" / (name + ".svg")), content_of(source / (name + ".svg")))
        << "docs/studies/make.sh draws " << name << " anew";
  }
  EXPECT_GE(studies, 10u);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
