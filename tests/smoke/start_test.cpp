// Does memwall start without libraries that nothing of it calls?
#include <gtest/gtest.h>

#include <sstream>

#include "tests/support/program.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

// What the dynamic loader would load, one library a line.
std::vector<std::string> libraries_of_memwall() {
  const ScratchFolder folder;
  const CommandOutcome loaded = run_memwall(folder, "--version", "LD_TRACE_LOADED_OBJECTS=1");
  std::vector<std::string> libraries;
  std::istringstream lines(loaded.out);
  for (std::string line; std::getline(lines, line);)
    if (line.find(".so") != line.npos) libraries.push_back(line);
  return libraries;
}

TEST(Start, LoadsNeitherHdf5NorWhatThatNeedsToReadTheWeb) {
  if (!MEMWALL_HDF5_IS_ARCHIVE) GTEST_SKIP() << "HDF5 has no archive here";
  const std::vector<std::string> libraries = libraries_of_memwall();
  if (libraries.empty()) GTEST_SKIP() << "The loader does not list what it loads";
  EXPECT_LE(libraries.size(), 32u);
  for (const std::string& library : libraries)
    for (const char* unwanted : {"libhdf5", "libcurl", "krb5", "libssl", "libldap", "libgnutls"})
      EXPECT_EQ(library.find(unwanted), library.npos) << library;
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
