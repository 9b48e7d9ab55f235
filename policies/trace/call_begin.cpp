#include "policies/trace/call_begin.h"

#include <algorithm>

namespace memwall {

OpId call_begin(const Trace& trace, OpId op) {
  const auto makes = [&](StorageId storage) {
    return std::ranges::any_of(trace.uses_of(trace.ops[op]),
                               [&](const Use& use) { return use.storage == storage && use.access == Access::write; });
  };
  OpId first = op;
  while (first > 0 && trace.ops[first - 1].kind == OpKind::alloc && makes(trace.ops[first - 1].target)) --first;
  return first;
}

}  // namespace memwall
