#include "study/explain/next_bound.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>

#include "traces/run/analysis/critical_path.h"

namespace memwall {
namespace {

// Elasticities below this are not worth a search.
constexpr double kWorthASearch = 1e-3;

// One value, looked at.
struct Look {
  bool runs = false, stops = false;
  double step_time = 0;
  std::string reason{};
  StopReason stop = StopReason::not_within;
  std::optional<double> slope{};  // of the number itself, further in its direction
};

class NextSearch {
 public:
  NextSearch(ScenarioPoints& points, const Scenario& scenario, NextBound bound, std::vector<VariedNumber> rivals,
             double share)
      : points_(points), scenario_(scenario), bound_(std::move(bound)), rivals_(std::move(rivals)), share_(share) {}

  NextBound run() {
    bound_.reason_now = look(1).reason;
    double good = 1, bad = 0;
    bound_.stop = StopReason::not_within;
    for (double factor = 2; factor <= kFarthest && bad == 0; factor *= 2) {
      const Look& there = look(factor);
      if (!there.runs) {
        bound_.stop = StopReason::not_allowed;
        break;
      }
      (there.stops ? bad : good) = factor;
    }
    if (bad > 0) {
      bad = first_between(good, bad, [this](double factor) { return look(factor).stops; });
      bound_.stop = look(bad).stop;
    }
    const double last = bad > 0 ? bad : good;
    bound_.value = value(last);
    bound_.step_time = look(last).step_time;
    bound_.reason_then = look(last).reason;
    find_overtaking(last);
    return bound_;
  }

 private:
  // REQUIRES: not at `good`, but at `bad`.
  static double first_between(double good, double bad, const std::function<bool(double)>& holds) {
    while (bad / good > kFound) {
      const double middle = std::sqrt(good * bad);
      (holds(middle) ? bad : good) = middle;
    }
    return bad;
  }

  void find_overtaking(double last) {
    if (rivals_.empty() || last <= 1 || !rival_above(1).empty() || rival_above(last).empty()) return;
    const double at = first_between(1, last, [this](double factor) { return !rival_above(factor).empty(); });
    bound_.overtaken_at = value(at);
    bound_.overtaken_by = rival_above(at);
  }

  // The rival whose elasticity there is larger than the number's own, and largest; "" = none.
  std::string rival_above(double factor) {
    const Look& own = look(factor);
    if (!own.runs || !own.slope) return "";
    const Scenario there = with_value(scenario_, bound_.number, value(factor));
    std::vector<Scenario> turned;
    for (const VariedNumber& rival : rivals_)
      turned.push_back(with_value(there, rival, rival.value * (bound_.more ? 1 + share_ : 1 - share_)));
    const std::vector<PointRecord> records = points_.run(turned);
    std::string best;
    double most = std::abs(*own.slope);
    for (std::size_t r = 0; r < rivals_.size(); ++r) {
      const std::optional<PointFigures> figures = figures_of(records[r]);
      if (!figures) continue;
      const double step = rivals_[r].value * (bound_.more ? 1 + share_ : 1 - share_);
      const Elasticity e = elasticity({}, {rivals_[r].value, own.step_time}, ValueOutcome{step, figures->step_time});
      if (!e.central || std::abs(*e.central) <= most) continue;
      most = std::abs(*e.central);
      best = rivals_[r].name;
    }
    return best;
  }

  double value(double factor) const {
    const double v = bound_.more ? bound_.number.value * factor : bound_.number.value / factor;
    return bound_.number.is_whole ? std::max(1.0, std::round(v)) : v;
  }

  const Look& look(double factor) {
    const auto [known, is_new] = looks_.try_emplace(factor);
    Look& now = known->second;
    if (!is_new) return now;
    const double here = value(factor);
    const PointRecord record = points_.run(with_value(scenario_, bound_.number, here), true);
    const std::optional<PointFigures> figures = figures_of(record);
    if (!figures) return now;
    now.runs = true;
    now.step_time = figures->step_time;
    now.reason = largest_reason(record);
    const double further =
        bound_.number.is_whole ? here + (bound_.more ? 1 : -1) : here * (bound_.more ? 1 + share_ : 1 - share_);
    if (const auto beyond = figures_of(points_.run(with_value(scenario_, bound_.number, further))))
      now.slope = elasticity({}, {here, now.step_time}, ValueOutcome{further, beyond->step_time}).central;
    // What makes the step longer no longer helps, either.
    const bool is_little = now.slope && *now.slope / bound_.elasticity < kLittleLeft;
    const bool is_other = factor != 1 && now.reason != bound_.reason_now;
    now.stops = factor != 1 && (is_other || is_little);
    if (now.stops) now.stop = is_other ? StopReason::other_reason : StopReason::little_left;
    return now;
  }

  ScenarioPoints& points_;
  const Scenario& scenario_;
  NextBound bound_;
  std::vector<VariedNumber> rivals_;
  double share_;
  std::map<double, Look> looks_;
};

// The elasticity in that direction.
double towards(const Sensitivity& s, bool more) { return (more ? s.step_time.above : s.step_time.below).value_or(0); }

std::vector<std::string> names_within(const VariedNumber& number) {
  std::vector<std::string> names{number.name};
  for (const VariedNumber& part : number.parts) names.push_back(part.name);
  return names;
}

// Does one override what the other one has set?
bool overlap(const VariedNumber& a, const VariedNumber& b) {
  const std::vector<std::string> names = names_within(b);
  return std::ranges::any_of(names_within(a),
                             [&](const std::string& name) { return std::ranges::find(names, name) != names.end(); });
}

bool is_of_machine(const Sensitivity& s) {
  return s.number.kind == NumberKind::machine || s.number.kind == NumberKind::way;
}

// Those of which more (less) shortens the step, the strongest first.
std::vector<const Sensitivity*> helpful(const std::vector<Sensitivity>& all, bool of_machine, bool more) {
  std::vector<const Sensitivity*> found;
  const auto gain = [more](const Sensitivity* s) { return more ? -towards(*s, more) : towards(*s, more); };
  for (const Sensitivity& s : all) {
    const bool is_asked =
        of_machine ? is_of_machine(s) && (more || !s.number.is_whole) : s.number.kind == NumberKind::scale;
    if (is_asked && gain(&s) >= kWorthASearch) found.push_back(&s);
  }
  std::ranges::stable_sort(found, std::greater{}, gain);
  return found;
}

}  // namespace

std::string_view to_string(StopReason reason) {
  constexpr std::array<std::string_view, 4> kNames = {"other_reason", "little_left", "not_within", "not_allowed"};
  return kNames[static_cast<std::size_t>(reason)];
}

std::string largest_reason(const PointRecord& record) {
  std::string reason;
  double most = 0;
  for (int c = 0; c < kTimeClasses; ++c) {
    const std::string name(to_string(static_cast<TimeClass>(c)));
    const double seconds = record.find("critical_path." + name + "_s").value_or(0);
    if (seconds <= most) continue;
    most = seconds;
    reason = name;
  }
  return reason;
}

std::vector<NextBound> next_bounds(ScenarioPoints& points, const Scenario& scenario,
                                   const std::vector<Sensitivity>& sensitivities, double share) {
  std::vector<NextBound> bounds;
  for (const auto& [of_machine, more] : {std::pair(true, true), std::pair(true, false), std::pair(false, false)}) {
    const std::vector<const Sensitivity*> found = helpful(sensitivities, of_machine, more);
    if (found.empty()) continue;
    std::vector<VariedNumber> rivals;
    for (std::size_t i = 1; i < found.size() && rivals.size() < kRivals && of_machine; ++i)
      if (!found[i]->number.is_whole && !overlap(found[i]->number, found.front()->number))
        rivals.push_back(found[i]->number);
    NextBound bound{.number = found.front()->number, .more = more, .elasticity = towards(*found.front(), more)};
    bounds.push_back(NextSearch(points, scenario, std::move(bound), std::move(rivals), share).run());
  }
  return bounds;
}

}  // namespace memwall
