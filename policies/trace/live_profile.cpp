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

void LiveProfile::add_to_node(std::size_t node, Bytes bytes) {
  highest_[node] += bytes;
  added_[node] += bytes;
}

// From the leaves up: the nodes whose ranges make up [first, last], then all that lie above the ends of it.
void LiveProfile::add(OpId first, OpId last, Bytes bytes) {
  if (first > last || bytes == 0 || first >= size_) return;
  const std::size_t left = size_ + first, right = size_ + std::min<std::size_t>(last, size_ - 1);
  for (std::size_t l = left, r = right + 1; l < r; l /= 2, r /= 2) {
    if (l % 2 == 1) add_to_node(l++, bytes);
    if (r % 2 == 1) add_to_node(--r, bytes);
  }
  renew_above(left, right);
}

// Of a node that was changed as a whole this gives what it has already.
void LiveProfile::renew_above(std::size_t first, std::size_t last) {
  const auto renew = [&](std::size_t node) {
    highest_[node] = added_[node] + std::max(highest_[2 * node], highest_[2 * node + 1]);
  };
  for (std::size_t l = first / 2, r = last / 2; l > 0; l /= 2, r /= 2) {
    renew(l);
    if (r != l) renew(r);
  }
}

}  // namespace memwall
