// ZenFlow (stages 1 and 2 with offload_optimizer=cpu): a share of the columns of each parameter, those whose gradients
// are largest, and all vectors are updated on every rank's GPU after each micro-batch, by an optimizer whose moments
// have the parameters' type; the host adds up whole gradients, as it does without ZenFlow, and updates everything once
// in update_interval micro-batches. What DeepSpeed calls gradient_accumulation_steps is update_interval then.
//
// Behind the all-reduce of a bucket each rank takes the gradients of the selected columns that it owns into a buffer,
// and broadcasts them, owner by owner; the update follows in the same stream. Every select_interval micro-batches
// columns are chosen anew first: sums of their gradients, indices broadcast by their owners; before that backward the
// rank's slices of the parameters come down to the host, and the moments are cleared. In the last micro-batch of a step
// selected columns and their gradients are put aside; once the host's update has been gathered they are put back, and
// updated. With overlap_step a process of its own updates on the host beside the next step, from the other of two
// gradient buffers, with two pairs of moments, and leaves a copy of the parameters, which the step that comes sends.
//
// DeepSpeed sends whole gradients to the host after every micro-batch, not what is left of the selected columns.
// Source: deepspeedai/DeepSpeed, deepspeed/runtime/zenflow/zenflow_stage_1_and_2.py, engine.py, zenflow_utils.py;
// deepspeed/ops/adam/zenflow_torch_adam.py; csrc/adam/cpu_adam_impl.cpp. Lan et al. 2025, "ZenFlow: Enabling Stall-Free
// Offloading Training via Asynchronous Updates".
//
// Columns: DeepSpeed's are those of the weight as PyTorch has it (second dimension). Where the trace does not know the
// shape of a parameter the share is that of its elements.
#pragma once

#include <map>
#include <vector>

#include "policies/sharding/deepspeed_layout.h"
#include "policies/sharding/deepspeed_program.h"
#include "policies/sharding/deepspeed_settings.h"
#include "policies/sharding/zero_analysis.h"

namespace memwall {

class ZenFlow {
 public:
  // Does nothing unless it is asked for. Throws UsageError where an update follows on another number of micro-batches
  // than update_interval, or a parameter has more than two dimensions. All must outlive it.
  ZenFlow(DeepSpeedProgram& program, const ZeroAnalysis& analysis, const FlatLayout& layout,
          const DeepSpeedSettings& settings);

  // The optimizer's own states on the GPU, or with zenflow_offload on the host.
  Bytes state_bytes() const { return states_ == kNoStorage ? 0 : p_.edit().tables().storages[states_].bytes; }
  std::int64_t selected_elements() const { return selected_elements_; }

  // Of micro-batch `number`, counted over the trace; `point`: before its backward.
  void begin_pass(std::size_t number, InsertionPoint point, std::uint16_t compute);
  // Gradients on their way into a bucket are transposed first.
  void transpose(InsertionPoint point, std::uint16_t stream, StorageId parameter, StorageId gradient, Bytes bytes);
  // Of a bucket that has been reduced in `stream` into `source`; `last`: of the micro-batch before the host's update.
  void update(InsertionPoint point, std::uint16_t stream, const Storages& parameters, StorageId source, bool last);
  // Behind the gather of what the host has updated in step `number`: what was put aside.
  void end_step(std::size_t number, InsertionPoint point, std::uint16_t stream);

 private:
  static constexpr Bytes kMoments = 2;
  struct Slice {
    std::uint32_t rank = 0;
    std::int64_t elements = 0;               // of it
    std::int64_t columns = 0, selected = 0;  // that are chosen; their elements. Of a vector no columns, all elements.
    bool own = false;
  };
  struct Run {  // of one owner's slices that follow each other
    std::uint32_t rank = 0;
    std::int64_t columns = 0, selected = 0;
  };
  struct PutAside {
    Storages parameters, storages;
    std::int64_t elements = 0;
  };

  void require_passes(const ZeroAnalysis& analysis) const;
  std::vector<Slice> slices(StorageId parameter) const;
  std::vector<Run> runs(const Storages& parameters) const;
  void select(InsertionPoint point, std::uint16_t stream, const Storages& parameters, StorageId source);
  void adam(InsertionPoint point, std::uint16_t stream, const Storages& parameters, StorageId gradients,
            std::int64_t elements);
  Bytes element_of(StorageId parameter) const { return layout_.groups()[layout_.of(parameter).group].element; }

  DeepSpeedProgram& p_;
  const FlatLayout& layout_;
  const DeepSpeedSettings& settings_;
  std::map<StorageId, std::vector<Slice>> slices_;  // by parameter
  std::int64_t selected_elements_ = 0;              // of all
  StorageId states_ = kNoStorage, returned_ = kNoStorage;
  bool selects_ = false;                          // the present micro-batch
  std::vector<std::vector<PutAside>> put_aside_;  // by step
};

}  // namespace memwall
