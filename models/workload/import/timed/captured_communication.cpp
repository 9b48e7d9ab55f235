#include "models/workload/import/timed/captured_communication.h"

namespace memwall {

const CapturedCommunication* communication_of(const TimedCapture& capture, std::uint32_t device_op,
                                              std::uint32_t operator_index) {
  const std::uint32_t own = capture.device_ops[device_op].communication;
  if (own != kNoIndex) return &capture.communications[own];
  for (std::uint32_t i = operator_index; i != kNoIndex; i = capture.operators[i].parent)
    if (capture.operators[i].communication != kNoIndex)
      return &capture.communications[capture.operators[i].communication];
  return nullptr;
}

std::uint32_t communication_range(const TimedCapture& capture, std::uint32_t operator_index) {
  for (std::uint32_t i = operator_index; i != kNoIndex; i = capture.operators[i].parent)
    if (capture.text(capture.operators[i].name).starts_with("nccl:")) return i;
  return kNoIndex;
}

}  // namespace memwall
