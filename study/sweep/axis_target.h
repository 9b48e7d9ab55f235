// What a value of an axis changes in a scenario, by the axis's name:
//
//   step, machine, pager, allocator, allocator_settings, budget, repeat, executable, plan, onto, measured_on
//                              that word of the scenario
//   policy                     a policy, several joined by " + ", or none, beside those of the scenario
//   checkpoint.every           a parameter of a policy that the point has
//   scale.kernels              a factor of durations
//   pcie, nvlink, link.pcie_h2d.bandwidth, gpu.hbm.capacity
//                              an override of the machine
//   batch, sequence, layers    a setting of a generated step; of a captured one batch and tokens, as --policy batch:N
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "study/scenario.h"
#include "study/sweep/axis.h"
#include "study/sweep/sweep_space.h"

namespace memwall {

class AxisTarget {
 public:
  virtual ~AxisTarget() = default;
  // Throws UsageError where the value is none of its kind.
  virtual void apply(const std::string& value, Scenario& scenario) const = 0;
  // In which order targets are applied: a policy stands before its parameters are set.
  virtual int rank() const { return 0; }
  // Does it decide which step is loaded?
  virtual bool names_step() const { return false; }
  // What of a scenario it replaces: two targets of one are a mistake. "" where values add up.
  virtual std::string replaces() const { return ""; }
};

using AxisTargets = std::vector<std::unique_ptr<AxisTarget>>;  // one per axis

// The target of an axis of that name. `base`: the scenario that axes change; `axes`: all of them, for policies and
// steps that one axis names and another sets. Throws UsageError with the nearest name where there is none.
std::unique_ptr<AxisTarget> axis_target(const std::string& name, const Scenario& base, const std::vector<Axis>& axes);

// The scenario of a point. `targets`: one per axis. Throws UsageError.
Scenario scenario_at(const PointValues& values, const Scenario& base, const AxisTargets& targets);

}  // namespace memwall
