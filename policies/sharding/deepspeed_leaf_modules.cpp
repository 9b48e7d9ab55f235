#include "policies/sharding/deepspeed_leaf_modules.h"

#include <algorithm>

namespace memwall {
namespace {

constexpr std::int64_t kLargestLeaf = 1'000'000'000;  // Z3_MAX_LEAF_SIZE

std::string parent_path(const std::string& path) {
  const std::size_t dot = path.rfind('.');
  return dot == path.npos ? "" : path.substr(0, dot);
}

bool is_within(std::string_view path, std::string_view around) {
  return around.empty() || path == around || (path.starts_with(around) && path[around.size()] == '.');
}

}  // namespace

LeafModules::LeafModules(const Trace& trace, const std::map<StringId, std::int64_t>& elements, std::int64_t threshold)
    : t_(&trace) {
  if (threshold <= 0 || !trace.knowledge.modules) return;
  for (const auto& [module, own] : elements) {
    std::string path = trace.strings[module];
    nodes_[path].own += own;
    while (!path.empty()) {
      const std::string above = parent_path(path);
      std::vector<std::string>& below = nodes_[above].below;
      if (std::ranges::find(below, path) != below.end()) break;
      below.push_back(path);
      path = above;
    }
  }
  if (nodes_.empty()) return;
  measure("");
  choose("", threshold);
}

bool LeafModules::is_container(const std::string& path) const {
  const Node& node = nodes_.at(path);
  return !path.empty() && node.own == 0 && std::ranges::all_of(node.below, [&](const std::string& below) {
    return std::ranges::all_of(below.substr(path.size() + 1), [](char c) { return c >= '0' && c <= '9'; });
  });
}

LeafModules::Sums LeafModules::measure(const std::string& path) {
  const Node& node = nodes_.at(path);
  if (node.below.empty()) return {1, node.own};
  Sums sums{0, node.own};
  for (const std::string& below : node.below) {
    const Sums more = measure(below);
    sums.modules += more.modules;
    sums.elements += more.elements;
  }
  if (is_container(path)) return sums;
  ++sums.modules;
  if (sums.elements > kLargestLeaf) return sums;
  const std::int64_t granularity = sums.elements / sums.modules;
  granularity_[path] = granularity;
  finest_ = finest_ == 0 ? granularity : std::min(finest_, granularity);
  return sums;
}

void LeafModules::choose(const std::string& path, std::int64_t threshold) {
  const auto found = granularity_.find(path);
  if (found != granularity_.end() && found->second <= threshold) {
    leaves_.insert(path);
    return;
  }
  for (const std::string& below : nodes_.at(path).below) choose(below, threshold);
}

std::string LeafModules::path(StringId module) const {
  if (t_ == nullptr) return "";
  const std::string& path = t_->strings[module];
  for (const std::string& leaf : leaves_)
    if (is_within(path, leaf)) return leaf;
  return path;
}

}  // namespace memwall
