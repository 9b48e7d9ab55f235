// Who holds a storage in forward beyond its last use, in a program in PyTorch: so long a plan cannot give its memory
// back.
//
// Captures say it (Storage::last_referenced). Where one does not, two rules stand for it: Python holds what a module is
// called with until the module returns (the arguments of Module.__call__), and autocast keeps its casts of parameters
// until its context ends; other variables of the program are not known then. For plans that a program executes.
#pragma once

#include <vector>

#include "policies/trace/dataflow.h"
#include "sim/trace/trace.h"

namespace memwall {

class ForwardHolds {
 public:
  // Both must outlive it.
  ForwardHolds(const Trace& trace, const Dataflow& flow);

  // The op of forward behind which nobody of these holds the storage any more; kNoOp: nobody does beyond its last use
  // in forward, or it is not made in a forward that has a backward. Where a trace does not tell a container that is
  // called (Sequential) from a list of modules (ModuleList) it is taken as a list, which holds nothing.
  OpId held_until(StorageId storage) const;

 private:
  // A call of a module: ops of forward in a row that are within it.
  struct Call {
    OpId begin = 0, end = 0;  // first and last op
  };
  void find_calls(const Pass& pass);
  OpId held_by_rule(StorageId storage, const Pass& pass, OpId used) const;

  const Trace& t_;
  const Dataflow& flow_;
  std::vector<Pass> passes_;
  std::vector<Call> calls_;
  std::vector<std::vector<std::uint32_t>> calls_of_;  // by op: those around it
  std::vector<std::vector<OpId>> cast_ends_;          // by pass
};

}  // namespace memwall
