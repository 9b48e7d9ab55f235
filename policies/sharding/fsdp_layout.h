// How FSDP cuts tensors. Version 2 cuts each along its first dimension into equal numbers of rows, padded at the end
// (torch.chunk, DTensor's Shard(0)). A tensor whose shape is not known is cut as if it had one dimension.
// Source: pytorch/pytorch, torch/distributed/fsdp/_fully_shard/_fsdp_param.py (_init_sharded_param).
#pragma once

#include <cstdint>
#include <vector>

#include "policies/sharding/fsdp_units.h"
#include "policies/sharding/zero_analysis.h"
#include "policies/sharding/zero_partition.h"
#include "policies/trace/dataflow.h"
#include "sim/trace/trace.h"

namespace memwall {

// Bytes of one element: by the tensor's shape, else as element_bytes() tells.
Bytes sharded_element(const Trace& trace, const Dataflow& flow, StorageId storage);

class FsdpLayout {
 public:
  // Of all parameters, gradients, states and temporaries of the optimizer, over `shards` ranks.
  FsdpLayout(const Trace& trace, const Dataflow& flow, const ZeroAnalysis& analysis, std::uint32_t shards);

  // FSDP1: tensors of a unit one behind the other, each from a multiple of `alignment` bytes on, and the whole cut,
  // with padding at its end. States of all units are one whole.
  FsdpLayout(const Trace& trace, const Dataflow& flow, const ZeroAnalysis& analysis, const FsdpUnits& units,
             std::uint32_t shards, Bytes alignment);

  // Elements that one rank keeps: those of rank 0, which has the most; padding of other ranks counts.
  Bytes shard_elements(StorageId storage) const { return shard_[storage]; }
  Bytes padded_elements(StorageId storage) const { return shard_[storage] * shards_; }
  Bytes element(StorageId storage) const { return element_[storage]; }  // bytes of one
  Bytes shard_bytes(StorageId storage) const { return shard_[storage] * element_[storage]; }
  Bytes padded_bytes(StorageId storage) const { return padded_elements(storage) * element_[storage]; }
  std::uint32_t shards() const { return shards_; }

  // What is kept and updated, for split_update().
  Partition partition(const Trace& trace, const ZeroAnalysis& analysis) const;

 private:
  std::uint32_t shards_;
  std::vector<Bytes> shard_, element_;  // by storage
};

}  // namespace memwall
