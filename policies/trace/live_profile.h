// How many bytes live after each op of a host program, when lifetimes are changed one after the other.
//
// A segment tree: a change of a range and a look at the highest value cost O(log n).
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "sim/trace/trace.h"

namespace memwall {

class LiveProfile {
 public:
  // Of the storages whose place is "hbm"; all, if the trace has no such place.
  explicit LiveProfile(const Trace& trace);
  // Of the same storages, each of so many bytes: `held` is by storage.
  LiveProfile(const Trace& trace, std::span<const Bytes> held);

  // `bytes` more (or less) live after each op from `first` to `last`, inclusive; nothing if first > last.
  void add(OpId first, OpId last, Bytes bytes);
  // The same before the first op.
  void add_at_start(Bytes bytes) { at_start_ += bytes; }
  // The most that lives after any op, or before the first.
  Bytes peak() const;
  // The most that lives after any op from `first` to `last`, inclusive; 0 if first > last.
  Bytes peak(OpId first, OpId last) const;
  // The first op after which most lives; kNoOp where that is before the first.
  OpId peak_op() const;
  // Is the storage one of those that count?
  bool counts(StorageId storage) const;

 private:
  void add_to_node(std::size_t node, Bytes bytes);
  Bytes peak_in(std::size_t node, std::size_t from, std::size_t to, std::size_t first, std::size_t last) const;
  void renew_above(std::size_t first, std::size_t last);

  const Trace& trace_;
  int place_ = -1;
  Bytes at_start_ = 0;
  std::size_t size_ = 1;
  std::vector<Bytes> highest_, added_;  // of a node's range: its highest, and what was added to all of it
};

}  // namespace memwall
