// The life of each allocation of a recording, with what it is for.
//
// Phase and kind are concluded from the frames (docs/memory.md has the rules): a stack that passes
// autograd::Engine::evaluate_function is backward, an optimizer's step is optimizer, and so on.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/workload/memory/recording.h"
#include "models/workload/memory/start_state.h"
#include "sim/trace/op.h"

namespace memwall {

struct Allocation {
  static constexpr std::uint32_t kBefore = 0xffffffff;  // begin: lived when the recording began
  static constexpr std::uint32_t kAfter = 0xffffffff;   // end: lives when it ends

  Address address = 0;  // as recorded
  Bytes requested = 0;
  std::uint32_t begin = kBefore;  // event of its alloc
  std::uint32_t end = kAfter;     // event of its free_requested (or free_completed, where there is no other)
  StackId stack = 0;
  std::uint16_t stream = 0;
  Phase phase = Phase::unknown;  // in which it was made
  StorageKind kind = StorageKind::unknown;
  bool inference = false;  // made under the decorator of torch.no_grad or inference_mode, as a frame shows
  // After that event; kBefore: before the first.
  bool lives_at(std::uint32_t event) const {
    if (event == kBefore) return begin == kBefore;
    return (begin == kBefore || begin <= event) && (end == kAfter || end > event);
  }
};

// A training step within the recording: events [begin, end).
struct RecordedStep {
  std::uint32_t begin = 0, end = 0;
  std::string name;  // the annotation's, or "step 2"
};

struct AllocationTable {
  std::vector<Allocation> allocations;  // those that live at the start first, then by begin
  std::vector<Phase> phases;            // of each event
  std::vector<RecordedStep> steps;      // none where no step can be told
  std::vector<std::string> notes;       // how phases, kinds and steps were told, and what could not be
};

AllocationTable tabulate_allocations(const MemoryRecording& recording, const DeviceRecording& device,
                                     const StartState& start);

// The innermost Python frame of the model's or the script's code: "model.py:253 forward". Frames of PyTorch, of
// Python's own library and of what stands between (einops, triton) are passed over, unless there is no other. The path
// is shortened to its last component, or to two where another file has the same. Without Python frames, the node of the
// autograd graph and the operator ("MulBackward0 aten::mul_Tensor"), else the operator ("aten::empty_strided"), else
// the innermost function that is not the allocator's; "no frames recorded" for stack 0.
std::string source_line(const MemoryRecording& recording, StackId stack);

}  // namespace memwall
