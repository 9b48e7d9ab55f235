// Is what a plan's file says of its policies and its step read as it was written, with every setting, and is a damaged
// member refused by its place?
#include "traces/plan/plan_origin.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "sim/error.h"
#include "sim/policy/registry.h"
#include "tests/support/gpt_trace.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/test_machine.h"
#include "traces/plan/plan_compare.h"
#include "traces/plan/plan_file.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

class PlanOriginTest : public ::testing::Test {
 protected:
  std::string text(const PlanParts& parts) const {
    const PlannedStep step =
        plan_rewriters(step_, {parse_policy("checkpoint:mode=full")}, machine_, *test_pricer(machine_));
    return to_json(step.plan, step.trace, step.made_by, parts);
  }
  PlanDocument read_again(const std::string& content) const {
    write_content(folder_ / "a.plan", content);
    return read_plan_document(folder_ / "a.plan");
  }
  std::string refusal(std::string content, const std::string& from, const std::string& to) const {
    const std::size_t at = content.find(from);
    EXPECT_NE(at, content.npos) << from;
    try {
      read_again(content.replace(at, from.size(), to));
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  }

  const Machine machine_ = test_machine();
  const Trace step_ = gpt_step({.layers = 2, .hidden = 32, .sequence = 32, .batch = 4});
  const ScratchFolder folder_;
};

TEST_F(PlanOriginTest, EverySettingOfEveryPolicyIsReadAsItWasWritten) {
  PlanParts parts;
  for (const char* policy :
       {"zero:stage=3,ranks=8,bucket_bytes=1MiB", "offload:what=optimizer+gradients,to=host,fraction=0.25",
        "selective:save=mm+sdpa,every=2", "capuchin:budget=60%", "rotor:budget=10GB"})
    parts.policies.push_back(applied_policy(parse_policy(policy)));
  parts.step = {8, 8192, "bf16", "fp32"};
  const PlanDocument document = read_again(text(parts));
  EXPECT_EQ(document.policies, parts.policies);
  EXPECT_EQ(document.step, parts.step);
  EXPECT_EQ(document.policies[0].integer("bucket_bytes", 0), 1'048'576) << "sizes are bytes";
  EXPECT_EQ(document.policies[1].number("fraction", 0), 0.25);
  EXPECT_EQ(document.policies[1].list("what"), (std::vector<std::string>{"optimizer", "gradients"}));
  EXPECT_EQ(document.policies[3].word("budget"), "60%") << "a share is not a size";
  EXPECT_EQ(document.policies[4].integer("budget", 0), 10'000'000'000);
}

// What the policy does by default stands there as well: the registry may change, the file says what was.
TEST_F(PlanOriginTest, DefaultsAreNamed) {
  for (const auto& [name, info] : policies()) {
    std::map<std::string, std::string> required;
    for (const ParameterInfo& parameter : info.parameters)
      if (parameter.required()) required[parameter.name] = parameter.words.empty() ? "2" : parameter.words.front();
    const PolicySpec spec{&info, PolicyArguments(name, required, info.parameters), name};
    const AppliedPolicy applied = applied_policy(spec);
    ASSERT_EQ(applied.settings.size(), info.parameters.size()) << name;
    for (std::size_t i = 0; i < applied.settings.size(); ++i)
      EXPECT_EQ(applied.settings[i].first, info.parameters[i].name) << name;
  }
}

TEST_F(PlanOriginTest, AFileWithoutThemIsReadAndComparedAsBefore) {
  PlanParts parts;
  parts.policies.push_back(applied_policy(parse_policy("checkpoint:mode=full")));
  const PlanDocument with = read_again(text(parts)), without = read_again(text({}));
  EXPECT_TRUE(without.policies.empty());
  EXPECT_EQ(without.step, PlanStep{});
  EXPECT_EQ(with.plan, without.plan);
  const PlanComparison comparison = compare(with, without, "with", "without");
  EXPECT_EQ(comparison.different + comparison.rescheduled, 0u);
}

TEST_F(PlanOriginTest, DamagedMembersAreRefusedByTheirPlace) {
  PlanParts parts;
  parts.policies.push_back(applied_policy(parse_policy("checkpoint:mode=full")));
  parts.step = {8, 8192, "bf16", "fp32"};
  const std::string whole = text(parts);
  const auto has = [](const std::string& sentence, const std::string& part) {
    return sentence.find(part) != std::string::npos;
  };
  EXPECT_TRUE(has(refusal(whole, "\"policy\": ", "\"police\": "), "policies[0]: \"policy\" is missing"));
  EXPECT_TRUE(has(refusal(whole, "\"early_stop\": true", "\"early_stop\": {}"),
                  "policies[0].settings.early_stop: found {}; expected true, false, a number, a text or a list"));
  EXPECT_TRUE(has(refusal(whole, "\"hides\": ", "\"mode\": "), "\"mode\" stands there twice"));
  EXPECT_TRUE(has(refusal(whole, "\"samples\": 8", "\"samples\": -8"), "step.samples: found -8; expected a number"));
  EXPECT_TRUE(has(refusal(whole, "\"bf16\"", "\"bf8\""), "step.compute_dtype: found \"bf8\"; expected bf16, fp16"));
  EXPECT_TRUE(has(refusal(whole, "\"step\": {", "\"step\": 1, \"was\": {"), "step: found 1; expected an object"));
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
