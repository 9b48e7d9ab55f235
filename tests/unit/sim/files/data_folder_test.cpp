// Is the data found where the environment says, else in the source tree? (Beside the program: smoke/install_test.cpp.)
#include "sim/files/data_folder.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "sim/files/own_file.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

TEST(DataFolder, TheEnvironmentComesFirstAndTheSourceTreeLast) {
  EXPECT_EQ(data_folder("MEMWALL_TEST_FOLDER", "nothing of this name", "/source"), "/source");
  EXPECT_EQ(data_folder(nullptr, "nothing of this name", "/source"), "/source");
  ::setenv("MEMWALL_TEST_FOLDER", "/named", 1);
  EXPECT_EQ(data_folder("MEMWALL_TEST_FOLDER", "nothing of this name", "/source"), "/named")
      << "whether it exists or not";
  ::setenv("MEMWALL_TEST_FOLDER", "", 1);
  EXPECT_EQ(data_folder("MEMWALL_TEST_FOLDER", "nothing of this name", "/source"), "/source") << "empty is as not set";
  ::unsetenv("MEMWALL_TEST_FOLDER");
}

// (Of a library: tests/python.)
TEST(OwnFile, IsTheProgram) {
  EXPECT_TRUE(own_file().is_program);
  EXPECT_EQ(own_file().path, std::filesystem::read_symlink("/proc/self/exe"));
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
