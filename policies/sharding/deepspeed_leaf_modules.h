// Modules that stage 3 takes as leaves because they are fine-grained (module_granularity_threshold): their parameters,
// those of modules below included, are gathered at once where they begin, and only they have hooks.
//
// The granularity of a module is its parameters' elements, those below included, by itself and the modules below that
// have any. From the root down the first module of a path that is at most as coarse as the threshold is a leaf.
// Modules without modules below, containers and modules of more than 1e9 elements are none. Source:
// deepspeedai/DeepSpeed, deepspeed/runtime/zero/parameter_offload.py (_get_granularity_recursively,
// _set_leaf_by_threshold_preorder). A trace knows modules by their paths: one whose parts below are all numbers is a
// container (Sequential, ModuleList).
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "sim/trace/trace.h"

namespace memwall {

class LeafModules {
 public:
  LeafModules() = default;  // there are none
  // `elements`: of the parameters that a module has itself, by module. `trace` must outlive it.
  LeafModules(const Trace& trace, const std::map<StringId, std::int64_t>& elements, std::int64_t threshold);

  // The path of the module whose hooks serve an op of `module`: of the leaf around it, else its own.
  std::string path(StringId module) const;
  bool is_leaf(const std::string& path) const { return leaves_.contains(path); }
  std::size_t count() const { return leaves_.size(); }
  // The smallest granularity that there is; 0: no module has any.
  std::int64_t finest() const { return finest_; }

 private:
  struct Node {
    std::int64_t own = 0;
    std::vector<std::string> below;  // paths of those with parameters
  };
  struct Sums {
    std::int64_t modules = 0, elements = 0;
  };
  Sums measure(const std::string& path);
  void choose(const std::string& path, std::int64_t threshold);
  bool is_container(const std::string& path) const;

  const Trace* t_ = nullptr;
  std::map<std::string, Node> nodes_;
  std::map<std::string, std::int64_t> granularity_;  // of those that may be leaves
  std::set<std::string> leaves_;                     // paths
  std::int64_t finest_ = 0;
};

}  // namespace memwall
