// Why something waited, in words that people understand without knowing the simulator.
#pragma once

#include <string_view>

#include "sim/simulation.h"

namespace memwall::gui {

// What completes "waits for": "launch by the host", "an event of another stream".
std::string_view awaited(WaitReason reason);

}  // namespace memwall::gui
