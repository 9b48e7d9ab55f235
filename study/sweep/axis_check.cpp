#include "study/sweep/axis_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>

#include "sim/error.h"

namespace memwall {
namespace {

// Values of an axis that are looked at, and points with one of them.
constexpr std::size_t kMostValues = 200, kMostPointsOfValue = 16;

// The bus "pcie" stands for the bandwidth of every link of that name (models/hw/bus_setting.h).
bool is_of_bus(const std::string& path, const std::string& bus) {
  return bus.find('.') == std::string::npos && path.starts_with("link." + bus) && path.ends_with(".bandwidth");
}

bool overlap(const std::string& one, const std::string& other) {
  if (one.empty() || other.empty()) return false;
  return one == other || is_of_bus(one, other) || is_of_bus(other, one);
}

void require_apart_from_base(const std::string& axis, const std::string& replaced, const Scenario& base) {
  const auto refuse = [&](const std::string& option) {
    throw UsageError(fmt::format("Axis {} replaces what {} says; leave one out.", axis, option));
  };
  if (replaced == "machine" && !base.machine.empty()) refuse("--machine " + base.machine);
  if (replaced == "budget" && !base.budget.empty()) refuse("--budget " + base.budget);
  if (replaced == "measured_on" && !base.measured_on.empty()) refuse("--measured-on " + base.measured_on);
  if (replaced == "onto" && !base.onto.empty()) refuse("--onto " + base.onto);
  for (const std::string& setting : base.settings)
    if (overlap(setting.substr(0, setting.find('=')), replaced)) refuse("--set " + setting);
}

class ValueCheck {
 public:
  ValueCheck(Study& study, const std::vector<Axis>& axes, const AxisTargets& targets, const Scenario& base,
             const std::vector<PointValues>& points)
      : study_(study), axes_(axes), targets_(targets), base_(base), points_(points) {}

  void run() {
    for (std::size_t axis = 0; axis < axes_.size(); ++axis) check_axis(axis);
  }

 private:
  void check_axis(std::size_t axis) {
    std::map<std::string, std::vector<std::size_t>> points_of;
    std::vector<std::string> order;
    for (std::size_t i = 0; i < points_.size(); ++i) {
      const std::string& value = points_[i][axis];
      if (value.empty()) continue;
      const auto [at, is_new] = points_of.try_emplace(value);
      if (is_new) order.push_back(value);
      if (at->second.size() < kMostPointsOfValue) at->second.push_back(i);
    }
    if (order.size() > kMostValues) order = {order.front(), order.back()};
    for (const std::string& value : order) check_value(axis, value, points_of[value]);
  }

  void check_value(std::size_t axis, const std::string& value, const std::vector<std::size_t>& with) {
    std::string first;
    for (const std::size_t point : with) {
      const std::string wrong = complaint(axis, points_[point]);
      if (wrong.empty()) return;
      if (first.empty()) first = wrong;
    }
    PointValues alone(axes_.size());
    alone[axis] = value;
    if (!first.empty() && !complaint(axis, alone).empty())
      throw UsageError(fmt::format("Axis {}, value {}: {}", axes_[axis].name, value, first));
  }

  std::string complaint(std::size_t axis, const PointValues& values) {
    try {
      const Scenario scenario = scenario_at(values, base_, targets_);
      study_.check(scenario);
      // Then only the step says which machine the numbers are of.
      const bool is_override = !scenario.settings.empty() && targets_[axis]->rank() > 0;
      if (is_override && scenario.machine.empty() && !targets_[axis]->names_step()) study_.load(scenario);
      return "";
    } catch (const UsageError& error) {
      return error.what();
    } catch (const InputError&) {  // of a file, not of the value: the point's own failure
      return "";
    }
  }

  Study& study_;
  const std::vector<Axis>& axes_;
  const AxisTargets& targets_;
  const Scenario& base_;
  const std::vector<PointValues>& points_;
};

}  // namespace

void require_separate(const std::vector<Axis>& axes, const AxisTargets& targets, const Scenario& base) {
  for (std::size_t a = 0; a < axes.size(); ++a) {
    const std::string replaced = targets[a]->replaces();
    require_apart_from_base(axes[a].name, replaced, base);
    for (std::size_t b = 0; b < a; ++b) {
      if (axes[a].name == axes[b].name)
        throw UsageError(fmt::format("Axis {} is given twice; expected it once.", axes[a].name));
      if (overlap(replaced, targets[b]->replaces()))
        throw UsageError(fmt::format("Axes {} and {} set the same number; leave one out.", axes[b].name, axes[a].name));
    }
  }
}

void require_values(Study& study, const std::vector<Axis>& axes, const AxisTargets& targets, const Scenario& base,
                    const std::vector<PointValues>& points) {
  // What is wrong whatever an axis says. Policies may need a parameter that only an axis gives.
  Scenario bare = base;
  bare.policies.clear();
  bare.pager.clear();
  study.check(bare);
  ValueCheck(study, axes, targets, base, points).run();
}

}  // namespace memwall
