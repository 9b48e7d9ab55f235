// Turns a timed capture (Kineto, Nsight Systems, libmemwall_inject) into a trace: a program that derives its own times.
//
// What is kept: the order of host events per thread, host time between them, the own cost of each
// call, durations on the device, stream order, and edges between streams and threads. Captured
// start times answer only three kinds of question: constants of the file (launch latency, gap in a
// stream, return delay), yes or no (did this call wait? is this edge contradicted?), and what the
// streams held when the window began. The summary says what was concluded, and how often.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "models/workload/import/timed/captured_batches.h"
#include "models/workload/import/timed/note_kind.h"
#include "models/workload/import/timed/timed_capture.h"
#include "sim/trace/trace.h"

namespace memwall {

// Switches that break the result on purpose, for controls.
struct TimedImportOptions {
  bool drop_inferred_edges = false;
  std::uint32_t drop_edge = kNoIndex;      // leave out this edge between streams (counted from 0)
  std::uint32_t drop_host_gap = kNoIndex;  // set the host gap of this op to 0
};

// How often a blocking call of one kind waited.
struct BlockingCalls {
  std::uint64_t waited = 0, did_not_wait = 0;
  Duration return_delay{};  // file median of those that waited
  std::uint64_t return_delay_samples = 0;
};

struct ConstantSamples {
  std::uint64_t launch_latency[kLaunchKinds] = {};
  std::uint64_t stream_gap[kLaunchKinds][kLaunchKinds] = {};
  std::uint64_t graph_gap = 0;
};

// Calls that launch, told by their names.
struct LaunchingCalls {
  std::uint64_t kernels = 0, graphs = 0;                  // calls that launch one
  std::uint64_t kernels_without = 0, graphs_without = 0;  // of them, without work on a GPU in the file
};

struct ImportSummary {
  std::map<std::string, std::uint64_t> file_counts;  // by category, as the file names them
  // By kind, from the capture and as put into the trace; equal unless a note says why.
  std::uint64_t captured_kernels = 0, captured_collectives = 0, captured_copies = 0, captured_memsets = 0;
  std::uint64_t trace_kernels = 0, trace_collectives = 0, trace_copies = 0, trace_memsets = 0;
  std::uint64_t device_memory_events = 0, host_memory_events = 0;
  std::uint64_t memory_without_address = 0;  // of those on the device
  std::uint64_t allocs = 0, frees = 0, preexisting = 0;
  std::uint64_t threads = 0, dropped_threads = 0, streams = 0;
  ConstantSamples samples;
  std::map<std::string, BlockingCalls> blocking;   // by call name and what it copies
  std::uint64_t hand_overs = 0, side_by_side = 0;  // the latter: with a delay of at most 5 us
  std::uint64_t given_edges = 0, inferred_edges = 0, moved_edges = 0, ignored_waits = 0;
  std::uint64_t placed_ops = 0;               // device work without a runtime record
  std::uint64_t queue_limited_launches = 0;   // launched at a depth of 1,000 or more
  std::uint64_t idle_steps = 0;               // of the profiler, in which nothing was launched: left out
  std::uint64_t frees_with_pending_work = 0;  // cudaFree: kept at its captured cost, which may contain waiting
  std::uint64_t calls_as_host_time = 0;       // calls that neither launch nor wait
  std::uint64_t launches_without_record = 0;  // launching calls without device work in the file
  LaunchingCalls launching;
  std::uint64_t unexplained_waits = 0;  // starts > 50 us after every known bound
  Duration unexplained_time{};          // their sum
  Duration unexplained_delay{};         // of it, what later work, other streams or calls still feel
  double unexplained_share = 0;         // unexplained_delay in the GPU span
  std::uint64_t early_starts = 0;       // > 50 us before the end of what was before in the stream
  std::uint64_t launched = 0;           // device work with a launching call
  std::uint64_t before_launch = 0;      // of it: starts > 10 us before that call does, which no clock allows
  Duration most_before_launch{}, median_before_launch{};
  std::uint32_t most_before = kNoIndex;  // which one most: index into TimedCapture::device_ops
  std::uint64_t returns = 0;             // of calls of which is certain for what work they wait
  std::uint64_t early_returns = 0;       // of them: > 10 us before that work ends
  Duration most_early_return{}, median_early_return{};
  Time most_early{};  // when the one that returns the most too early begins
  StringId most_early_name{};
};

struct CapturedStepTimes {
  Duration host_time{};  // this boundary to the next, or to the end of everything
  Duration gpu_span{};   // first start to last end of the device work launched in it
  Time gpu_end{};        // last end of that work
};

// Captured times, to compare a replay with. They are not part of the trace.
struct CapturedTimes {
  Time origin{};  // on the capture's clock; what follows counts from there
  std::vector<Time> start,
      end;           // one per op of the trace; kNever without device work. Not of import_and_release_capture.
  Duration total{};  // first event to the last end, host or device
  Duration gpu_span{};
  std::vector<CapturedStepTimes> steps;
};

struct ImportedTrace {
  Trace trace;                                // Trace::machine is left open: a capture names a GPU, not a machine
  std::string gpu;                            // as the capture calls it; "" = unknown
  std::vector<std::uint32_t> operator_of_op;  // index into TimedCapture::operators, or kNoIndex
  // Of alloc and free: index into TimedCapture::memory, else kNoIndex. Not of import_and_release_capture.
  std::vector<std::uint32_t> memory_of_op;
  std::vector<std::uint32_t> device_of_op;  // index into TimedCapture::device_ops, or kNoIndex
  std::vector<CapturedBatch> batches;       // ascending by device op
  ImportSummary summary;
  NoteKinds note_kinds;  // of trace.notes
  CapturedTimes captured;
};

// Throws InputError where the capture holds no program (no host call and no device work). The
// trace is sound (see sim/trace/trace_check.h); its notes carry the summary's essential lines.
ImportedTrace import_timed_capture(const TimedCapture& capture, const TimedImportOptions& options = {});

// Likewise for a capture that fills the memory: gives away what it has read while the trace grows. The capture's calls,
// memory events, rows about synchronization and modules keep their number and lose their content; operators, device
// work and everything else stay. The result lacks what the comments above say.
ImportedTrace import_and_release_capture(TimedCapture& capture, const TimedImportOptions& options = {});

}  // namespace memwall
