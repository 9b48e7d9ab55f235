// How well a fused attention is priced, by the kernel that computes it: what prices and intervals share.
#pragma once

#include "sim/machine/machine.h"

namespace memwall {

// As KernelEfficiency::residual. Of a kernel that the machine's file does not list, and which is priced beside another:
// at least 0.3 (both medians' spread, by assumption). 0 = not known.
double attention_error(const Gpu& gpu, AttentionKernel kernel);

}  // namespace memwall
