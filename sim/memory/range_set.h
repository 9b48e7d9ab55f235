// Free ranges of an address space: joined where they touch, found by best fit.
//
// For allocators whose speed is not the point; the caching allocator has sim/memory/free_blocks.h.
#pragma once

#include <cassert>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "sim/memory/allocator.h"

namespace memwall {

class RangeSet {
 public:
  struct Range {
    Address begin = 0;
    Bytes size = 0;
    Address end() const { return begin + static_cast<Address>(size); }
  };

  // REQUIRES: size > 0; no part of it is in the set.
  void insert(Range range) {
    auto next = by_address_.lower_bound(range.begin);
    assert(next == by_address_.end() || range.end() <= next->first);
    if (next != by_address_.end() && next->first == range.end()) {
      range.size += next->second;
      next = drop(next);
    }
    if (next != by_address_.begin()) {
      const auto previous = std::prev(next);
      assert(previous->first + static_cast<Address>(previous->second) <= range.begin);
      if (previous->first + static_cast<Address>(previous->second) == range.begin) {
        range = {previous->first, previous->second + range.size};
        drop(previous);
      }
    }
    put(range);
  }

  // REQUIRES: covers(range).
  void erase(const Range& range) {
    const auto found = std::prev(by_address_.upper_bound(range.begin));
    const Range whole{found->first, found->second};
    assert(whole.begin <= range.begin && range.end() <= whole.end());
    drop(found);
    if (whole.begin < range.begin) put({whole.begin, static_cast<Bytes>(range.begin - whole.begin)});
    if (range.end() < whole.end()) put({range.end(), static_cast<Bytes>(whole.end() - range.end())});
  }

  // Is all of it in the set?
  bool covers(const Range& range) const {
    const std::optional<Range> whole = at(range.begin);
    return whole && range.end() <= whole->end();
  }

  // The range that holds this address, if any.
  std::optional<Range> at(Address address) const {
    const auto next = by_address_.upper_bound(address);
    if (next == by_address_.begin()) return std::nullopt;
    const Range range{std::prev(next)->first, std::prev(next)->second};
    return address < range.end() ? std::optional(range) : std::nullopt;
  }

  // The smallest range of at least `size` bytes, of equals that at the lowest address.
  std::optional<Range> best_fit(Bytes size) const {
    const auto found = by_size_.lower_bound({size, 0});
    if (found == by_size_.end()) return std::nullopt;
    return Range{found->second, found->first};
  }

  // (size, begin), ascending.
  const std::set<std::pair<Bytes, Address>>& by_size() const { return by_size_; }
  // begin -> size.
  const std::map<Address, Bytes>& by_address() const { return by_address_; }

 private:
  using Place = std::map<Address, Bytes>::iterator;

  void put(const Range& range) {
    by_address_.emplace(range.begin, range.size);
    by_size_.emplace(range.size, range.begin);
  }
  Place drop(Place place) {
    by_size_.erase({place->second, place->first});
    return by_address_.erase(place);
  }

  std::map<Address, Bytes> by_address_;
  std::set<std::pair<Bytes, Address>> by_size_;
};

}  // namespace memwall
