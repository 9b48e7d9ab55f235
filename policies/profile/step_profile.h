// What a planner of memory plans sees of a step, made once from its trace and a simulation of it with unlimited memory:
// when each op runs, how many bytes each storage takes, and the gaps between uses, in which it could be away.
#pragma once

#include <span>
#include <vector>

#include "policies/profile/derived_values.h"
#include "policies/trace/dataflow.h"
#include "policies/trace/parameter_gathers.h"
#include "sim/machine/machine.h"
#include "sim/trace/trace.h"

namespace memwall {

// Between two uses of a storage that follow each other.
struct Gap {
  StorageId storage = kNoStorage;
  std::uint32_t touch = 0;             // the use before it: an index into Dataflow::touches
  OpId after = kNoOp, before = kNoOp;  // the ops of both uses; of a gap that wraps, `before` is in the next step
  Time begin{}, end{};                 // from the end of all uses so far to the start of the next
  bool needs_content = true;           // the next use reads; else it writes all of it
  bool wraps = false;                  // across the boundary of the step, into the next that is like it

  Duration length() const { return end - begin; }
};

class StepProfile {
 public:
  // Simulates. `trace` and `machine` must outlive it. Throws what simulate() throws (sim/engine/simulation.h).
  StepProfile(const Trace& trace, const Machine& machine);

  const Trace& trace() const { return trace_; }
  const Machine& machine() const { return machine_; }
  const Dataflow& flow() const { return flow_; }
  const ParameterGathers& gathers() const { return gathers_; }

  // When the op runs: on the device, or on the host where it puts nothing on a stream.
  Time start(OpId op) const { return starts_[op]; }
  Time end(OpId op) const { return ends_[op]; }
  Duration step_time() const { return step_time_; }
  // The first op of the host program with which the device is at `time` or behind it; the number of ops where none is.
  OpId op_at(Time time) const;
  // The last op on the device that has begun by `time`; the first op on the device where none has. To have a copy begin
  // at about `time`, issue it right before this op in the host program: all that stands before it has been issued by
  // then, and the copy does not wait for the op itself.
  OpId op_running_at(Time time) const;

  // Does the storage lie in device memory, and of how many bytes is its block there? As PyTorch's allocator rounds.
  bool on_device(StorageId storage) const { return held_[storage] > 0; }
  Bytes held(StorageId storage) const { return held_[storage]; }
  // By storage; 0 of what lies elsewhere, and of what has no bytes.
  const std::vector<Bytes>& held() const { return held_; }
  // On the device from the start, and no storage of the trace.
  Bytes untracked() const { return trace_.untracked_bytes; }

  // Of all storages in device memory, ascending by storage and time. What never leaves the step ends with one that
  // wraps.
  std::span<const Gap> gaps() const { return gaps_; }
  // Of one storage.
  std::span<const Gap> gaps(StorageId storage) const;

  // How long all ops take together that make the storage's content; zero of what no op writes.
  Duration producer_time(StorageId storage) const;

  // Values that others derive from it, each made once.
  const DerivedValues& derived() const { return derived_; }

 private:
  void find_gaps(StorageId storage);

  const Trace& trace_;
  const Machine& machine_;
  const Dataflow flow_;
  const ParameterGathers gathers_;
  std::vector<Time> starts_, ends_;
  std::vector<Time> reached_;  // by op: the latest start on the device of it and all before
  Duration step_time_{};
  std::vector<Bytes> held_;
  std::vector<Gap> gaps_;
  std::vector<std::uint32_t> first_gap_;  // by storage, and one past the end
  DerivedValues derived_;
};

}  // namespace memwall
