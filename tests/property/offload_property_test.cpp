// Does an offload of activations give, on random steps, whether they say what autograd saves or not, a sound trace
// without races in which every kernel reads what it read?
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>

#include "tests/support/carried_out.h"
#include "tests/support/random_step.h"
#include "tests/support/rewrite_checks.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

std::string random_offload() {
  std::string text = "offload:what=activations,min_bytes=0";
  if (*rc::gen::inRange(0, 4) == 0) return text + ",stream=compute";
  return text + ",buffers=" + std::to_string(*rc::gen::inRange(0, 6)) +
         ",prefetch=" + std::to_string(*rc::gen::inRange(0, 5)) +
         (*rc::gen::inRange(0, 3) == 0   ? ",hides=1"
          : *rc::gen::inRange(0, 3) == 0 ? ",fraction=0.5"
                                         : "");
}

RC_GTEST_PROP(OffloadProperty, ActivationsComeBackAsTheyWere, ()) {
  const Trace before = random_step(*rc::gen::inRange<std::size_t>(1, 3));
  const std::string policy = random_offload();
  const bool offloaded = refusal(before, policy).empty();
  RC_CLASSIFY(offloaded, "offloaded");
  if (!offloaded) return;
  assert_carried_out(before, rewritten(before, policy));
}

// Behind a checkpoint, whose re-runs ask for what they start from.
RC_GTEST_PROP(OffloadProperty, SoTheyDoForReRuns, ()) {
  const Trace before = random_step(1);
  if (!refusal(before, "checkpoint").empty()) return;
  const Trace again = rewritten(before, "checkpoint");
  const std::string policy = random_offload();
  const bool offloaded = refusal(again, policy).empty();
  RC_CLASSIFY(offloaded, "offloaded");
  if (!offloaded) return;
  assert_carried_out(before, rewritten(again, policy));
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
