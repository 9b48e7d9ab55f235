// On captured steps behind sharding: does rotor take no longer than Chen's segments, in their memory?
#include <gtest/gtest.h>

#include "study/study.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

struct CapturedRun {
  Duration time{};
  Bytes peak = 0;
};

CapturedRun run_of(Study& study, const std::string& capture, const std::vector<std::string>& policies) {
  Scenario scenario;
  scenario.step = {std::string(MEMWALL_SOURCE "/traces/samples/captures/") + capture + ".mwc.gz"};
  scenario.machine = "h100-sxm-80gb";
  scenario.policies = policies;
  const memwall::Run run = study.run(scenario, {.record = false}).run;
  const TierResult& hbm = run.result.tiers[static_cast<std::size_t>(run.machine.tier("hbm"))];
  return {run.result.end, hbm.peak_allocated};
}

// 2 % are what sizes are rounded up by, 1 % what the allocator has in pieces.
TEST(RotorOnCaptures, TakesNoLongerThanChensSegmentsBehindSharding) {
  Study study;
  for (const char* capture : {"gpt2_124m", "vit_l"})
    for (const char* zero : {"zero:stage=1,ranks=8", "zero:stage=2,ranks=8"}) {
      SCOPED_TRACE(std::string(capture) + " " + zero);
      const CapturedRun chen = run_of(study, capture, {zero, "chen"});
      const std::string budget = std::to_string(chen.peak * 102 / 100);
      const CapturedRun rotor = run_of(study, capture, {zero, "rotor:budget=" + budget});
      EXPECT_LE(rotor.peak, chen.peak * 103 / 100);
      EXPECT_LE(rotor.time, chen.time);
    }
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
