#include "policies/cycle/plan_certificate.h"

#include <algorithm>

#include "policies/cycle/moves_bound.h"
#include "policies/cycle/profile_cycle.h"
#include "policies/cycle/whole_moves.h"
#include "policies/profile/largest_op.h"

namespace memwall {
namespace {

constexpr double kGigabyte = 1e9;
// Where whole storages make a turn longer than bytes by more than rounding does.
constexpr double kWhole = 1 + 1e-9;

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
    c.budget = budget_;
    // Not that of the cycle, which counts as bound to stay what other streams write: another planner may move it.
    const LargestOp largest = largest_op(p_);
    c.least_budget = largest.bytes;
    c.least_at = largest.op;
    c.peak = highest(cycle_.live());
    price_moves(bound, c);
    const JointBound joint = joint_of(bound);
    c.joint_seconds = joint.seconds;
    c.joint_per_gigabyte = worth(joint.per_byte);
    c.joint_per_out_rate = worth(joint.per_out_rate);
    c.joint_per_in_rate = worth(joint.per_in_rate);
    c.joint_per_rate = worth(joint.per_rate);
    add_levers(c.levers);
    return c;
  }

  LeastTurn least(bool recompute) const {
    const MovesBound bound = moves_bound(cycle_, links_, budget_);
    if (recompute) {
      const JointBound joint = joint_of(bound);
      return {joint.seconds, worth(joint.per_byte)};
    }
    const double whole = whole_moves_bound_seconds(cycle_, links_, budget_);
    if (!is_whole(whole, bound)) return {bound.seconds, worth(bound.per_byte)};
    return {whole, whole_less_by(whole, 0, 0, kByGigabyte)};
  }

 private:
  static constexpr Bytes kByGigabyte = static_cast<Bytes>(kGigabyte);

  static bool is_whole(double whole, const MovesBound& bound) { return whole > bound.seconds * kWhole; }

  void price_moves(const MovesBound& bound, PlanCertificate& c) const {
    const double whole = whole_moves_bound_seconds(cycle_, links_, budget_);
    c.moves_seconds = std::max(bound.seconds, whole);
    c.moves_per_gigabyte = worth(bound.per_byte);
    c.moves_per_out_rate = worth(bound.per_out_rate);
    c.moves_per_in_rate = worth(bound.per_in_rate);
    c.moves_per_rate = worth(bound.per_out_rate + bound.per_in_rate);
    if (!is_whole(whole, bound)) return;
    c.moves_per_gigabyte = whole_less_by(whole, 0, 0, kByGigabyte);
    c.moves_per_out_rate = whole_less_by(whole, kGigabyte, 0, 0);
    c.moves_per_in_rate = whole_less_by(whole, 0, kGigabyte, 0);
    c.moves_per_rate = whole_less_by(whole, kGigabyte, kGigabyte, 0);
  }

  // The bound of whole storages has steps: what a GB, or a GB/s, takes off it.
  double whole_less_by(double whole, double out, double in, Bytes bytes) const {
    CycleLinks links = links_;
    for (CyclePath& path : links.paths) path.out_rate += out, path.in_rate += in;
    links.total_out += out, links.total_in += in;
    const double by_bytes = moves_bound(cycle_, links, budget_ + bytes).seconds;
    return std::max(0.0, whole - std::max(by_bytes, whole_moves_bound_seconds(cycle_, links, budget_ + bytes)));
  }

  // Making again costs at most what moving does: the bound is the smaller of both.
  JointBound joint_of(const MovesBound& moves) const {
    const JointBound joint = joint_bound(cycle_, links_, budget_, prices_);
    if (moves.seconds >= joint.seconds) return joint;
    return {moves.seconds, moves.per_byte, moves.per_out_rate, moves.per_in_rate,
            moves.per_out_rate + moves.per_in_rate};
  }

  // Of a GB, or a GB/s. `slope`: at most 0.
  static double worth(double slope) { return slope < 0 ? -slope * kGigabyte : 0; }

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

LeastTurn least_turn(const StepProfile& profile, Bytes budget, const CycleLinks& links, bool recompute) {
  return Certification(profile, budget, links).least(recompute);
}

}  // namespace memwall
