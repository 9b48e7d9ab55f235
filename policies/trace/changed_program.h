// What of a program was changed so that its layers are no longer those of their modules: weights that are multiplied by
// masks, kernels that a compiler has merged.
#pragma once

#include "sim/trace/trace.h"

namespace memwall {

// Are parameters multiplied by masks, as torch.nn.utils.prune does? A mask is a buffer beside the parameter, called as
// the parameter with "_mask" behind it; in PyTorch's own modules the parameter is then called "..._orig". A capture
// tells buffers from parameters by nothing else.
bool has_masked_weights(const Trace& trace);

// Is some kernel compiled code (torch.compile, the policies compile and fusion), which may be of several layers?
bool has_compiled_code(const Trace& trace);

}  // namespace memwall
