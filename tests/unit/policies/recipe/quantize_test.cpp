// A step with frozen weights in NF4 is the step of the program with them: the same kernels, the same work, the same
// bytes on the device at each of them.
#include <gtest/gtest.h>

#include "sim/trace/trace_check.h"
#include "tests/support/kernel_lines.h"
#include "tests/support/recipe_checks.h"
#include "tests/support/rewrite_checks.h"
#include "tests/support/small_networks.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

Recipe lora(bool nf4) {
  Recipe r;
  r.batch = 2;
  r.precision = Precision::bf16;
  r.lora_rank = 8;
  r.weights_in_nf4 = nf4;
  return r;
}

TEST(QuantizeRecipe, Nf4IsWhatTheGeneratorWrites) {
  for (const ActivationCheckpoint checkpoint : {ActivationCheckpoint::none, ActivationCheckpoint::full}) {
    Recipe from = lora(false), to = lora(true);
    from.checkpoint = to.checkpoint = checkpoint;
    const Model model = small_rotary_decoder();
    const Trace after = recipe_rewritten(modelled_step(model, from), "quantize:nf4");
    EXPECT_EQ(check(after), std::vector<std::string>{});
    EXPECT_EQ(kernel_difference(after, modelled_step(model, to)), "");
  }
}

TEST(QuantizeRecipe, WhatIsNotFrozenIsRefused) {
  Recipe all = lora(false);
  all.lora_rank = 0;
  const Trace trained = modelled_step(small_rotary_decoder(), all);
  EXPECT_NE(refusal(trained, "quantize:nf4").find("needs frozen 16-bit weights"), std::string::npos);
  all.optimizer = OptimizerKind::none;
  EXPECT_NE(refusal(modelled_step(small_rotary_decoder(), all), "quantize:nf4").find("not told which are frozen"),
            std::string::npos);
  Recipe autocast = lora(false);
  autocast.precision = Precision::amp_bf16;
  EXPECT_NE(
      refusal(modelled_step(small_rotary_decoder(), autocast), "quantize:nf4").find("needs frozen 16-bit weights"),
      std::string::npos);
  EXPECT_NE(refusal(modelled_step(small_rotary_decoder(), lora(false)), "quantize:int8").find("nf4"),
            std::string::npos);
  EXPECT_NE(refusal(modelled_step(small_rotary_decoder(), lora(true)), "quantize:nf4").find("is in NF4 already"),
            std::string::npos);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
