#include "policies/batch/step_alignment.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>

#include "sim/text_hash.h"
#include "sim/trace/sequence_alignment.h"

namespace memwall {
namespace {

// Comparable between traces: text is hashed, not its number.
std::vector<std::uint64_t> keys_of(const Trace& t) {
  std::vector<std::uint64_t> text(t.strings.size()), keys;
  for (StringId id = 0; id < text.size(); ++id) text[id] = hash_of(t.strings[id]);
  keys.reserve(t.ops.size());
  for (const Op& op : t.ops) {
    std::uint64_t key = mixed(mixed(static_cast<std::uint64_t>(op.kind) + 1, op.thread), text[op.name]);
    key = mixed(mixed(key, text[op.operator_name]), text[op.module]);
    key = mixed(key, static_cast<std::uint64_t>(op.phase));
    if (op.kind == OpKind::alloc || op.kind == OpKind::free) {
      const Storage& s = t.storages[op.target];
      key = mixed(mixed(key, text[s.label]), static_cast<std::uint64_t>(s.kind));
    }
    keys.push_back(key);
  }
  return keys;
}

std::vector<OpId> align_ops(const Trace& base, const Trace& other) {
  std::vector<OpId> partner(base.ops.size(), kNoOp);
  for (const auto& [mine, theirs] : align_by_occurrence(keys_of(base), keys_of(other))) partner[mine] = theirs;
  return partner;
}

using PreexistingKey = std::tuple<StorageKind, std::string, std::string>;

std::map<PreexistingKey, std::vector<StorageId>> preexisting_of(const Trace& t) {
  std::map<PreexistingKey, std::vector<StorageId>> all;
  for (StorageId s = 0; s < t.storages.size(); ++s)
    if (const Storage& storage = t.storages[s]; storage.preexisting)
      all[{storage.kind, t.strings[storage.label], t.places[storage.place]}].push_back(s);
  return all;
}

std::vector<StorageId> align_storages(const Trace& base, const Trace& other, const std::vector<OpId>& ops) {
  std::vector<StorageId> partner(base.storages.size(), kNoStorage);
  const auto pair = [&](StorageId a, StorageId b) {
    if (partner[a] == kNoStorage && base.storages[a].kind == other.storages[b].kind) partner[a] = b;
  };
  const auto theirs = preexisting_of(other);
  for (const auto& [key, mine] : preexisting_of(base)) {
    const auto found = theirs.find(key);
    if (found == theirs.end()) continue;
    for (std::size_t i = 0; i < std::min(mine.size(), found->second.size()); ++i) pair(mine[i], found->second[i]);
  }
  for (OpId id = 0; id < base.ops.size(); ++id)
    if (base.ops[id].kind == OpKind::alloc && ops[id] != kNoOp) pair(base.ops[id].target, other.ops[ops[id]].target);
  for (OpId id = 0; id < base.ops.size(); ++id) {
    if (ops[id] == kNoOp) continue;
    const auto mine = base.uses_of(base.ops[id]), others = other.uses_of(other.ops[ops[id]]);
    if (mine.size() != others.size()) continue;
    for (std::size_t i = 0; i < mine.size(); ++i)
      if (mine[i].access == others[i].access) pair(mine[i].storage, others[i].storage);
  }
  return partner;
}

}  // namespace

StepAlignment align_steps(const Trace& base, const Trace& other) {
  StepAlignment result;
  result.ops = align_ops(base, other);
  result.storages = align_storages(base, other, result.ops);
  return result;
}

}  // namespace memwall
