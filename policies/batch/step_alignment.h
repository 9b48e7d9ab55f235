// Which op and which storage of one capture is which of another of the same program.
//
// Both ran the same lines, at two sizes. So keys (thread, kind, name, operator, module, phase; of allocs and frees
// the storage's label and kind) mostly follow each other alike: what agrees from the front and from the back is
// paired, and of the rest the n-th op of a key with the n-th of that key, as far as both orders agree. A storage's
// partner is what the paired alloc allocates, else what a paired op uses in the same place; those that live before
// the window are paired by kind, label and order.
#pragma once

#include <vector>

#include "sim/trace/trace.h"

namespace memwall {

struct StepAlignment {
  std::vector<OpId> ops;            // per op of `base`: its partner in `other`, kNoOp = none
  std::vector<StorageId> storages;  // per storage of `base` likewise, kNoStorage = none
};

// REQUIRES: check() of both is empty.
StepAlignment align_steps(const Trace& base, const Trace& other);

}  // namespace memwall
