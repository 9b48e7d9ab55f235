#include "validate/replay/executor_contents.h"

#include <algorithm>

#include "validate/replay/pattern.h"

namespace memwall {

ContentPlan::ContentPlan(const Trace& schedule, std::uint64_t salt)
    : trace_(schedule), salt_(salt), contents_(schedule.storages.size()) {
  for (const Storage& s : schedule.storages) {
    const std::uint64_t tag = s.preexisting ? fresh() : 0;
    contents_[initial_.size()] = {tag, tag == 0 ? 0 : s.bytes};
    initial_.push_back(tag);
  }
  first_.reserve(schedule.ops.size() + 1);
  first_.push_back(0);
  for (const Op& op : schedule.ops) {
    if (op.kind == OpKind::copy || op.kind == OpKind::storage_io)
      transfer(op);
    else if (op.kind == OpKind::kernel || op.kind == OpKind::memset || op.kind == OpKind::host_work)
      compute(op);
    else if (op.kind == OpKind::alloc)
      contents_[op.target] = {};
    else  // a mark that stands for an op of no bytes
      for (const Use& use : schedule.uses_of(op))
        if (use.access == Access::write) contents_[use.storage] = {};
    first_.push_back(operands_.size());
  }
}

// Words of one pattern are neighbours of words of another whose tag is near; hashed tags are far apart.
std::uint64_t ContentPlan::fresh() {
  std::uint64_t tag = 0;
  while (tag == 0) tag = pattern_word(salt_, made_++);
  return tag;
}

void ContentPlan::compute(const Op& op) {
  const std::size_t begin = operands_.size();
  const auto uses = trace_.uses_of(op);
  for (const Use& use : uses) {
    const Content& content = contents_[use.storage];
    if (use.access == Access::read && trace_.storages[use.storage].bytes > 0)
      operands_.push_back({use.storage, content.known, content.known > 0 ? content.tag : 0, 0});
  }
  const std::size_t reads = operands_.size();
  for (const Use& use : uses) {
    const Bytes whole = trace_.storages[use.storage].bytes;
    if (use.access != Access::write || whole == 0) continue;
    const Bytes written = op.kind == OpKind::memset ? op.bytes : whole;
    const std::uint64_t tag = fresh();
    contents_[use.storage] = {tag, written};
    const auto read = std::find_if(
        operands_.begin() + static_cast<std::ptrdiff_t>(begin), operands_.begin() + static_cast<std::ptrdiff_t>(reads),
        [&](const PlannedOperand& o) { return o.storage == use.storage && o.bytes == written && o.made == 0; });
    if (read != operands_.begin() + static_cast<std::ptrdiff_t>(reads))
      read->made = tag;
    else
      operands_.push_back({use.storage, written, 0, tag});
  }
}

void ContentPlan::transfer(const Op& op) {
  const auto uses = trace_.uses_of(op);
  const StorageId from = uses[0].storage, to = uses[1].storage;
  const Content source = contents_[from];
  operands_.push_back({from, op.bytes, source.known >= op.bytes ? source.tag : 0, 0});
  operands_.push_back({to, op.bytes, 0, 0});
  contents_[to] = {source.tag, std::min(source.known, op.bytes)};
}

}  // namespace memwall
