#include "policies/trace/parameter_gathers.h"

#include <algorithm>
#include <cassert>

namespace memwall {

bool gathers_parameters(const Trace& trace, const Op& op) {
  const bool copies_out = op.kind == OpKind::kernel && op.added;
  const bool collects = op.kind == OpKind::collective && (op.collective == CollectiveKind::all_gather ||
                                                          (op.added && op.collective == CollectiveKind::all_reduce));
  if (!copies_out && !collects) return false;
  std::size_t slices = 0, filled = 0, buffers = 0;
  for (const Use& use : trace.uses_of(op)) {
    const Storage& s = trace.storages[use.storage];
    if (op.added && s.kind == StorageKind::communication_buffer && use.access == Access::read) {
      ++buffers;
      continue;
    }
    if (s.kind != StorageKind::parameter || s.preexisting != (use.access == Access::read)) return false;
    ++(use.access == Access::read ? slices : filled);
  }
  return slices > 0 && slices == filled && (buffers > 0 || !copies_out);
}

bool serves_parameters(const Trace& trace, const Op& op) {
  return op.added && runs_on_device(op.kind) && op.use_count > 0 &&
         std::ranges::all_of(trace.uses_of(op), [&](const Use& use) {
           const StorageKind kind = trace.storages[use.storage].kind;
           return kind == StorageKind::parameter || kind == StorageKind::communication_buffer;
         });
}

ParameterGathers::ParameterGathers(const Trace& trace, const Dataflow& flow) : t_(trace), flow_(flow) {
  for (OpId id = 0; id < t_.ops.size(); ++id)
    if (gathers_parameters(t_, t_.ops[id])) collect(id);
  if (!gathers_.empty()) survey_readers();
}

// The n-th slice becomes the n-th storage that is filled.
void ParameterGathers::collect(OpId id) {
  if (number_of_.empty()) {
    number_of_.assign(t_.storages.size(), kNone);
    content_of_.resize(t_.storages.size());
  }
  Gather gather{id, {}, 0};
  std::vector<Content> slices;
  for (const Use& use : t_.uses_of(t_.ops[id])) {
    if (t_.storages[use.storage].kind != StorageKind::parameter) continue;
    if (use.access == Access::read) {
      slices.emplace_back(use.storage, use.version);
    } else {
      if (flow_.writers(use.storage).size() > 1) return;  // more than a parameter brought together
      gather.filled.push_back(use.storage);
      gather.bytes += t_.storages[use.storage].bytes;
    }
  }
  for (std::size_t i = 0; i < slices.size(); ++i) {
    number_of_[gather.filled[i]] = static_cast<std::uint32_t>(gathers_.size());
    content_of_[gather.filled[i]] = slices[i];
    same_[slices[i]].push_back(gather.filled[i]);
  }
  gathers_.push_back(std::move(gather));
}

void ParameterGathers::survey_readers() {
  std::uint32_t last = kNone;  // gather that was read last
  Bytes sum = 0;
  std::vector<bool> is_read(gathers_.size(), false);
  for (OpId id = 0; id < t_.ops.size(); ++id) {
    for (const Use& use : t_.uses_of(t_.ops[id])) {
      const std::uint32_t number = number_of_[use.storage];
      if (number == kNone || use.access == Access::write) continue;
      if (runs_on_device(t_.ops[id].kind)) reading_streams_.insert(t_.ops[id].stream);
      if (!is_read[number] && !run_ahead_ && t_.ops[gathers_[number].op].kind == OpKind::collective) {
        const std::uint16_t own = t_.ops[gathers_[number].op].stream;
        for (OpId between = gathers_[number].op + 1; between < id && !run_ahead_; ++between)
          run_ahead_ = runs_on_device(t_.ops[between].kind) && t_.ops[between].stream != own;
      }
      is_read[number] = true;
      if (number == last) continue;
      last = number;
      runs_.push_back({id, sum, gathers_[number].bytes});
      sum += gathers_[number].bytes;
    }
  }
}

const ParameterGathers::Gather& ParameterGathers::numbered(OpId gather) const {
  const auto found = std::ranges::lower_bound(gathers_, gather, {}, [](const Gather& g) { return g.op; });
  assert(found != gathers_.end() && found->op == gather);
  return *found;
}

const std::vector<StorageId>& ParameterGathers::filled_by(OpId gather) const { return numbered(gather).filled; }

Bytes ParameterGathers::bytes_of(OpId gather) const { return numbered(gather).bytes; }

bool ParameterGathers::lives(StorageId storage, OpId at) const {
  const OpId gather = gather_of(storage);
  return gather < at && flow_.free(storage) >= at;  // kNoOp is the highest
}

StorageId ParameterGathers::stand_in(StorageId storage, OpId at) const {
  if (gather_of(storage) == kNoOp) return kNoStorage;
  if (lives(storage, at)) return storage;
  for (const StorageId other : same_.at(content_of_[storage]))
    if (flow_.free(other) >= at) return other;
  return kNoStorage;
}

OpId ParameterGathers::first_reader(OpId gather, OpId from) const {
  OpId first = kNoOp;
  for (const StorageId storage : filled_by(gather))
    for (const Touch& touch : flow_.touches(storage)) {
      if (touch.op < from || !touch.reads) continue;
      first = std::min(first, touch.op);
      break;
    }
  return first;
}

Bytes ParameterGathers::read_between(OpId begin, OpId end) const {
  const auto first = std::ranges::lower_bound(runs_, begin, {}, &ReadingRun::begin);
  const auto last = std::ranges::lower_bound(runs_, end, {}, &ReadingRun::begin);
  if (first >= last) return 0;
  const ReadingRun& newest = *(last - 1);
  return newest.before + newest.bytes - first->before;
}

OpId ParameterGathers::last_before(OpId at) const {
  const auto next = std::ranges::lower_bound(gathers_, at, {}, [](const Gather& g) { return g.op; });
  return next == gathers_.begin() ? kNoOp : (next - 1)->op;
}

}  // namespace memwall
