// Writes the trace: the merged host program, with what each call launches, waits for and costs.
#include "models/workload/import/kineto_import.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "models/workload/import/kineto_costs.h"
#include "models/workload/import/kineto_edges.h"
#include "models/workload/import/kineto_join.h"
#include "models/workload/import/kineto_kernel.h"
#include "models/workload/import/kineto_memory.h"
#include "models/workload/import/kineto_modules.h"
#include "models/workload/import/kineto_notes.h"
#include "models/workload/import/kineto_phases.h"
#include "models/workload/import/kineto_program.h"
#include "models/workload/operator_class.h"
#include "sim/error.h"
#include "sim/trace_builder.h"
#include "sim/trace_check.h"

namespace memwall {
namespace {

using std::string_view;

constexpr Duration kSideBySide = microseconds(5);  // a hand-over faster than this is two threads at work

class Importer {
 public:
  Importer(const KinetoCapture& capture, const KinetoImportOptions& options)
      : c_(capture), options_(options), j_(join_capture(capture)), phases_(capture), modules_(find_modules(capture)),
        lifetimes_(find_lifetimes(capture)), edges_(find_stream_edges(j_)) {
    costs_ = find_costs(j_, edges_, result_.summary);
  }

  ImportedTrace run() {
    points_ = merge_host_events(j_, phases_);
    if (points_.empty() && c_.device_ops.empty())
      throw InputError(c_.path.string() + ": found no host call, operator or device work among its events; expected a "
                       "capture of a program that ran on a GPU.");
    set_origin();
    declare();
    choose_events();
    emit_head();
    for (std::size_t i = 0; i < points_.size(); ++i) emit(i);
    emit_ends();
    finish_steps();
    return finish();
  }

 private:
  struct ThreadState {
    Time cursor{};         // captured end of its last op
    OpId last_op = kNoOp;
    std::int32_t current_stream = -1;  // of its last launch that is no collective
  };

  const CapturedDeviceOp& device_op(std::uint32_t i) const { return c_.device_ops[i]; }

  // --- before the first op ---
  void set_origin() {
    origin_ = points_.empty() ? kNever : points_.front().time;
    for (const CapturedDeviceOp& op : c_.device_ops) origin_ = std::min(origin_, op.start);
  }

  void declare() {
    Trace& trace = builder_.trace();
    trace.name = c_.path.filename().string();
    for (const string_view ending : {".gz", ".json"})
      if (trace.name.ends_with(ending)) trace.name.resize(trace.name.size() - ending.size());
    trace.machine = device_name(j_);
    trace.place("hbm");
    trace.place("host");
    thread_index_.assign(c_.threads.size(), 0);
    for (std::size_t t = 0; t < c_.threads.size(); ++t)
      if (j_.thread_kept[t]) thread_index_[t] = builder_.add_thread("thread " + std::to_string(c_.threads[t].id));
    if (trace.threads.empty()) builder_.add_thread("host");
    bool several = false;
    for (const JoinedStream& s : j_.streams) several = several || s.device_index > 0;
    for (const JoinedStream& s : j_.streams)
      builder_.add_stream((several ? "device " + std::to_string(s.device) + " stream " : "stream ") + std::to_string(s.id),
                          s.role, s.device_index);
    trace.constants = costs_.constants;
    threads_.resize(trace.threads.size());
    for (ThreadState& thread : threads_) thread.cursor = origin_;
    for (const CapturedStorage& storage : lifetimes_.storages)
      builder_.add_storage(storage.bytes, StorageKind::unknown, "hbm", "", storage.preexisting);
    trace.untracked_bytes = lifetimes_.untracked;
    trace.reserved_at_start = lifetimes_.reserved;
    operator_name_.assign(c_.strings.size(), kUnmapped);
    module_name_.assign(modules_.paths.size(), kUnmapped);
  }

  // Events are recorded right behind their producers and waited for right before their consumers.
  void choose_events() {
    records_.resize(c_.device_ops.size(), kNoIndex);
    waits_.resize(c_.device_ops.size());
    std::uint32_t number = 0;
    for (const StreamEdge& edge : edges_.edges) {
      const bool dropped = number++ == options_.drop_edge || (edge.inferred && options_.drop_inferred_edges);
      if (dropped || !recordable(edge.producer)) continue;
      ++(edge.inferred ? result_.summary.inferred_edges : result_.summary.given_edges);
      waits_[edge.consumer].push_back({event_behind(edge.producer), edge.inferred});
    }
    event_of_call_.assign(c_.calls.size(), kNoIndex);
    for (std::uint32_t call = 0; call < c_.calls.size(); ++call) {
      const JoinedCall& joined = j_.calls[call];
      if (joined.wait_for != WaitFor::event) continue;
      const auto last = j_.last_before(joined.stream, joined.awaited_record);
      const std::uint32_t producer = last ? j_.streams[joined.stream].order[*last] : kNoIndex;
      if (producer != kNoIndex && recordable(producer)) event_of_call_[call] = event_behind(producer);
    }
  }

  // What was placed as captured is over when it is over; only a stream's last such op can be recorded.
  bool recordable(std::uint32_t producer) const {
    const JoinedDeviceOp& op = j_.device_ops[producer];
    if (op.placement != Placement::head) return true;
    const std::vector<std::uint32_t>& order = j_.streams[op.stream].order;
    return op.position + 1 == order.size() || j_.device_ops[order[op.position + 1]].placement != Placement::head;
  }

  std::uint32_t event_behind(std::uint32_t producer) {
    if (records_[producer] == kNoIndex) records_[producer] = builder_.add_event();
    return records_[producer];
  }

  // --- ops ---
  OpId append(const Op& op, std::uint32_t operator_index, std::uint32_t device = kNoIndex, std::uint32_t memory = kNoIndex) {
    const OpId id = builder_.append(op);
    result_.operator_of_op.push_back(operator_index);
    result_.memory_of_op.push_back(memory);
    result_.captured.start.push_back(device == kNoIndex ? kNever : device_op(device).start - origin_);
    result_.captured.end.push_back(device == kNoIndex ? kNever : device_op(device).end() - origin_);
    return id;
  }

  // An op on the host at a captured time: its gap is what lies between, its end moves the cursor.
  OpId append_host(Op op, std::uint16_t thread, Time start, Time end, std::uint32_t operator_index,
                   std::uint32_t device = kNoIndex, std::uint32_t memory = kNoIndex) {
    ThreadState& state = threads_[thread];
    op.thread = thread;
    op.host_gap = std::max(start - state.cursor, Duration{});
    state.cursor = std::max({state.cursor, start, end});
    return state.last_op = append(op, operator_index, device, memory);
  }

  StringId operator_string(StringId captured) {
    if (operator_name_[captured] == kUnmapped) operator_name_[captured] = builder_.trace().strings.intern(c_.text(captured));
    return operator_name_[captured];
  }

  void describe(Op& op, std::uint16_t captured_thread, Time time, std::uint32_t operator_index) {
    op.phase = phases_.phase(captured_thread, time, operator_index);
    if (operator_index == kNoIndex) return;
    op.operator_name = operator_string(c_.operators[operator_index].name);
    const std::uint32_t module = modules_.of_operator[operator_index];
    if (module == kNoIndex) return;
    if (module_name_[module] == kUnmapped) module_name_[module] = builder_.trace().strings.intern(modules_.paths[module]);
    op.module = module_name_[module];
    builder_.trace().knowledge.modules = true;
  }

  // The annotation of a communication library around an operator, or an operator that calls one.
  std::uint32_t communication_range(std::uint32_t operator_index) const {
    for (std::uint32_t i = operator_index; i != kNoIndex; i = c_.operators[i].parent)
      if (string_view(c_.text(c_.operators[i].name)).starts_with("nccl:")) return i;
    return kNoIndex;
  }

  void describe_collective(Op& op, std::uint32_t device, std::uint32_t operator_index) {
    const CapturedDeviceOp& captured = device_op(device);
    op.kind = OpKind::collective;
    const std::uint32_t range = communication_range(operator_index);
    op.collective = collective_kind(c_.text(captured.name), range == kNoIndex ? "" : c_.text(c_.operators[range].name));
    std::int64_t elements = captured.message_elements;
    std::string type = c_.text(captured.message_type);
    if (elements < 0 && range != kNoIndex) {
      elements = first_tensor_elements(c_.text(c_.operators[range].input_dims));
      type = first_tensor_type(c_.text(c_.operators[range].input_types));
    }
    const std::int64_t ranks = captured.group_size > 0 ? captured.group_size : c_.world_size;
    if (elements > 0) op.bytes = wire_bytes(op.collective, elements * element_size(type), std::min<std::int64_t>(ranks, 1 << 16));
  }

  // Everything about device work except its place on the host.
  Op device_part(std::uint32_t device, std::uint32_t operator_index) {
    const CapturedDeviceOp& captured = device_op(device);
    const JoinedDeviceOp& joined = j_.device_ops[device];
    ImportSummary& counts = result_.summary;
    Op op;
    op.name = operator_string(captured.name);
    op.stream = joined.stream;
    op.duration = captured.duration;
    op.waves = joined.waves;
    op.bytes = std::max<Bytes>(captured.bytes, 0);
    if (operator_index != kNoIndex) op.operator_name = operator_string(c_.operators[operator_index].name);
    switch (captured.work) {
      case DeviceWork::memset:
        op.kind = OpKind::memset;
        op.operator_class = OperatorClass::memory;
        ++counts.trace_memsets;
        break;
      case DeviceWork::copy: {
        const CopyDirection direction = copy_direction(c_.text(captured.name));
        op.kind = OpKind::copy;
        op.operator_class = OperatorClass::memory;
        op.pageable = direction.pageable;
        op.from = builder_.trace().place(direction.from_host ? "host" : "hbm");
        op.to = builder_.trace().place(direction.to_host ? "host" : direction.between_devices ? "peer_hbm" : "hbm");
        if (captured.bytes < 0 && joined.call != kNoIndex) op.bytes = std::max<Bytes>(c_.calls[joined.call].size, 0);
        ++counts.trace_copies;
        break;
      }
      default:
        op.bytes = 0;
        if (joined.collective) {
          describe_collective(op, device, operator_index);
          ++counts.trace_collectives;
        } else {
          op.kind = OpKind::kernel;
          op.operator_class = operator_class(operator_index == kNoIndex ? "" : c_.text(c_.operators[operator_index].name),
                                             c_.text(captured.name));
          ++counts.trace_kernels;
        }
    }
    return op;
  }

  void emit_head() {
    if (phases_.steps().empty()) {
      Op mark;
      mark.name = builder_.trace().strings.intern("window");
      mark.thread = points_.empty() ? std::uint16_t{0} : thread_index_[points_.front().thread];
      builder_.trace().steps.push_back({"window", append_host(mark, mark.thread, origin_, origin_, kNoIndex), 0});
    }
    for (const JoinedStream& stream : j_.streams)
      for (const std::uint32_t device : stream.order) {
        if (j_.device_ops[device].placement != Placement::head) break;
        Op op = device_part(device, kNoIndex);
        op.placed = true;
        op.host_gap = device_op(device).start - origin_;
        ++result_.summary.placed_ops;
        append(op, kNoIndex, device);
        record_behind(device, 0);
      }
  }

  void record_behind(std::uint32_t device, std::uint16_t thread) {
    if (records_[device] == kNoIndex) return;
    Op op;
    op.kind = OpKind::event_record;
    op.stream = j_.device_ops[device].stream;
    op.target = records_[device];
    append_host(op, thread, threads_[thread].cursor, threads_[thread].cursor, kNoIndex);
  }

  void wait_before(std::uint32_t device, std::uint16_t thread, Time time) {
    for (const auto& [event, inferred] : waits_[device]) {
      Op op;
      op.kind = OpKind::event_wait;
      op.stream = j_.device_ops[device].stream;
      op.target = event;
      op.inferred = inferred;
      append_host(op, thread, time, time, kNoIndex);
    }
  }

  // Device work of which the file has no call goes with what stands before it in the stream.
  void emit_strays(std::uint32_t device, std::uint16_t thread, Phase phase) {
    const std::vector<std::uint32_t>& order = j_.streams[j_.device_ops[device].stream].order;
    for (std::size_t at = j_.device_ops[device].position + 1u; at < order.size(); ++at) {
      if (j_.device_ops[order[at]].placement != Placement::stray) return;
      Op op = device_part(order[at], kNoIndex);
      op.phase = phase;
      ++result_.summary.placed_ops;
      append_host(op, thread, threads_[thread].cursor, threads_[thread].cursor, kNoIndex, order[at]);
      record_behind(order[at], thread);
    }
  }

  // --- host events ---
  void emit(std::size_t i) {
    const ProgramPoint& point = points_[i];
    const std::uint16_t thread = thread_index_[point.thread];
    if (i > 0 && points_[i - 1].thread != point.thread) emit_hand_over(points_[i - 1], point.time, thread);
    before_call_ = kNoOp;
    switch (point.kind) {
      case PointKind::call:
        if (i + 1 < points_.size() && points_[i + 1].thread != point.thread && points_[i + 1].time < c_.calls[point.index].end())
          before_call_ = emit_mark(thread, point.time);  // another thread goes on while this call lasts
        emit_call(point.index, thread);
        break;
      case PointKind::memory: emit_memory(point.index, thread); break;
      case PointKind::step: {
        Op mark;
        mark.name = builder_.trace().strings.intern(phases_.steps()[point.index].name);
        const OpId id = append_host(mark, thread, point.time, point.time, kNoIndex);
        builder_.trace().steps.push_back({phases_.steps()[point.index].name, id, 0});
        break;
      }
      default: break;
    }
  }

  OpId emit_mark(std::uint16_t thread, Time time) {
    Op mark;
    mark.kind = OpKind::mark;
    return append_host(mark, thread, time, time, kNoIndex);
  }

  // From the last event of the thread that ran to the first of the one that runs now.
  void emit_hand_over(const ProgramPoint& last, Time now, std::uint16_t thread) {
    const std::uint16_t other = thread_index_[last.thread];
    const Time last_end = last.kind == PointKind::call ? c_.calls[last.index].end() : last.time;
    OpId source = before_call_;
    Time from = last.time;
    if (source == kNoOp) {
      source = threads_[other].last_op;
      if (source == kNoOp || threads_[other].cursor < last_end) source = emit_mark(other, last_end);
      from = threads_[other].cursor;
    }
    Op op;
    op.kind = OpKind::hand_over;
    op.thread = thread;
    op.target = source;
    op.host_gap = std::max(now - from, Duration{});
    ++result_.summary.hand_overs;
    if (op.host_gap <= kSideBySide) ++result_.summary.side_by_side;
    threads_[thread].cursor = std::max(threads_[thread].cursor, now);
    threads_[thread].last_op = append(op, kNoIndex);
  }

  void emit_call(std::uint32_t index, std::uint16_t thread) {
    const JoinedCall& joined = j_.calls[index];
    const CapturedCall& call = c_.calls[index];
    if (joined.role == CallRole::launch || joined.role == CallRole::graph) return emit_launch(index, thread);
    if (joined.role == CallRole::plain) {
      ++result_.summary.calls_as_host_time;
      const string_view name = c_.text(call.name);
      if (name.find("Launch") != string_view::npos || name.find("Memset") != string_view::npos || name.find("Memcpy") != string_view::npos)
        ++result_.summary.launches_without_record;
      return;
    }
    Op op;
    op.kind = joined.role == CallRole::synchronize ? OpKind::synchronize : OpKind::host_work;
    op.name = operator_string(call.name);
    op.wait_for = joined.wait_for;
    op.stream = joined.stream;
    if (joined.wait_for == WaitFor::event) {
      op.target = event_of_call_[index];
      if (op.target == kNoIndex) op.wait_for = WaitFor::nothing;
    }
    op.host_cost = costs_.calls[index].own;
    op.return_delay = costs_.calls[index].return_delay;
    describe(op, call.thread, call.start, joined.operator_index);
    append_host(op, thread, call.start, call.end(), joined.operator_index);
  }

  void emit_launch(std::uint32_t index, std::uint16_t thread) {
    const JoinedCall& joined = j_.calls[index];
    const CapturedCall& call = c_.calls[index];
    const std::uint32_t first = j_.launched[joined.first_launched];
    for (std::uint32_t k = 0; k < joined.launched; ++k) wait_before(j_.launched[joined.first_launched + k], thread, call.start);
    Op op;
    if (joined.role == CallRole::graph) {
      op.kind = OpKind::graph_launch;
      op.name = operator_string(call.name);
      op.stream = joined.stream;
    } else {
      op = device_part(first, joined.operator_index);
      op.wait_for = joined.wait_for;
      op.return_delay = costs_.calls[index].return_delay;
    }
    op.host_cost = costs_.calls[index].own;
    describe(op, call.thread, call.start, joined.operator_index);
    const Phase phase = op.phase;
    append_host(op, thread, call.start, call.end(), joined.operator_index, joined.role == CallRole::graph ? kNoIndex : first);
    if (!j_.device_ops[first].collective) threads_[thread].current_stream = joined.stream;
    if (joined.role == CallRole::graph) {
      for (std::uint32_t k = 0; k < joined.launched; ++k) {
        const std::uint32_t device = j_.launched[joined.first_launched + k];
        Op node = device_part(device, joined.operator_index);
        node.graph_member = true;
        describe(node, call.thread, call.start, joined.operator_index);
        append_host(node, thread, call.end(), call.end(), joined.operator_index, device);
      }
    }
    for (std::uint32_t k = 0; k < joined.launched; ++k) record_behind(j_.launched[joined.first_launched + k], thread);
    for (std::uint32_t k = 0; k < joined.launched; ++k) emit_strays(j_.launched[joined.first_launched + k], thread, phase);
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
      stored.stream = static_cast<std::uint16_t>(std::max(threads_[thread].current_stream, 0));
    } else {
      ++result_.summary.frees;
    }
    op.stream = stored.stream;
    const std::uint32_t operator_index = j_.operator_of_memory[index];
    describe(op, event.thread, event.time, operator_index);
    append_host(op, thread, event.time, event.time, operator_index, kNoIndex, index);
  }

  // --- after the last op ---
  // What each thread still did on the host behind its last op.
  void emit_ends() {
    std::vector<Time> last(threads_.size());
    for (const ProgramPoint& point : points_) {
      const Time end = point.kind == PointKind::call ? c_.calls[point.index].end() : point.time;
      Time& known = last[thread_index_[point.thread]];
      known = std::max(known, end);
    }
    for (std::uint16_t thread = 0; thread < threads_.size(); ++thread) {
      if (last[thread] > threads_[thread].cursor) emit_mark(thread, last[thread]);
      host_end_ = std::max(host_end_, threads_[thread].cursor);
    }
  }

  void finish_steps() {
    std::vector<Step>& steps = builder_.trace().steps;
    const OpId count = static_cast<OpId>(builder_.trace().ops.size());
    CapturedTimes& captured = result_.captured;
    captured.total = host_end_ - origin_;
    Time first = kNever, last{};
    for (OpId id = 0; id < count; ++id) {
      if (captured.start[id] == kNever) continue;
      first = std::min(first, captured.start[id]);
      last = std::max(last, captured.end[id]);
    }
    captured.total = std::max(captured.total, Duration(last));
    captured.gpu_span = first == kNever ? Duration{} : last - first;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      steps[i].last = i + 1 < steps.size() ? steps[i + 1].first : count;
      const auto boundary = [&](std::size_t k) {
        if (k == steps.size()) return captured.total;
        return phases_.steps().empty() ? Duration{} : phases_.steps()[k].start - origin_;
      };
      CapturedStep step;
      step.host_time = boundary(i + 1) - boundary(i);
      Time begin = kNever;
      for (OpId id = steps[i].first; id < steps[i].last; ++id) {
        if (captured.start[id] == kNever) continue;
        begin = std::min(begin, captured.start[id]);
        step.gpu_end = std::max(step.gpu_end, captured.end[id]);
      }
      step.gpu_span = begin == kNever ? Duration{} : step.gpu_end - begin;
      captured.steps.push_back(step);
    }
  }

  ImportedTrace finish() {
    count_capture();
    Trace& trace = builder_.trace();
    if (options_.drop_host_gap < trace.ops.size()) trace.ops[options_.drop_host_gap].host_gap = Duration{};
    trace.knowledge.timing = true;
    trace.knowledge.allocations = result_.summary.allocs + result_.summary.frees > 0;
    trace.notes = import_notes(j_, lifetimes_, result_.summary, trace.constants);
    result_.trace = std::move(builder_).finish();
    require_sound(result_.trace, c_.path.string());
    return std::move(result_);
  }

  void count_capture() {
    ImportSummary& s = result_.summary;
    s.file_counts = c_.events_by_category;
    for (std::uint32_t i = 0; i < c_.device_ops.size(); ++i) {
      if (c_.device_ops[i].work == DeviceWork::copy) ++s.captured_copies;
      else if (c_.device_ops[i].work == DeviceWork::memset) ++s.captured_memsets;
      else ++(j_.device_ops[i].collective ? s.captured_collectives : s.captured_kernels);
    }
    for (const CapturedMemory& event : c_.memory) ++(event.on_device() ? s.device_memory_events : s.host_memory_events);
    s.preexisting = lifetimes_.preexisting;
    s.threads = builder_.trace().threads.size();
    s.dropped_threads = c_.threads.size() - static_cast<std::size_t>(std::count(j_.thread_kept.begin(), j_.thread_kept.end(), 1));
    s.streams = j_.streams.size();
    s.moved_edges = edges_.moved;
    s.ignored_waits = edges_.ignored_waits;
    // Work that is merely placed as captured explains nothing.
    if (s.placed_ops * 2 > c_.device_ops.size()) s.explained = false;
  }

  static constexpr StringId kUnmapped = 0xffffffff;

  const KinetoCapture& c_;
  const KinetoImportOptions& options_;
  ImportedTrace result_;
  JoinedCapture j_;
  CapturePhases phases_;
  ModulePaths modules_;
  CapturedLifetimes lifetimes_;
  StreamEdges edges_;
  CaptureCosts costs_;
  TraceBuilder builder_;
  std::vector<ProgramPoint> points_;
  std::vector<std::uint16_t> thread_index_;  // of captured threads in the trace
  std::vector<ThreadState> threads_;         // of the trace
  std::vector<StringId> operator_name_, module_name_;  // captured string, module path -> trace string
  std::vector<std::uint32_t> records_;       // per device op: the event recorded behind it
  std::vector<std::vector<std::pair<std::uint32_t, bool>>> waits_;  // per device op: events it waits for, inferred?
  std::vector<std::uint32_t> event_of_call_;
  OpId before_call_ = kNoOp;                 // the mark in front of the call emitted last
  Time origin_{}, host_end_{};
};

}  // namespace

ImportedTrace import_kineto(const KinetoCapture& capture, const KinetoImportOptions& options) {
  return Importer(capture, options).run();
}

}  // namespace memwall
