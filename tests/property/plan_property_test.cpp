// Does whatever plan the check takes give a sound trace, free of races, in which every kernel computes what it did? And
// does the check take every plan that is valid by the way it was made?
//
// Plans of random moves are valid by construction, and so are nested and repeated re-runs; re-runs of random units,
// mixed with moves and then damaged, are not always, and whatever of them the check takes must come out right.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "policies/plan/plan_check.h"
#include "policies/plan/plan_realization.h"
#include "policies/plan/plan_writer.h"
#include "policies/planners/rotor.h"
#include "policies/profile/latest_safe.h"
#include "policies/profile/plan_estimate.h"
#include "policies/profile/planned_memory.h"
#include "policies/recompute/recompute.h"
#include "tests/support/carried_out.h"
#include "tests/support/random_reruns.h"
#include "tests/support/random_step.h"
#include "tests/support/rewrite_checks.h"
#include "tests/support/scratch_folder.h"
#include "traces/plan/plan_document.h"
#include "traces/plan/plan_file.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

std::vector<TransferStyle> tiers() {
  TransferStyle host, peer, drive;
  host.tier = "host";
  peer.tier = "peer_hbm";
  peer.tier_class = TierClass::device;
  drive.tier = "nvme";
  drive.through = "host";
  drive.tier_class = TierClass::storage;
  return {host, peer, drive};
}

bool writes_between(std::span<const Touch> touches, std::size_t first, std::size_t last) {
  return std::any_of(touches.begin() + static_cast<std::ptrdiff_t>(first),
                     touches.begin() + static_cast<std::ptrdiff_t>(last) + 1, [](const Touch& t) { return t.writes; });
}

bool lives_on(const Trace& trace, const Dataflow& flow, StorageId storage) {
  return trace.storages[storage].preexisting && flow.free(storage) == kNoOp && !flow.touches(storage).empty();
}

// Moves in random gaps between uses. A copy leaves anywhere between the last write and the drop, or did before; of what
// lives on from step to step perhaps in the step before.
StorageDecision random_moves(std::span<const Touch> touches, StorageId storage, bool lives_on, OpId ops) {
  StorageDecision d;
  d.storage = storage;
  std::size_t copied = 0;  // touches before it are in the copy
  std::uint8_t tier = 0;
  std::size_t held = 0;  // touches before it are in the copy that the next step finds
  if (lives_on && *rc::gen::arbitrary<bool>()) d.held = tier = *rc::gen::inRange<std::uint8_t>(0, 3);
  for (std::size_t i = 0; i + 1 < touches.size(); ++i) {
    const OpId begin = touches[i].op, end = touches[i + 1].op;
    if (end <= begin + 1) continue;
    if (*rc::gen::arbitrary<bool>()) {  // it stays; perhaps a copy leaves that later writes make stale
      if (*rc::gen::inRange(0, 3) != 0 || !touches[i].writes) continue;
      tier = *rc::gen::inRange<std::uint8_t>(0, 3);
      d.copies.push_back({{*rc::gen::inRange<OpId>(begin, end), true, 0}, tier});
      copied = i + 1;
      continue;
    }
    const auto dropped = *rc::gen::inRange<OpId>(begin, end);
    const bool was_copied = !d.copies.empty() || d.held != StorageDecision::kDevice;
    const bool has_copy = was_copied && !writes_between(touches, copied, i);
    if (!has_copy || *rc::gen::inRange(0, 3) == 0) {
      tier = *rc::gen::inRange<std::uint8_t>(0, 3);
      const OpId after = std::max(begin, d.fetches.empty() ? begin : d.fetches.back().at.op);
      d.copies.push_back({{*rc::gen::inRange<OpId>(std::min(after, dropped), dropped + 1), true, 0}, tier});
      copied = i + 1;
    }
    d.drops.push_back({{dropped, true, 1}});
    d.fetches.push_back({{*rc::gen::inRange<OpId>(dropped + 1, end + 1), false, 0}, tier});
  }
  for (const PlannedCopy& copy : d.copies)
    if (copy.tier == d.held)
      held = static_cast<std::size_t>(
          std::partition_point(touches.begin(), touches.end(), [&](const Touch& t) { return t.op <= copy.at.op; }) -
          touches.begin());
  if (d.held != StorageDecision::kDevice && held < touches.size() && writes_between(touches, held, touches.size() - 1))
    d.copies.push_back({{touches.back().op, true, 2}, d.held});
  const OpId last = touches.empty() ? 0 : touches.back().op;
  if (lives_on && last + 1 < ops && *rc::gen::inRange(0, 4) == 0)  // another copy, behind the last use
    d.copies.push_back({{*rc::gen::inRange<OpId>(last + 1, ops), true, 3}, *rc::gen::inRange<std::uint8_t>(0, 3)});
  return d;
}

MemoryPlan random_move_plan(const Trace& trace, const Dataflow& flow, std::size_t one_in) {
  MemoryPlan plan;
  plan.tiers = tiers();
  for (StorageId s = 0; s < trace.storages.size(); ++s) {
    if (*rc::gen::inRange<std::size_t>(0, one_in) != 0) continue;
    StorageDecision d = random_moves(flow.touches(s), s, lives_on(trace, flow, s), static_cast<OpId>(trace.ops.size()));
    if (!d.drops.empty() || !d.copies.empty()) plan.storages.push_back(std::move(d));
  }
  return plan;
}

struct Applied {
  Trace trace;
  WrittenPlan written;
};

Applied apply(const Trace& before, const Dataflow& flow, const MemoryPlan& plan) {
  const Machine machine = test_machine();
  TraceEdit edit(before, machine.host);
  const WrittenPlan written = write_plan(plan, flow, *test_pricer(machine), edit);
  return {std::move(edit).apply(), written};
}

RC_GTEST_PROP(PlanProperty, MovesInGapsAreTakenAndCarriedOut, ()) {
  const Trace before = random_step(*rc::gen::inRange<std::size_t>(1, 3));
  const Dataflow flow(before);
  const MemoryPlan plan = random_move_plan(before, flow, 2);
  RC_ASSERT(check_plan(plan, before, flow) == std::vector<std::string>{});
  const Applied applied = apply(before, flow, plan);
  assert_carried_out(before, applied.trace);
  Bytes out = 0, in = 0;
  for (const StorageDecision& d : plan.storages) {
    out += before.storages[d.storage].bytes * static_cast<Bytes>(d.copies.size());
    in += before.storages[d.storage].bytes * static_cast<Bytes>(d.fetches.size());
  }
  RC_ASSERT(applied.written.bytes_out == out);
  RC_ASSERT(applied.written.bytes_in == in);
}

MemoryPlan random_rerun_plan(const Trace& trace, const Dataflow& flow) {
  RecomputePlan plan;
  plan.kept_until.assign(trace.storages.size(), 0);
  RecomputeRules rules;
  rules.early_stop = *rc::gen::arbitrary<bool>();
  rules.as_framework = *rc::gen::inRange(0, 4) > 0;
  const bool selective = *rc::gen::inRange(0, 3) == 0;
  for (const Pass& pass : passes(trace)) {
    rules.kept_results.clear();
    for (const OpId id : forward_ops(trace, pass))
      if (selective && *rc::gen::inRange(0, 4) == 0) rules.kept_results.push_back(id);
    std::vector<RecomputeUnit> units = random_units(trace, flow, pass);
    std::erase_if(units, [](const RecomputeUnit&) { return *rc::gen::inRange(0, 3) == 0; });
    plan_recompute(trace, flow, pass, units, rules, plan);
  }
  return memory_plan_of(trace, flow, plan);
}

RC_GTEST_PROP(PlanProperty, RerunsOfUnitsAreTakenAndCarriedOut, ()) {
  const Trace before = random_step(*rc::gen::inRange<std::size_t>(1, 3));
  const Dataflow flow(before);
  const MemoryPlan plan = random_rerun_plan(before, flow);
  RC_ASSERT(check_plan(plan, before, flow) == std::vector<std::string>{});
  assert_carried_out(before, apply(before, flow, plan).trace);
}

// For who reads a counterexample.
std::string text_of(const MemoryPlan& plan) {
  std::string text;
  const auto add = [&](const char* what, const PlanPoint& at) {
    text += fmt::format(" {} {} {}", what, at.after ? "after" : "before", at.op);
  };
  for (const StorageDecision& d : plan.storages) {
    text += fmt::format("storage {}:", d.storage);
    for (const PlannedCopy& copy : d.copies) add(plan.tiers[copy.tier].tier.c_str(), copy.at);
    for (const PlannedDrop& drop : d.drops) add("drop", drop.at);
    for (const PlannedFetch& fetch : d.fetches) add("fetch", fetch.at);
    text += "\n";
  }
  for (const PlannedRerun& rerun : plan.reruns) {
    add("re-run", rerun.at);
    text += fmt::format(": {}\n", fmt::join(rerun.ops, " "));
  }
  return text;
}

// Does a re-run start from what only another has made?
bool starts_from_another(const Trace& t, const Dataflow& flow, const MemoryPlan& plan) {
  for (const PlannedRerun& rerun : plan.reruns)
    for (const OpId id : rerun.ops)
      for (const Use& use : t.uses_of(t.ops[id])) {
        const OpId writer = flow.writer(use.storage, use.version), freed = flow.free(use.storage);
        const bool inside = writer != kNoOp && std::binary_search(rerun.ops.begin(), rerun.ops.end(), writer);
        const bool planned = std::any_of(plan.storages.begin(), plan.storages.end(),
                                         [&](const StorageDecision& d) { return d.storage == use.storage; });
        if (use.access == Access::read && !inside && planned && freed < rerun.at.op) return true;
      }
  return false;
}

RC_GTEST_PROP(PlanProperty, NestedRerunsAreTakenAndCarriedOut, ()) {
  const Trace before = random_step(*rc::gen::inRange<std::size_t>(1, 3));
  const Dataflow flow(before);
  const MemoryPlan plan = RandomReruns(before, flow).run();
  RC_LOG() << text_of(plan);
  RC_ASSERT(check_plan(plan, before, flow) == std::vector<std::string>{});
  const auto again = [&](const StorageDecision& d) { return d.drops.size() > 1; };
  RC_CLASSIFY(std::any_of(plan.storages.begin(), plan.storages.end(), again), "repeated");
  RC_CLASSIFY(starts_from_another(before, flow, plan), "nested");
  assert_carried_out(before, apply(before, flow, plan).trace);
}

// Rotor's schedules of whatever steps have chains, in any budget.
RC_GTEST_PROP(PlanProperty, RotorsPlansAreTakenAndCarriedOut, ()) {
  const Trace before = random_step(*rc::gen::inRange<std::size_t>(1, 3));
  const Machine machine = test_machine();
  const StepProfile profile(before, machine);
  const Bytes all = planned_peak(profile, {});
  const MemoryPlan plan = rotor_plan(profile, *rc::gen::inRange<Bytes>(1, all + 1), *rc::gen::inRange(1u, 300u));
  RC_LOG() << text_of(plan);
  RC_CLASSIFY(!plan.reruns.empty(), "runs again");
  const Dataflow flow(before);
  RC_ASSERT(check_plan(plan, before, flow) == std::vector<std::string>{});
  assert_carried_out(before, apply(before, flow, plan).trace);
}

template <typename Item>
void damage_one(std::vector<Item>& items, OpId ops) {
  if (items.empty()) return;
  const auto i = *rc::gen::inRange<std::size_t>(0, items.size());
  if (*rc::gen::inRange(0, 3) == 0) {
    items.erase(items.begin() + static_cast<std::ptrdiff_t>(i));
    return;
  }
  const auto shifted = static_cast<std::int64_t>(items[i].at.op) + *rc::gen::inRange<std::int64_t>(-3, 4);
  items[i].at.op = static_cast<OpId>(std::clamp<std::int64_t>(shifted, 0, ops - 1));
  if (*rc::gen::inRange(0, 4) == 0) items[i].at.after = !items[i].at.after;
}

void damage(MemoryPlan& plan, OpId ops) {
  if (!plan.storages.empty()) {
    StorageDecision& d = plan.storages[*rc::gen::inRange<std::size_t>(0, plan.storages.size())];
    switch (*rc::gen::inRange(0, 4)) {
      case 0:
        return damage_one(d.copies, ops);
      case 1:
        return damage_one(d.drops, ops);
      case 2:
        return damage_one(d.fetches, ops);
      default:
        break;
    }
  }
  if (!plan.reruns.empty() && *rc::gen::arbitrary<bool>())
    plan.reruns.push_back(plan.reruns[*rc::gen::inRange<std::size_t>(0, plan.reruns.size())]);
  damage_one(plan.reruns, ops);
  if (plan.reruns.empty() || *rc::gen::arbitrary<bool>()) return;
  std::vector<OpId>& rerun = plan.reruns[*rc::gen::inRange<std::size_t>(0, plan.reruns.size())].ops;
  if (!rerun.empty()) rerun.erase(rerun.begin() + *rc::gen::inRange<std::ptrdiff_t>(0, rerun.size()));
}

// Does the estimate tell the peaks and bytes that a simulation of the written plan shows?
void assert_estimated(const StepProfile& profile, const MemoryPlan& plan, const Applied& applied) {
  const Machine& machine = profile.machine();
  const PlanEstimate estimate = estimate_plan(profile, plan, machine, *test_pricer(machine));
  const SimulationResult simulated = simulate(applied.trace, machine, {});
  for (std::size_t t = 0; t < machine.tiers.size(); ++t) {
    RC_ASSERT(estimate.tiers[t].peak_allocated == simulated.tiers[t].peak_allocated);
    RC_ASSERT(estimate.tiers[t].peak_reserved == simulated.tiers[t].peak_reserved);
  }
  RC_ASSERT(estimate.bytes_out == applied.written.bytes_out);
  RC_ASSERT(estimate.bytes_in == applied.written.bytes_in);
}

RC_GTEST_PROP(PlanProperty, WhateverIsTakenIsCarriedOut, ()) {
  const Trace before = random_step(*rc::gen::inRange<std::size_t>(1, 3));
  const Dataflow flow(before);
  MemoryPlan plan = *rc::gen::arbitrary<bool>() ? random_rerun_plan(before, flow) : RandomReruns(before, flow).run();
  plan.tiers = tiers();
  for (StorageDecision& d : random_move_plan(before, flow, 3).storages)
    if (std::none_of(plan.storages.begin(), plan.storages.end(),
                     [&](const StorageDecision& other) { return other.storage == d.storage; }))
      plan.storages.push_back(std::move(d));
  const auto faults = *rc::gen::inRange(0, 3);
  for (int i = 0; i < faults; ++i) damage(plan, static_cast<OpId>(before.ops.size()));
  RC_LOG() << text_of(plan);
  const bool taken = check_plan(plan, before, flow).empty();
  RC_CLASSIFY(taken, "taken");
  RC_CLASSIFY(!taken, "refused");
  if (!taken) return;
  assert_carried_out(before, apply(before, flow, plan).trace);
  for (StorageDecision& d : plan.storages)
    for (PlannedFetch& fetch : d.fetches) fetch.latest_safe = *rc::gen::arbitrary<bool>();
  const Machine machine = test_machine();
  const StepProfile profile(before, machine);
  const MemoryPlan issued = issued_latest_safe(plan, profile);
  RC_LOG() << "issued:\n" << text_of(issued);
  RC_ASSERT(check_plan(issued, before, flow) == std::vector<std::string>{});
  const Applied applied = apply(before, flow, issued);
  assert_carried_out(before, applied.trace);
  assert_estimated(profile, issued, applied);
}

// Whatever a plan decides has names or says why not, and a file keeps both.
RC_GTEST_PROP(PlanProperty, WhateverIsTakenIsNamedAndWritten, ()) {
  const Trace before = random_step(*rc::gen::inRange<std::size_t>(1, 3));
  const Dataflow flow(before);
  MemoryPlan plan = *rc::gen::arbitrary<bool>() ? random_rerun_plan(before, flow) : random_move_plan(before, flow, 2);
  plan.tiers = tiers();
  if (!check_plan(plan, before, flow).empty()) return;
  const PlanRealization names = realization_of(plan, before, flow);
  // An op may run again for nobody: that is a decision, which may have a name.
  const bool decides = !plan.storages.empty();
  if (decides || plan.reruns.empty())
    RC_ASSERT(decides == !(names.recompute.empty() && names.lazy_operators.empty() && names.offload.empty() &&
                           names.homes.empty() && names.unnamed.empty()));
  const ScratchFolder folder;
  write_content(folder / "a.plan", to_json(plan, before, "a test", {names, {}}));
  const PlanDocument document = read_plan_document(folder / "a.plan");
  RC_ASSERT(document.realization == names);
  RC_ASSERT(to_json(document.plan, before, "a test", {names, {}}) == to_json(plan, before, "a test", {names, {}}));
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
