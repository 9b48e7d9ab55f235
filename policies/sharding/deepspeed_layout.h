// How stages 1 and 2 lay parameters out: each group (parameters of one element size) in one flat buffer, padded to a
// multiple of 2 * ranks elements and cut into equal partitions. A parameter may straddle ranks.
//
// The rank that is simulated is the one whose partition touches parameters with the most elements: it copies and keeps
// the whole gradients of these. Source: deepspeedai/DeepSpeed, deepspeed/runtime/zero/stage_1_and_2.py
// (flatten_dense_tensors_aligned with nccl_start_alignment_factor = 2, get_partition_info, copy_grads_in_partition).
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "policies/trace/dataflow.h"
#include "sim/trace/trace.h"

namespace memwall {

// Bytes of one element of each: as element_bytes(), but of what only the optimizer uses as of most of the others.
std::map<StorageId, Bytes> element_sizes(const Trace& trace, const Dataflow& flow,
                                         const std::vector<StorageId>& storages);

// A part of a parameter that one rank owns.
struct ParameterSlice {
  std::uint32_t rank = 0;
  std::int64_t elements = 0;
};

struct PlacedParameter {
  StorageId parameter = kNoStorage;
  std::int64_t begin = 0, elements = 0;  // in its group
  std::int64_t own = 0;                  // elements in the partition of the simulated rank
  std::size_t group = 0;
};

struct FlatGroup {
  Bytes element = 2;                    // bytes
  std::vector<StorageId> parameters{};  // as they are laid out
  std::int64_t elements = 0, padded = 0, partition = 0;
  std::uint32_t rank = 0;    // that is simulated
  std::int64_t touched = 0;  // elements of all parameters that its partition touches
};

class FlatLayout {
 public:
  // `parameters` as they follow each other; with `round_robin` dealt out to the ranks in turn.
  FlatLayout(const Trace& trace, const Dataflow& flow, const std::vector<StorageId>& parameters, std::uint32_t ranks,
             bool round_robin);

  const std::vector<FlatGroup>& groups() const { return groups_; }
  // REQUIRES: it is one of the parameters.
  const PlacedParameter& of(StorageId parameter) const { return placed_.at(parameter); }
  bool has(StorageId parameter) const { return placed_.contains(parameter); }
  // Its parts in the order of ranks.
  std::vector<ParameterSlice> slices(StorageId parameter) const;

 private:
  void lay_out(FlatGroup& group);

  std::uint32_t ranks_;
  std::vector<FlatGroup> groups_;
  std::map<StorageId, PlacedParameter> placed_;
};

// The parameter of each gradient: an update that lists as many of both lists them in the same order; the rest are
// matched by size, in the order of their numbers. A gradient of no parameter (a bucket of several) is left out.
std::map<StorageId, StorageId> parameters_of_gradients(const Trace& trace, const Dataflow& flow,
                                                       const std::vector<StorageId>& gradients,
                                                       const std::vector<StorageId>& parameters);

}  // namespace memwall
