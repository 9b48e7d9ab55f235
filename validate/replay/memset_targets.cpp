#include "validate/replay/memset_targets.h"

#include <algorithm>

namespace memwall {
namespace {

// As PyTorch's allocator rounds, whose sizes captures have.
Bytes rounded(Bytes bytes) { return (bytes + 511) / 512 * 512; }

}  // namespace

void MemsetTargets::gather_reads() {
  gathered_ = true;
  for (const Op& op : trace_.ops) {
    if (op.kind == OpKind::memset) continue;
    const auto uses = trace_.uses_of(op);
    for (const Use& use : uses) {
      if (use.access != Access::read) continue;
      const bool writes = std::any_of(uses.begin(), uses.end(), [&](const Use& other) {
        return other.access == Access::write && other.storage == use.storage;
      });
      bool& only_read = reads_[key_of(use)];
      only_read = only_read || !writes;
    }
  }
}

// Is it of the same operator as the memset before it, with no other work between?
bool MemsetTargets::continues_row(OpId memset) const {
  if (previous_ == kNoOp) return false;
  for (OpId id = previous_ + 1; id < memset; ++id)
    if (runs_on_device(trace_.ops[id].kind)) return false;
  const auto before = trace_.uses_of(trace_.ops[previous_]), now = trace_.uses_of(trace_.ops[memset]);
  return std::equal(before.begin(), before.end(), now.begin(), now.end(),
                    [](const Use& a, const Use& b) { return a.storage == b.storage && a.access == b.access; });
}

StorageId MemsetTargets::choose(const Op& op) const {
  const auto uses = trace_.uses_of(op);
  const auto bytes_of = [&](const Use& use) { return trace_.storages[use.storage].bytes; };
  std::vector<Use> written;
  std::set<StorageId> named, read;
  for (const Use& use : uses) {
    named.insert(use.storage);
    if (use.access == Access::read)
      read.insert(use.storage);
    else if (trace_.places[trace_.storages[use.storage].place] == "hbm")
      written.push_back(use);
  }
  const auto first = [&](const auto& fits) {
    const auto found = std::find_if(written.begin(), written.end(), fits);
    return found == written.end() ? kNoStorage : found->storage;
  };
  if (named.size() == 1 || op.bytes == 0)
    return written.size() == 1 ? first([&](const Use& use) { return bytes_of(use) >= op.bytes; }) : kNoStorage;
  for (const Bytes size : {op.bytes, rounded(op.bytes)})
    for (const bool again : {false, true}) {
      const StorageId found =
          first([&](const Use& use) { return bytes_of(use) == size && (again || !zeroed_.contains(use.storage)); });
      if (found != kNoStorage) return found;
    }
  return first(
      [&](const Use& use) { return bytes_of(use) > op.bytes && !read.contains(use.storage) && is_only_read(use); });
}

MemsetTarget MemsetTargets::of(OpId memset) {
  const Op& op = trace_.ops[memset];
  if (op.use_count > 1 && !gathered_) gather_reads();
  if (!continues_row(memset)) zeroed_.clear();
  MemsetTarget target{choose(op), {}};
  previous_ = memset;
  if (target.storage != kNoStorage) zeroed_.insert(target.storage);
  if (op.use_count <= 1 && target.storage != kNoStorage) return target;
  if (!gathered_) gather_reads();
  for (const Use& use : trace_.uses_of(op)) {
    if (use.access == Access::read || use.storage == target.storage || !is_read(use)) continue;
    const auto uses = trace_.uses_of(op);
    const bool keeps = std::any_of(uses.begin(), uses.end(), [&](const Use& other) {
      return other.access == Access::read && other.storage == use.storage;  // it has content that the memset leaves
    });
    if (!keeps) target.unknown.push_back(use.storage);
  }
  return target;
}

}  // namespace memwall
