// Is what is left of any plan for PyTorch one that it executes: does it pass the check, stay as it is, have a name for
// everything, and stand where the named moves say?
//
// Plans of the policies, and of random moves beside units that are run again, for steps captured from real networks.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "models/hw/machine_file.h"
#include "models/hw/modelled_step.h"
#include "models/hw/pricer.h"
#include "models/workload/import/mwc/mwc_import.h"
#include "policies/plan/executable_plan.h"
#include "policies/plan/hook_moves.h"
#include "policies/plan/plan_check.h"
#include "policies/plan/plan_realization.h"
#include "policies/profile/latest_safe.h"
#include "sim/error.h"
#include "sim/policy/registry.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

struct CapturedStep {
  Trace trace;
  Dataflow flow;
  explicit CapturedStep(Trace t) : trace(std::move(t)), flow(trace) {}
};

const Machine& h100() {
  static const Machine machine = load_machine("h100-sxm-80gb");
  return machine;
}

const CapturedStep& captured(const std::string& network) {
  static std::map<std::string, CapturedStep> all;
  const auto found = all.find(network);
  if (found != all.end()) return found->second;
  const auto file =
      std::filesystem::path(MEMWALL_SOURCE) / "traces/samples/captures/planned" / (network + "-base.mwc.gz");
  return all.try_emplace(network, modelled_on(read_mwc(file).trace, h100())).first->second;
}

// The names of a plan against its points, both by the device's ops.
void assert_reproduced(const CapturedStep& step, const MemoryPlan& plan, const PlanRealization& names) {
  std::vector<std::string> units;
  for (const ModuleRecompute& recompute : names.recompute)
    for (const auto& unit : recompute.units) units.insert(units.end(), unit.begin(), unit.end());
  const SavedStorages saved(step.trace, step.flow);
  const ForwardHolds holds(step.trace, step.flow);
  const Pass pass = passes(step.trace).front();
  const HookedStorages hooked(step.trace, step.flow, saved, holds, pass, plan, units);
  const DevicePlaces places(step.trace);
  std::map<StorageId, const StorageDecision*> travels;
  for (const StorageDecision& d : plan.storages)
    if (!d.copies.empty()) travels[d.storage] = &d;
  for (const NamedOffload& offload : names.offload) {
    std::vector<const HookedStorage*> counted;
    for (const HookedStorage& h : hooked.all())
      if (step.trace.storages[h.storage].bytes >= offload.count_min_bytes) counted.push_back(&h);
    RC_ASSERT(offload.moves.size() == offload.storages);
    std::vector<std::pair<PlanPoint, std::uint64_t>> fetched;
    for (const HookMove& move : offload.moves) {
      const HookedStorage& own = *counted.at(move.number);
      RC_ASSERT(travels.contains(own.storage));
      const StorageDecision& d = *travels.at(own.storage);
      travels.erase(own.storage);
      RC_ASSERT(step.trace.storages[own.storage].bytes == move.bytes);
      RC_ASSERT(places.of(d.copies.front().at) == places.of(own.saved.at.op, own.saved.at.after));
      RC_ASSERT(move.give_back == HookMove::kEnd || move.give_back >= static_cast<std::int64_t>(move.number));
      const std::uint32_t shown = move.give_back == HookMove::kEnd
                                      ? places.of(pass.backward, false)
                                      : places.of(counted.at(static_cast<std::size_t>(move.give_back))->saved.at.op,
                                                  counted.at(static_cast<std::size_t>(move.give_back))->saved.at.after);
      RC_ASSERT(places.of(d.drops.front().at) == std::max(shown, places.of(own.held, true)));
      const OpId node =
          move.fetch == HookMove::kEnd ? hooked.first_node() : counted.at(static_cast<std::size_t>(move.fetch))->asked;
      RC_ASSERT(places.of(d.fetches.front().at) == places.of(node, false));
      RC_ASSERT(places.of(node, false) <= places.of(own.asked, false));
      fetched.emplace_back(d.fetches.front().at, move.number);
    }
    std::stable_sort(fetched.begin(), fetched.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    RC_ASSERT(fetched.size() == offload.fetch_order.size());
    for (std::size_t i = 0; i < fetched.size(); ++i) RC_ASSERT(fetched[i].second == offload.fetch_order[i]);
  }
  RC_ASSERT(travels.empty());
}

void assert_executable(const CapturedStep& step, const MemoryPlan& plan) {
  const RestrictedPlan first = executable_plan(plan, step.trace, step.flow);
  RC_CLASSIFY(!first.refusal.empty(), "refused");
  RC_CLASSIFY(first.refusal.empty() && first.plan == plan, "as it was");
  if (!first.refusal.empty()) {
    RC_ASSERT(first.refusal.size() > 20u);
    RC_ASSERT(first.plan == MemoryPlan{});
    return;
  }
  RC_ASSERT(check_plan(first.plan, step.trace, step.flow) == std::vector<std::string>{});
  const RestrictedPlan second = executable_plan(first.plan, step.trace, step.flow);
  RC_ASSERT(second.refusal == std::string());
  RC_ASSERT(second.plan == first.plan);
  RC_ASSERT(second.note == std::string());
  const PlanRealization names = realization_of(first.plan, step.trace, step.flow);
  RC_ASSERT(names.unnamed.empty());
  assert_reproduced(step, first.plan, names);
}

std::string random_network() { return *rc::gen::element<std::string>("gpt", "resnet", "vit", "llama"); }

MemoryPlan plan_of(const CapturedStep& step, const std::string& policy) {
  const auto pricer = make_pricer(h100());
  return plan_rewriters(step.trace, {parse_policy(policy)}, h100(), *pricer).plan;
}

RC_GTEST_PROP(ExecutablePlanProperty, OfAPolicyIsOneThatPyTorchExecutes, ()) {
  const CapturedStep& step = captured(random_network());
  const auto number = [](int least, int most) { return std::to_string(*rc::gen::inRange(least, most)); };
  const auto policy = *rc::gen::element<std::string>("checkpoint", "every", "selective", "offload", "vdnn", "capuchin",
                                                     "rotor", "chen");
  std::string text = policy;
  if (policy == "checkpoint") text = "checkpoint:mode=full,layers=" + number(1, 3);
  if (policy == "every") text = "checkpoint:every=" + number(1, 4);
  if (policy == "selective")
    text = "selective:save=" + *rc::gen::element<std::string>("mm+sdpa", "mm", "convolution+mm");
  if (policy == "offload")
    text = "offload:what=activations,to=host,min_bytes=" + number(0, 1 << 20) + ",prefetch=" + number(0, 6) +
           ",buffers=" + number(0, 6) + ",fraction=0." + number(2, 10);
  if (policy == "capuchin" || policy == "rotor") text += ":budget=" + number(40, 300) + "MB";
  RC_LOG() << text;
  try {
    const MemoryPlan plan = plan_of(step, text);
    assert_executable(step, has_latest_safe(plan) ? issued_latest_safe(plan, StepProfile(step.trace, h100())) : plan);
  } catch (const UsageError&) {  // the network has no such units or operators
    RC_DISCARD("policy without a meaning");
  }
}

// Of what backward needs, copied anywhere up to a drop anywhere, and fetched anywhere up to its first use.
RC_GTEST_PROP(ExecutablePlanProperty, OfRandomMovesBesideUnitsIsOneThatPyTorchExecutes, ()) {
  const CapturedStep& step = captured(random_network());
  const Pass pass = passes(step.trace).front();
  MemoryPlan plan;
  if (*rc::gen::arbitrary<bool>())
    plan = plan_of(step, "checkpoint:mode=full,layers=" + std::to_string(*rc::gen::inRange(1, 3)));
  std::set<StorageId> decided;
  for (const StorageDecision& d : plan.storages) decided.insert(d.storage);
  plan.tiers.push_back({"host", "", true, true, 2, TierClass::host});
  const auto point = [](OpId least, OpId most) {
    return PlanPoint{*rc::gen::inRange<OpId>(least, most), *rc::gen::arbitrary<bool>(), *rc::gen::inRange(0u, 3u)};
  };
  for (StorageId s = 0; s < step.trace.storages.size(); ++s) {
    if (!is_saved_activation(step.trace, step.flow, pass, s) || decided.contains(s) || *rc::gen::inRange(0, 3) > 0)
      continue;
    const auto touches = step.flow.touches(s);
    OpId last = 0, next = kNoOp;
    for (const Touch& touch : touches) (touch.op < pass.backward ? last : next) = std::min(touch.op, next);
    for (const Touch& touch : touches)
      if (touch.op < pass.backward) last = std::max(last, touch.op);
    if (next == kNoOp || step.flow.writers(s).size() > 1) continue;
    StorageDecision d;
    d.storage = s;
    const OpId rest = std::min<OpId>(last + 1 + *rc::gen::inRange<OpId>(0, 200), next - 1);
    d.copies.push_back({point(last, rest), 0});
    d.copies.back().at.after = true;
    d.drops.push_back({point(d.copies.back().at.op, rest + 1)});
    d.drops.back().at.after = true;
    d.drops.back().at.order = d.copies.back().at.order + 1;
    d.fetches.push_back({{std::max(rest + 1, next - std::min(next, *rc::gen::inRange<OpId>(0, 200))), false}, 0});
    plan.storages.push_back(std::move(d));
  }
  const bool taken = check_plan(plan, step.trace, step.flow).empty();
  RC_CLASSIFY(taken, "taken");
  if (taken) assert_executable(step, plan);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
