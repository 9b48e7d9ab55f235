// Which parameters FSDP gathers, reduces and frees together: one unit per module that is wrapped (`fully_shard`,
// FullyShardedDataParallel), and the root with whatever no wrapped module holds.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "policies/sharding/zero_analysis.h"
#include "policies/trace/dataflow.h"
#include "sim/trace/trace.h"

namespace memwall {

struct FsdpUnit {
  std::string module;                   // path; "" = the root
  std::size_t parent = 0;               // the innermost unit around it; of the root itself
  int depth = 0;                        // of the root 0
  std::vector<StorageId> parameters{};  // ascending, as gradients
  std::vector<StorageId> gradients{};
};

class FsdpUnits {
 public:
  // A module is a unit if its path matches one of `patterns` and has as many parts ("layers.*" is no "layers.0.mlp");
  // without patterns the outermost repeated blocks are. A parameter belongs to the innermost unit that holds all
  // modules whose forward reads it, as PyTorch gives a shared parameter to the module around its users; to the root
  // where none is known. A gradient likewise, by the ops that write it.
  // Throws UsageError for a pattern that no module matches.
  FsdpUnits(const Trace& trace, const Dataflow& flow, const ZeroAnalysis& analysis,
            const std::vector<std::string>& patterns);

  // The units that these patterns name. Throws UsageError for one that names none; `parameter`: of that sentence.
  std::vector<bool> named(const std::vector<std::string>& patterns, const std::string& parameter) const;

  // The root first, then in the order of their first op in forward.
  const std::vector<FsdpUnit>& all() const { return units_; }
  // The innermost unit that the op's module is in, and those of parameters and gradients that it uses; empty where
  // nothing tells. Ascending.
  std::vector<std::size_t> of_op(OpId op) const;
  // Is `inner` the same unit as `outer`, or within it?
  bool within(std::size_t inner, std::size_t outer) const;
  // kNone: the storage is no parameter or gradient that is sharded.
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);
  std::size_t of_storage(StorageId storage) const { return of_storage_[storage]; }

 private:
  void find_units(const std::vector<std::string>& patterns);
  std::size_t of_module(StringId module) const;
  std::size_t around(std::size_t a, std::size_t b) const;
  void assign(const Dataflow& flow, const ZeroAnalysis& analysis);
  std::size_t module_unit(OpId op) const;

  const Trace& t_;
  std::vector<FsdpUnit> units_;
  std::map<std::string, std::size_t> by_path_;
  mutable std::map<StringId, std::size_t> of_module_;
  std::vector<std::size_t> of_storage_;
};

}  // namespace memwall
