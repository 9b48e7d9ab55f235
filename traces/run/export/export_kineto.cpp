#include "traces/run/export/export_kineto.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <ostream>
#include <string>
#include <unordered_map>

#include "sim/json_text.h"
#include "sim/trace/ranks.h"
#include "traces/run/export/export_lanes.h"
#include "traces/run/export/kineto_names.h"
#include "traces/run/export/kineto_ranges.h"
#include "traces/run/lane_names.h"

namespace memwall {
namespace {

// CUPTI's number of the default stream. Above 0: readers take stream 0 for none.
constexpr std::uint32_t kFirstStream = 7;
constexpr std::uint32_t kFirstProcess = 1000;  // processes of hosts, apart from devices, whose number is their process

std::int64_t ns_of(Time time) { return time.count() / 1000; }
std::string us_text(std::int64_t ns) { return fmt::format("{}.{:03}", ns / 1000, ns % 1000); }

// All ranks of the job, of which the run holds some.
std::uint32_t world_size(const Trace& trace) {
  return std::max({trace.ranks, trace.job_ranks, static_cast<std::uint32_t>(trace.rank_table.size()), 1u});
}

class KinetoWriter {
 public:
  KinetoWriter(const Run& run, std::uint16_t rank, std::ostream& out)
      : run_(run), trace_(run.trace), rank_(rank), stream_(out) {}

  void write() {
    write_head();
    write_names();
    write_steps();
    for (const HostRange& range : host_ranges(run_, rank_)) write_range(range);
    for (OpId id = 0; id < trace_.ops.size(); ++id) write_op(id);
    write_memory();
    text_ += "\n]}\n";
    flush();
  }

 private:
  template <class... Arguments>
  void print(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<Arguments>(arguments)...);
  }
  void begin_event() {
    if (text_.size() > kFlushBytes) flush();
    text_ += is_first_ ? "\n" : ",\n";
    is_first_ = false;
  }
  void flush() {
    stream_.write(text_.data(), static_cast<std::streamsize>(text_.size()));
    text_.clear();
  }

  // --- who ---
  std::uint32_t rank_number() const { return trace_.rank_table.empty() ? rank_ : trace_.rank_table[rank_].number; }
  std::uint32_t process() const { return kFirstProcess + rank_number(); }
  std::uint32_t thread(std::uint16_t index) const { return process() + index; }
  std::uint32_t stream(std::uint16_t index) const { return kFirstStream + index; }
  bool is_here(const Op& op) const { return rank_of(trace_, op) == rank_; }
  std::uint16_t own_device() const {
    for (const Stream& s : trace_.streams)
      if (s.rank == rank_ && s.role != StreamRole::storage) return s.device;
    return 0;
  }

  void write_head() {
    const Gpu& gpu = run_.machine.one.gpu;
    print("{{\n\"schemaVersion\": 1,\n\"deviceProperties\": [");
    bool is_first = true;
    for (std::uint32_t device = 0; device <= last_device(); ++device) {
      print(
          "{}{{\"id\": {}, \"name\": {}, \"totalGlobalMem\": {}, \"computeMajor\": {}, \"computeMinor\": {}, "
          "\"numSms\": {}}}",
          is_first ? "" : ", ", device, json_quoted(gpu.name), memory_of_device(), gpu.compute_major, gpu.compute_minor,
          gpu.multiprocessors);
      is_first = false;
    }
    // HTA looks for the rank line by line, with a blank before the number.
    print("],\n\"distributedInfo\": {{\"backend\": \"nccl\", \"rank\": {}, \"world_size\": {}}},\n", rank_number(),
          world_size(trace_));
    print(
        "\"profile_memory\": 1,\n\"displayTimeUnit\": \"ms\",\n\"baseTimeNanoseconds\": 0,\n\"traceName\": {},\n"
        "\"traceEvents\": [",
        json_quoted(trace_.name));
  }

  std::uint16_t last_device() const {
    std::uint16_t last = 0;
    for (const Stream& s : trace_.streams)
      if (s.rank == rank_) last = std::max(last, s.device);
    return last;
  }
  Bytes memory_of_device() const {
    const int tier = run_.machine.one.tier("hbm");
    return tier < 0 ? 0 : run_.machine.one.tiers[static_cast<std::size_t>(tier)].capacity;
  }

  void write_name(const char* what, std::uint32_t process, std::uint32_t thread, const std::string& name) {
    begin_event();
    print("{{\"ph\":\"M\",\"name\":\"{}\",\"ts\":0,\"pid\":{},\"tid\":{},\"args\":{{\"name\":{}}}}}", what, process,
          thread, json_quoted(name));
  }

  void write_names() {
    write_name("process_name", process(), 0, "python");
    for (std::uint16_t i = 0; i < trace_.threads.size(); ++i)
      if (trace_.threads[i].rank == rank_) write_name("thread_name", process(), thread(i), trace_.threads[i].name);
    for (std::uint16_t i = 0; i < trace_.streams.size(); ++i) {
      const Stream& s = trace_.streams[i];
      if (s.rank == rank_ && s.role != StreamRole::storage)
        write_name("thread_name", s.device, stream(i), fmt::format("stream {} ({})", stream(i), s.name));
    }
  }

  // --- ranges ---
  void begin_span(const char* category, const std::string& name, std::uint32_t process, std::uint32_t thread,
                  Time begin, Time end) {
    begin_event();
    print("{{\"ph\":\"X\",\"cat\":\"{}\",\"name\":{},\"pid\":{},\"tid\":{},\"ts\":{},\"dur\":{},\"args\":{{", category,
          json_quoted(name), process, thread, us_text(ns_of(begin)), us_text(ns_of(end) - ns_of(begin)));
  }
  void end_span() { text_ += "}}"; }

  Time end_of_host() const {
    Time end{};
    for (OpId id = 0; id < trace_.ops.size(); ++id)
      if (is_here(trace_.ops[id]) && has_call(trace_.ops[id], run_.result.records[id]))
        end = std::max(end, run_.result.records[id].host_end);
    return end;
  }

  void write_steps() {
    std::size_t number = 0;
    for (const Step& step : trace_.steps) {
      const Op& first = trace_.ops[step.first];
      if (!is_here(first)) continue;
      const OpId end = end_of_step(trace_, step);
      const std::string name =
          step.name.starts_with("ProfilerStep#") ? step.name : fmt::format("ProfilerStep#{}", number);
      begin_span("user_annotation", name, process(), thread(first.thread), run_.result.records[step.first].host_start,
                 end < trace_.ops.size() ? run_.result.records[end].host_start : end_of_host());
      end_span();
      ++number;
    }
  }

  void write_range(const HostRange& range) {
    const auto begin = [&](const char* category, const std::string& name) {
      begin_span(category, name, process(), thread(range.thread), range.begin, range.end);
    };
    const std::string& name = trace_.strings[range.name];
    switch (range.kind) {
      case HostRange::Kind::backward:
        begin("cpu_op", "autograd::engine::evaluate_function: Backward");
        break;
      case HostRange::Kind::optimizer:
        begin("user_annotation", "Optimizer.step#Optimizer.step");
        break;
      case HostRange::Kind::module:
        begin("user_annotation", "nn.Module: " + name);
        break;
      case HostRange::Kind::operation:
        begin("cpu_op", name);
        break;
    }
    print("\"External id\":{}", ++external_id_);
    end_span();
  }

  // --- ops ---
  // A call and its work have this in common; a graph's nodes have that of its launch.
  std::uint64_t correlation(OpId id) const { return std::uint64_t{id} + 1; }

  void write_op(OpId id) {
    const Op& op = trace_.ops[id];
    if (!is_here(op)) return;
    const OpRecord& record = run_.result.records[id];
    if (op.kind == OpKind::graph_launch) graph_ = id;
    if (op.kind == OpKind::event_record) recorded_[op.target] = id;
    if (has_call(op, record)) write_call(id);
    if (has_work(op, record) && op.kind != OpKind::graph_launch) write_work(id);
  }

  void write_call(OpId id) {
    const Op& op = trace_.ops[id];
    const OpRecord& record = run_.result.records[id];
    const bool takes_time = record.host_end > record.host_start;
    if (op.kind == OpKind::alloc && !takes_time) return;  // the cache served it
    const std::string name = call_name(trace_, op);
    if (name.empty()) {
      if (op.kind != OpKind::host_work || !takes_time) return;
      begin_span("cpu_op", display_name(trace_, op), process(), thread(op.thread), record.host_start, record.host_end);
      print("\"External id\":{}", ++external_id_);
      return end_span();
    }
    begin_span("cuda_runtime", name, process(), thread(op.thread), record.host_start, record.host_end);
    print("\"correlation\":{}", correlation(id));
    end_span();
    if (op.kind == OpKind::event_wait || op.kind == OpKind::synchronize) write_wait(id);
    if (op.kind == OpKind::graph_launch || (has_work(op, record) && op.kind != OpKind::storage_io))
      write_arrow('s', correlation(id), process(), thread(op.thread), record.host_start);
  }

  // Which event or stream a call is about. Rows of waiting hosts name no stream of their own: readers would take
  // them for work on it.
  void write_wait(OpId id) {
    const Op& op = trace_.ops[id];
    const OpRecord& record = run_.result.records[id];
    const bool is_event = op.kind == OpKind::event_wait || op.wait_for == WaitFor::event;
    const auto recorded = recorded_.find(op.target);
    if (is_event && recorded == recorded_.end()) return;
    const std::uint16_t awaited = is_event ? trace_.ops[recorded->second].stream : op.stream;
    const char* const name = op.kind == OpKind::event_wait    ? "Stream Wait Event"
                             : op.wait_for == WaitFor::event  ? "Event Sync"
                             : op.wait_for == WaitFor::stream ? "Stream Sync"
                                                              : "Context Sync";
    const std::uint16_t device = trace_.streams.empty() ? 0 : trace_.streams[op.stream].device;
    begin_span("cuda_sync", name, device, stream(op.stream), record.host_start,
               op.kind == OpKind::event_wait ? record.host_start : record.host_end);
    print("\"cuda_sync_kind\":\"{}\",\"device\":{},\"correlation\":{}", name, device, correlation(id));
    if (op.kind == OpKind::event_wait) print(",\"stream\":{}", stream(op.stream));
    if (is_event || op.wait_for == WaitFor::stream) print(",\"wait_on_stream\":{}", stream(awaited));
    if (is_event)
      print(",\"wait_on_cuda_event_record_corr_id\":{},\"wait_on_cuda_event_id\":{}", correlation(recorded->second),
            op.target);
    end_span();
  }

  void write_arrow(char phase, std::uint64_t id, std::uint32_t process, std::uint32_t thread, Time time) {
    begin_event();
    print("{{\"ph\":\"{}\",\"id\":{},\"pid\":{},\"tid\":{},\"ts\":{},\"cat\":\"ac2g\",\"name\":\"ac2g\"{}}}", phase, id,
          process, thread, us_text(ns_of(time)), phase == 'f' ? ",\"bp\":\"e\"" : "");
  }

  void write_work(OpId id) {
    const Op& op = trace_.ops[id];
    const OpRecord& record = run_.result.records[id];
    if (op.kind == OpKind::storage_io) {
      begin_span("storage_io", display_name(trace_, op), process(),
                 thread(static_cast<std::uint16_t>(trace_.threads.size() + op.stream)), record.start, record.end);
      print("\"bytes\":{}", op.bytes);
      return end_span();
    }
    const std::uint64_t launch = op.graph_member ? correlation(graph_) : op.placed ? 0 : correlation(id);
    const std::uint16_t device = trace_.streams[op.stream].device;
    const char* const category = op.kind == OpKind::copy     ? "gpu_memcpy"
                                 : op.kind == OpKind::memset ? "gpu_memset"
                                                             : "kernel";
    begin_span(category, work_name(run_, op), device, stream(op.stream), record.start, record.end);
    print("\"device\":{},\"stream\":{},\"correlation\":{}", device, stream(op.stream), launch);
    if (op.kind == OpKind::copy || op.kind == OpKind::memset) print(",\"bytes\":{}", op.bytes);
    if (op.kind == OpKind::collective) write_group(op);
    end_span();
    if (launch > 0) write_arrow('f', launch, device, stream(op.stream), record.start);
  }

  void write_group(const Op& op) {
    const ProcessGroup group = process_group_of(trace_, op);
    if (group.ranks > 0) print(",\"Group size\":{}", group.ranks);
    if (!group.name.empty()) print(",\"Process Group Name\":{}", json_quoted(group.name));
    if (group.members.empty()) return;
    std::string members;
    for (const std::uint32_t member : group.members)
      members += fmt::format("{}{}", members.empty() ? "" : ", ", member);
    print(",\"Process Group Ranks\":\"[{}]\"", members);
  }

  // --- memory ---
  // Sizes as the allocator rounds them, sums over them: what lives before the first op is in the first sum.
  void write_memory() {
    if (!trace_.knowledge.allocations || run_.machine.one.tier("hbm") < 0) return;
    const auto tier = static_cast<std::size_t>(run_.machine.one.tier("hbm"));
    const std::vector<MemoryPoint>& points = run_.memory[run_.machine.views[rank_].tier[tier]];
    const std::vector<AllocatorCall> events = memory_events();
    if (events.empty()) return;
    Bytes net = 0;
    for (const AllocatorCall& event : events) net += event.time == events.front().time ? event.bytes : 0;
    Bytes allocated = held_before(events.front().time, net, points);
    std::size_t at = 0;
    for (const AllocatorCall& event : events) {
      allocated += event.bytes;
      while (at + 1 < points.size() && points[at + 1].time <= event.time) ++at;
      write_memory_event(trace_.ops[event.op], event.time, event.bytes, allocated,
                         points.empty() ? 0 : points[at].reserved);
    }
  }

  struct AllocatorCall {
    OpId op = kNoOp;
    Time time{};
    Bytes bytes = 0;  // negative: given back
  };
  std::vector<AllocatorCall> memory_events() const {
    const AllocatorSettings settings = parse_allocator_settings(run_.allocator_settings);
    std::vector<AllocatorCall> events;
    for (OpId id = 0; id < trace_.ops.size(); ++id) {
      const Op& op = trace_.ops[id];
      const Time time = run_.result.records[id].host_start;
      if ((op.kind != OpKind::alloc && op.kind != OpKind::free) || !is_here(op) || time == kNever) continue;
      const Storage& storage = trace_.storages[op.target];
      if (storage.bytes == 0 || trace_.places[storage.place] != "hbm") continue;
      events.push_back({id, time, round_request(settings, storage.bytes) * (op.kind == OpKind::alloc ? 1 : -1)});
    }
    return events;
  }

  void write_memory_event(const Op& op, Time time, Bytes bytes, Bytes allocated, Bytes reserved) {
    begin_event();
    print(
        "{{\"ph\":\"i\",\"cat\":\"cpu_instant_event\",\"s\":\"t\",\"name\":\"[memory]\",\"pid\":{},\"tid\":{},"
        "\"ts\":{},\"args\":{{\"Device Type\":1,\"Device Id\":{},\"Addr\":{},\"Bytes\":{},\"Total "
        "Allocated\":{},\"Total Reserved\":{}}}}}",
        process(), thread(op.thread), us_text(ns_of(time)), own_device(), address_of(op.target), bytes,
        std::max<Bytes>(0, allocated), std::max({Bytes{0}, allocated, reserved}));
  }

  static std::uint64_t address_of(StorageId id) { return (std::uint64_t{1} << 46) + std::uint64_t{id} * 512; }

  // What is held before the first of these events, as the run says: what it has at the end of that instant, less what
  // the events of the instant bring.
  Bytes held_before(Time first, Bytes net, const std::vector<MemoryPoint>& points) const {
    const auto next = std::ranges::upper_bound(points, first, {}, &MemoryPoint::time);
    return next == points.begin() ? 0 : (next - 1)->allocated - net;
  }

  const Run& run_;
  const Trace& trace_;
  std::uint16_t rank_;
  std::ostream& stream_;
  std::string text_;
  bool is_first_ = true;
  std::uint64_t external_id_ = 0;
  OpId graph_ = 0;                                    // whose nodes follow
  std::unordered_map<std::uint32_t, OpId> recorded_;  // by event: the op that recorded it last
};

}  // namespace

void export_kineto(const Run& run, std::uint16_t rank, std::ostream& out) { KinetoWriter(run, rank, out).write(); }

}  // namespace memwall
