// Ops of a capture's host threads: each at its captured time, so that what lies between two of a thread becomes the
// host's gap.
// Internal to the importers of timed captures.
#pragma once

#include <cstdint>
#include <vector>

#include "models/workload/import/timed/capture_phases.h"
#include "models/workload/import/timed/captured_times.h"
#include "models/workload/import/timed/device_work.h"
#include "models/workload/import/timed/joined_capture.h"
#include "models/workload/import/timed/module_paths.h"
#include "models/workload/import/timed/timed_import.h"
#include "sim/trace/trace_builder.h"

namespace memwall {

class HostOpWriter {
 public:
  struct Thread {
    Time cursor{};  // captured end of its last op
    OpId last_op = kNoOp;
    std::int32_t current_stream = -1;  // of its last launch that is no collective
    Time last_end{};                   // of its events so far, which need not be ops
  };

  // Keeps references to all but `keeps_memory`: whether ImportedTrace::memory_of_op is written.
  HostOpWriter(const TimedCapture& capture, const CapturePhases& phases, bool keeps_memory, TraceBuilder& builder,
               DeviceWorkWriter& work, CapturedTimesWriter& times, ImportedTrace& result)
      : c_(capture),
        phases_(phases),
        modules_(find_modules(capture)),
        module_name_(modules_.paths.size(), kUnmapped),
        keeps_memory_(keeps_memory),
        builder_(builder),
        work_(work),
        times_(times),
        result_(result) {}

  // Declares the threads that are kept, one where none is. Before any op.
  void add_threads(const JoinedCapture& joined, Time origin);
  // Nearly always as many ops or fewer: vectors that grow hold everything twice while they do.
  void reserve(std::size_t ops);

  std::uint16_t thread_of(std::uint16_t captured) const { return thread_index_[captured]; }
  Thread& thread(std::uint16_t thread) { return threads_[thread]; }
  std::uint16_t threads() const { return static_cast<std::uint16_t>(threads_.size()); }

  OpId append(const Op& op, std::uint32_t operator_index, std::uint32_t device = kNoIndex,
              std::uint32_t memory = kNoIndex);
  // An op on the host at a captured time: its gap is what lies between, its end moves the cursor.
  OpId append_host(Op op, std::uint16_t thread, Time start, Time end, std::uint32_t operator_index,
                   std::uint32_t device = kNoIndex, std::uint32_t memory = kNoIndex);
  // Takes no time, at the thread's cursor.
  OpId append_at_cursor(const Op& op, std::uint16_t thread, std::uint32_t device = kNoIndex) {
    return append_host(op, thread, threads_[thread].cursor, threads_[thread].cursor, kNoIndex, device);
  }
  OpId append_mark(std::uint16_t thread, Time time);
  // Phase, operator and module.
  void describe(Op& op, std::uint16_t captured_thread, Time time, std::uint32_t operator_index);

 private:
  static constexpr StringId kUnmapped = 0xffffffff;

  const TimedCapture& c_;
  const CapturePhases& phases_;
  ModulePaths modules_;
  std::vector<StringId> module_name_;  // module path -> trace string
  bool keeps_memory_;
  TraceBuilder& builder_;
  DeviceWorkWriter& work_;
  CapturedTimesWriter& times_;
  ImportedTrace& result_;
  std::vector<std::uint16_t> thread_index_;  // of captured threads in the trace
  std::vector<Thread> threads_;              // of the trace
};

}  // namespace memwall
