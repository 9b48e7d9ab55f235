#include "policies/cycle/planning_values.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "policies/cycle/profile_cycle.h"
#include "sim/values_by_key.h"

namespace memwall {
namespace {

using Tiers = std::vector<std::string>;
using Limits = std::pair<std::size_t, Bytes>;  // RerunLimits
using BoundsKey = std::tuple<Tiers, Bytes, std::size_t, bool>;
using CandidatesKey = std::tuple<Tiers, bool, Bytes, Limits>;
// And RerunOrderSettings.
using OrderKey = std::tuple<CandidatesKey, double, double, Bytes, std::size_t>;

struct Values {
  ValuesByKey<std::pair<Tiers, bool>, CycledStep> steps;
  ValuesByKey<BoundsKey, CycleBounds> bounds;
  ValuesByKey<CandidatesKey, std::vector<RerunCandidate>> candidates;
  ValuesByKey<OrderKey, RerunOrder> orders;
};

const Values& values_of(const StepProfile& profile) {
  return profile.derived().once<Values>([] { return Values{}; });
}

}  // namespace

PlanningValues::PlanningValues(const StepProfile& profile, const CycleLinks& links, std::vector<std::string> tiers,
                               bool keep_results)
    : p_(profile), links_(links), tiers_(std::move(tiers)), keep_results_(keep_results) {}

const CycledStep& PlanningValues::step() const {
  return values_of(p_).steps.get({tiers_, keep_results_}, [&] {
    CycledStep step = cycle_of(p_).step;
    if (keep_results_) step.kept = results_worth_keeping(p_, links_);
    return step;
  });
}

const CycleBounds& PlanningValues::bounds(Bytes budget, std::size_t peaks, bool joint) const {
  return values_of(p_).bounds.get({tiers_, budget, peaks, joint}, [&] {
    const StepCycle& cycle = cycle_of(p_).cycle;
    CycleBounds bounds{moves_bound(cycle, links_, budget, peaks)};
    bounds.joint_seconds = bounds.moves.seconds;
    if (joint)
      bounds.joint_seconds =
          std::min(bounds.joint_seconds, joint_bound_seconds(cycle, links_, budget, rerun_prices_of(p_)));
    return bounds;
  });
}

const RerunOrder& PlanningValues::order(const CycleLinks& slower, double robust, Bytes budget,
                                        const RerunLimits& limits, const RerunOrderSettings& settings) const {
  const CandidatesKey key{tiers_, keep_results_, budget, {limits.ops, limits.written}};
  const auto candidates = [&] { return rerun_candidates(p_, step(), budget, limits); };
  return values_of(p_).orders.get({key, robust, settings.share_per_round, settings.least_bytes, settings.peaks}, [&] {
    return order_by_bound(p_, step(), slower, budget, values_of(p_).candidates.get(key, candidates), settings);
  });
}

}  // namespace memwall
