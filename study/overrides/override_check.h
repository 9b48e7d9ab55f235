// Overrides of a machine's numbers that could not change anything in a run, and why: what else caps it, or that nothing
// in the run meets it. Told without a second simulation, from the machine with and without the override and from the
// run's own figures. What cannot be shown to be idle is not spoken of. Internal to study/.
//
// A link's bandwidth is idle where no route and no fabric becomes faster by it and the run never puts more on the link
// than it carries without the override: rates that are max-min fair in the larger set and lie in the smaller one are so
// there, too (sim/engine/fair_share.h).
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "models/hw/machine_file.h"
#include "sim/machine/machine.h"
#include "traces/run/run.h"

namespace memwall {

// The machine under other settings, and its numbers as they are written.
struct OverriddenMachine {
  std::function<std::shared_ptr<const Machine>(const std::vector<std::string>& settings)> machine;
  std::function<std::vector<MachineNumber>(const std::vector<std::string>& settings)> numbers;
};

// Which times of the step are those of the machine that it runs on.
struct MachineTimes {
  bool measured = false;  // what was measured elsewhere, or under other settings, was transferred
  bool host = false;      // calls of the host are modelled: nothing of the step was measured
};

// One sentence for each setting of run.changes.overrides that did nothing, or less than it says. REQUIRES: the run's
// link rates were recorded.
std::vector<std::string> override_warnings(const Run& run, MachineTimes times, const OverriddenMachine& source);

}  // namespace memwall
