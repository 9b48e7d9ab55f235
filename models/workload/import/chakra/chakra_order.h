// The order in which a Chakra graph's nodes can start, and what each waits for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "models/workload/import/chakra/chakra_graph.h"

namespace memwall {

struct ChakraOrder {
  std::vector<std::uint32_t> nodes;      // by position: index into ChakraGraph::nodes; those of work, metadata left out
  std::vector<std::size_t> first;        // by position, one more than positions: where its producers begin
  std::vector<std::uint32_t> producers;  // positions, each earlier than the waiting one
  std::vector<bool> on_host;             // by position
  bool has_host = false;                 // any node on the host
  std::size_t dangling = 0;              // dependencies on ids that no node has
  std::size_t duplicate_ids = 0;         // nodes with the id of an earlier one
  std::size_t broken = 0;                // dependencies left out because they close a circle
  std::size_t callers = 0;               // control dependencies that name the operator around
  std::size_t metadata = 0;              // nodes that stand for no work

  std::span<const std::uint32_t> producers_of(std::size_t position) const {
    return {producers.data() + first[position], first[position + 1] - first[position]};
  }
};

// Nodes that could start at once keep the order of the file. Where the graph has host operators, its converter wrote
// callers into the control dependencies, which is nothing to wait for; else they count as the others do. A dependency
// on a node without work means what that node depends on.
ChakraOrder order_of(const ChakraGraph& graph);

}  // namespace memwall
