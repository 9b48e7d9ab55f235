// Whatever happens to a memory plan: is it read or refused with a sentence, is what is read checked, and does what
// passes the check become a sound step? And is what is read without its step compared, and written as settings of every
// framework?
#include <gtest/gtest.h>

#include <random>

#include "policies/plan/plan_check.h"
#include "policies/plan/plan_realization.h"
#include "policies/plan/plan_writer.h"
#include "policies/profile/latest_safe.h"
#include "sim/error.h"
#include "sim/policy/registry.h"
#include "sim/trace/trace_check.h"
#include "tests/support/damage.h"
#include "tests/support/gpt_trace.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/test_machine.h"
#include "traces/emit/emit.h"
#include "traces/plan/plan_compare.h"
#include "traces/plan/plan_file.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

TEST(PlanFuzz, DamagedPlansAreCarriedOutOrRefusedInASentence) {
  const Machine machine = test_machine();
  const auto pricer = test_pricer(machine);
  const Trace step = gpt_step({.layers = 1, .hidden = 16, .sequence = 16, .batch = 2});
  const Dataflow flow(step);
  const StepProfile profile(step, machine);
  const ScratchFolder folder;
  std::mt19937_64 random(20261123);
  int refused = 0, unsound = 0, carried_out = 0;
  for (const char* policy : {"checkpoint:mode=full", "offload:what=activations,to=host,min_bytes=0"}) {
    PlannedStep planned = plan_rewriters(step, {parse_policy(policy)}, machine, *pricer);
    for (StorageDecision& d : planned.plan.storages)
      for (PlannedFetch& fetch : d.fetches) fetch.latest_safe = d.storage % 2 == 0;
    PlanExpectation expected{.machine = "gpu", .allocator = "pytorch", .peak_requested = 1, .peak_reserved = 2};
    expected.copies = {{"hbm", "host", 3}};
    PlanRealization names = realization_of(planned.plan, step, flow);
    for (NamedOffload& offload : names.offload) {  // as of a step that says what autograd saves
      offload.moves = {{0, 64, {"layers.0", "aten::mm", {0}}, 1, HookMove::kEnd}, {2, 32, {"", "aten::mm", {1}}, 2, 2}};
      offload.fetch_order = {2, 0};
    }
    const std::string text =
        to_json(planned.plan, step, planned.made_by,
                {std::move(names), std::move(expected), planned.policies, {8, 8192, "bf16", "fp32"}});
    write_content(folder / "whole.plan", text);
    const PlanDocument whole = read_plan_document(folder / "whole.plan");
    for (int round = 0; round < 1500; ++round) {
      write_content(folder / "fuzzed.plan", damaged(text, random));
      try {
        const PlanDocument document = read_plan_document(folder / "fuzzed.plan");
        if (document.fingerprint == whole.fingerprint) (void)compare(whole, document, "whole", "fuzzed");
        for (const std::string& framework : emitted_frameworks()) (void)emit(document, {framework, "fuzzed.plan"});
        const MemoryPlan plan = read_plan(folder / "fuzzed.plan", step, machine);
        if (!check_plan(plan, step, flow).empty()) {
          ++unsound;
          continue;
        }
        TraceEdit edit(step, machine.host);
        write_plan(issued_latest_safe(plan, profile), flow, *pricer, edit);
        const Trace trace = std::move(edit).apply();
        EXPECT_TRUE(check(trace).empty()) << check(trace).front();
        ++carried_out;
      } catch (const InputError& error) {
        EXPECT_NE(std::string(error.what()).find("fuzzed.plan"), std::string::npos);
        EXPECT_LT(std::string(error.what()).size(), 4000u);
        ++refused;
      } catch (const UsageError& error) {  // a tier without a way there
        EXPECT_GT(std::string(error.what()).size(), 20u);
      }
    }
  }
  EXPECT_GT(refused, 500);
  EXPECT_GT(unsound, 10);
  EXPECT_GT(carried_out, 50);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
