// Which values of a forward are kept for backward, as a minimum cut of its graph between the ops that must not run
// again and backward.
//
// torch/_functorch/partitioners.py (pytorch 8ea3ef61a26d), solve_min_cut. An op that is banned from running again hangs
// on the source, what backward reads on the sink; each value is an edge, and those that are cut are kept. Its weight:
// bytes, times 1.1 for each op between it and backward (at most 100), twice where every reader is merged with its
// maker.
#pragma once

#include <cstddef>
#include <vector>

#include "policies/planners/forward_graph.h"

namespace memwall {

// What must not run again, beside what cannot.
struct BanRules {
  bool not_on_list = true;            // all that the list of recomputable operators does not name; false: random ops,
                                      // matrix products, convolutions and attention alone
  bool materialized_backward = true;  // whose result an op of backward reads that is not merged with it
  bool used_far_apart = true;         // readers of a value that stand behind the first that is not merged
  bool long_chains = true;            // every hundredth of a chain of merged ops
  bool reductions = true;             // whose result is less than a quarter of what they read
};

struct ValueCut {
  std::vector<bool> saved;   // by value
  std::vector<bool> banned;  // by op
};

// `allowed`: by op: is not banned whatever the rules say; empty: none is.
ValueCut minimum_cut(const StepProfile& profile, const ForwardGraph& graph, const BanRules& rules,
                     const std::vector<bool>& allowed = {});
// Nothing is banned but what cannot run again.
ValueCut least_cut(const StepProfile& profile, const ForwardGraph& graph);

// Of what is kept. Without what is there anyway.
Bytes saved_bytes(const ForwardGraph& graph, const ValueCut& cut);

}  // namespace memwall
