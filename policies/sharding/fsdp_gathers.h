// FSDP2's parameters through a step: shards at rest, whole while their unit computes.
//
// - unshard: on the copy-in stream the shards are (cast and) copied into the rank's part of one flat buffer; on the
//   all-gather stream, behind that, one all-gather in place, and an event.
// - wait_for_unshard: on the compute stream, behind that event, storages of their own for the parameters, and one
// kernel
//   that copies out of the buffer.
// - reshard: these storages are freed, on the host at once: the compute stream made them and alone uses them.
//
// In forward the buffer of a unit is given back when the next unit waits: both gather streams then wait for the copy
// out of it, so the gather after the next does not begin before that, and at most two buffers live without the host
// ever waiting. In backward it is given back behind the copy out. Overlap follows: forward's next unit is gathered
// when the host comes to it, while the device still computes; backward's is asked for one unit ahead.
// Source: pytorch/pytorch, torch/distributed/fsdp/_fully_shard/_fsdp_param_group.py and _fsdp_collectives.py.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "policies/sharding/fsdp_layout.h"
#include "policies/sharding/fsdp_precision.h"
#include "policies/sharding/fsdp_program.h"
#include "policies/sharding/fsdp_settings.h"
#include "policies/sharding/fsdp_units.h"

namespace memwall {

// Parameters of a step's units, at rest and whole.
class FsdpParameters {
 public:
  // All must outlive it. `compute`: the stream of the step's kernels.
  FsdpParameters(FsdpProgram& program, const FsdpUnits& units, const FsdpLayout& layout, const FsdpPrecision& precision,
                 const FsdpSettings& settings, ShardingGroup group, std::uint16_t compute)
      : program_(program),
        units_(units),
        layout_(layout),
        precision_(precision),
        settings_(settings),
        group_(std::move(group)),
        compute_(compute) {}
  virtual ~FsdpParameters() = default;
  // The gather streams go on once what is now submitted to compute is done: the optimizer has written the shards.
  virtual void begin_forward(InsertionPoint point) = 0;
  // Nothing happens where it is whole, or on its way.
  virtual void unshard(std::size_t unit, InsertionPoint point) = 0;
  // Nothing happens where it is not on its way. `streams`: that use the parameters beside compute.
  virtual void wait_for_unshard(std::size_t unit, InsertionPoint point, bool forward,
                                const std::set<std::uint16_t>& streams) = 0;
  virtual void reshard(std::size_t unit, InsertionPoint point, const std::set<std::uint16_t>& streams) = 0;
  // As FsdpSettings::forward_shards asks for.
  virtual void reshard_after_forward(std::size_t unit, InsertionPoint point,
                                     const std::set<std::uint16_t>& streams) = 0;
  virtual void end_forward(InsertionPoint point) = 0;
  // Where a parameter stands whole now; kNoStorage: nowhere.
  StorageId whole(StorageId parameter) const {
    const auto found = whole_.find(parameter);
    return found == whole_.end() ? kNoStorage : found->second;
  }
  Bytes largest_buffer() const { return largest_buffer_; }

 protected:
  FsdpProgram& program_;
  const FsdpUnits& units_;
  const FsdpLayout& layout_;
  const FsdpPrecision& precision_;
  const FsdpSettings& settings_;
  const ShardingGroup group_;
  const std::uint16_t compute_;
  std::map<StorageId, StorageId> whole_;  // by parameter
  Bytes largest_buffer_ = 0;
};

// Of version 2.
class FsdpGathers : public FsdpParameters {
 public:
  // As FsdpParameters.
  FsdpGathers(FsdpProgram& program, const FsdpUnits& units, const FsdpLayout& layout, const FsdpPrecision& precision,
              const FsdpSettings& settings, const ShardingGroup& group, std::uint16_t compute);

  void begin_forward(InsertionPoint point) override;
  void unshard(std::size_t unit, InsertionPoint point) override;
  void wait_for_unshard(std::size_t unit, InsertionPoint point, bool forward,
                        const std::set<std::uint16_t>& streams) override;
  void reshard(std::size_t unit, InsertionPoint point, const std::set<std::uint16_t>& streams) override;
  void reshard_after_forward(std::size_t unit, InsertionPoint point, const std::set<std::uint16_t>& streams) override;
  void end_forward(InsertionPoint point) override;

 private:
  struct Buffer {
    StorageId storage = kNoStorage;
    std::uint32_t event = 0;  // gathered; then, in forward: copied out
  };
  struct State {
    bool unsharded = false;
    std::optional<Buffer> gathered;
    std::vector<StorageId> forward_shards;   // by parameter of the unit: cut anew after forward
    std::optional<std::uint32_t> resharded;  // event behind that
  };

  Bytes gathered_element(StorageId parameter) const;
  Bytes message(std::size_t unit) const;
  void gather_streams_wait(InsertionPoint point, std::uint32_t event);

  ShardingGroup forward_group_, root_forward_group_;
  std::uint16_t copy_in_, all_gather_;
  std::vector<State> state_;
  std::vector<bool> kept_;      // by unit: whole after forward
  std::optional<Buffer> held_;  // of the unit before, in forward
};

}  // namespace memwall
