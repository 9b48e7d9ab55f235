// What the frames of a stack say about an allocation made, or freed, there. Worked out once per stack.
//
// The rules, with the names they look for, are in docs/memory.md. They rest on names of PyTorch's own functions
// (torch/csrc/autograd, torch/nn/modules/module.py, torch/optim/optimizer.py, torch/utils/checkpoint.py) and on few
// conventions: a module's pass is called `forward`, an optimizer's `step`.
// Internal to the memory study.
#pragma once

#include <string_view>
#include <vector>

#include "models/workload/memory/recording.h"
#include "sim/trace/op.h"

namespace memwall {

struct StackFacts {
  enum class Maker : std::uint8_t { none, module, optimizer };  // whose construction or loading makes it
  Phase phase = Phase::unknown;
  Maker maker = Maker::none;       // only where the phase is unknown
  bool zero_grad = false;          // gradients are dropped, or set to zero
  bool replaces_data = false;      // `x.data = y`: the storage of x goes, that of y takes its place
  bool accumulates = false;        // in AccumulateGrad: it becomes a parameter's .grad
  bool communication = false;      // a collective's, or a sharded parameter made whole
  bool reducer = false;            // of them, buckets of DistributedDataParallel
  bool library_workspace = false;  // of cuBLAS
  bool from_host = false;          // `.to(device)`, `.cuda()`: a copy from the host as a rule
  bool inference = false;          // under the decorator of no_grad or inference_mode
  bool cpp_frames = false;         // has frames of C++, too
};

// One per stack of the recording; [0] says nothing.
std::vector<StackFacts> read_stacks(const MemoryRecording& recording);

// Python frames have a file "x.py", or one in angle brackets ("<string>", "<frozen importlib>").
bool is_python_file(std::string_view file);
// Does the path lead into PyTorch's own Python package?
bool is_torch_file(std::string_view file);

}  // namespace memwall
