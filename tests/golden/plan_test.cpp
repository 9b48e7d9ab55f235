// Do the commands about memory plans say exactly what they should: a plan's file, what a run does with it, two plans
// side by side, and what is refused?
#include <gtest/gtest.h>
#include <simdjson.h>

#include <string>

#include "tests/support/golden.h"
#include "tests/support/program.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

class PlanCommands : public ::testing::Test {
 protected:
  CommandOutcome memwall_here(const std::string& arguments) { return run_memwall(folder_, arguments); }
  void write_plan_of(const std::string& policy, const std::string& file) {
    const CommandOutcome o = memwall_here("run " + step() + " --policy " + policy + " --plan-out " + file);
    ASSERT_EQ(o.code, 0) << o.err;
  }
  static std::string step() { return "'" MEMWALL_SOURCE "/traces/samples/gpt_124m.mwt'"; }
  static bool has(const CommandOutcome& o, const std::string& text) { return o.out.find(text) != std::string::npos; }

  const ScratchFolder folder_;
};

TEST_F(PlanCommands, ARunSaysByModuleWhatLeavesAndComesBack) {
  const CommandOutcome sent = memwall_here("run " + step() + " --policy offload:what=activations,to=host");
  EXPECT_TRUE(has(sent, "What leaves the GPU's memory and comes back, by module (17.19 GB copied out, 17.19 GB back; "))
      << sent.out;
  EXPECT_TRUE(has(sent, "  layers.*.attention       12       192    13.44 GB  13.44 GB ")) << sent.out;
  EXPECT_TRUE(has(sent, ", decisions_by_module,")) << "named among what --full shows";
  const CommandOutcome again = memwall_here("run " + step() + " --policy checkpoint:mode=full --full");
  EXPECT_TRUE(has(again, "336 ops run again for ")) << again.out;
  EXPECT_TRUE(has(again, "  layers.11.attention "));
  EXPECT_FALSE(has(memwall_here("run " + step()), "What leaves")) << "without a policy nothing does";
}

TEST_F(PlanCommands, APlanGivesTheFiguresThatItsFileExpectsAndSaysWhereItDoesNot) {
  write_plan_of("checkpoint:mode=full", "a.plan");
  const CommandOutcome same = memwall_here("run " + step() + " --plan a.plan");
  EXPECT_TRUE(has(same, "plan a.plan: decisions about 336 storages, 24 re-runs;")) << same.out;
  EXPECT_FALSE(has(same, "other figures"));
  const CommandOutcome other = memwall_here("run " + step() + " --plan a.plan --machine h100-sxm-80gb --format json");
  EXPECT_EQ(other.code, 0) << other.err;
  EXPECT_TRUE(has(other, "\"plan a.plan: it gives other figures than its file expects on a100-sxm-40gb: a step takes "))
      << other.out;
}

// No plan of copies keeps this step to 1 GB: its parameters alone take more.
TEST_F(PlanCommands, ABudgetThatNoPlanKeepsToIsSaidAndIsExitCode3) {
  const CommandOutcome o = memwall_here("run " + step() + " --policy capuchin:budget=1GB,feedback=0 --plan-out a.plan");
  EXPECT_EQ(o.code, 3) << o.err;
  EXPECT_TRUE(has(o, "  Over the budget: the step's storages need ")) << o.out;
  EXPECT_TRUE(has(o, " more than the 1.000 GB that capuchin was")) << o.out;
  EXPECT_NE(o.err.find("does not fit into the budget of policy 'capuchin', 1.000 GB: "), std::string::npos) << o.err;
  const CommandOutcome json = memwall_here("run " + step() + " --policy capuchin:budget=1GB,feedback=0 --format json");
  EXPECT_EQ(json.code, 3);
  EXPECT_TRUE(has(json, "\"over_bytes\": ")) << json.out;
  const CommandOutcome kept = memwall_here("run " + step() + " --policy capuchin:budget=12GB,feedback=0");
  EXPECT_EQ(kept.code, 0) << kept.err;
  EXPECT_TRUE(has(kept, "  Within the budget: capuchin keeps the step's storages to 12.00 GB")) << kept.out;
  EXPECT_FALSE(has(kept, "Memory is left")) << "not within the budget";
}

TEST_F(PlanCommands, APlanHasAFileOfItsOwnOrStandardOutputForItself) {
  const std::string policy = "run " + step() + " --policy checkpoint:mode=full ";
  const CommandOutcome both = memwall_here(policy + "--plan-out a.plan -o a.plan");
  EXPECT_EQ(both.code, 2);
  EXPECT_EQ(both.err.find("memwall run: --plan-out and -o both name \"a.plan\"; expected two files."), 0u) << both.err;
  const CommandOutcome batch = memwall_here("run " + step() + " --find-largest-batch --plan-out a.plan");
  EXPECT_EQ(batch.code, 2);
  EXPECT_EQ(batch.err.find("memwall run: --find-largest-batch makes many plans and writes none; "), 0u) << batch.err;
  const CommandOutcome piped = memwall_here(policy + "--plan-out -");
  EXPECT_EQ(piped.code, 0) << piped.err;
  simdjson::dom::parser parser;
  EXPECT_FALSE(parser.parse(piped.out).error()) << "nothing but the plan";
  EXPECT_NE(piped.err.find("It fits"), std::string::npos) << "the report";
}

TEST_F(PlanCommands, TwoPlansAreComparedStorageByStorage) {
  write_plan_of("checkpoint:mode=full", "a.plan");
  write_plan_of("offload:what=activations,to=host", "b.plan");
  const CommandOutcome o = memwall_here("compare a.plan b.plan");
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_TRUE(has(o, "Two plans for gpt_124m\nbase:  checkpoint:mode=full\nother: offload:what=activations,to=host\n"))
      << o.out;
  EXPECT_TRUE(has(o, "  Base decides about 336 storages: ")) << o.out;
  EXPECT_TRUE(has(o, "  Other decides about 358 storages: 17.19 GB copied.")) << o.out;
  EXPECT_TRUE(has(o, "Expected of other, on a100-sxm-40gb: a step of ")) << o.out;
  EXPECT_TRUE(has(o, "  layers.*.attention ")) << o.out;
  const CommandOutcome json = memwall_here("compare a.plan b.plan --format json");
  simdjson::dom::parser parser;
  simdjson::dom::object object;
  ASSERT_EQ(parser.parse(json.out).get(object), simdjson::SUCCESS) << json.out;
  std::string_view module;
  EXPECT_EQ(object["modules"].at(0)["module"].get(module), simdjson::SUCCESS);
  EXPECT_EQ(module.find('*'), module.npos) << "programs get every module";
  const CommandOutcome equal = memwall_here("compare a.plan a.plan");
  EXPECT_TRUE(has(equal, "  They decide the same.")) << equal.out;
  EXPECT_TRUE(has(equal, "the same step time, the same peak.")) << equal.out;
}

// One decision of every kind, with what a file may say of each, and one whose size it does not say.
constexpr const char* kPlanOfEverything = R"({
"format": "memwall-plan", "version": 1, "made_by": "a person",
"trace": {"fingerprint": "0123456789abcdef", "name": "toy", "ops": 4000, "storages": 40},
"tiers": [{"tier": "host"}, {"tier": "nvme", "through": "host", "pinned": true, "side_streams": true, "staging": 3}],
"decisions": [
  {"storage": 1, "module": "h.0.mlp", "kind": "activation", "bytes": 1000,
   "copies": [{"op": 10, "after": true, "to": "host"}], "drops": [{"op": 12, "after": true}],
   "fetches": [{"op": 20, "after": false, "from": "host"}]},
  {"storage": 2, "module": "h.1.mlp", "kind": "activation", "bytes": 1000,
   "copies": [{"op": 11, "after": true, "to": "nvme"}], "drops": [{"op": 12, "after": true}],
   "fetches": [{"op": 19, "after": false, "from": "nvme"}]},
  {"storage": 3, "module": "h.1", "kind": "activation", "bytes": 300, "made_again": true, "copies": [],
   "drops": [{"op": 12, "after": true}, {"op": 30, "after": true}], "fetches": []},
  {"storage": 4, "module": "", "kind": "optimizer_state", "bytes": 8000, "home": "nvme", "copies": [],
   "drops": [{"op": 40, "after": true}], "fetches": [{"op": 35, "after": false}]},
  {"storage": 5, "copies": [], "drops": [{"op": 41, "after": true}], "fetches": []}],
"reruns": [{"op": 18, "after": false, "ops": [3, 4], "called": [5], "modules": {"h.1": 2}}],
"keeps": [{"storage": 6, "op": 18, "after": false}],
"realization": {"forwards": 1,
  "recompute": [{"units": [["h.1"], ["h.2", "h.3"], []], "early_stop": false, "preserve_rng": true,
                 "save_ops": ["aten::mm"]}],
  "lazy_ops": [{"ops": [{"module": "h.1", "op": "aten::gelu"}, {"module": "h.2", "op": "aten::gelu"}]}],
  "offload": [{"tier": "host", "storages": 1, "bytes": 1000, "min_bytes": 1000, "buffers": 2, "ahead": 1,
               "saved": [{"module": "h.0.mlp", "op": "aten::addmm", "storages": 1, "bytes": 1000}]}],
  "homes": [{"tier": "nvme", "kind": "optimizer_state", "lives_there": true, "all": true, "storages": 1, "bytes": 8000}],
  "unnamed": [{"what": "drop", "reason": "No operator made it.", "storages": 1, "bytes": 0}]},
"expected": {"machine": "h100-sxm-80gb", "allocator": "pytorch", "fits": false, "peak_requested_bytes": 90000,
  "peak_reserved_bytes": 2097152, "step_time_s": 0.5, "recomputed_ops": 2, "recompute_time_s": 0.001,
  "copied": [{"from": "hbm", "to": "host", "bytes": 1000}]}
})";

TEST_F(PlanCommands, InspectSaysWhatAPlanDecides) {
  write_content(folder_ / "all.plan", kPlanOfEverything);
  const CommandOutcome o = memwall_here("inspect all.plan --full");
  EXPECT_EQ(o.code, 0) << o.err;
  expect_golden("inspect_plan.txt", o.out);
  const CommandOutcome piped = run_command("cat all.plan | '" MEMWALL_PROGRAM "' inspect - --full", folder_.path());
  EXPECT_EQ(piped.out.substr(piped.out.find('\n')), o.out.substr(o.out.find('\n')));
  // What it says of a plan is what a run says of it.
  write_plan_of("checkpoint:mode=full", "a.plan");
  const CommandOutcome real = memwall_here("inspect a.plan");
  EXPECT_TRUE(has(real, "a.plan: a memory plan for gpt_124m, made by checkpoint:mode=full\n")) << real.out;
  EXPECT_TRUE(has(real, ", 336 ops run again.\n")) << real.out;
  EXPECT_TRUE(has(memwall_here("run " + step() + " --plan a.plan"), "336 ops run again for "));
  EXPECT_TRUE(has(real, "A program can execute all of it by names of modules and operators.")) << real.out;
}

TEST_F(PlanCommands, InspectTakesAPlanAlone) {
  write_content(folder_ / "all.plan", kPlanOfEverything);
  for (const char* beside : {"all.plan other.plan", "all.plan --et et.json", "all.plan --measured-on t4"}) {
    const CommandOutcome o = memwall_here(std::string("inspect ") + beside);
    EXPECT_EQ(o.code, 2) << o.out;
    EXPECT_NE(o.err.find("all.plan is a memory plan, which is inspected alone, without "), std::string::npos) << o.err;
  }
  write_content(folder_ / "damaged.plan", R"({"format": "memwall-plan", "version": 7})");
  const CommandOutcome damaged = memwall_here("inspect damaged.plan");
  EXPECT_NE(damaged.err.find("found 7; expected 1"), std::string::npos) << damaged.err;
}

double step_time_of(const CommandOutcome& o) {
  simdjson::dom::parser parser;
  double seconds = 0;
  EXPECT_EQ(parser.parse(o.out)["step_time_s"].get(seconds), simdjson::SUCCESS) << o.err;
  return seconds;
}

// Eight GPUs that wait for collectives over PCIe have time for re-runs.
TEST_F(PlanCommands, WhatHidesBehindCollectivesLeavesACapturedStepNoLonger) {
  const std::string command = "run '" MEMWALL_SOURCE
                              "/traces/samples/captures/gpt2_124m.mwc.gz' --machine rtx-4090 --format json "
                              "--policy zero:stage=1,ranks=8 ";
  const CommandOutcome hidden = memwall_here(command + "--policy checkpoint:hides=1 --plan-out hidden.plan");
  const double without = step_time_of(memwall_here(command)), with = step_time_of(hidden);
  EXPECT_TRUE(has(hidden, "checkpoint: 11 of 12 units hide: the step takes 86"))
      << hidden.out;
  EXPECT_LE(with, without * 1.001);
  EXPECT_GT(step_time_of(memwall_here(command + "--policy checkpoint:layers=12")), without * 1.001);
  EXPECT_EQ(step_time_of(memwall_here(command + "--plan hidden.plan")), with);
}

// A step that waits for its host has none: the host issues what is run again, too.
TEST_F(PlanCommands, WhereNothingHidesTheStepIsAsItWas) {
  const std::string command =
      "run '" MEMWALL_SOURCE "/traces/samples/captures/resnet50.mwc.gz' --machine b200-sxm-180gb --format json ";
  const CommandOutcome hidden = memwall_here(command + "--policy checkpoint:hides=1 --plan-out none.plan");
  EXPECT_TRUE(has(hidden, "checkpoint: none of 19 units hides: the step takes 19.46 ms without, 19.50 ms with one"))
      << hidden.out;
  EXPECT_EQ(step_time_of(hidden), step_time_of(memwall_here(command)));
  EXPECT_EQ(step_time_of(memwall_here(command + "--plan none.plan")), step_time_of(hidden))
      << "an empty plan is a plan";
}

TEST_F(PlanCommands, WhatCannotBeComparedIsRefusedInASentence) {
  write_plan_of("checkpoint:mode=full", "a.plan");
  EXPECT_EQ(memwall_here("run " + step() + " -o run.h5").code, 0);
  const CommandOutcome mixed = memwall_here("compare a.plan run.h5");
  EXPECT_EQ(mixed.code, 2);
  EXPECT_EQ(
      mixed.err.find("memwall compare: a.plan is a memory plan, run.h5 is none; expected two runs, or two plans."), 0u)
      << mixed.err;
  const CommandOutcome absent = memwall_here("compare a.plan nowhere.plan");
  EXPECT_EQ(absent.code, 6) << absent.err;
  EXPECT_NE(absent.err.find("nowhere.plan"), std::string::npos);
  const CommandOutcome other = memwall_here(
      "run gpt2-124m:layers=1,batch=1,sequence=32 --machine h100-sxm-80gb --policy checkpoint:mode=full --plan-out "
      "b.plan");
  ASSERT_EQ(other.code, 0) << other.err;
  const CommandOutcome programs = memwall_here("compare a.plan b.plan");
  EXPECT_EQ(programs.code, 2);
  EXPECT_NE(programs.err.find("Expected two plans for one program."), std::string::npos) << programs.err;
}

// What PyTorch executes is simulated and written; what it cannot is refused with the reason.
TEST_F(PlanCommands, PlansAreRestrictedToWhatAFrameworkExecutes) {
  const std::string capture = MEMWALL_SOURCE "/traces/samples/captures/planned/vit-base.mwc.gz";
  const std::string command = "run " + capture + " --machine h100-sxm-80gb --policy vdnn ";
  const CommandOutcome free = memwall_here(command + "--plan-out free.plan --full");
  EXPECT_EQ(free.code, 0) << free.err;
  EXPECT_TRUE(has(memwall_here("inspect free.plan"), "where no hook runs"));
  const CommandOutcome held = memwall_here(command + "--executable torch --plan-out held.plan --full");
  EXPECT_EQ(held.code, 0) << held.err;
  EXPECT_TRUE(has(held, " are moved to where hooks run.")) << held.out;
  EXPECT_FALSE(has(memwall_here("inspect held.plan"), "where no hook runs"));
  // The file of the one, restricted, is the other; the other stays as it is.
  for (const char* file : {"free.plan", "held.plan"}) {
    const CommandOutcome again = memwall_here(
        "run " + capture + " --machine h100-sxm-80gb --executable torch --full --plan " + std::string(file));
    EXPECT_EQ(again.code, 0) << again.err;
    EXPECT_EQ(has(again, " are moved to where hooks run."), file == std::string("free.plan"));
  }
  const CommandOutcome other = memwall_here(command + "--executable caffe");
  EXPECT_EQ(other.code, 2);
  EXPECT_EQ(other.err.find("memwall run: --executable caffe: expected torch."), 0u) << other.err;
  const CommandOutcome silent =
      memwall_here("run " + step() + " --policy offload:what=activations,to=host --executable torch");
  EXPECT_EQ(silent.code, 2);
  EXPECT_NE(silent.err.find("Policy 'offload': The trace does not say what autograd saves"), std::string::npos)
      << silent.err;
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
