// Which ops a compiler of kernels would merge into one.
//
// Ops are visited in host order. An op joins the groups that made what it reads, if one kernel can do the work of
// all (see fusion_space.h); else those groups are closed, because the op needs their results before it. So is a
// group whose operands an op overwrites, and whatever stands before a synchronization, an event of its stream, a
// mark, another host thread or a CUDA graph. A group runs where its last member stood: everything that the others
// are moved past is independent of them. Random numbers are drawn in the same order as before.
//
// What a group reads lives until it runs. An op does not join where that would raise the highest number of live
// bytes above what it was before.
#pragma once

#include <string>
#include <vector>

#include "sim/trace/trace.h"

namespace memwall {

enum class FusionScope : std::uint8_t {
  elementwise,  // elementwise ops, casts and copies among themselves
  norms,        // only groups that hold a normalization or a reduction
  all
};

struct FusionRules {
  FusionScope scope = FusionScope::all;
  bool gemm_epilogues = false;  // what follows a matrix product element by element becomes part of it
  std::size_t largest = 64;     // ops per group, as TorchInductor's max_fusion_size; REQUIRES: >= 2
  bool joins_reruns = false;    // what runs again is merged with the backward that asks for it
  bool model_only = false;      // not the optimizer's ops
  // Patterns: only ops of these modules and within them, those of each by themselves; empty: all.
  std::vector<std::string> modules{};
};

struct FusionGroup {
  std::vector<OpId> members;        // ascending, two or more
  std::vector<StorageId> vanished;  // ascending: made and used by members only, and freed by the program
  ShapeId shape = 0;                // of the whole, an index into Trace::shapes: that of its largest space
};

// Could the op be part of a group, if its neighbours were right? False for work that was fused before
// (Dispatch::compiled), for operators of other libraries than PyTorch's own, and where the shape is not known.
bool is_fusable(const Trace& trace, const Op& op, const FusionRules& rules);

// Of the module of that path ("layers.3.mlp") or those that it is within the outermost that is one of the patterns'
// ("layers.*"): "layers.3"; "" where none is.
std::string named_module(const std::string& path, const std::vector<std::string>& patterns);

// Disjoint groups, by their last members. REQUIRES: check(trace) is empty.
std::vector<FusionGroup> plan_fusion(const Trace& trace, const FusionRules& rules);

}  // namespace memwall
