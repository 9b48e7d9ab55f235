// Does `memwall compare-policies` say exactly what it should: of what fits, what does not, what is refused, and of what
// the lower bound does not hold for?
#include <gtest/gtest.h>

#include <string>

#include "tests/support/golden.h"
#include "tests/support/program.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

class ComparePoliciesVerb : public ::testing::Test {
 protected:
  CommandOutcome compared(const std::string& arguments) {
    return run_memwall(folder_, "compare-policies '" MEMWALL_SOURCE "/traces/samples/gpt_124m.mwt' " + arguments);
  }
  static bool has(const CommandOutcome& o, const std::string& text) { return o.out.find(text) != std::string::npos; }

  const ScratchFolder folder_;
};

constexpr const char* kOneOfEachKind =
    "--budget 100%,70%,50% --policy rotor --policy reversible --policy offload:what=optimizer,to=host "
    "--policy offload:what=activations,to=nowhere --jobs 2";

TEST_F(ComparePoliciesVerb, TheTableIsGolden) {
  const CommandOutcome o = compared(kOneOfEachKind);
  EXPECT_EQ(o.code, 0) << o.err;
  expect_golden("compare_policies.txt", o.out);
}

TEST_F(ComparePoliciesVerb, TheRowsOfCsvAreGolden) {
  const CommandOutcome o = compared(std::string(kOneOfEachKind) + " --csv -");
  EXPECT_EQ(o.code, 0) << o.err;
  expect_golden("compare_policies.csv", o.out);
}

TEST_F(ComparePoliciesVerb, WhatTheBoundDoesNotHoldForIsNotHeldAgainstIt) {
  const CommandOutcome o = compared("--budget 100% --policy offload:what=optimizer,to=host --format json");
  EXPECT_EQ(o.code, 0) << o.err;
  const std::size_t row = o.out.find("\"policy\": \"offload:what=optimizer,to=host\"", o.out.find("\"cells\""));
  ASSERT_NE(row, std::string::npos) << o.out;
  const std::string cell = o.out.substr(row, o.out.find('}', row) - row);
  EXPECT_NE(cell.find("\"keeps_work\": \"no\""), std::string::npos) << cell;
  EXPECT_NE(cell.find("\"above_bound\": null"), std::string::npos) << cell;
  EXPECT_TRUE(has(o, "offload:what=optimizer,to=host (other work): it changes what the GPU computes in a step"))
      << o.out;
  const CommandOutcome kept = compared("--budget 100% --policy rotor");
  EXPECT_FALSE(has(kept, "(other work)")) << kept.out;
}

TEST_F(ComparePoliciesVerb, WhereNothingFitsItIsExitCode3AndSaysWhatComesNearest) {
  const CommandOutcome o = compared("--budget 64MiB --policy rotor");
  EXPECT_EQ(o.code, 3);
  EXPECT_TRUE(has(o, "Within 64MiB (67.11 MB) nothing fits: ")) << o.out;
  EXPECT_TRUE(has(o, "  impossible\n")) << o.out;
  EXPECT_NE(o.err.find("nothing fits within any of the budgets."), std::string::npos) << o.err;
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
