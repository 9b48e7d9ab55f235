// Which torch.nn.Module an operator belongs to: the innermost module span around it, and for a
// backward operator the module of the forward operator with its sequence number.
// Internal to the importers of timed captures.
#pragma once

#include <string>
#include <vector>

#include "models/workload/import/timed/timed_capture.h"

namespace memwall {

// Per operator of the capture its module path ("VGG_0.Sequential_0.Conv2d_3"), if known.
struct ModulePaths {
  std::vector<std::string> paths;          // each once
  std::vector<std::uint32_t> of_operator;  // index into paths, or kNoIndex
};
ModulePaths find_modules(const TimedCapture& capture);

}  // namespace memwall
