// The optimizer step as DeepSpeed runs it: on the fp32 copy of the rank's partition, by one kernel per part, whatever
// the kernels of the base trace were; or on the host. Common to all stages but 0.
//
// The states of the trace shrink to the rank's part. Where they hold no fp32 copy of the parameters one is added, and
// moments of 16 bit become fp32: DeepSpeed always keeps 12 bytes per parameter for Adam. The time of the step is that
// of the trace's own optimizer kernels for as much less work, so that it is that of their implementation; on the host
// it is that of DRAM: 8 bytes per parameter to unscale gradients, 28 for Adam, 6 to cast (8 into new memory). Source:
// deepspeedai/DeepSpeed, deepspeed/runtime/zero/stage_1_and_2.py and stage3.py (initialization, step,
// unscale_and_clip_grads); Ren et al. 2021, "ZeRO-Offload" (28 bytes).
#pragma once

#include <optional>
#include <vector>

#include "policies/sharding/deepspeed_program.h"
#include "policies/sharding/zero_analysis.h"
#include "policies/trace/dataflow.h"
#include "sim/machine/machine.h"

namespace memwall {

// One optimizer step of the base: where what DeepSpeed does instead goes.
struct StepPlace {
  InsertionPoint begin, end;  // before the first op that uses gradients or states, behind the last
  std::uint16_t stream = 0;   // on which the step runs
};

// What a partition's gradients become: one fp32 tensor `wide`, allocated here. `bytes`: theirs.
struct FlatGradients {
  Bytes bytes = 0;
  StorageId wide = kNoStorage;
};
// self.flatten(averaged_gradients).to(torch.float32): all of them in their own type first. Source:
// deepspeed/runtime/zero/stage_1_and_2.py (step) and stage3.py (_prepare_fp32_grad_for_sub_group).
void flatten_to_fp32(DeepSpeedProgram& program, InsertionPoint point, std::uint16_t stream, const Storages& owned,
                     FlatGradients flat);

class DeepSpeedUpdate {
 public:
  // `elements`: of all parameters; `own`: of those in the rank's partition, padding included; `adds_master`: an fp32
  // copy of them, where the trace has none. All must outlive it.
  DeepSpeedUpdate(DeepSpeedProgram& program, const Dataflow& flow, const ZeroAnalysis& analysis, const Pricer& pricer,
                  std::int64_t elements, std::int64_t own, bool adds_master = true);

  // Shrinks states, on the device or moved to `tier` ("host", "nvme"); `share_there`: of them, the rest stay.
  void place_states(const std::string& tier, double share_there);
  // Takes the step's optimizer kernels out; what else touches gradients then works on `gradients` alone. The step is
  // that behind `last_backward`, before `next_backward`.
  StepPlace take_out(OpId last_backward, OpId next_backward, StorageId gradients);
  // The update of `elements` of the partition on the device.
  void on_device(InsertionPoint point, std::uint16_t stream, std::int64_t elements, StorageId gradients);
  // Unscale, Adam and cast on the host, into `sent`. `swapped`: where the host finds states that live elsewhere;
  // `thread`: which does it, without a value that of the op beside.
  void on_host(InsertionPoint point, std::int64_t elements, StorageId gradients, const Storages& sent,
               const Storages& swapped = {}, std::optional<std::uint16_t> thread = {});

  // Parts of on_host: the scale of gradients; Adam by `thread`, and a copy of the parameters into `copy`; their cast.
  void unscale_on_host(InsertionPoint point, std::int64_t elements, StorageId gradients);
  void adam_beside(InsertionPoint point, std::int64_t elements, StorageId gradients, StorageId copy,
                   std::uint16_t thread);
  void cast_on_host(InsertionPoint point, std::int64_t elements, StorageId from, const Storages& sent);
  // SuperOffload's: gradients into the worker's buffer, and Adam; its results; the cast of these.
  void by_worker(InsertionPoint point, std::int64_t elements, StorageId gradients, StorageId buffer,
                 std::optional<std::uint16_t> thread);
  void take_over(InsertionPoint point, std::int64_t elements);
  void cast_states(InsertionPoint point, std::int64_t elements, const Storages& sent);

  const Storages& states() const { return states_; }
  const Storages& states_on_device() const { return on_device_; }
  // Per parameter, at rest.
  double bytes_per_parameter() const { return bytes_per_parameter_; }
  bool added_master() const { return master_ != kNoStorage; }

 private:
  void widen_and_cut();
  Bytes cast_bytes(const Storages& sent) const;  // of DRAM, by element
  bool clears_gradients(const Op& op) const;
  void keep_scaled(OpId id, StorageId gradients);
  std::vector<OpId> optimizer_ops() const;

  DeepSpeedProgram& p_;
  TraceEdit& edit_;
  const Trace& t_;
  const Dataflow& flow_;
  const ZeroAnalysis& analysis_;
  const Pricer& pricer_;
  std::int64_t elements_, own_;
  std::vector<OpId> optimizer_ops_;  // ascending
  std::vector<bool> is_split_;       // by storage of the base
  Storages states_, on_device_, on_host_;
  StorageId master_ = kNoStorage;
  double widening_ = 1;  // of the states
  double work_ = 1;      // bytes that an update moves, in those of the trace's own
  double bytes_per_parameter_ = 0;
  Op measured_;  // all of a step's kernels as one
};

}  // namespace memwall
