// What FSDP and its mixed precision (MixedPrecisionPolicy, MixedPrecision) make of the types of a step.
//
// - 16-bit parameters with fp32 copies of them in the optimizer (as in Megatron-LM): the copies are the sharded
//   parameters. The 16-bit ones exist while they are gathered, and nobody writes them. The gradients' shards are in
//   fp32, so that the optimizer casts none.
// - fp32 parameters that are cast for each use (autocast), with a param_dtype of 16 bit: they are cast before the
// gather
//   and used as gathered. The casts go, and those of the gradients.
// - Gradients that a pass adds to those of the pass before, which have been reduced: backward's gradient stands alone,
//   and the addition is that of the shards.
//
// Source: pytorch/pytorch, torch/distributed/fsdp/_fully_shard/_fsdp_api.py and _fsdp_param.py (init_dtype_attrs).
#pragma once

#include <map>
#include <set>
#include <utility>

#include "policies/sharding/zero_analysis.h"
#include "policies/trace/dataflow.h"
#include "policies/trace/trace_edit.h"
#include "sim/trace/trace.h"

namespace memwall {

class FsdpPrecision {
 public:
  // `param_dtype`: of gathered parameters, unknown = as the step has them. `adds_up`: passes add to whole gradients.
  // Throws UsageError where the step would have to compute in another type than it does.
  FsdpPrecision(const Trace& trace, const Dataflow& flow, const ZeroAnalysis& analysis, DataType param_dtype,
                bool adds_up);

  // What is sharded in a parameter's place: its fp32 copy, or itself.
  StorageId at_rest(StorageId parameter) const;
  // The parameter that a cast of it stands for; else the storage itself.
  StorageId stands_for(StorageId storage) const;
  // Bytes of one element of a parameter while it is gathered; `own`: as the step has it.
  Bytes gathered_element(Bytes own) const;
  // Bytes of one element of a gradient's shard; `own`: as the step has it.
  Bytes kept_element(Bytes own) const;
  // What backward makes before it is cast, or added, to be this gradient; kNoStorage: it makes it right away.
  StorageId made_as(const GradientMade& made) const;
  bool has_copies() const { return !copies_.empty(); }
  bool drops_casts() const { return !casts_.empty(); }
  // Nothing is left for it to do.
  bool is_gone(OpId op) const { return gone_.contains(op); }

  // Takes away what nobody needs any more. What made_as() names lives until it is freed by whoever takes it.
  // After split_update().
  void apply(TraceEdit& edit) const;

 private:
  void find_copies(const ZeroAnalysis& analysis);
  void find_optimizer_casts(const ZeroAnalysis& analysis);
  void find_casts(const ZeroAnalysis& analysis, DataType type);
  void find_made_as(const ZeroAnalysis& analysis, bool adds_up);
  // The op's only input besides `but`, if `to` is all that it writes; kNoStorage: it is no such op.
  StorageId only_input(OpId op, StorageId to, StorageId but) const;
  bool ends_with(StorageId storage, OpId op) const;

  const Trace& t_;
  const Dataflow& flow_;
  Bytes element_ = 0;                                        // of gathered parameters; 0 = their own
  std::map<StorageId, StorageId> copies_;                    // by parameter
  std::map<StorageId, StorageId> casts_;                     // by the cast: its parameter
  std::map<StorageId, StorageId> wide_;                      // by the optimizer's cast of a gradient: that gradient
  std::map<std::pair<StorageId, OpId>, StorageId> made_as_;  // by gradient and its first write
  std::set<StorageId> dropped_;                              // storages that nobody needs
  std::set<OpId> gone_;
};

}  // namespace memwall
