// Does an installation hold the programs and their manual pages?
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/support/command.h"
#include "tests/support/scratch_folder.h"

namespace memwall {
namespace {

namespace fs = std::filesystem;

TEST(Install, ProgramsAndManualPagesStandInTheUsualPlaces) {
  const ScratchFolder folder;
  const fs::path build = fs::path(MEMWALL_PROGRAM).parent_path().parent_path();
  const CommandOutcome o = run_command(
      "cmake --install '" + build.string() + "' --component programs --prefix '" + folder.path().string() + "'",
      folder.path());
  ASSERT_EQ(o.code, 0) << o.out << o.err;
  for (const char* file : {"bin/memwall", "bin/memwall-bench", "bin/memwall-replay", "share/man/man1/memwall.1",
                           "share/man/man1/memwall-bench.1", "share/man/man1/memwall-replay.1"})
    EXPECT_TRUE(fs::exists(folder / file)) << file;
  EXPECT_EQ(run_command("bin/memwall --version", folder.path()).code, 0);
}

}  // namespace
}  // namespace memwall
