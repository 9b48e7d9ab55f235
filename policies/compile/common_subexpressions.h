// A compiler computes once what a program computes twice: torch.compile's pass over its graph of forward and backward
// (torch/_functorch/compile_utils.py, fx_graph_cse; pytorch 8ea3ef61a26d), as far as a trace tells that two ops are the
// same. Casts to fp8 of what several products read are the case that counts: torchao's Float8Linear casts its input,
// its weight and its gradient anew in each call.
//
// Two ops are the same where operator, type, shapes and sizes are equal, they read the same contents, and nothing else
// decides what they compute: the operators are a list, since a trace does not hold numbers that are passed to an
// operator, and they read whole tensors, since it does not hold which part of one is read. Of those that take a number
// `clamp` counts (to the bounds of its type), and what works on a single number, as a scale is. Each call of the
// compiled graph is by itself, a pass's forward or its backward, and in it each compiled module: what backward computes
// that forward has computed is the partitioner's question.
//
// A result is shared where it reaches memory anyway: that of a reduction, what a kernel reads with which nothing is
// merged (a matrix product), a single number. Elementwise results between are computed by each kernel that reads them,
// as Inductor inlines them, and go where nobody is left who does.
#pragma once

#include <cstddef>
#include <functional>

#include "policies/fusion/fusion_plan.h"
#include "sim/machine/machine.h"
#include "sim/trace/trace.h"

namespace memwall {

struct SharedResults {
  Trace trace;
  std::size_t ops = 0;  // that are left out
};

// Of ops of which `is_compiled` holds, and which `rules` may merge. The first result lives as long as any reader of the
// others needs it. REQUIRES: check(trace) is empty.
SharedResults with_common_subexpressions(const Trace& trace, const HostCosts& costs, const FusionRules& rules,
                                         const std::function<bool(const Op&)>& is_compiled);

}  // namespace memwall
