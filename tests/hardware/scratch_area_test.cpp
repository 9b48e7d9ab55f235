// Does a scratch folder go away, at the end and when the program is interrupted?
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

#include "sim/error.h"
#include "tests/support/scratch_folder.h"
#include "validate/measurement/scratch_area.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

TEST(ScratchArea, IsANewFolderThatGoesWithItsOwner) {
  const ScratchFolder parent;
  std::filesystem::path path;
  {
    const ScratchArea area(parent / ".", "memwall-test");
    path = area.path();
    EXPECT_TRUE(path.filename().string().starts_with("memwall-test-"));
    write_content(path / "file", "content");
  }
  EXPECT_FALSE(std::filesystem::exists(path));
  EXPECT_THROW(ScratchArea(parent / "missing", "memwall-test"), UsageError);
}

// In a child, since the program ends.
TEST(ScratchArea, GoesWhenTheProgramIsInterrupted) {
  const ScratchFolder parent;
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const ScratchArea area(parent / ".", "memwall-test");
    write_content(area.path() / "file", "content");
    ::kill(::getpid(), SIGTERM);
    ::pause();
    ::_exit(1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 128 + SIGTERM);
  EXPECT_TRUE(std::filesystem::is_empty(parent / "."));
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
