#include "policies/cycle/plan_certificate.h"

#include <algorithm>

#include "policies/cycle/moves_bound.h"
#include "policies/cycle/profile_cycle.h"
#include "policies/profile/largest_op.h"

namespace memwall {
namespace {

constexpr double kGigabyte = 1e9;
// Of what is changed, for the price of it.
constexpr double kDifference = 1e-3;

class Certification {
 public:
  Certification(const StepProfile& profile, Bytes budget, const CycleLinks& links)
      : p_(profile),
        budget_(budget),
        links_(links),
        step_(cycle_of(profile).step),
        cycle_(cycle_of(profile).cycle),
        prices_(rerun_prices_of(profile)) {}

  PlanCertificate run() {
    PlanCertificate c;
    const MovesBound bound = moves_bound(cycle_, links_, budget_);
    c.ideal_seconds = bound.ideal_seconds;
    c.moves_seconds = bound.seconds;
    c.joint_seconds = std::min(joint_bound_seconds(cycle_, links_, budget_, prices_), bound.seconds);
    c.budget = budget_;
    // Not that of the cycle, which counts as bound to stay what other streams write: another planner may move it.
    const LargestOp largest = largest_op(p_);
    c.least_budget = largest.bytes;
    c.least_at = largest.op;
    c.peak = highest(cycle_.live());
    c.moves_per_gigabyte = -bound.per_byte * kGigabyte;
    c.moves_per_out_rate = -bound.per_out_rate * kGigabyte;
    c.moves_per_in_rate = -bound.per_in_rate * kGigabyte;
    price_joint(bound, c);
    add_levers(c.levers);
    return c;
  }

 private:
  // Making again costs at most what moving does: the bound is the smaller of both. `moves`: not above that of moves,
  // which is looked at only where it could be the smaller one.
  double joint(Bytes budget, const CycleLinks& links, double moves) const {
    const double seconds = joint_bound_seconds(cycle_, links, budget, prices_);
    return seconds <= moves ? seconds : std::min(seconds, moves_bound(cycle_, links, budget).seconds);
  }

  // `bound`: of moves. It is convex in the budget and in the rates: where it is differentiated, it falls by no more
  // than that.
  void price_joint(const MovesBound& bound, PlanCertificate& c) const {
    const double more = std::max(1.0, kDifference * static_cast<double>(budget_));
    const double larger = joint(budget_ + static_cast<Bytes>(more), links_, bound.seconds + bound.per_byte * more);
    c.joint_per_gigabyte = (c.joint_seconds - larger) / more * kGigabyte;
    CycleLinks out = links_, in = links_;
    out.total_out *= 1 + kDifference;
    in.total_in *= 1 + kDifference;
    const double more_out = links_.total_out * kDifference, more_in = links_.total_in * kDifference;
    const double faster_out = joint(budget_, out, bound.seconds + bound.per_out_rate * more_out);
    const double faster_in = joint(budget_, in, bound.seconds + bound.per_in_rate * more_in);
    c.joint_per_out_rate = (c.joint_seconds - faster_out) / more_out * kGigabyte;
    c.joint_per_in_rate = (c.joint_seconds - faster_in) / more_in * kGigabyte;
  }

  PeakInstant at(std::size_t slot) const {
    return {step_.places[slot].op, cycle_.start(static_cast<std::int64_t>(slot)), 0};
  }

  PeakInstant highest(const std::vector<Bytes>& live) const {
    const auto most = std::max_element(live.begin(), live.end());
    PeakInstant peak = at(static_cast<std::size_t>(most - live.begin()));
    peak.bytes = *most;
    return peak;
  }

  // Live bytes where the gaps of some storages are spent away.
  template <typename Leaves>
  PeakInstant without(Leaves leaves) const {
    return highest(cycle_.live_without([&](const CycleGap& gap) { return leaves(step_.storages[gap.storage]); }));
  }

  void add_levers(std::vector<PeakLever>& levers) const {
    const auto kind = [&](StorageId s) { return p_.trace().storages[s].kind; };
    const auto is = [&](StorageKind wanted) { return [=, this](StorageId s) { return kind(s) == wanted; }; };
    const auto add = [&](const char* name, StorageKind wanted) {
      const auto& storages = step_.storages;
      if (std::any_of(storages.begin(), storages.end(), is(wanted))) levers.push_back({name, without(is(wanted))});
    };
    add("activations away between uses", StorageKind::activation);
    add("optimizer states away between uses", StorageKind::optimizer_state);
    add("parameters away between uses", StorageKind::parameter);
    add("gradients away between uses", StorageKind::gradient);
    levers.push_back({"all of that away", without([](StorageId) { return true; })});
  }

  const StepProfile& p_;
  const Bytes budget_;
  const CycleLinks& links_;
  const CycledStep& step_;
  const StepCycle& cycle_;
  const RerunPrices& prices_;
};

}  // namespace

PlanCertificate plan_certificate(const StepProfile& profile, Bytes budget, const CycleLinks& links) {
  return Certification(profile, budget, links).run();
}

}  // namespace memwall
