#include "models/workload/graft/workspaces.h"

#include <algorithm>
#include <set>

namespace memwall {
namespace {

struct Life {
  OpId alloc = kNoOp, free = kNoOp;
};

std::vector<Life> lives(const Trace& trace) {
  std::vector<Life> all(trace.storages.size());
  for (OpId id = 0; id < trace.ops.size(); ++id) {
    const Op& op = trace.ops[id];
    if (op.kind == OpKind::alloc) all[op.target].alloc = id;
    if (op.kind == OpKind::free) all[op.target].free = id;
  }
  return all;
}

}  // namespace

std::vector<CallWorkspace> measured_workspaces(const Trace& measured, const OperatorCalls& calls) {
  std::vector<CallWorkspace> all;
  if (!calls.are_known()) return all;
  const std::vector<Life> of = lives(measured);
  for (StorageId s = 0; s < of.size(); ++s) {
    const auto [alloc, free] = of[s];
    if (alloc == kNoOp || free == kNoOp || alloc > free) continue;
    const std::uint32_t call = calls.innermost[alloc];
    if (call == kNoOp || calls.innermost[free] != call) continue;
    CallWorkspace workspace{s, alloc, free, {}};
    for (OpId id = alloc + 1; id < free; ++id)
      if (is_device_line(measured.ops[id].kind) && calls.are_of_one(alloc, id)) workspace.users.push_back(id);
    if (!workspace.users.empty()) all.push_back(std::move(workspace));
  }
  std::ranges::sort(all, {}, &CallWorkspace::alloc);
  return all;
}

std::vector<bool> replaced_workspaces(const Trace& complete, const std::vector<LinePair>& pairs,
                                      const std::vector<CallWorkspace>& measured) {
  std::vector<bool> replaced(complete.ops.size(), false);
  std::set<OpId> users;
  for (const CallWorkspace& workspace : measured) users.insert(workspace.users.begin(), workspace.users.end());
  const std::vector<Life> of = lives(complete);
  std::vector<std::size_t> lines(complete.storages.size(), 0);
  for (const Op& op : complete.ops) {
    std::set<StorageId> used;
    for (const Use& use : complete.uses_of(op)) used.insert(use.storage);
    for (const StorageId s : used) ++lines[s];
  }
  std::vector<std::size_t> known_better(complete.storages.size(), 0);  // of those lines
  for (const LinePair& pair : pairs) {
    if (std::ranges::none_of(pair.measured, [&](OpId id) { return users.contains(id); })) continue;
    for (const OpId id : pair.complete) {
      std::set<StorageId> used;
      for (const Use& use : complete.uses_of(complete.ops[id])) used.insert(use.storage);
      for (const StorageId s : used) ++known_better[s];
    }
  }
  for (StorageId s = 0; s < complete.storages.size(); ++s) {
    const auto [alloc, free] = of[s];
    if (complete.storages[s].kind != StorageKind::workspace || alloc == kNoOp || free == kNoOp) continue;
    if (lines[s] > 0 && known_better[s] == lines[s]) replaced[alloc] = replaced[free] = true;
  }
  return replaced;
}

}  // namespace memwall
