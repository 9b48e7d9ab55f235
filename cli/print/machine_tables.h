// Machines for people and programs: which there are, two and more side by side, and how well their files reproduce the
// tables that they were fitted to.
#pragma once

#include <string>
#include <vector>

#include "cli/print/table.h"
#include "sim/machine/machine.h"
#include "validate/published/components.h"

namespace memwall {

// One row each, of one generation together: what it is, memory, rates, fabric, price.
Table machine_list_table(const std::vector<Machine>& machines);
// The same with each machine's sentence, for programs.
Table machine_description_table(const std::vector<Machine>& machines);

// Rates, capacities, links, prices, and each machine over the first. REQUIRES: at least one machine.
Table machine_comparison_table(const std::vector<Machine>& machines);

struct MachineCheck {
  std::string machine;
  std::vector<ComponentCheck> components;
};
// Residuals by machine and component; then why some may be larger than others.
std::vector<Table> machine_check_tables(const std::vector<MachineCheck>& checks);
// Every measured point beside its prediction.
Table machine_point_table(const std::vector<MachineCheck>& checks);

}  // namespace memwall
