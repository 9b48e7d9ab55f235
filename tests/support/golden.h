// Exact outputs that are committed in tests/golden/expected. After a deliberate change: run the test program with
// MEMWALL_UPDATE_GOLDEN=1 and read the difference before committing it.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "tests/support/scratch_folder.h"

namespace memwall {

// `file`: its name in tests/golden/expected. `what` says in a failure where the text comes from.
inline void expect_golden(const std::string& file, const std::string& text, const std::string& what = {}) {
  const std::filesystem::path path = std::filesystem::path(MEMWALL_SOURCE) / "tests/golden/expected" / file;
  if (std::getenv("MEMWALL_UPDATE_GOLDEN") != nullptr) write_content(path, text);
  EXPECT_EQ(text, content_of(path)) << "for " << file << (what.empty() ? "" : ": ") << what;
}

}  // namespace memwall
