#include "policies/profile/largest_op.h"

#include <utility>
#include <vector>

namespace memwall {

LargestOp largest_op(const StepProfile& profile) {
  const Trace& trace = profile.trace();
  LargestOp largest;
  std::vector<OpId> seen(trace.storages.size(), kNoOp);
  for (OpId id = 0; id < trace.ops.size(); ++id) {
    if (trace.ops[id].kind != OpKind::kernel) continue;
    Bytes used = 0;
    for (const Use& use : trace.uses_of(trace.ops[id]))
      if (std::exchange(seen[use.storage], id) != id) used += profile.held(use.storage);
    if (used > largest.bytes) largest = {id, used};
  }
  return largest;
}

}  // namespace memwall
