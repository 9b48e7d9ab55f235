#include "policies/trace/live_profile.h"

#include <algorithm>

namespace memwall {

namespace {

std::vector<Bytes> requested_bytes(const Trace& trace) {
  std::vector<Bytes> bytes;
  for (const Storage& storage : trace.storages) bytes.push_back(storage.bytes);
  return bytes;
}

}  // namespace

LiveProfile::LiveProfile(const Trace& trace) : LiveProfile(trace, requested_bytes(trace)) {}

LiveProfile::LiveProfile(const Trace& trace, std::span<const Bytes> held) : trace_(trace) {
  for (std::size_t i = 0; i < trace.places.size(); ++i)
    if (trace.places[i] == "hbm") place_ = static_cast<int>(i);
  while (size_ < trace.ops.size()) size_ *= 2;
  highest_.assign(2 * size_, 0);
  added_.assign(2 * size_, 0);
  for (StorageId s = 0; s < trace.storages.size(); ++s)
    if (trace.storages[s].preexisting && counts(s)) at_start_ += held[s];
  Bytes live = at_start_;
  for (std::size_t id = 0; id < trace.ops.size(); ++id) {
    const Op& op = trace.ops[id];
    if ((op.kind == OpKind::alloc || op.kind == OpKind::free) && counts(op.target))
      live += op.kind == OpKind::alloc ? held[op.target] : -held[op.target];
    highest_[size_ + id] = live;
  }
  for (std::size_t node = size_ - 1; node > 0; --node)
    highest_[node] = std::max(highest_[2 * node], highest_[2 * node + 1]);
}

bool LiveProfile::counts(StorageId storage) const {
  return place_ < 0 || trace_.storages[storage].place == static_cast<std::uint8_t>(place_);
}

Bytes LiveProfile::peak() const { return std::max(at_start_, highest_[1]); }

Bytes LiveProfile::peak(OpId first, OpId last) const {
  return first > last || first >= size_ ? 0 : peak_in(1, 0, size_ - 1, first, std::min<std::size_t>(last, size_ - 1));
}

// Of the part of [first, last] that lies in the node's range. REQUIRES: there is one.
Bytes LiveProfile::peak_in(std::size_t node, std::size_t from, std::size_t to, std::size_t first,
                           std::size_t last) const {
  if (first <= from && to <= last) return highest_[node];
  const std::size_t middle = from + (to - from) / 2;
  if (last <= middle) return added_[node] + peak_in(2 * node, from, middle, first, last);
  if (first > middle) return added_[node] + peak_in(2 * node + 1, middle + 1, to, first, last);
  return added_[node] +
         std::max(peak_in(2 * node, from, middle, first, last), peak_in(2 * node + 1, middle + 1, to, first, last));
}

OpId LiveProfile::peak_op() const {
  if (at_start_ >= highest_[1]) return kNoOp;
  std::size_t node = 1;
  while (node < size_) node = 2 * node + (highest_[2 * node] >= highest_[2 * node + 1] ? 0 : 1);
  return static_cast<OpId>(node - size_);
}

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
