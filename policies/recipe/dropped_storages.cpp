#include "policies/recipe/dropped_storages.h"

#include <vector>

namespace memwall {

Trace without_storages(Trace trace, const std::set<StorageId>& dropped) {
  std::vector<StorageId> number(trace.storages.size(), kNoStorage);
  std::vector<Storage> kept;
  for (StorageId id = 0; id < trace.storages.size(); ++id) {
    if (dropped.contains(id)) continue;
    number[id] = static_cast<StorageId>(kept.size());
    kept.push_back(trace.storages[id]);
  }
  trace.storages = std::move(kept);
  for (Use& use : trace.uses) use.storage = number[use.storage];
  for (Op& op : trace.ops)
    if (op.kind == OpKind::alloc || op.kind == OpKind::free) op.target = number[op.target];
  std::erase_if(trace.held_copies,
                [&](const HeldCopy& held) { return number[held.copy] == kNoStorage || number[held.of] == kNoStorage; });
  for (HeldCopy& held : trace.held_copies) held = {number[held.copy], number[held.of]};
  return trace;
}

}  // namespace memwall
