// Gradients between the op of backward that makes them and the hook that takes them: storages of their own, in the
// place of those of the base, which are left without use.
#pragma once

#include <map>
#include <set>

#include "policies/sharding/zero_analysis.h"
#include "policies/trace/dataflow.h"
#include "policies/trace/trace_edit.h"

namespace memwall {

class WholeGradients {
 public:
  // All must outlive it.
  WholeGradients(TraceEdit& edit, const Dataflow& flow, const ZeroAnalysis& analysis)
      : edit_(edit), flow_(flow), analysis_(analysis) {}

  // The gradients of the base are allocated no more.
  void drop_base();
  // What the pass makes is made in a storage that is allocated right before, unless it is kept from an earlier pass:
  // then it is added to. Who takes it frees it.
  void make(const BackwardPass& pass);
  // The next pass begins without any.
  void forget() { whole_.clear(); }
  // To be called once, behind the last pass: what is made anew adds to nothing.
  void finish();

  // By gradient of the base.
  const std::map<StorageId, StorageId>& all() const { return whole_; }

 private:
  TraceEdit& edit_;
  const Dataflow& flow_;
  const ZeroAnalysis& analysis_;
  std::map<StorageId, StorageId> whole_;
  std::map<OpId, std::set<StorageId>> forgotten_;  // by op: gradients of the base that it reads no longer
};

}  // namespace memwall
