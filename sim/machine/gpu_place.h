// Where a GPU of a job sits: in which node, on which rail, in which rack.
//
// GPUs are numbered node by node (sim/machine/group_place.h). A node is what one host serves (sharers_of_tier of
// "host"), else what nests in the first fabric over which nodes talk. A rail joins the adapters of all nodes that have
// the same number in them; a rack is what the first fabric that reaches more than a node, but not all, joins: the GPUs
// behind one leaf switch.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "sim/machine/machine.h"

namespace memwall {

struct GpuPlace {
  std::uint32_t node = 0, gpu = 0;              // gpu: its number within the node
  std::optional<std::uint32_t> rail{}, rack{};  // nothing: the machine has one, or says nothing of them
  bool operator==(const GpuPlace&) const = default;
};

class GpuPlaces {
 public:
  // `one`: the machine of one GPU.
  explicit GpuPlaces(const Machine& one);

  // Of a rank by its number in the job.
  GpuPlace of(std::uint32_t number) const;
  // GPUs of a node; 0: the machine says nothing of nodes, all are in one.
  std::uint32_t node_size() const { return node_; }

  // "GPU 3, rail 3, rack 0": without the node.
  std::string within_node(std::uint32_t number) const;
  // "rank 11 (node 1)"; "rank 11" where nothing is known of nodes.
  std::string rank_text(std::uint32_t number) const;
  // Of the members of a group: "8 ranks in node 0", "2 ranks over 2 nodes, rail 3", "16 ranks over 2 nodes, 8 rails".
  std::string group_text(std::span<const std::uint32_t> members) const;

 private:
  std::uint32_t node_ = 0;
  std::uint32_t gpus_of_rail_ = 0;  // of one node behind one adapter; 0 = there are no rails
  std::uint32_t rack_ = 0;          // GPUs; 0 = there are no racks
};

}  // namespace memwall
