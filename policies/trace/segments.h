// Where a forward pass can be cut: into modules where they are known, else between articulation
// points of its dataflow. A unit is what a checkpointing policy drops and re-runs as a whole.
#pragma once

#include <string>
#include <vector>

#include "policies/trace/dataflow.h"
#include "sim/trace/trace.h"

namespace memwall {

struct RecomputeUnit {
  std::string name;       // "layers.3", "layers.0..layers.3", "segment 2 (aten::conv2d to aten::relu_)"
  std::vector<OpId> ops;  // its forward ops that compute: ascending
  std::string joined{};   // why it is one unit and not several: a sentence's end; "" = it always was
};

// The ops of a pass that a unit can be made of: forward, on the device or host work with dataflow; no gathers of
// parameters.
std::vector<OpId> forward_ops(const Trace& trace, const Pass& pass);

// Does `text` match `pattern`, in which '*' stands for any letters?
bool matches(const std::string& pattern, const std::string& text);
// Of an operator, in any form in which it is printed: "aten::_to_copy", "_to_copy", "to_copy". `plain`:
// plain_operator_name(name).
bool matches_operator(const std::string& pattern, const std::string& name, const std::string& plain);

// One unit per call of a module whose path, or a leading part of it up to a '.', matches one of the
// patterns ("layers.*.mlp").
std::vector<RecomputeUnit> module_units(const Trace& trace, const Pass& pass, const std::vector<std::string>& patterns);

// One unit per repeated block (BlockRule::numbered). Empty if no module is one, or if most hold nothing of their
// own to drop: then they are single layers in a row.
std::vector<RecomputeUnit> block_units(const Trace& trace, const Dataflow& flow, const Pass& pass);

// One unit per segment between articulation points of the undirected graph of forward ops that pass
// intermediates to each other. A cut is where a single op's output, final by then, is all that later
// forward ops need. Segments that would have nothing of their own to drop are joined with the next. Where
// the trace says what autograd keeps, what comes before the first op that it keeps anything for makes the step's data,
// and is in no segment.
std::vector<RecomputeUnit> segment_units(const Trace& trace, const Dataflow& flow, const Pass& pass);

// One unit per run of forward ops whose operator matches a pattern. Compared without namespace and
// surrounding underscores ("aten::_softmax" is "softmax", "aten::relu_" is "relu"), and as it stands.
std::vector<RecomputeUnit> operator_units(const Trace& trace, const Pass& pass,
                                          const std::vector<std::string>& patterns);

// A unit that works in place on what an earlier one made becomes one with that and all between them: PyTorch refuses
// to re-run it alone, since its input is no more what it was. What is made outside of all units is left to the planner.
std::vector<RecomputeUnit> joined_in_place(const Trace& trace, const Dataflow& flow, const Pass& pass,
                                           const std::vector<RecomputeUnit>& units);

// Each `size` neighbours become one unit; forward ops between them go with it. REQUIRES: size >= 1.
std::vector<RecomputeUnit> grouped(const Trace& trace, const Pass& pass, const std::vector<RecomputeUnit>& units,
                                   std::size_t size);

}  // namespace memwall
