// Which lines of a measured program are which lines of a complete one of the same step.
//
// A line is an op that is neither an allocation nor a free. Lines of the device are paired first, step by step: what
// has the same operator (operator_key.h), phase and shape of work in both, by a longest common subsequence; between
// those pairs what has the same operator and phase, and beside such a pair further measured lines of its operator or of
// its call, as a library computes one call in several kernels; between these, the same class of work (a product, a
// convolution). What then lies between the same two pairs in both programs, in one phase, is taken to be the same work
// in other operators, as long as the times of both differ by no more than fivefold. The host's lines are paired between
// those of the device, by their kind and name.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "models/workload/operator_calls.h"
#include "sim/trace/trace.h"

namespace memwall {

enum class PairedBy : std::uint8_t { name, operator_class, place };
std::string_view to_string(PairedBy by);

// One line with one, one with several, or several with one.
struct LinePair {
  std::vector<OpId> measured, complete;  // ascending, not empty
  PairedBy by = PairedBy::name;
};

constexpr bool is_line(OpKind kind) { return kind != OpKind::alloc && kind != OpKind::free; }
// A graph's nodes are lines of the device, its launch is the host's.
constexpr bool is_device_line(OpKind kind) { return runs_on_device(kind) && kind != OpKind::graph_launch; }

// The operator that a line is part of; the line's own name where that is not known.
inline StringId operator_or_name(const Op& op) { return op.operator_name != 0 ? op.operator_name : op.name; }

// Ascending in both. `calls`: of the measured program. Of as many steps in both programs each is paired with its own.
std::vector<LinePair> pair_lines(const Trace& measured, const Trace& complete, const OperatorCalls& calls = {});

}  // namespace memwall
