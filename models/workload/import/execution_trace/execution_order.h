// How the nodes of an ExecutionTrace nest, and the host's order told as if it had taken time.
//
// Nodes are numbered in the order in which they began. A node ends with the last node inside it; a named range lasts
// until the next node of its thread that is not inside it. With a tick per beginning and end, what reads a Kineto
// capture's operators (phases, modules, dataflow) reads an ExecutionTrace too.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "models/workload/import/execution_trace/execution_trace.h"
#include "models/workload/import/timed/timed_capture.h"

namespace memwall {

struct ExecutionOrder {
  std::vector<std::uint32_t> parent;  // by node: the node around it on its thread, or kNoIndex
  std::vector<std::uint32_t> last;    // by node: the last node inside it, itself if there is none
  std::vector<std::uint32_t> ends;    // the nodes in the order of their ends
};

ExecutionOrder order_of(const ExecutionTrace& execution);

// Entries that the observer or the profiler writes for itself ("[pytorch|profiler|...", process groups).
bool is_bookkeeping(std::string_view node_name);

// Is it something that the framework dispatched: no range, no entry of the observer, no function of autograd's engine?
bool is_operator(const ExecutionTrace& execution, const ExecutionNode& node);

// One operator per node, at the same index, with ticks for times. Throws InputError for more than 65535 threads.
TimedCapture logical_clock_capture(const ExecutionTrace& execution, const ExecutionOrder& order);

// When the work of a node is issued: behind everything inside it.
Time logical_issue_time(const ExecutionOrder& order, std::uint32_t node);

}  // namespace memwall
