// Writes the trace: the merged host program, with what each call launches, waits for and costs.
#include "models/workload/import/timed/timed_import.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "models/workload/import/timed/capture_completeness.h"
#include "models/workload/import/timed/capture_costs.h"
#include "models/workload/import/timed/capture_phases.h"
#include "models/workload/import/timed/captured_lifetimes.h"
#include "models/workload/import/timed/device_work.h"
#include "models/workload/import/timed/host_op_writer.h"
#include "models/workload/import/timed/host_program.h"
#include "models/workload/import/timed/import_notes.h"
#include "models/workload/import/timed/joined_capture.h"
#include "models/workload/import/timed/page_release.h"
#include "models/workload/import/timed/placed_events.h"
#include "models/workload/import/timed/stream_edges.h"
#include "sim/error.h"
#include "sim/trace/step_count.h"
#include "sim/trace/trace_builder.h"
#include "sim/trace/trace_check.h"

namespace memwall {
namespace {

using std::string_view;

constexpr std::size_t kReleaseBatch = 1 << 16;     // points of the host program
constexpr Duration kSideBySide = microseconds(5);  // a hand-over faster than this is two threads at work

class ProgramWriter {
 public:
  // `released`: the same capture, if it is given away; else null.
  ProgramWriter(const TimedCapture& capture, const TimedImportOptions& options, TimedCapture* released)
      : c_(capture),
        released_(released),
        options_(options),
        times_(released == nullptr),
        j_(join_capture(capture)),
        phases_(capture),
        lifetimes_(find_lifetimes(capture)),
        edges_(find_stream_edges(j_)),
        work_(j_, builder_, result_.summary),
        ops_(capture, phases_, released == nullptr, builder_, work_, times_, result_) {
    j_.call_of_correlation = {};  // of a capture of 10 GB a gigabyte, and nobody asks again
    if (released_ != nullptr) {
      release_pages(released_->modules, 0, released_->modules.size());
      release_pages(released_->syncs, 0, released_->syncs.size());
      trim_heap();
    }
    costs_ = find_costs(j_, edges_, result_.summary);
    result_.summary.launching = launching_calls(j_);
    count_memory(c_, result_.summary);
  }

  ImportedTrace run() {
    points_ = merge_host_events(j_, phases_);
    if (points_.empty() && c_.device_ops.empty())
      throw InputError(c_.path.string() +
                       ": found no host call, operator or device work among its events; expected a "
                       "capture of a program that ran on a GPU.");
    set_origin();
    ops_.reserve(c_.device_ops.size() + c_.calls.size() + c_.memory.size());
    builder_.trace().storages.reserve(lifetimes_.storages.size());
    declare();
    events_ = place_events(j_, edges_, options_, builder_, result_.summary);
    if (released_ != nullptr) trim_heap();
    emit_head();
    for (std::size_t i = 0; i < points_.size(); ++i) {
      if (released_ != nullptr && i > 0 && i % kReleaseBatch == 0) release_read_events(i);
      emit(i);
    }
    emit_ends();
    finish_steps();
    return finish();
  }

 private:
  const CapturedDeviceOp& device_op(std::uint32_t i) const { return c_.device_ops[i]; }

  // --- before the first op ---
  void set_origin() {
    origin_ = points_.empty() ? kNever : points_.front().time;
    for (const CapturedDeviceOp& op : c_.device_ops) origin_ = std::min(origin_, op.start);
    times_.set_origin(origin_);
  }

  void declare() {
    Trace& trace = builder_.trace();
    trace.name = c_.path.filename().string();
    for (const string_view ending : {".gz", ".json"})
      if (trace.name.ends_with(ending)) trace.name.resize(trace.name.size() - ending.size());
    result_.gpu = device_name(j_);
    trace.place("hbm");
    trace.place("host");
    ops_.add_threads(j_, origin_);
    work_.add_streams();
    trace.constants = costs_.constants;
    for (const CapturedStorage& storage : lifetimes_.storages)
      builder_.add_storage(storage.bytes, StorageKind::unknown, "hbm", "", storage.preexisting);
    lifetimes_.storages = {};
    trace.untracked_bytes = lifetimes_.untracked;
    trace.reserved_at_start = lifetimes_.reserved;
  }

  void emit_head() {
    if (phases_.steps().empty()) {
      Op mark;
      const std::string name = phases_.window_name();
      mark.name = builder_.trace().strings.intern(name);
      mark.thread = points_.empty() ? std::uint16_t{0} : ops_.thread_of(points_.front().thread);
      begin_step(name, ops_.append_host(mark, mark.thread, origin_, origin_, kNoIndex));
    }
    for (const JoinedStream& stream : j_.streams)
      for (const std::uint32_t device : stream.order) {
        if (j_.device_ops[device].placement != Placement::head) break;
        Op op = work_.op(device, kNoIndex);
        op.placed = true;
        op.host_gap = device_op(device).start - origin_;
        ++result_.summary.placed_ops;
        ops_.append(op, kNoIndex, device);
        record_behind(device, 0);
      }
  }

  void record_behind(std::uint32_t device, std::uint16_t thread) {
    if (events_.behind[device] == kNoIndex) return;
    Op op;
    op.kind = OpKind::event_record;
    op.stream = j_.device_ops[device].stream;
    op.target = events_.behind[device];
    ops_.append_at_cursor(op, thread);
  }

  void wait_before(std::uint32_t device, std::uint16_t thread, Time time) {
    const auto awaited = events_.before.find(device);
    if (awaited == events_.before.end()) return;
    for (const auto& [event, inferred] : awaited->second) {
      Op op;
      op.kind = OpKind::event_wait;
      op.stream = j_.device_ops[device].stream;
      op.target = event;
      op.inferred = inferred;
      ops_.append_host(op, thread, time, time, kNoIndex);
    }
  }

  // Device work of which the file has no call goes with what stands before it in the stream.
  void emit_unlaunched(std::uint32_t device, std::uint16_t thread, Phase phase) {
    const std::vector<std::uint32_t>& order = j_.streams[j_.device_ops[device].stream].order;
    for (std::size_t at = j_.device_ops[device].position + 1u; at < order.size(); ++at) {
      if (j_.device_ops[order[at]].placement != Placement::unlaunched) return;
      Op op = work_.op(order[at], kNoIndex);
      op.phase = phase;
      ++result_.summary.placed_ops;
      ops_.append_at_cursor(op, thread, order[at]);
      record_behind(order[at], thread);
    }
  }

  // --- host events ---
  void emit(std::size_t i) {
    const ProgramPoint& point = points_[i];
    const std::uint16_t thread = ops_.thread_of(point.thread);
    if (i > 0 && points_[i - 1].thread != point.thread) emit_hand_over(points_[i - 1], point.time, thread);
    before_call_ = kNoOp;
    switch (point.kind) {
      case PointKind::call:
        if (i + 1 < points_.size() && points_[i + 1].thread != point.thread &&
            points_[i + 1].time < c_.calls[point.index].end())
          before_call_ = ops_.append_mark(thread, point.time);  // another thread goes on while this call lasts
        emit_call(point.index, thread);
        break;
      case PointKind::memory:
        emit_memory(point.index, thread);
        break;
      case PointKind::range:
        emit_host_work(point, thread);
        break;
      case PointKind::step: {
        Op mark;
        mark.name = builder_.trace().strings.intern(phases_.steps()[point.index].name);
        const OpId id = ops_.append_host(mark, thread, point.time, point.time, kNoIndex);
        begin_step(phases_.steps()[point.index].name, id);
        break;
      }
      default:
        break;
    }
    ops_.thread(thread).last_end = std::max(ops_.thread(thread).last_end, end_of(point));
  }

  Time end_of(const ProgramPoint& point) const {
    if (point.kind == PointKind::range) return c_.operators[point.index].end();
    return point.kind == PointKind::call ? c_.calls[point.index].end() : point.time;
  }

  // The host alone, under the name of the range.
  void emit_host_work(const ProgramPoint& point, std::uint16_t thread) {
    const CapturedOperator& range = c_.operators[point.index];
    Op op;
    op.kind = OpKind::host_work;
    op.name = work_.string(range.name);
    op.host_cost = range.duration;
    ops_.describe(op, point.thread, point.time, point.index);
    ops_.append_host(op, thread, range.start, range.end(), point.index);
  }

  void begin_step(const std::string& name, OpId mark) {
    builder_.trace().steps.push_back({name, mark, 0});
    times_.begin_step();
  }

  // Nobody asks again what lies before the point in front of this one.
  void release_read_events(std::size_t next) {
    const Time time = points_[next - 1].time;
    std::size_t calls = released_counts_.calls, memory = released_counts_.memory;
    while (calls < c_.calls.size() && c_.calls[calls].start < time) ++calls;
    while (memory < c_.memory.size() && c_.memory[memory].time < time) ++memory;
    release_pages(points_, released_counts_.points, next - 1);
    release_pages(released_->calls, released_counts_.calls, calls);
    release_pages(j_.calls, released_counts_.calls, calls);
    release_pages(costs_.calls, released_counts_.calls, calls);
    release_pages(events_.of_call, released_counts_.calls, calls);
    release_pages(released_->memory, released_counts_.memory, memory);
    release_pages(j_.operator_of_memory, released_counts_.memory, memory);
    release_pages(lifetimes_.storage_of, released_counts_.memory, memory);
    released_counts_ = {next - 1, calls, memory};
  }

  // From the last event of the thread that ran to the first of the one that runs now.
  void emit_hand_over(const ProgramPoint& last, Time now, std::uint16_t thread) {
    const std::uint16_t other = ops_.thread_of(last.thread);
    const Time last_end = end_of(last);
    OpId source = before_call_;
    Time from = last.time;
    if (source == kNoOp) {
      source = ops_.thread(other).last_op;
      if (source == kNoOp || ops_.thread(other).cursor < last_end) source = ops_.append_mark(other, last_end);
      from = ops_.thread(other).cursor;
    }
    Op op;
    op.kind = OpKind::hand_over;
    op.thread = thread;
    op.target = source;
    op.host_gap = std::max(now - from, Duration{});
    ++result_.summary.hand_overs;
    if (op.host_gap <= kSideBySide) ++result_.summary.side_by_side;
    ops_.thread(thread).cursor = std::max(ops_.thread(thread).cursor, now);
    ops_.thread(thread).last_op = ops_.append(op, kNoIndex);
  }

  void emit_call(std::uint32_t index, std::uint16_t thread) {
    const JoinedCall& joined = j_.calls[index];
    const CapturedCall& call = c_.calls[index];
    if (joined.role == CallRole::launch || joined.role == CallRole::graph) return emit_launch(index, thread);
    if (joined.role == CallRole::plain) {
      ++result_.summary.calls_as_host_time;
      const string_view name = c_.text(call.name);
      if (name.find("Launch") != string_view::npos || name.find("Memset") != string_view::npos ||
          name.find("Memcpy") != string_view::npos)
        ++result_.summary.launches_without_record;
      return;
    }
    Op op;
    op.kind = joined.role == CallRole::synchronize ? OpKind::synchronize : OpKind::host_work;
    op.name = work_.string(call.name);
    op.wait_for = joined.wait_for;
    op.stream = joined.stream;
    if (joined.wait_for == WaitFor::event) {
      op.target = events_.of_call[index];
      if (op.target == kNoIndex) op.wait_for = WaitFor::nothing;
    }
    op.host_cost = costs_.calls[index].own;
    op.return_delay = costs_.calls[index].return_delay;
    ops_.describe(op, call.thread, call.start, joined.operator_index);
    ops_.append_host(op, thread, call.start, call.end(), joined.operator_index);
  }

  void emit_launch(std::uint32_t index, std::uint16_t thread) {
    const JoinedCall& joined = j_.calls[index];
    const CapturedCall& call = c_.calls[index];
    const std::uint32_t first = j_.launched[joined.first_launched];
    for (std::uint32_t k = 0; k < joined.launched; ++k)
      wait_before(j_.launched[joined.first_launched + k], thread, call.start);
    Op op;
    if (joined.role == CallRole::graph) {
      op.kind = OpKind::graph_launch;
      op.name = work_.string(call.name);
      op.stream = joined.stream;
    } else {
      op = work_.op(first, joined.operator_index);
      op.wait_for = joined.wait_for;
      op.return_delay = costs_.calls[index].return_delay;
    }
    op.host_cost = costs_.calls[index].own;
    ops_.describe(op, call.thread, call.start, joined.operator_index);
    const Phase phase = op.phase;
    ops_.append_host(op, thread, call.start, call.end(), joined.operator_index,
                     joined.role == CallRole::graph ? kNoIndex : first);
    if (!j_.device_ops[first].collective) ops_.thread(thread).current_stream = joined.stream;
    if (joined.role == CallRole::graph) {
      for (std::uint32_t k = 0; k < joined.launched; ++k) {
        const std::uint32_t device = j_.launched[joined.first_launched + k];
        Op node = work_.op(device, joined.operator_index);
        node.graph_member = true;
        ops_.describe(node, call.thread, call.start, joined.operator_index);
        ops_.append_host(node, thread, call.end(), call.end(), joined.operator_index, device);
      }
    }
    for (std::uint32_t k = 0; k < joined.launched; ++k) record_behind(j_.launched[joined.first_launched + k], thread);
    for (std::uint32_t k = 0; k < joined.launched; ++k)
      emit_unlaunched(j_.launched[joined.first_launched + k], thread, phase);
  }

  void emit_memory(std::uint32_t index, std::uint16_t thread) {
    const std::uint32_t storage = lifetimes_.storage_of[index];
    if (storage == kNoIndex) return;
    const CapturedMemory& event = c_.memory[index];
    Op op;
    op.kind = event.bytes > 0 ? OpKind::alloc : OpKind::free;
    op.target = storage;
    Storage& stored = builder_.trace().storages[storage];
    if (op.kind == OpKind::alloc) {
      ++result_.summary.allocs;
      stored.stream = static_cast<std::uint16_t>(std::max(ops_.thread(thread).current_stream, 0));
    } else {
      ++result_.summary.frees;
    }
    op.stream = stored.stream;
    const std::uint32_t operator_index = j_.operator_of_memory[index];
    ops_.describe(op, event.thread, event.time, operator_index);
    ops_.append_host(op, thread, event.time, event.time, operator_index, kNoIndex, index);
  }

  // --- after the last op ---
  // What each thread still did on the host behind its last op.
  void emit_ends() {
    for (std::uint16_t thread = 0; thread < ops_.threads(); ++thread) {
      if (ops_.thread(thread).last_end > ops_.thread(thread).cursor)
        ops_.append_mark(thread, ops_.thread(thread).last_end);
      host_end_ = std::max(host_end_, ops_.thread(thread).cursor);
    }
  }

  void finish_steps() {
    std::vector<Step>& steps = builder_.trace().steps;
    for (std::size_t i = 0; i < steps.size(); ++i)
      steps[i].last = i + 1 < steps.size() ? steps[i + 1].first : static_cast<OpId>(builder_.trace().ops.size());
    std::vector<Time> starts;
    for (const StepMarker& step : phases_.steps()) starts.push_back(step.start - origin_);
    if (starts.empty()) starts.push_back({});
    result_.captured = std::move(times_).finish(host_end_ - origin_, starts);
    leave_out_idle_steps();
  }

  // A step that the profiler began and nothing was launched in is no step: a mean over all would be too short. What the
  // host did in it belongs to the step before, as in memwall::leave_out_idle_steps.
  void leave_out_idle_steps() {
    Trace& trace = builder_.trace();
    std::vector<CapturedStepTimes> captured;
    for (std::size_t i = 0; i < trace.steps.size() && i < result_.captured.steps.size(); ++i) {
      const CapturedStepTimes& times = result_.captured.steps[i];
      if (!is_idle(trace, trace.steps[i]))
        captured.push_back(times);
      else if (!captured.empty())
        captured.back().host_time += times.host_time;
    }
    result_.summary.idle_steps = memwall::leave_out_idle_steps(trace);
    if (result_.summary.idle_steps > 0) result_.captured.steps = std::move(captured);
  }

  ImportedTrace finish() {
    Trace& trace = builder_.trace();
    ImportSummary& summary = result_.summary;
    count_capture(j_, summary);
    summary.preexisting = lifetimes_.preexisting;
    summary.moved_edges = edges_.moved;
    summary.ignored_waits = edges_.ignored_waits;
    if (options_.drop_host_gap < trace.ops.size()) trace.ops[options_.drop_host_gap].host_gap = Duration{};
    trace.knowledge.timing = true;
    trace.knowledge.allocations = result_.summary.allocs + result_.summary.frees > 0;
    CaptureCompleteness completeness = completeness_of(j_, summary);
    trace.completeness = completeness.state;
    trace.completeness_reason = std::move(completeness.reason);
    NoteList notes = import_notes(j_, lifetimes_, result_.summary, trace.constants);
    note_steps(phases_, notes);
    trace.notes = notes.notes();
    result_.note_kinds = notes.kinds();
    result_.batches = std::move(j_.batches);
    result_.trace = std::move(builder_).finish();
    require_sound(result_.trace, c_.path.string());
    return std::move(result_);
  }

  const TimedCapture& c_;
  TimedCapture* released_;  // the same, or null
  const TimedImportOptions& options_;
  CapturedTimesWriter times_;
  ImportedTrace result_;
  JoinedCapture j_;
  CapturePhases phases_;
  CapturedLifetimes lifetimes_;
  StreamEdges edges_;
  CaptureCosts costs_;
  TraceBuilder builder_;
  DeviceWorkWriter work_;
  HostOpWriter ops_;
  PlacedEvents events_;
  std::vector<ProgramPoint> points_;
  struct {
    std::size_t points = 0, calls = 0, memory = 0;
  } released_counts_;         // as many have been given away
  OpId before_call_ = kNoOp;  // the mark in front of the call emitted last
  Time origin_{}, host_end_{};
};

}  // namespace

ImportedTrace import_timed_capture(const TimedCapture& capture, const TimedImportOptions& options) {
  return ProgramWriter(capture, options, nullptr).run();
}

ImportedTrace import_and_release_capture(TimedCapture& capture, const TimedImportOptions& options) {
  return ProgramWriter(capture, options, &capture).run();
}

}  // namespace memwall
