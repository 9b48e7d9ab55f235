// Which memory a memset zeroes where its op carries the storages of a whole operator.
//
// A capture knows what an operator reads and writes, and says so of each of its kernels and memsets. A memset reads
// nothing and writes into one piece of memory:
//
//   1. the storage that its op names, where it names but one and that holds the bytes
//   2. else a storage that the operator writes and that has exactly as many bytes, or as many as an allocator that
//   gives
//      multiples of 512 makes of them (a gradient that kernels add up in, the counters of a reduction)
//   3. else a larger one that the operator only writes, and that an op which only reads it finds as the memset left it
//   (a
//      part of it)
//   4. else memory that the trace does not name (a workspace that is older than the capture)
//
// Several memsets in a row within one operator zero different storages of equal size, in the order of the uses.
#pragma once

#include <cstdint>
#include <set>
#include <unordered_map>
#include <vector>

#include "sim/trace/trace.h"

namespace memwall {

struct MemsetTarget {
  StorageId storage = kNoStorage;  // kNoStorage: memory that the trace does not name
  // What the op is said to write besides, and later ops read before anything else writes it: what it holds is not
  // known.
  std::vector<StorageId> unknown;
};

class MemsetTargets {
 public:
  // `trace` must outlive it. REQUIRES: check(trace) is empty.
  explicit MemsetTargets(const Trace& trace) : trace_(trace) {}

  // REQUIRES: `memset` is one, and behind those asked for before.
  MemsetTarget of(OpId memset);

 private:
  void gather_reads();
  bool is_read(const Use& made) const { return reads_.contains(key_of(made)); }
  bool is_only_read(const Use& made) const {
    const auto found = reads_.find(key_of(made));
    return found != reads_.end() && found->second;
  }
  static std::uint64_t key_of(const Use& use) { return std::uint64_t{use.storage} << 32 | use.version; }
  bool continues_row(OpId memset) const;
  StorageId choose(const Op& op) const;

  const Trace& trace_;
  bool gathered_ = false;
  // Storages and their versions that ops read, memsets aside: does one of them not write the storage?
  std::unordered_map<std::uint64_t, bool> reads_;
  OpId previous_ = kNoOp;       // the last memset that was asked for
  std::set<StorageId> zeroed_;  // by the memsets of the present row
};

}  // namespace memwall
