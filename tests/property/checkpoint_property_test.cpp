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
#include "tests/support/rewrite_checks.h"
#include "tests/support/step_program.h"

namespace memwall {
namespace {

constexpr StorageId kParameters = 3;

struct Made {
  StorageId id = kNoStorage;
  bool saved = false;
};

// Frees in forward what nothing reads any more: `recent` storages stay, saved ones stay for backward.
void forget(StepProgram& p, std::vector<Made>& made, std::size_t recent, std::vector<StorageId>& kept) {
  while (made.size() > recent) {
    if (made.front().saved)
      kept.push_back(made.front().id);
    else
      p.drop(made.front().id);
    made.erase(made.begin());
  }
}

Trace random_step(std::size_t passes) {
  StepProgram p;
  for (StorageId i = 0; i < kParameters; ++i) p.preexisting(64, StorageKind::parameter, "weight");
  for (std::size_t pass = 0; pass < passes; ++pass) {
    if (pass > 0) p.forward();
    std::vector<Made> made;
    std::vector<StorageId> kept;
    const auto ops = *rc::gen::inRange<std::size_t>(1, 30);
    const auto block = *rc::gen::inRange<std::size_t>(1, 8);
    for (std::size_t i = 0; i < ops; ++i) {
      p.module("blocks." + std::to_string(i / block));
      std::vector<StorageId> reads = {static_cast<StorageId>(i % kParameters)};
      const auto from = *rc::gen::inRange<std::size_t>(0, 3);
      for (std::size_t r = 0; r < std::min(from, made.size()); ++r) reads.push_back(made[made.size() - 1 - r].id);
      std::vector<StorageId> writes;
      const auto form = *rc::gen::inRange(0, 4);
      if (form == 0 && reads.size() > 1) {
        writes.push_back(reads[1]);
      } else {
        for (int w = 0; w < (form == 1 ? 2 : 1); ++w) {
          const Bytes bytes = 100 * *rc::gen::inRange<Bytes>(1, 20);
          made.push_back({p.make(bytes, "a"), *rc::gen::inRange(0, 3) > 0});
          writes.push_back(made.back().id);
        }
      }
      Op cost;
      cost.duration = nanoseconds(*rc::gen::inRange(1, 1000));
      p.op("op" + std::to_string(i % 5), reads, writes, cost);
      forget(p, made, *rc::gen::inRange<std::size_t>(1, 5), kept);
    }
    p.module("");
    forget(p, made, 0, kept);
    p.backward();
    for (std::size_t i = kept.size(); i-- > 0;) {
      std::vector<StorageId> reads = {kept[i]};
      if (i > 0 && *rc::gen::arbitrary<bool>()) reads.push_back(kept[*rc::gen::inRange<std::size_t>(0, i)]);
      if (*rc::gen::inRange(0, 6) > 0) p.op("backward", reads, {});
      p.drop(kept[i]);
    }
    p.op("end_of_backward", {}, {});
  }
  p.optimizer();
  return std::move(p).finish();
}

std::vector<RecomputeUnit> random_units(const Trace& t, const Dataflow& flow, const Pass& pass) {
  switch (*rc::gen::inRange(0, 4)) {
    case 0:
      return block_units(t, flow, pass);
    case 1:
      return grouped(t, pass, block_units(t, flow, pass), *rc::gen::inRange<std::size_t>(1, 5));
    case 2:
      return segment_units(t, flow, pass);
    default:
      return operator_units(t, pass, {"op1", "op3"});
  }
}

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
  RC_ASSERT(live[first_of(after, Phase::backward)] == was[all[0].backward] - dropped + longer);
}

}  // namespace
}  // namespace memwall
