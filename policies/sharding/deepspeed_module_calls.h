// The calls of modules whose hooks DeepSpeed's coordinator sees in a step, in the order in which they begin, and when
// each begins and ends. A module without parameters has hooks, too: it fetches nothing, but gathers ahead.
//
// Where an op's module path names modules that are not open, they begin before it, from the outermost one on; those
// that it does not name end behind the op before. Modules whose parts are all numbers, and that have no op of their
// own, are never called (ModuleList; a Sequential is taken for one). In backward, ops of no module (sums of gradients)
// change nothing; what is recomputed there has no outermost call. An embedding's backward has a beginning, like all.
// Source: deepspeedai/DeepSpeed, deepspeed/runtime/zero/parameter_offload.py (_register_deepspeed_module).
//
// What uses parameters without a module is a call for itself, and all is where the trace does not know modules.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "policies/sharding/deepspeed_fetch_plan.h"
#include "policies/sharding/deepspeed_leaf_modules.h"
#include "policies/sharding/zero_analysis.h"
#include "sim/trace/trace.h"

namespace memwall {

class ModuleCalls {
 public:
  // `plan` has the parameters' elements. All must outlive it.
  ModuleCalls(const Trace& trace, const ZeroAnalysis& analysis, FetchPlan& plan, std::int64_t granularity_threshold);

  // Puts calls and hooks into the plan.
  void run();

 private:
  struct Open {
    std::string path;
    std::size_t call = 0;
  };

  std::vector<StorageId> parameters_of(const Op& op) const;
  bool counts(OpId id) const;
  void survey();
  bool is_list(const std::string& path) const;
  void visit(OpId id, std::size_t pass);
  void visit_alone(OpId id, std::size_t pass);
  void enter(std::vector<Open>& stack, const std::string& path, OpId id, std::size_t pass);
  void leave(std::vector<Open>& stack, std::size_t keep);
  void begin(std::vector<Open>& stack, const std::string& path, OpId id, std::size_t pass);

  const Trace& t_;
  const ZeroAnalysis& analysis_;
  FetchPlan& plan_;
  std::vector<bool> is_parameter_;
  std::map<StringId, std::int64_t> elements_;             // of a module's own parameters
  std::map<std::string, std::set<StorageId>> of_module_;  // a module's own, by path
  std::set<std::string> has_ops_, has_names_;             // paths with ops of their own; with parts that are no numbers
  std::vector<std::set<StorageId>> needed_;               // by call
  LeafModules leaves_;
  std::vector<Open> open_, open_again_;  // outermost first; of what is recomputed
  Phase phase_ = Phase::unknown;
  OpId last_ = 0;  // that counts
};

}  // namespace memwall
