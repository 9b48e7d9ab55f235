// What the user asked of `zero`, and whether the machine can do it.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/machine/machine.h"
#include "sim/policy/registry.h"

namespace memwall {

struct ZeroSettings {
  int stage = 0;
  std::uint32_t ranks = 2;
  Bytes bucket = MiB(25);    // gradients reduced, or parameters gathered, by one collective
  bool overlap = true;       // communication in streams of its own beside compute
  bool prefetch = true;      // stage 3: gather one unit ahead
  Bytes reuse_distance = 0;  // stage 3: keep what is used again before so many bytes of other parameters
};

std::vector<ParameterInfo> zero_parameters();
ZeroSettings zero_settings(const PolicyArguments& arguments);

// Throws UsageError if no fabric of the machine reaches so many ranks.
void require_fabric(const ZeroSettings& settings, const Machine& machine);

}  // namespace memwall
