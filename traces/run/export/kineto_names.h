// What a profiler calls an op's call and its work on a device.
#pragma once

#include <string>

#include "traces/run/run.h"

namespace memwall {

// The function of the CUDA runtime; "" for an op that is no call of it.
std::string call_name(const Trace& trace, const Op& op);

// Readers tell communication and copies by the beginning of the name: "ncclDevKernel_AllReduce", "Memcpy HtoD (Pinned
// -> Device)". A name that begins so already stays. REQUIRES: the op runs on a device.
std::string work_name(const Run& run, const Op& op);

}  // namespace memwall
