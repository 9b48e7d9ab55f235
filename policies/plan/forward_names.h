// One forward pass by names: what each module makes that backward needs, and which call of its operator an op is.
// Internal to policies/plan.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "policies/trace/dataflow.h"
#include "policies/trace/phases.h"
#include "sim/policy/plan_realization.h"
#include "sim/trace/trace.h"

namespace memwall {

// Is the module `path`, or one inside it?
bool is_within(std::string_view module, std::string_view path);

class ForwardNames {
 public:
  // Both must outlive it.
  ForwardNames(const Trace& trace, const Dataflow& flow, const Pass& pass);

  const Pass& pass() const { return pass_; }
  const std::string& module_of(OpId op) const { return t_.strings[t_.ops[op].module]; }
  const std::string& operator_at(OpId op) const;
  // An op of this forward that computes.
  bool holds(OpId op) const {
    return op >= pass_.begin && op < pass_.backward && call_of_[op - pass_.begin] != kNoCall;
  }
  // Made in this forward and read again from its backward on; ascending.
  const std::vector<StorageId>& saved() const { return saved_; }
  bool is_saved(StorageId storage) const;
  // Of `saved`, what ops in the module, or inside it, write.
  std::span<const StorageId> saved_in(const std::string& module) const;
  // Does an op of this forward that stands in none of the modules read it?
  bool is_read_outside(StorageId storage, const std::vector<std::string>& modules) const;
  // The last op of this forward that touches it. REQUIRES: one does.
  OpId last_forward_use(StorageId storage) const;
  // Where autograd saves it first, a unit that is run again what it starts from included; where the trace does not say,
  // its last use. REQUIRES: an op of this forward touches it.
  OpId saved_at(StorageId storage) const;
  // A module that only lists others by number (ModuleList, Sequential): those are what can be called.
  bool is_list(const std::string& module) const;
  // Are all modules called as torch.profiler calls them, "VGG_0.Sequential_1.Linear_1"?
  bool are_profiler_names() const;
  // The ops as operators in modules, in the order of their first; `calls` are set where not all of an operator's ops in
  // its module are among them. REQUIRES: each is of this forward; ascending.
  std::vector<NamedOperator> named(const std::vector<OpId>& ops) const;
  // The operator that makes its first content, with its call. REQUIRES: an op of this forward does.
  NamedOperator maker_of(StorageId storage) const;

 private:
  static constexpr std::uint32_t kNoCall = 0xffffffff;
  using Key = std::pair<StringId, std::string_view>;  // module, operator
  Key key_of(OpId op) const { return {t_.ops[op].module, operator_at(op)}; }
  void find_saved();
  void learn_modules();

  const Trace& t_;
  const Dataflow& flow_;
  Pass pass_;
  // By op of the forward, from its first: which call of its operator in its module.
  std::vector<std::uint32_t> call_of_;
  std::map<Key, std::uint32_t> calls_;
  std::vector<StorageId> saved_;
  std::map<std::string, std::vector<StorageId>> saved_in_;  // by module and what is around it
  std::map<std::string, bool> is_list_;
};

}  // namespace memwall
