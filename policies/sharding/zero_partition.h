// How much of a storage one rank keeps, and how much a collective over all of it moves.
//
// Stages 1 and 2 lay all storages of a kind one behind the other and cut the whole into N equal parts,
// padded to a multiple of N elements at its end; a storage may straddle ranks, so its share here is
// what an even cut leaves, rounded so that the shares add up to the part exactly. Stage 3 cuts every
// parameter, and its gradient, for itself, padded to a multiple of N elements.
// Source: Rajbhandari et al. 2020, "ZeRO", section 5; deepspeedai/DeepSpeed, runtime/zero/
// stage_1_and_2.py (flat buffer) and partition_parameters.py (one parameter at a time).
#pragma once

#include <cstdint>
#include <vector>

#include "policies/trace/dataflow.h"
#include "sim/trace/trace.h"

namespace memwall {

// Of one element: by the data types of the ops outside of the optimizer that use it; an optimizer
// state is fp32. Where none is known, 4 if that divides the storage.
Bytes element_bytes(const Trace& trace, const Dataflow& flow, StorageId storage);

class Partition {
 public:
  // REQUIRES: ranks >= 1.
  Partition(std::size_t storage_count, std::uint32_t ranks) : ranks_(ranks), entries_(storage_count) {}

  // Lays `storages` one behind the other and cuts the whole.
  void cut_together(const Trace& trace, const Dataflow& flow, const std::vector<StorageId>& storages);
  // Cuts each for itself.
  void cut_each(const Trace& trace, const Dataflow& flow, const std::vector<StorageId>& storages);

  // Cut for itself elsewhere: `full` bytes into shares of `share` bytes.
  void cut_to(StorageId storage, Bytes full, Bytes share, Bytes element) {
    entries_[storage] = {full, share, element, true};
  }

  bool has(StorageId storage) const { return entries_[storage].element > 0; }
  // What one rank keeps. REQUIRES: has(storage).
  Bytes share(StorageId storage) const { return entries_[storage].share; }
  // The size of a collective over all of these: each padded where it is cut for itself, else their sum.
  // REQUIRES: has() of each, all cut the same way.
  Bytes message(const std::vector<StorageId>& storages) const;

 private:
  struct Entry {
    Bytes full = 0, share = 0, element = 0;
    bool each = false;
  };

  std::uint32_t ranks_;
  std::vector<Entry> entries_;
};

}  // namespace memwall
