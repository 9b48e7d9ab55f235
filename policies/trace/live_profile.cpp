#include "policies/trace/live_profile.h"

#include <algorithm>

namespace memwall {

LiveProfile::LiveProfile(const Trace& trace) : trace_(trace) {
  for (std::size_t i = 0; i < trace.places.size(); ++i)
    if (trace.places[i] == "hbm") place_ = static_cast<int>(i);
  while (size_ < trace.ops.size()) size_ *= 2;
  highest_.assign(2 * size_, 0);
  added_.assign(2 * size_, 0);
  for (StorageId s = 0; s < trace.storages.size(); ++s)
    if (trace.storages[s].preexisting && counts(s)) at_start_ += trace.storages[s].bytes;
  Bytes live = at_start_;
  for (std::size_t id = 0; id < trace.ops.size(); ++id) {
    const Op& op = trace.ops[id];
    if ((op.kind == OpKind::alloc || op.kind == OpKind::free) && counts(op.target))
      live += op.kind == OpKind::alloc ? trace.storages[op.target].bytes : -trace.storages[op.target].bytes;
    highest_[size_ + id] = live;
  }
  for (std::size_t node = size_ - 1; node > 0; --node)
    highest_[node] = std::max(highest_[2 * node], highest_[2 * node + 1]);
}

bool LiveProfile::counts(StorageId storage) const {
  return place_ < 0 || trace_.storages[storage].place == static_cast<std::uint8_t>(place_);
}

Bytes LiveProfile::peak() const { return std::max(at_start_, highest_[1]); }

void LiveProfile::add(OpId first, OpId last, Bytes bytes) {
  if (first <= last && bytes != 0) add(1, 0, size_ - 1, first, last, bytes);
}

void LiveProfile::add(std::size_t node, std::size_t begin, std::size_t end, std::size_t first, std::size_t last,
                      Bytes bytes) {
  if (last < begin || end < first) return;
  if (first <= begin && end <= last) {
    highest_[node] += bytes;
    added_[node] += bytes;
    return;
  }
  const std::size_t middle = begin + (end - begin) / 2;
  add(2 * node, begin, middle, first, last, bytes);
  add(2 * node + 1, middle + 1, end, first, last, bytes);
  highest_[node] = added_[node] + std::max(highest_[2 * node], highest_[2 * node + 1]);
}

}  // namespace memwall
