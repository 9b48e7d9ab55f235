// The kernels of a step as lines that two traces of one program share, to be compared: what runs, where, how much it
// works, and what lives on the device then.
#pragma once

#include <string>
#include <vector>

#include "sim/trace/trace.h"

namespace memwall {

// "backward aten::addmm in 'h.0.up', 2 kernels, bf16, 1024 bytes, 2048 FLOPs, 4096 bytes live". Sums of gradients are
// without their module: a capture has none where AccumulateGrad forms one.
std::vector<std::string> kernel_lines(const Trace& trace);

// "" where both have the same lines; else where they differ first. Phases::are_not_told: whatever phase they are of.
enum class Phases { are_told, are_not_told };
std::string kernel_difference(const Trace& found, const Trace& expected, Phases phases = Phases::are_told);

// What one has more of, whatever the order: "backward aten::copy_ bf16 +2", with a minus where `expected` has more;
// sorted.
// "" where both have as many of each.
std::string kernel_count_difference(const Trace& found, const Trace& expected);

}  // namespace memwall
