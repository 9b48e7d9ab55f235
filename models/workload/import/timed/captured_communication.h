// Which of PyTorch's records of communications a collective of a capture has.
// Internal to the importers of timed captures.
#pragma once

#include <cstdint>

#include "models/workload/import/timed/timed_capture.h"

namespace memwall {

// At the kernel, else at the operator record_param_comms around its launch; null where neither has one.
// `operator_index`: innermost around the launch, or kNoIndex.
const CapturedCommunication* communication_of(const TimedCapture& capture, std::uint32_t device_op,
                                              std::uint32_t operator_index);

// The innermost range around the launch that a communication library named ("nccl:all_reduce", "nccl:send 0->1"), or
// kNoIndex.
std::uint32_t communication_range(const TimedCapture& capture, std::uint32_t operator_index);

}  // namespace memwall
