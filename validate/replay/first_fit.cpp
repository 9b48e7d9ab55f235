#include "validate/replay/first_fit.h"

#include <algorithm>
#include <cassert>
#include <iterator>

namespace memwall {

FirstFit::FirstFit(Bytes capacity, Bytes granularity)
    : granularity_(granularity), free_bytes_(capacity / granularity * granularity) {
  assert(capacity >= 0 && granularity > 0);
  if (free_bytes_ > 0) free_.emplace(0, free_bytes_);
}

// A piece of no bytes still has an address of its own.
Bytes FirstFit::rounded(Bytes bytes) const {
  return std::max<Bytes>(1, bytes / granularity_ + (bytes % granularity_ != 0)) * granularity_;
}

std::optional<Bytes> FirstFit::take(Bytes bytes) {
  assert(bytes >= 0);
  if (bytes > free_bytes_) return std::nullopt;  // also keeps rounding from overflowing
  const Bytes size = rounded(bytes);
  const auto fits = [&](const auto& piece) { return piece.second >= size; };
  const auto found = std::find_if(free_.begin(), free_.end(), fits);
  if (found == free_.end()) return std::nullopt;
  const auto [offset, room] = *found;
  free_.erase(found);
  if (room > size) free_.emplace(offset + size, room - size);
  free_bytes_ -= size;
  return offset;
}

void FirstFit::give_back(Bytes offset, Bytes bytes) {
  Bytes size = rounded(bytes);
  free_bytes_ += size;
  auto next = free_.lower_bound(offset);
  assert(next == free_.end() || offset + size <= next->first);
  if (next != free_.end() && offset + size == next->first) {
    size += next->second;
    next = free_.erase(next);
  }
  if (next != free_.begin()) {
    const auto previous = std::prev(next);
    assert(previous->first + previous->second <= offset);
    if (previous->first + previous->second == offset) {
      previous->second += size;
      return;
    }
  }
  free_.emplace(offset, size);
}

Bytes FirstFit::largest_free() const {
  Bytes largest = 0;
  for (const auto& [offset, size] : free_) largest = std::max(largest, size);
  return largest;
}

}  // namespace memwall
