// Why something waited, in words that people understand without knowing the simulator.
#pragma once

#include <string_view>

#include "sim/engine/simulation.h"

namespace memwall::gui {

// What completes "waits for": "launch by the host", "an event of another stream".
std::string_view wait_reason_text(WaitReason reason);
// The same in a word or two, for a narrow place: "launch", "event"; "" of what is no news.
std::string_view wait_reason_label(WaitReason reason);

}  // namespace memwall::gui
