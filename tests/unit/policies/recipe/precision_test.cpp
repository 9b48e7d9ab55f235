// A step in another precision is the step of the program in that precision: the same kernels, the same work, the same
// bytes on the device at each of them.
#include <gtest/gtest.h>

#include "sim/trace/trace_check.h"
#include "tests/support/kernel_lines.h"
#include "tests/support/recipe_checks.h"
#include "tests/support/rewrite_checks.h"
#include "tests/support/small_networks.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

Recipe recipe(Precision precision, Attention attention = Attention::flash) {
  Recipe r;
  r.batch = 2;
  r.precision = precision;
  r.attention = attention;
  return r;
}

void expect_same(const Model& model, const Recipe& from, const std::string& policy, const Recipe& to) {
  const Trace after = recipe_rewritten(modelled_step(model, from), policy);
  EXPECT_EQ(check(after), std::vector<std::string>{});
  EXPECT_EQ(kernel_difference(after, modelled_step(model, to)), "");
}

TEST(PrecisionRecipe, AutocastIsWhatTheGeneratorWrites) {
  for (const SmallNetwork& network : small_networks()) {
    SCOPED_TRACE(network.name);
    expect_same(network.model, recipe(Precision::fp32), "precision:amp_bf16", recipe(Precision::amp_bf16));
  }
}

TEST(PrecisionRecipe, SixteenBitIsWhatTheGeneratorWrites) {
  for (const SmallNetwork& network : small_networks()) {
    SCOPED_TRACE(network.name);
    expect_same(network.model, recipe(Precision::fp32), network.name == std::string("vit") ? "precision:bf16" : "precision:bf16,loss_in_fp32=1",
                recipe(Precision::bf16));
  }
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
