#include "policies/batch/step_alignment.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <unordered_map>

#include "sim/longest_increasing_subsequence.h"
#include "sim/text_hash.h"

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

// A longest chain of pairs that ascends on both sides; the others lose their partner.
void keep_ascending(std::vector<OpId>& partner, std::size_t first, std::size_t last) {
  std::vector<std::size_t> places;
  std::vector<OpId> partners;
  for (std::size_t i = first; i < last; ++i) {
    if (partner[i] == kNoOp) continue;
    places.push_back(i);
    partners.push_back(partner[i]);
  }
  std::fill(partner.begin() + static_cast<std::ptrdiff_t>(first), partner.begin() + static_cast<std::ptrdiff_t>(last),
            kNoOp);
  for (const std::size_t kept : longest_increasing_subsequence(partners)) partner[places[kept]] = partners[kept];
}

std::vector<OpId> align_ops(const Trace& base, const Trace& other) {
  const std::vector<std::uint64_t> a = keys_of(base), b = keys_of(other);
  std::vector<OpId> partner(a.size(), kNoOp);
  std::size_t front = 0, back = 0;
  const std::size_t least = std::min(a.size(), b.size());
  while (front < least && a[front] == b[front]) ++front;
  while (back < least - front && a[a.size() - 1 - back] == b[b.size() - 1 - back]) ++back;
  for (std::size_t i = 0; i < front; ++i) partner[i] = static_cast<OpId>(i);
  for (std::size_t i = 1; i <= back; ++i) partner[a.size() - i] = static_cast<OpId>(b.size() - i);
  std::unordered_map<std::uint64_t, std::vector<OpId>> of_key;
  for (std::size_t i = front; i < b.size() - back; ++i) of_key[b[i]].push_back(static_cast<OpId>(i));
  std::unordered_map<std::uint64_t, std::size_t> taken;
  for (std::size_t i = front; i < a.size() - back; ++i) {
    const auto found = of_key.find(a[i]);
    if (found == of_key.end()) continue;
    std::size_t& n = taken[a[i]];
    if (n < found->second.size()) partner[i] = found->second[n++];
  }
  keep_ascending(partner, front, a.size() - back);
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
