// FSDP2's gradients: whole while backward makes them, reduce-scattered once their unit's backward is done.
//
// After a unit's backward the compute stream waits for the reduce-scatter of the unit before, whose input is then given
// back: at most one is in flight. On the compute stream one kernel copies the gradients, cast to the reduce type, into
// the input (chunk-cat), and they are freed; on the reduce-scatter stream, behind that, the reduce-scatter writes the
// rank's shards, in HSDP the all-reduce stream sums them over the replicas, and what remains (cast to the type of the
// shards, addition to what earlier passes left) runs behind it. At the end of backward compute waits for all of that.
//
// Sums in fp16 are divided before and after, by kernels of their own; of other types NCCL makes means.
//
// A pass that does not reduce (FsdpSettings::reduces_each_pass) keeps its gradients whole, in the reduce type.
// Source: pytorch/pytorch, torch/distributed/fsdp/_fully_shard/_fsdp_collectives.py (foreach_reduce).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

#include "policies/sharding/fsdp_layout.h"
#include "policies/sharding/fsdp_precision.h"
#include "policies/sharding/fsdp_program.h"
#include "policies/sharding/fsdp_settings.h"
#include "policies/sharding/fsdp_units.h"

namespace memwall {

class FsdpReduction {
 public:
  // All must outlive it. `replicas`: ranks that hold the same shard; of one rank where there are none. `stream`: of
  // reduce-scatters.
  FsdpReduction(FsdpProgram& program, const Dataflow& flow, const FsdpUnits& units, const FsdpLayout& layout,
                const FsdpPrecision& precision, const FsdpSettings& settings, const ShardingGroup& shards,
                const ShardingGroup& replicas, std::uint16_t compute, std::string_view stream = "fsdp.reduce_scatter");
  virtual ~FsdpReduction() = default;

  // Backward makes a gradient of its own instead of the shard, from `made.first_write` on. In host order.
  void begin_gradient(const GradientMade& made);
  // From now on; or their partial sums are kept, in the reduce type.
  void sum_over_replicas(bool sums) { sums_over_replicas_ = sums; }
  // The unit's gradients, at the end of its backward. `reduces`: or they are kept. `streams`: that made them.
  void post_backward(std::size_t unit, InsertionPoint point, bool reduces, const std::set<std::uint16_t>& streams);
  virtual void end_backward(InsertionPoint point);

  Bytes largest_input() const { return largest_input_; }
  // What gradients are divided by before they are summed over so many ranks, where their type could overflow.
  // Source: pytorch/pytorch, torch/distributed/algorithms/_comm_hooks/default_hooks.py.
  static std::uint32_t predivide_factor(std::uint32_t ranks);

 protected:
  // A gradient of a unit's parameter that is not reduced yet.
  struct Whole {
    StorageId gradient = kNoStorage;  // of the base trace: the shard
    StorageId storage = kNoStorage;
    Bytes element = 0;  // bytes of one
  };

  // Those of the unit that backward has left, and what passes before have kept.
  std::vector<Whole> take(std::size_t unit);
  // Their sum over the shards, from `input` of `message` bytes, into their slices; over replicas, too.
  // `division`: of the sum, on the stream that makes it, as a kernel of its own.
  void scatter(const std::vector<Whole>& whole, InsertionPoint point, StorageId input, Bytes message, bool division);
  // A gradient that nobody has reduced is refused.
  void require_all_reduced() const;
  // The host waits for copies of gradients to it.
  void await_downloads(InsertionPoint point);
  // Who reduces frees the input himself.
  void forget_input() { in_flight_.reset(); }
  // Bytes of one element of its reduction. Without a type of the user's: that of the parameter at rest (since PyTorch
  // 2.15, before in that of the gathered parameter).
  virtual Bytes reduced_element(const Whole& gradient) const;
  virtual void reduce(std::size_t unit, InsertionPoint point);
  // What passes without a reduction leave is kept with elements of this size.
  virtual Bytes element_to_keep(const Whole& gradient) const { return reduced_element(gradient); }

  FsdpProgram& program_;
  const Trace& t_;
  const Dataflow& flow_;
  const FsdpUnits& units_;
  const FsdpLayout& layout_;
  const FsdpPrecision& precision_;
  const FsdpSettings& settings_;
  ShardingGroup shards_, replicas_;
  std::uint16_t compute_, reduce_scatter_, all_reduce_ = 0;
  std::vector<std::uint32_t> reduced_;  // events of this pass
  std::vector<StorageId> outputs_;      // of all-reduces, kept until the end of backward
  Bytes largest_input_ = 0;

 private:
  struct InFlight {
    StorageId input = kNoStorage;
    std::uint32_t event = 0;
  };

  Bytes made_element(const GradientMade& made) const;
  Bytes shard_bytes(StorageId gradient) const;
  void keep(std::size_t unit, InsertionPoint point);
  void add_kept(std::size_t unit, InsertionPoint point);
  void download(const std::vector<Whole>& whole, InsertionPoint point, StorageId output, std::uint16_t stream);
  void place_shards(const std::vector<Whole>& whole, InsertionPoint point, Bytes bytes, StorageId output,
                    std::uint16_t stream);
  void give_back(StorageId storage, InsertionPoint point, std::uint16_t user);
  bool lives(StorageId gradient) const;
  void move_alloc(StorageId gradient, InsertionPoint point);

  bool sums_over_replicas_ = true;
  std::vector<StorageId> partial_;  // by unit: sum over the shards of passes that are not summed over replicas
  std::vector<std::vector<Whole>> made_, kept_;  // by unit: of this pass; of passes before
  std::vector<std::uint32_t> downloads_;         // events behind copies of gradients to the host
  std::set<StorageId> alive_;                    // shards that hold something
  std::optional<InFlight> in_flight_;
};

}  // namespace memwall
