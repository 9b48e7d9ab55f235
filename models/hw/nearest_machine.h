// The machine whose GPU is most like one that no machine file names.
#pragma once

#include <string>

#include "sim/units.h"

namespace memwall {

// The one whose GPU has most words of that name ("A100", "PCIE"), of one series ("RTX 4090" for "RTX 5090") the nearest
// number, among equal ones the nearest to `total_memory` (bytes; 0 = not known). "" if no model is named alike. Damaged
// files are passed over.
std::string nearest_machine_for_device(const std::string& device_name, Bytes total_memory);

}  // namespace memwall
