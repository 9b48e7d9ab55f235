// NUMA nodes: which cores and which memory are near each other. Linux only, by what its kernel says in files.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

namespace memwall {

struct NumaNode {
  int number = 0;
  std::vector<int> cores;  // that this process may use, ascending; a node of memory alone has none
  bool has_memory = true;
  std::vector<int> distances;  // to each node in the order of their numbers, 10 = its own; empty = unknown
};

// By number; empty where the kernel has no NUMA. `root` is laid out as /sys/devices/system/node. `allowed` are the
// cores that count.
std::vector<NumaNode> numa_nodes(const std::filesystem::path& root, const std::vector<int>& allowed);
// Those of this computer, with the cores that this process may use.
std::vector<NumaNode> numa_nodes();
// "0-3,8,10-11" as numbers; what is no such list is empty.
std::vector<int> numbers_of_list(const std::string& text);

// Pages of this memory are, or will be, on this node. False where the system refuses. REQUIRES: `data` begins at a
// page.
bool bind_memory(void* data, std::size_t bytes, int node);

}  // namespace memwall
