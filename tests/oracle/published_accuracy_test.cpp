// How near do predictions come to step times and peaks that others published? Skipped without the tables.
#include <gtest/gtest.h>

#include "tests/support/command.h"
#include "tests/support/shared_data.h"

namespace memwall {
namespace {

CommandOutcome validate(const std::string& options) {
  return run_command(std::string(MEMWALL_PROGRAM) + " validate --published '" +
                         (*shared_data() / "published").string() + "' " + options,
                     std::filesystem::temp_directory_path());
}

// The page is what the command prints: no figure in it was typed. A table or a model that changes shows here;
// `memwall validate --published FOLDER --markdown-docs` makes the page anew.
TEST(PublishedAccuracy, ThePageInTheDocsIsWhatTheCommandPrints) {
  if (!shared_data()) GTEST_SKIP() << "no published tables here";
  const CommandOutcome outcome = validate("--markdown-docs");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, content_of(std::filesystem::path(MEMWALL_SOURCE) / "docs" / "accuracy.md"));
}

}  // namespace
}  // namespace memwall
