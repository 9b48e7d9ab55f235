// Does whatever plan is carried out execute with the contents of the step before it? And is every numbered read looked
// at?
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "policies/plan/plan_check.h"
#include "policies/plan/plan_writer.h"
#include "policies/recompute/recompute.h"
#include "tests/support/random_step.h"
#include "tests/support/rewrite_checks.h"
#include "tests/support/scripted_backend.h"
#include "validate/replay/execution.h"
#include "validate/replay/schedule.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

// Of kernels that have something to do.
Trace executable_step() {
  Trace step = random_step(*rc::gen::inRange<std::size_t>(1, 3));
  for (Op& op : step.ops)
    if (op.kind == OpKind::kernel) op.bytes = 64;
  return step;
}

bool writes_any(std::span<const Touch> touches) {
  return std::any_of(touches.begin(), touches.end(), [](const Touch& t) { return t.writes; });
}

// Some storages leave for the host in gaps between their uses and come back before the next. Of what lives from step to
// step the step before may have left a copy, which this one needs not make again and leaves for the next.
MemoryPlan random_moves_to_the_host(const Trace& trace, const Dataflow& flow) {
  MemoryPlan plan;
  plan.tiers.resize(1);
  plan.tiers[0].tier = "host";
  for (StorageId id = 0; id < trace.storages.size(); ++id) {
    StorageDecision d;
    d.storage = id;
    const std::span<const Touch> touches = flow.touches(id);
    if (trace.storages[id].preexisting && flow.free(id) == kNoOp && *rc::gen::arbitrary<bool>()) d.held = 0;
    std::size_t copied = 0;  // touches before it are in the copy
    for (std::size_t i = 0; i + 1 < touches.size(); ++i) {
      const OpId begin = touches[i].op, end = touches[i + 1].op;
      if (end <= begin + 1 || *rc::gen::arbitrary<bool>()) continue;
      const auto left = *rc::gen::inRange<OpId>(begin, end), back = *rc::gen::inRange<OpId>(left + 1, end + 1);
      if (d.held != 0 || writes_any(touches.subspan(copied, i + 1 - copied))) {
        d.copies.push_back({{begin, true, 0}, 0});
        copied = i + 1;
      }
      d.drops.push_back({{left, true, 1}});
      d.fetches.push_back({{back, false, 0}, 0});
    }
    if (d.held == 0 && writes_any(touches.subspan(copied))) d.copies.push_back({{touches.back().op, true, 2}, 0});
    if (!d.drops.empty()) plan.storages.push_back(std::move(d));
  }
  return plan;
}

MemoryPlan random_reruns(const Trace& trace, const Dataflow& flow) {
  RecomputePlan plan;
  plan.kept_until.assign(trace.storages.size(), 0);
  for (const Pass& pass : passes(trace)) {
    std::vector<RecomputeUnit> units = random_units(trace, flow, pass);
    std::erase_if(units, [](const RecomputeUnit&) { return *rc::gen::inRange(0, 3) == 0; });
    plan_recompute(trace, flow, pass, units, {}, plan);
  }
  return memory_plan_of(trace, flow, plan);
}

struct NumberedSchedule {
  Trace trace;
  ExecutionSettings settings;
};

NumberedSchedule carried_out(const Trace& before, const Dataflow& flow, const MemoryPlan& plan) {
  const Machine machine = test_machine();
  TraceEdit edit(before, machine.host);
  write_plan(plan, flow, *test_pricer(machine), edit);
  NumberedSchedule s{schedule_of(std::move(edit).apply()), {}};
  const auto contents = step_contents(s.trace, schedule_of(before), before.storages.size());
  RC_ASSERT(contents.has_value());
  s.settings.passes = 1;
  s.settings.contents = *contents;
  return s;
}

bool fails(const NumberedSchedule& s) {
  ScriptedBackend backend;
  try {
    execute(s.trace, backend, s.settings);
  } catch (const std::runtime_error& error) {
    RC_LOG() << error.what() << "\n";
    RC_ASSERT(std::string(error.what()).find("came to wrong contents") != std::string::npos);
    return true;
  }
  return false;
}

void assert_contents_are_checked(NumberedSchedule s) {
  RC_ASSERT(!fails(s));
  std::vector<std::size_t> reads;
  for (const Op& op : s.trace.ops)
    for (std::uint32_t i = op.first_use; i < op.first_use + op.use_count; ++i)
      if (s.trace.uses[i].access == Access::read && s.settings.contents.of(i) != 0) reads.push_back(i);
  RC_ASSERT(!reads.empty());
  const std::size_t wrong = reads[*rc::gen::inRange<std::size_t>(0, reads.size())];
  s.settings.contents.uses[wrong] += 1'000'000;
  RC_ASSERT(fails(s));
}

RC_GTEST_PROP(PlannedContents, OfRandomMovesAreThoseOfTheStep, ()) {
  const Trace before = executable_step();
  const Dataflow flow(before);
  const MemoryPlan plan = random_moves_to_the_host(before, flow);
  RC_ASSERT(check_plan(plan, before, flow) == std::vector<std::string>{});
  assert_contents_are_checked(carried_out(before, flow, plan));
}

// A schedule that took a held copy for any other content of the host would be as sound.
RC_GTEST_PROP(PlannedContents, OfHeldCopiesAreWhatTheStepBeginsWith, ()) {
  const Trace before = executable_step();
  const Dataflow flow(before);
  const MemoryPlan plan = random_moves_to_the_host(before, flow);
  NumberedSchedule s = carried_out(before, flow, plan);
  RC_PRE(!s.trace.held_copies.empty());
  const HeldCopy held = s.trace.held_copies.front();
  RC_ASSERT(s.settings.contents.initially(held.copy) == s.settings.contents.initially(held.of));
  RC_ASSERT(!fails(s));
  const bool is_read = std::any_of(s.trace.uses.begin(), s.trace.uses.end(), [&](const Use& use) {
    return use.storage == held.copy && use.access == Access::read && use.version == 0;
  });
  s.settings.contents.initial[held.copy] += 1'000'000;
  RC_ASSERT(fails(s) == is_read);
}

RC_GTEST_PROP(PlannedContents, OfRandomRerunsAreThoseOfTheStep, ()) {
  const Trace before = executable_step();
  const Dataflow flow(before);
  const MemoryPlan plan = random_reruns(before, flow);
  RC_ASSERT(check_plan(plan, before, flow) == std::vector<std::string>{});
  assert_contents_are_checked(carried_out(before, flow, plan));
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
