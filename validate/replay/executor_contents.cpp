#include "validate/replay/executor_contents.h"

#include <algorithm>

#include "validate/replay/pattern.h"

namespace memwall {

ContentPlan::ContentPlan(const Trace& schedule, std::uint64_t salt, const StepContents& numbers)
    : trace_(schedule), salt_(salt), numbers_(numbers), contents_(schedule.storages.size()) {
  for (const Storage& s : schedule.storages) {
    const std::uint64_t tag = s.preexisting ? tag_of(numbers.initially(static_cast<StorageId>(initial_.size()))) : 0;
    contents_[initial_.size()] = {tag, tag == 0 ? 0 : s.bytes};
    initial_.push_back(tag);
  }
  first_.reserve(schedule.ops.size() + 1);
  first_.push_back(0);
  for (const Op& op : schedule.ops) {
    if (op.kind == OpKind::copy || op.kind == OpKind::storage_io)
      transfer(op);
    else if (op.kind == OpKind::kernel || op.kind == OpKind::memset || op.kind == OpKind::collective ||
             op.kind == OpKind::host_work)
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

// Far from fresh(): no step has as many contents.
std::uint64_t ContentPlan::numbered(std::uint32_t number) const {
  const std::uint64_t tag = pattern_word(salt_, (std::uint64_t{1} << 40) + number);
  return tag == 0 ? 1 : tag;
}

void ContentPlan::compute(const Op& op) {
  const std::size_t begin = operands_.size();
  const auto uses = trace_.uses_of(op);
  for (std::size_t i = 0; i < uses.size(); ++i) {
    const Bytes whole = trace_.storages[uses[i].storage].bytes;
    if (uses[i].access != Access::read || whole == 0) continue;
    const Content& content = contents_[uses[i].storage];
    if (const std::uint32_t number = numbers_.of(op.first_use + i); number != 0)  // whatever is there by now
      operands_.push_back({uses[i].storage, content.known > 0 ? content.known : whole, numbered(number), 0});
    else
      operands_.push_back({uses[i].storage, content.known, content.known > 0 ? content.tag : 0, 0});
  }
  const std::size_t reads = operands_.size();
  for (std::size_t i = 0; i < uses.size(); ++i) {
    const Use& use = uses[i];
    const Bytes whole = trace_.storages[use.storage].bytes;
    if (use.access != Access::write || whole == 0) continue;
    const Bytes written = op.kind == OpKind::memset ? op.bytes : whole;
    const std::uint64_t tag = tag_of(numbers_.of(op.first_use + i));
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
