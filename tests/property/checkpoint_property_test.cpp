// Whatever the step, does checkpointing keep every content, drop what it says and cost what it re-runs?
//
// Random forwards of ops that read one or two recent storages and write a new one, two, or their first
// input in place; random choice of what backward reads; modules in runs, or none.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "policies/plan/plan_writer.h"
#include "policies/recompute/recompute.h"
#include "policies/trace/segments.h"
#include "tests/support/random_step.h"
#include "tests/support/rewrite_checks.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

RC_GTEST_PROP(CheckpointProperty, KeepsContentsAndAddsUp, ()) {
  const Trace before = random_step(*rc::gen::inRange<std::size_t>(1, 3));
  RC_ASSERT(check(before).empty());
  const Dataflow flow(before);
  RecomputeRules rules;
  rules.early_stop = *rc::gen::arbitrary<bool>();
  rules.drop_outputs = *rc::gen::arbitrary<bool>();
  RecomputePlan plan;
  plan.kept_until.assign(before.storages.size(), 0);
  for (const Pass& pass : passes(before))
    plan_recompute(before, flow, pass, random_units(before, flow, pass), rules, plan);
  const Machine machine = test_machine();
  TraceEdit edit(before, machine.host);
  write_plan(memory_plan_of(before, flow, plan), flow, *test_pricer(machine), edit);
  const Trace after = std::move(edit).apply();
  RC_ASSERT(check(after) == std::vector<std::string>{});

  // Contents: of every re-run op, and of all others, which are still there and in their order.
  const std::vector<std::uint64_t> hashes = producer_hashes(after), originals = producer_hashes(before);
  std::vector<std::pair<StringId, std::uint64_t>> kept, expected;
  for (OpId id = 0; id < after.ops.size(); ++id) {
    if (!runs_on_device(after.ops[id].kind)) continue;
    if (after.ops[id].phase == Phase::recompute)
      RC_ASSERT(hashes[id] == hashes[after.ops[id].source]);
    else
      kept.emplace_back(after.ops[id].operator_name, hashes[id]);
  }
  for (OpId id = 0; id < before.ops.size(); ++id)
    if (runs_on_device(before.ops[id].kind)) expected.emplace_back(before.ops[id].operator_name, originals[id]);
  RC_ASSERT(kept == expected);

  // What backward reads: the hash of a content is that of its maker, wherever it now lies.
  const auto backward_reads = [](const Trace& t, const std::vector<std::uint64_t>& all) {
    const Dataflow of(t);
    std::vector<std::uint64_t> reads;
    for (const Op& op : t.ops)
      if (op.phase == Phase::backward)
        for (const Use& use : t.uses_of(op))
          reads.push_back(use.version == 0 ? use.storage : all[of.writer(use.storage, use.version)]);
    return reads;
  };
  RC_ASSERT(backward_reads(after, hashes) == backward_reads(before, originals));

  // Time: exactly the re-run ops are added.
  Duration again{}, sum_before{}, sum_after{};
  Bytes dropped = 0;
  for (const UnitPlan& unit : plan.units) {
    dropped += unit.dropped_bytes;
    for (const OpId id : unit.rerun) again += before.ops[id].duration;
  }
  for (const Op& op : before.ops) sum_before += op.duration;
  for (const Op& op : after.ops) sum_after += op.duration;
  RC_ASSERT(sum_after == sum_before + again);
  RC_ASSERT(simulated(after).end == simulated(before).end + again);

  // Bytes: nothing is left over; at the start of backward what was dropped is gone, what is kept is there.
  const std::vector<Bytes> live = live_bytes(after, StorageKind::activation),
                           was = live_bytes(before, StorageKind::activation);
  RC_ASSERT(live.back() == was.back());
  const std::vector<Pass> all = passes(before);
  if (all.size() > 1) return;
  Bytes longer = 0;
  for (StorageId s = 0; s < before.storages.size(); ++s)
    if (flow.free(s) < all[0].backward && plan.kept_until[s] > all[0].backward) longer += before.storages[s].bytes;
  Bytes earlier = 0;  // results made a second time of which nobody needs the first any more
  for (const UnitPlan& unit : plan.units)
    for (const RemadeStorage& remade : unit.remade)
      if (remade.last < all[0].backward) earlier += before.storages[remade.storage].bytes;
  RC_ASSERT(live[first_of(after, Phase::backward)] == was[all[0].backward] - dropped - earlier + longer);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
