// A Chakra graph as the program that a host runs.
//
//   host time before an op   durations of the host nodes of its thread since the thread's last op
//   device op                device node: kernel, memset, copy or collective; issued by the thread of the last host
//                            node that it waits for, in the graph's order
//   streams                  the attribute `stream`; of old converters the kernels' `tid`; else one for computing, one
//                            for communication, one for copies
//   events and waits         dependencies between device nodes of different streams
//   hand-overs               dependencies of a host node, or of what it launches, on a host node of another thread
//   synchronize              dependencies of a host node on a device node
//
// What is lost: that nodes of one stream could run in another order, or at the same time, than the one chosen here; and
// which part of a host node came after its launch, where converters do not cut it.
#pragma once

#include "models/workload/import/chakra/chakra_operators.h"
#include "models/workload/import/timed/timed_import.h"

namespace memwall {

struct ChakraCounts {
  std::size_t kernels = 0, memsets = 0, copies = 0, collectives = 0, host_nodes = 0;
  std::size_t waits = 0, hand_overs = 0, synchronizes = 0;
  std::size_t timed = 0;           // device nodes with a duration
  std::size_t priced = 0;          // without one, but with work to be priced
  std::size_t zero = 0;            // without either, among timed ones: below a microsecond
  std::size_t unsized_groups = 0;  // collectives of a group whose size nothing states
  bool streams_stated = false;
};

// ImportedTrace::operator_of_op: index into operators.execution.nodes. The trace has neither uses nor alloc ops, and
// one step. `ranks`: of groups whose size the graph does not state, 0 = unknown. Throws InputError for more threads or
// streams than a trace can number.
ImportedTrace chakra_program(const ChakraGraph& graph, const ChakraOrder& order, const ChakraOperators& operators,
                             std::uint32_t ranks, ChakraCounts& counts);

}  // namespace memwall
