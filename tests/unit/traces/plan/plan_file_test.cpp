// Is a plan the same after it was written and read, and is what is none, or is for another step, refused with a
// sentence?
#include "traces/plan/plan_file.h"

#include <gtest/gtest.h>

#include "sim/error.h"
#include "sim/policy/registry.h"
#include "tests/support/gpt_trace.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/test_machine.h"

namespace memwall {
namespace {

class PlanFileTest : public ::testing::Test {
 protected:
  PlannedStep planned(const std::string& policy) {
    return plan_rewriters(step_, {parse_policy(policy)}, machine_, *test_pricer(machine_));
  }

  MemoryPlan read(const std::string& text, const Trace& trace) {
    write_content(folder_ / "a.plan", text);
    return read_plan(folder_ / "a.plan", trace, machine_);
  }

  // The sentence with which the text is refused.
  std::string refusal(const std::string& text, const Trace& trace) {
    try {
      read(text, trace);
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  }

  // The plan's text with the first `from` replaced.
  std::string changed(const std::string& from, const std::string& to) {
    std::string text = text_;
    const std::size_t at = text.find(from);
    EXPECT_NE(at, text.npos) << from;
    return at == text.npos ? text : text.replace(at, from.size(), to);
  }

  Machine machine_ = test_machine();
  Trace step_ = gpt_step({.layers = 3, .hidden = 64, .sequence = 64, .batch = 8});
  ScratchFolder folder_;
  std::string text_ = to_json(planned("offload:what=activations,to=host,min_bytes=0").plan, step_, "a test");
};

TEST_F(PlanFileTest, IsReadAsItWasWritten) {
  for (const char* policy :
       {"checkpoint:mode=full", "checkpoint:every=2", "offload:what=activations,to=host,min_bytes=0",
        "offload:what=activations,to=nvme,min_bytes=0,prefetch=3"}) {
    const PlannedStep step = planned(policy);
    EXPECT_FALSE(step.plan.storages.empty()) << policy;
    const std::string text = to_json(step.plan, step.trace, step.made_by);
    EXPECT_EQ(to_json(read(text, step.trace), step.trace, step.made_by), text) << policy;
    EXPECT_NE(text.find(policy), text.npos);
  }
}

TEST_F(PlanFileTest, NeedsNotWhatIsForPeople) {
  const std::string text = changed("\"label\"", "\"unknown to memwall\"");
  EXPECT_EQ(to_json(read(text, step_), step_, "a test"), text_);
}

TEST_F(PlanFileTest, IsForOneProgramWhateverItsTimes) {
  Trace slower = step_;
  for (Op& op : slower.ops) op.duration *= 2;
  EXPECT_EQ(refusal(text_, slower), "");
  const Trace other = gpt_step({.layers = 4, .hidden = 64, .sequence = 64, .batch = 8});
  EXPECT_NE(refusal(text_, other).find("trace.fingerprint: the plan is for another program (" + step_.name),
            std::string::npos)
      << refusal(text_, other);
  Trace larger = step_;
  larger.storages.back().bytes += 1;
  EXPECT_NE(program_fingerprint(larger), program_fingerprint(step_));
}

TEST_F(PlanFileTest, RefusalsNameFilePlaceAndWhatIsExpected) {
  const std::string file = (folder_ / "a.plan").string();
  EXPECT_EQ(refusal(changed("\"version\": 1", "\"version\": 2"), step_), file + ", version: found 2; expected 1.");
  EXPECT_EQ(refusal(changed("memwall-plan", "something"), step_),
            file + ", format: found \"something\"; expected \"memwall-plan\".");
  EXPECT_EQ(refusal(changed("\"tier\": \"host\"", "\"tier\": \"moon\""), step_)
                .find(file + ", tiers[0].tier: machine test-nvlink has no tier \"moon\"; expected one of hbm, "),
            0u);
  EXPECT_EQ(refusal(changed("\"copies\"", "\"copied\""), step_), file + ", decisions[0]: \"copies\" is missing.");
  EXPECT_EQ(refusal(changed("\"storage\": ", "\"storage\": 99999"), step_)
                .find(file + ", decisions[0].storage: expected a whole number from 0 to "),
            0u);
  EXPECT_NE(refusal(text_.substr(0, text_.size() / 2), step_).find("the JSON is damaged"), std::string::npos);
  EXPECT_NE(refusal("", step_), "");
}

TEST_F(PlanFileTest, OnlyPoliciesThatMakePlansGiveOne) {
  EXPECT_THROW(planned("zero:stage=1,ranks=2"), UsageError);
  EXPECT_THROW(planned("offload:what=optimizer,to=host"), UsageError);
  EXPECT_THROW(plan_rewriters(step_, {}, machine_, *test_pricer(machine_)), UsageError);
}

}  // namespace
}  // namespace memwall
