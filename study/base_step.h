// A loaded step, made ready for a machine: what every scenario has before its policies. Internal to study/.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sim/machine/machine.h"
#include "sim/policy/registry.h"
#include "sim/trace/shared_trace.h"
#include "study/scenario.h"

namespace memwall {

// Machines as the study knows them. Throws UsageError.
class MachineSource {
 public:
  virtual ~MachineSource() = default;
  virtual bool knows(const std::string& name) = 0;
  virtual std::shared_ptr<const Machine> machine(const std::string& name, const std::vector<std::string>& settings) = 0;
};

// What to call the scenario's step in a sentence: the first of its files.
const std::string& name_of_step(const Scenario& scenario);

// The machine that the scenario names, else the one that the step was measured on.
std::shared_ptr<const Machine> choose_machine(const Scenario& scenario, const Trace& trace, MachineSource& machines);

// Transferred to `machine`, with modelled times where it has none, scaled, repeated, as the scenario says; the same
// trace where nothing of that changes it. Throws UsageError.
SharedTrace base_step(SharedTrace trace, const Scenario& scenario, const Machine& machine, MachineSource& machines);

// With programs of their own for ranks that share links, memories or cores with others than the first of theirs; the
// same trace where there are none.
SharedTrace in_equal_places(SharedTrace trace, const Machine& machine);

// The step at the size that the policy of the kind batch among `specs` asks for, on a line through both captures.
// Throws UsageError.
Trace between_sizes(const Trace& first, const Trace& second, const std::vector<PolicySpec>& specs);

// Is it the policy whose size between_sizes() takes?
bool sets_batch(const PolicySpec& spec);

}  // namespace memwall
