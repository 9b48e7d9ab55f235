// Is a plan the same after it was written and read, and is what is none, or is for another step, refused with a
// sentence?
#include "traces/plan/plan_file.h"

#include <gtest/gtest.h>

#include "sim/error.h"
#include "sim/policy/registry.h"
#include "tests/support/gpt_trace.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/test_machine.h"
#include "traces/plan/plan_document.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

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

// What a program executes and what is expected, with something in every member.
PlanParts every_part() {
  PlanParts parts;
  parts.realization = PlanRealization{
      .forwards = 2,
      .parameters = {{"layers.0.weight", 4096}, {"norm.bias", 128}},
      .recompute = {{{{"layers.0"}, {"layers.1", "layers.2"}}, false, true, {"aten::mm", "aten::bmm"}}},
      .lazy_operators = {{{{"layers.0.mlp", "aten::gelu"}, {"layers.0", "aten::add", {0, 2}, {1}}}, true}},
      .runs_again = {{.lazy = 0, .operators = {{"layers.0.mlp", "aten::gelu"}}},
                     {.unit = 1, .operators = {{"layers.1", "aten::mm"}, {"", "aten::add"}}},
                     {.operators = {{"layers.0", "aten::mm"}}}},
      .offload = {{.tier = 0,
                   .storages = 7,
                   .bytes = 7'000'000'000,
                   .min_bytes = 1024,
                   .first = 7,
                   .buffers = 5,
                   .ahead = 2,
                   .saved = {{{"layers.0.mlp", "aten::linear", {1}}, 7, 7'000'000'000}},
                   .moves = {{0, 2048, {"layers.0.mlp", "aten::linear", {1}}, 6, 3},
                             {3, 1024, {"", "aten::cat", {0}}, HookMove::kEnd, HookMove::kEnd}},
                   .fetch_order = {3, 0},
                   .count_min_bytes = 512}},
      .homes = {{.tier = 0,
                 .kind = StorageKind::optimizer_state,
                 .lives_there = true,
                 .all = false,
                 .names = {"layers.0.weight.exp_avg"},
                 .storages = 1,
                 .bytes = 64}},
      .optimizer = NamedOptimizer{.place = "nvme",
                                  .through = "host",
                                  .implementation = "cpu_adam",
                                  .pinned = true,
                                  .side_streams = false,
                                  .near_memory = true,
                                  .pipeline = true,
                                  .group_parameters = 1000,
                                  .prefetch = 1,
                                  .buffers = 5,
                                  .staging = 2},
      .unnamed = {{"recompute", "The trace does not know modules.", 3, 12}}};
  parts.expected = PlanExpectation{.machine = "gpu + pcie=gen5",
                                   .allocator = "pytorch",
                                   .fits = false,
                                   .over_budget = 17,
                                   .peak_requested = 1'234'567,
                                   .peak_reserved = 2'097'152,
                                   .step_time = microseconds(1234),
                                   .recomputed_ops = 9,
                                   .recompute_time = microseconds(77),
                                   .copies = {{"hbm", "host", 11}, {"host", "hbm", 12}}};
  return parts;
}

TEST_F(PlanFileTest, PartsForProgramsAndPeopleAreReadAsTheyWereWritten) {
  const PlannedStep step = planned("offload:what=activations,to=host,min_bytes=0");
  const PlanParts parts = every_part();
  const std::string text = to_json(step.plan, step.trace, "a test", parts);
  write_content(folder_ / "a.plan", text);
  const PlanDocument document = read_plan_document(folder_ / "a.plan");
  EXPECT_EQ(document.realization, parts.realization);
  EXPECT_EQ(document.expected, parts.expected);
  EXPECT_EQ(to_json(read(text, step_), step_, "a test"), text_) << "the decisions do not depend on the parts";
}

TEST_F(PlanFileTest, ADocumentNeedsNoTrace) {
  const PlannedStep step = planned("checkpoint:mode=full");
  write_content(folder_ / "a.plan", to_json(step.plan, step.trace, step.made_by));
  ASSERT_TRUE(is_plan(folder_ / "a.plan"));
  const PlanDocument document = read_plan_document(folder_ / "a.plan");
  EXPECT_EQ(document.made_by, "checkpoint:mode=full");
  EXPECT_EQ(document.trace, step_.name);
  EXPECT_EQ(document.ops, step_.ops.size());
  EXPECT_EQ(document.fingerprint.size(), 16u);
  EXPECT_FALSE(document.realization);
  EXPECT_FALSE(document.expected);
  ASSERT_EQ(document.notes.size(), document.plan.storages.size());
  EXPECT_EQ(document.notes.front().bytes, step_.storages[document.plan.storages.front().storage].bytes);
  EXPECT_EQ(document.notes.front().kind, "activation");
  EXPECT_TRUE(document.notes.front().made_again);
  std::uint64_t ops = 0;
  for (const auto& [module, count] : document.rerun_modules.front()) {
    EXPECT_EQ(module.find("layers."), 0u);
    ops += count;
  }
  EXPECT_EQ(ops, document.plan.reruns.front().ops.size());
}

TEST_F(PlanFileTest, APlanIsToldByItsContent) {
  write_content(folder_ / "run.json", text_);
  EXPECT_TRUE(is_plan(folder_ / "run.json"));
  for (const std::string& other : {std::string(), std::string("{}"), std::string("[1]"),
                                   std::string("{\"format\": \"memwall-capture\"}"), std::string("memwall-plan")}) {
    write_content(folder_ / "a.plan", other);
    EXPECT_FALSE(is_plan(folder_ / "a.plan")) << other;
  }
  EXPECT_FALSE(is_plan(folder_ / "nowhere.plan"));
}

TEST_F(PlanFileTest, PartsThatAreWrongAreRefusedByTheirPlace) {
  const PlannedStep step = planned("offload:what=activations,to=host,min_bytes=0");
  text_ = to_json(step.plan, step.trace, "a test", every_part());
  const std::string file = (folder_ / "a.plan").string();
  EXPECT_EQ(refusal(changed("\"forwards\": 2", "\"forwards\": -2"), step_),
            file + ", realization.forwards: found -2; expected a whole number from 0 to 4294967295.");
  EXPECT_EQ(refusal(changed("\"optimizer_state\"", "\"optimiser_state\""), step_)
                .find(file + ", realization.homes[0].kind: found \"optimiser_state\"; expected one of unknown, "),
            0u);
  EXPECT_EQ(refusal(changed("\"peak_reserved_bytes\"", "\"peak\""), step_),
            file + ", expected: \"peak_reserved_bytes\" is missing.");
  EXPECT_EQ(refusal(changed("\"step_time_s\": 0", "\"step_time_s\": -1"), step_),
            file + ", expected.step_time_s: found -1.001234; expected seconds, from 0 to 1000000.");
  EXPECT_EQ(refusal(changed("\"aten::mm\"", "17"), step_),
            file + ", realization.recompute[0].save_ops[0]: found 17; expected a text.");
  EXPECT_EQ(refusal(changed("\"cpu_adam\"", "\"gpu_adam\""), step_),
            file + ", realization.optimizer.implementation: found \"gpu_adam\"; expected cpu_adam or streamed.");
  EXPECT_EQ(refusal(changed("\"unit\": 1", "\"unit\": 2"), step_),
            file + ", realization.runs_again[1].unit: found 2; expected a whole number from 0 to 1.");
  EXPECT_EQ(refusal(changed("\"fetch\": -1", "\"fetch\": -2"), step_),
            file + ", realization.offload[0].moves[1].fetch: found -2; expected the number of a storage, or -1.");
  EXPECT_NE(refusal(changed("4096", "4097"), step_).find(file + ", realization.model.fingerprint: found \""),
            std::string::npos);
  EXPECT_EQ(
      refusal(changed("\"norm.bias\"", "\"a.bias\""), step_),
      file +
          ", realization.model.parameters[1]: found [\"a.bias\",128]; expected a name and its bytes, ascending by "
          "name.");
}

// A program in another language computes the same: FNV-1a of "layers.0.weight 4096\nnorm.bias 128\n".
TEST_F(PlanFileTest, TheFingerprintOfAModelIsThatOfItsLines) {
  EXPECT_EQ(fingerprint_of({}), 0xcbf29ce484222325u);
  EXPECT_EQ(fingerprint_of({{"layers.0.weight", 4096}, {"norm.bias", 128}}), 0xfe66987f4ed69938u);
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
  EXPECT_EQ(
      refusal(changed("\"storage\": ", "\"storage\": 99999"), step_).find(file + ", decisions[0].storage: found 99999"),
      0u);
  EXPECT_NE(refusal(text_.substr(0, text_.size() / 2), step_).find("the JSON is damaged"), std::string::npos);
  EXPECT_NE(refusal("", step_), "");
}

TEST_F(PlanFileTest, TiersAndStoragesStandThereOnce) {
  const std::string file = (folder_ / "a.plan").string();
  EXPECT_EQ(refusal(changed("\"tiers\": [", "\"tiers\": [{\"tier\": \"host\"}, "), step_),
            file + ", tiers[1].tier: \"host\" stands there twice; expected each tier once.");
  EXPECT_EQ(refusal(changed("\"tiers\": [", "\"tiers\": [{\"tier\": \"nvme\", \"through\": \"hbm\"}, "), step_),
            file + ", tiers[0].through: found \"hbm\"; expected a tier besides device memory.");
  MemoryPlan twice = planned("offload:what=activations,to=host,min_bytes=0").plan;
  twice.storages.push_back(twice.storages.front());
  const std::string text = refusal(to_json(twice, step_, "a test"), step_);
  EXPECT_NE(text.find("there are two decisions about storage "), std::string::npos) << text;
}

TEST_F(PlanFileTest, OpsOfARerunAreRefusedOneByOne) {
  const PlannedStep step = planned("checkpoint:mode=full");
  text_ = to_json(step.plan, step.trace, "a test");
  const std::size_t ops = text_.find("\"ops\": [", text_.find("\"reruns\""));
  ASSERT_NE(ops, text_.npos);
  text_.insert(ops + 8, "1.5, ");
  EXPECT_EQ(
      refusal(text_, step.trace)
          .find((folder_ / "a.plan").string() + ", reruns[0].ops[0]: found 1.5; expected the number of an op, below "),
      0u)
      << refusal(text_, step.trace);
}

TEST_F(PlanFileTest, OnlyPoliciesThatMakePlansDecide) {
  EXPECT_EQ(planned("zero:stage=1,ranks=2").plan, MemoryPlan{});
  EXPECT_EQ(planned("offload:what=optimizer,to=host").plan, MemoryPlan{});
  EXPECT_THROW(plan_rewriters(step_, {}, machine_, *test_pricer(machine_)), UsageError);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
