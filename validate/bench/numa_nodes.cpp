#include "validate/bench/numa_nodes.h"

#include <linux/mempolicy.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>
#include <iterator>
#include <sstream>

#include "validate/replay/host_computer.h"

namespace memwall {
namespace {

namespace fs = std::filesystem;

constexpr int kMostNodes = 1024;  // of the kernel's mask
constexpr int kMostCores = 1 << 16;

std::string line_of(const fs::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// N of "nodeN", -1 of anything else.
int node_number(const std::string& name) {
  int number = -1;
  if (!name.starts_with("node")) return -1;
  const auto [end, error] = std::from_chars(name.data() + 4, name.data() + name.size(), number);
  return error == std::errc() && end == name.data() + name.size() && number >= 0 && number < kMostNodes ? number : -1;
}

// "Node 1 MemTotal:       131072 kB"; where nothing is said it has some.
bool has_memory(const fs::path& meminfo) {
  std::ifstream file(meminfo);
  for (std::string line; std::getline(file, line);) {
    const auto at = line.find("MemTotal:");
    if (at != std::string::npos) return std::atoll(line.c_str() + at + 9) > 0;
  }
  return true;
}

}  // namespace

std::vector<int> numbers_of_list(const std::string& text) {
  std::vector<int> numbers;
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) {
    int first = 0, last = 0;
    const char* const behind = part.data() + part.size();
    auto found = std::from_chars(part.data(), behind, first);
    if (found.ec != std::errc()) return {};
    last = first;
    if (found.ptr != behind && *found.ptr == '-') found = std::from_chars(found.ptr + 1, behind, last);
    if (found.ec != std::errc() || found.ptr != behind || first < 0 || last < first || last >= kMostCores) return {};
    for (int number = first; number <= last; ++number) numbers.push_back(number);
  }
  return numbers;
}

std::vector<NumaNode> numa_nodes(const fs::path& root, const std::vector<int>& allowed) {
  std::vector<NumaNode> nodes;
  std::error_code error;
  for (fs::directory_iterator entry(root, error), end; !error && entry != end; entry.increment(error)) {
    NumaNode node;
    node.number = node_number(entry->path().filename().string());
    if (node.number < 0) continue;
    std::vector<int> cores = numbers_of_list(line_of(entry->path() / "cpulist"));
    std::sort(cores.begin(), cores.end());
    std::set_intersection(cores.begin(), cores.end(), allowed.begin(), allowed.end(), std::back_inserter(node.cores));
    node.has_memory = has_memory(entry->path() / "meminfo");
    std::istringstream distances(line_of(entry->path() / "distance"));
    for (int distance = 0; distances >> distance;) node.distances.push_back(distance);
    nodes.push_back(std::move(node));
  }
  std::sort(nodes.begin(), nodes.end(), [](const NumaNode& a, const NumaNode& b) { return a.number < b.number; });
  return nodes;
}

std::vector<NumaNode> numa_nodes() { return numa_nodes("/sys/devices/system/node", allowed_cores()); }

bool bind_memory(void* data, std::size_t bytes, int node) {
  constexpr int kBits = 8 * sizeof(unsigned long);
  if (node < 0 || node >= kMostNodes) return false;
  std::array<unsigned long, kMostNodes / kBits> mask{};
  mask[static_cast<std::size_t>(node / kBits)] = 1ul << (node % kBits);
  return ::syscall(SYS_mbind, data, bytes, MPOL_BIND, mask.data(), static_cast<unsigned long>(kMostNodes),
                   MPOL_MF_MOVE | MPOL_MF_STRICT) == 0;
}

}  // namespace memwall
