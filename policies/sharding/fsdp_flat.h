// FSDP1 (the class FullyShardedDataParallel): one flat parameter per unit.
//
// - Flat parameter: its end is padded to a multiple of the ranks. Parameters are views of it: the first one's storage
//   stands for all of it, those of the others have 0 bytes.
// - Gather: on the unshard stream, into that stream's pool; where shards are cast, on the pre-unshard stream before.
//   Compute waits for the unshard stream; nothing is copied out.
// - Free: after forward (but for the root) and after backward, with record_stream: the memory comes back once compute
//   has done what it was told until then.
// - Rate limiter: before a gather, where two frees or more are queued, the host waits for the oldest.
// - Reduction: autograd copies the gradients into one flat gradient. On the post-backward stream, behind compute: cast,
//   padding, division, reduce-scatter, all-reduce over replicas, division, cast, addition. Divided is before the sum by
//   a power of two near the root of the number of ranks, behind it by the rest.
//
// Source: pytorch/pytorch, torch/distributed/fsdp/_runtime_utils.py, _flat_param.py and _limiter_utils.py;
// torch/distributed/algorithms/_comm_hooks/default_hooks.py (factors).
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <vector>

#include "policies/sharding/fsdp_gathers.h"
#include "policies/sharding/fsdp_reduction.h"

namespace memwall {

class FlatGathers : public FsdpParameters {
 public:
  // As FsdpParameters. `layout` cuts each unit together.
  FlatGathers(FsdpProgram& program, const FsdpUnits& units, const FsdpLayout& layout, const FsdpPrecision& precision,
              const FsdpSettings& settings, const ShardingGroup& group, std::uint16_t compute);

  void begin_forward(InsertionPoint point) override;
  void unshard(std::size_t unit, InsertionPoint point) override;
  void wait_for_unshard(std::size_t unit, InsertionPoint point, bool forward,
                        const std::set<std::uint16_t>& streams) override;
  void reshard(std::size_t unit, InsertionPoint point, const std::set<std::uint16_t>& streams) override;
  void reshard_after_forward(std::size_t unit, InsertionPoint point, const std::set<std::uint16_t>& streams) override;
  void end_forward(InsertionPoint) override {}

 private:
  enum class State : std::uint8_t { sharded, under_way, whole };

  void limit(InsertionPoint point);

  std::uint16_t pre_unshard_, unshard_;
  std::vector<State> state_;
  std::deque<std::uint32_t> frees_;  // events on compute, behind frees that no gather has waited for
};

class FlatReduction : public FsdpReduction {
 public:
  // As FsdpReduction.
  FlatReduction(FsdpProgram& program, const Dataflow& flow, const FsdpUnits& units, const FsdpLayout& layout,
                const FsdpPrecision& precision, const FsdpSettings& settings, const ShardingGroup& shards,
                const ShardingGroup& replicas, std::uint16_t compute)
      : FsdpReduction(program, flow, units, layout, precision, settings, shards, replicas, compute,
                      "fsdp.post_backward") {}

  void end_backward(InsertionPoint point) override;

 protected:
  void reduce(std::size_t unit, InsertionPoint point) override;
  // Without a type of the user's: that of the gathered parameter.
  Bytes reduced_element(const Whole& gradient) const override;
  Bytes element_to_keep(const Whole& gradient) const override { return gradient.element; }
};

}  // namespace memwall
