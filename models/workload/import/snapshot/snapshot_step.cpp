#include "models/workload/import/snapshot/snapshot_step.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "models/workload/import/snapshot/snapshot_reader.h"
#include "models/workload/import/timed/event_order.h"
#include "models/workload/import/timed/imported_step.h"
#include "models/workload/memory/allocations.h"
#include "models/workload/memory/start_state.h"
#include "sim/error.h"
#include "sim/trace/trace_builder.h"

namespace memwall {
namespace {

constexpr StorageId kNone = kNoStorage;
constexpr Bytes kMostBytes = Bytes{1} << 50;

Bytes reserved(const std::vector<SegmentState>& segments) {
  Bytes sum = 0;
  for (const SegmentState& segment : segments) sum += std::clamp<Bytes>(segment.size, 0, kMostBytes - sum);
  return sum;
}

const DeviceRecording& busiest(const MemoryRecording& recording, const std::filesystem::path& path) {
  const DeviceRecording* best = nullptr;
  const auto held = [](const DeviceRecording& device) {
    Bytes sum = 0;
    for (const RecordedSegment& segment : device.segments) sum += std::clamp<Bytes>(segment.size, 0, kMostBytes - sum);
    return sum;
  };
  for (const DeviceRecording& device : recording.devices)
    if (best == nullptr || held(device) > held(*best)) best = &device;
  if (best == nullptr) throw InputError(path.string() + ": the snapshot has no events and no segments.");
  return *best;
}

class Converter {
 public:
  Converter(const MemoryRecording& recording, const DeviceRecording& device)
      : recording_(recording),
        device_(device),
        start_(find_start_state(device, recording.settings)),
        table_(tabulate_allocations(recording, device, start_)) {}

  ImportedStep run(const std::filesystem::path& path) {
    add_streams();
    add_storages();
    add_events();
    step_.trace = std::move(builder_).finish();
    add_steps();
    finish(path);
    return std::move(step_);
  }

 private:
  void add_streams() {
    builder_.add_thread("host");
    std::uint16_t streams = 1;
    for (const MemoryEvent& event : device_.events) streams = std::max<std::uint16_t>(streams, event.stream + 1);
    for (const Allocation& a : table_.allocations) streams = std::max<std::uint16_t>(streams, a.stream + 1);
    for (std::uint16_t i = 0; i < streams; ++i)
      builder_.add_stream(i == 0 ? "default" : fmt::format("stream {}", i), StreamRole::compute);
  }

  void add_storages() {
    alloc_of_.assign(device_.events.size(), kNone);
    free_of_.assign(device_.events.size(), kNone);
    for (const Allocation& a : table_.allocations) {
      const bool before = a.begin == Allocation::kBefore;
      const StorageId id = builder_.add_storage(a.requested, a.kind, "hbm", source_line(recording_, a.stack), before);
      builder_.trace().storages[id].stream = a.stream;
      if (!before) alloc_of_[a.begin] = id;
      if (a.end != Allocation::kAfter) free_of_[a.end] = id;
    }
  }

  Op op_at(std::size_t event, Duration& gap) const {
    Op op;
    op.phase = table_.phases[event];
    op.host_gap = gap;
    gap = {};
    return op;
  }

  // The op that stands at each event, so that steps find theirs.
  void add_events() {
    Duration gap{};
    std::int64_t latest = 0;
    for (std::size_t i = 0; i < device_.events.size(); ++i) {
      const std::int64_t time = device_.events[i].time_us;
      if (i == 0) latest = first_us_ = time;
      if (time > latest && time - first_us_ <= kLongestWindow / 1000) {
        gap += microseconds(time - latest);
        latest = time;
      }
      if (starts_step(i)) {
        Op mark = op_at(i, gap);
        mark.phase = Phase::unknown;
        mark.name = builder_.trace().strings.intern("step");
        builder_.append(mark);
      }
      for (const OpKind kind : {OpKind::free, OpKind::alloc}) {
        const StorageId storage = (kind == OpKind::alloc ? alloc_of_ : free_of_)[i];
        if (storage == kNone) continue;
        Op op = op_at(i, gap);
        op.kind = kind;
        op.target = storage;
        op.stream = builder_.trace().storages[storage].stream;
        builder_.append(op);
        ++(kind == OpKind::alloc ? allocs_ : frees_);
      }
    }
    Op mark;
    mark.name = builder_.trace().strings.intern("step");
    mark.host_gap = gap;
    end_ = builder_.append(mark);
  }

  bool starts_step(std::size_t event) {
    bool starts = table_.steps.empty() ? event == 0 : false;
    while (next_step_ < table_.steps.size() && table_.steps[next_step_].begin <= event) {
      starts = true;
      ++next_step_;
    }
    if (starts) step_ops_.push_back(static_cast<OpId>(builder_.trace().ops.size()));
    return starts;
  }

  void add_steps() {
    for (std::size_t i = 0; i < step_ops_.size(); ++i)
      step_.trace.steps.push_back({i < table_.steps.size() ? table_.steps[i].name : "recording", step_ops_[i],
                                   i + 1 < step_ops_.size() ? step_ops_[i + 1] : end_});
  }

  void finish(const std::filesystem::path& path) {
    Trace& trace = step_.trace;
    trace.name = path.stem().string();
    trace.knowledge = {.timing = recording_.has_times, .allocations = true};
    trace.constants = ReplayConstants{.event_latency = Duration{}, .launch_queue_depth = 0};
    trace.reserved_at_start = reserved(start_.segments);
    step_.files = {path};
    step_.report.push_back(fmt::format("Device {}: {} events, {} allocations in the window, {} frees, {} from before.",
                                       device_.device, device_.events.size(), allocs_, frees_,
                                       table_.allocations.size() - allocs_));
    add_decision(
        step_, "device work",
        "A memory snapshot has no kernels: the trace knows allocations and the host's time between them, and its "
        "duration is the host's. `memwall memory` replays the snapshot exact to the byte.", 0, 0, NoteKind::missing);
    step_.decisions.push_back(
        {"machine", "The file does not say which GPU it was recorded on: --measured-on does.", 0, 0});
    if (recording_.devices.size() > 1)
      add_decision(
          step_, "devices",
          fmt::format("Device {} of {} is taken, which reserved most.", device_.device, recording_.devices.size()), 0, 0, NoteKind::assumed);
    if (!recording_.has_times)
      add_decision(step_, "times", "The file has no times (PyTorch before 2.2): events follow each other at once.", 0, 0, NoteKind::missing);
    if (!recording_.settings_text.empty() || recording_.settings.expandable_segments)
      add_decision(
          step_, "allocator settings",
          fmt::format("The recording was made under PYTORCH_CUDA_ALLOC_CONF={}, which the trace does not keep: give "
                      "--alloc-conf.",
                      recording_.settings_text.empty() ? "expandable_segments:True" : recording_.settings_text), 0, 0, NoteKind::missing);
    for (const std::string& note : recording_.notes) add_decision(step_, "snapshot", note);
    for (const std::string& note : table_.notes) add_decision(step_, "phases and kinds", note);
    if (!start_.contradictions.empty())
      add_decision(step_, "start state",
                   fmt::format("The file contradicts itself in {} places; the first: {}", start_.contradictions.size(),
                               start_.contradictions.front()), 0, 0, NoteKind::missing);
  }

  const MemoryRecording& recording_;
  const DeviceRecording& device_;
  StartState start_;
  AllocationTable table_;
  TraceBuilder builder_;
  ImportedStep step_;
  std::vector<StorageId> alloc_of_, free_of_;  // by event
  std::vector<OpId> step_ops_;
  std::size_t next_step_ = 0;
  std::int64_t first_us_ = 0;
  OpId end_ = 0;
  std::uint64_t allocs_ = 0, frees_ = 0;
};

}  // namespace

bool recognizes_snapshot(const FileHead& head) {
  return head.text.size() > 1 && head.text[0] == '\x80' && head.text[1] >= 2 && head.text[1] <= 5;
}

ImportedStep import_snapshot(const std::filesystem::path& path, const ImportSettings&) {
  const MemoryRecording recording = read_snapshot(path);
  return Converter(recording, busiest(recording, path)).run(path);
}

}  // namespace memwall
