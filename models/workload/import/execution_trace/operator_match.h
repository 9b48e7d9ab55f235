// Which node of an ExecutionTrace is which operator of a timed capture of the same run.
//
// Ids are no key: the observer's rf_id and the profiler's "External id" are counted separately and
// are often equal for different operators. What both files keep is the order in which each host
// thread entered its operators, and their names; so each pair of threads is aligned by a longest
// common subsequence of names.
#pragma once

#include <cstdint>
#include <vector>

#include "models/workload/import/execution_trace/execution_trace.h"
#include "models/workload/import/timed/timed_capture.h"

namespace memwall {

struct ThreadMatch {
  std::int64_t node_thread = 0;       // ExecutionNode::thread
  std::uint16_t captured_thread = 0;  // index into TimedCapture::threads
  std::size_t nodes = 0, operators = 0, matched = 0;
};

struct OperatorMatch {
  std::vector<std::uint32_t> node_of_operator;  // by index into TimedCapture::operators; kNoIndex if none
  std::vector<std::uint32_t> operator_of_node;  // by index into ExecutionTrace::nodes
  std::vector<ThreadMatch> threads;             // by node_thread
  // Nodes that are operators: the observer's own entries ("[pytorch|profiler|...") are not counted.
  std::size_t nodes = 0, matched = 0;
  double share() const { return nodes == 0 ? 0 : static_cast<double>(matched) / static_cast<double>(nodes); }
};

// Never fails: what has no partner stays without one, and the caller judges the share.
OperatorMatch match_operators(const TimedCapture& capture, const ExecutionTrace& execution);

}  // namespace memwall
