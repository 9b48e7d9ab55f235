// The work of a step on the device: its kernels, fills and collectives, each as often as it runs, re-runs left out.
//
// A plan that keeps, moves or computes again what a step has leaves this work as it is. A policy that lets the CPU
// update the parameters, or that asks what another network would do, changes it: no bound on plans of the step holds
// for it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>

#include "sim/trace/trace.h"

namespace memwall {

class StepWork {
 public:
  explicit StepWork(const Trace& step);
  // Are they the same ops of the same durations, whatever their order and whatever runs again beside them?
  bool operator==(const StepWork&) const = default;

 private:
  using WorkItem = std::tuple<OpKind, std::string, std::int64_t>;  // kind, name, picoseconds

  std::map<WorkItem, std::size_t> counts_;
};

}  // namespace memwall
