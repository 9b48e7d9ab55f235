#include "gui/model/wait_reason_text.h"

namespace memwall::gui {

std::string_view wait_reason_text(WaitReason reason) {
  switch (reason) {
    case WaitReason::none:
      return "nothing: it is the first";
    case WaitReason::program_order:
      return "the call before it on its thread";
    case WaitReason::hand_over:
      return "another host thread";
    case WaitReason::synchronize:
      return "work on the device (synchronize)";
    case WaitReason::launch_queue:
      return "room in the launch queue";
    case WaitReason::memory:
      return "free memory";
    case WaitReason::launch:
      return "launch by the host";
    case WaitReason::stream_order:
      return "the work before it in its stream";
    case WaitReason::event:
      return "an event of another stream";
    case WaitReason::occupancy:
      return "a kernel that fills the GPU";
    case WaitReason::copy_engine:
      return "the copy engine, busy with another copy";
    case WaitReason::page_fault:
      return "a page fault: data not in device memory";
    case WaitReason::peer:
      return "other ranks";
  }
  return "";
}

std::string_view wait_reason_label(WaitReason reason) {
  switch (reason) {
    case WaitReason::none:
    case WaitReason::stream_order:
      return "";
    case WaitReason::program_order:
      return "host";
    case WaitReason::hand_over:
      return "host thread";
    case WaitReason::synchronize:
      return "device";
    case WaitReason::launch_queue:
      return "launch queue";
    case WaitReason::memory:
      return "memory";
    case WaitReason::launch:
      return "launch";
    case WaitReason::event:
      return "event";
    case WaitReason::occupancy:
      return "full GPU";
    case WaitReason::copy_engine:
      return "copy engine";
    case WaitReason::page_fault:
      return "page fault";
    case WaitReason::peer:
      return "ranks";
  }
  return "";
}

}  // namespace memwall::gui
