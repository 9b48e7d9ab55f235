#include "cli/print/memory_charts.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <unordered_map>

#include "cli/print/format.h"
#include "sim/error.h"

namespace memwall {
namespace {

// The instants of a chart: [0] before the first event, [i + 1] after event i.
class Instants {
 public:
  Instants(const RecordedMemory& memory, InstantUnit unit) {
    const std::vector<MemoryEvent>& events = memory.device.events;
    if (unit == InstantUnit::time) {
      count_time(memory);
      return;
    }
    times_.emplace_back(-1);
    for (std::size_t i = 0; i < events.size(); ++i) times_.emplace_back(static_cast<std::int64_t>(i));
    end_ = Time(static_cast<std::int64_t>(events.size()));
  }

  const std::vector<Time>& all() const { return times_; }
  Time begin() const { return times_.front(); }
  Time end() const { return end_; }
  Time of(std::uint32_t event) const { return times_[std::size_t{event} + 1]; }
  // The boundary before an event; of the number of events: the end.
  Time before(std::uint32_t event) const { return std::size_t{event} + 1 < times_.size() ? of(event) : end_; }

 private:
  // Since the first event. A clock that runs backward stands still here.
  void count_time(const RecordedMemory& memory) {
    const std::vector<MemoryEvent>& events = memory.device.events;
    if (!memory.recording.has_times || events.empty())
      throw UsageError(fmt::format("{}: this recording has no times; expected --axis events.", memory.name));
    constexpr std::int64_t kMost = std::int64_t{100} * 24 * 3600 * 1'000'000;  // a Time holds 106 days
    const auto first = static_cast<std::uint64_t>(events.front().time_us);
    std::int64_t latest = 0;
    times_.emplace_back();
    for (const MemoryEvent& event : events) {
      const auto since = static_cast<std::int64_t>(static_cast<std::uint64_t>(event.time_us) - first);
      if (since > kMost || since < -kMost)
        throw UsageError(fmt::format(
            "{}: the times of this recording are more than 100 days apart; expected --axis events.", memory.name));
      latest = std::max(latest, since);
      times_.push_back(microseconds(latest));
    }
    // What was before the first event, and after the last, gets a width that can be seen.
    const Time margin = std::max(times_.back() / 400, microseconds(1));
    times_.front() = -margin;
    end_ = times_.back() + margin;
  }

  std::vector<Time> times_;
  Time end_{};
};

std::vector<std::string> kind_names() {
  std::vector<std::string> names;
  for (int k = 0; k < kStorageKinds; ++k) names.emplace_back(to_string(static_cast<StorageKind>(k)));
  return names;
}

// Parameters at the bottom, what cannot be told at the top: the order of the layers.
constexpr StorageKind kLayers[] = {StorageKind::parameter,
                                   StorageKind::optimizer_state,
                                   StorageKind::gradient,
                                   StorageKind::activation,
                                   StorageKind::input,
                                   StorageKind::workspace,
                                   StorageKind::communication_buffer,
                                   StorageKind::unknown};
static_assert(std::size(kLayers) == kStorageKinds);

std::string subtitle_of(const RecordedMemory& memory, std::string_view what) {
  const std::string& settings = memory.recording.settings_text;
  return fmt::format("{}, device {}, {} events{}. {}", memory.name, memory.device.device,
                     grouped_text(memory.device.events.size()), settings.empty() ? "" : ", " + settings, what);
}

std::vector<InstantMark> marks_of(const RecordedMemory& memory, const Instants& instants) {
  std::vector<InstantMark> marks;
  for (const RecordedStep& step : memory.table.steps) marks.push_back({instants.before(step.begin), step.name});
  return marks;
}

std::vector<InstantSpan> phases_of(const RecordedMemory& memory, const Instants& instants) {
  std::vector<InstantSpan> spans;
  const std::vector<Phase>& phases = memory.table.phases;
  for (std::uint32_t i = 0, end = 0; i < phases.size(); i = end) {
    for (end = i + 1; end < phases.size() && phases[end] == phases[i];) ++end;
    if (phases[i] != Phase::unknown)
      spans.push_back({instants.before(i), instants.before(end), std::string(to_string(phases[i]))});
  }
  return spans;
}

// Requested bytes of each kind at each instant.
std::vector<std::vector<Bytes>> bytes_by_kind(const RecordedMemory& memory, std::size_t instants) {
  std::vector<std::vector<Bytes>> bytes(kStorageKinds, std::vector<Bytes>(instants, 0));
  for (const Allocation& a : memory.table.allocations) {
    std::vector<Bytes>& of = bytes[static_cast<std::size_t>(a.kind)];
    of[a.begin == Allocation::kBefore ? 0 : std::size_t{a.begin} + 1] += a.requested;
    if (a.end != Allocation::kAfter) of[std::size_t{a.end} + 1] -= a.requested;
  }
  for (std::vector<Bytes>& of : bytes)
    for (std::size_t i = 1; i < instants; ++i) of[i] += of[i - 1];
  return bytes;
}

MemoryLevels levels_at(const RecordedMemory& memory, std::size_t instant) {
  if (instant > 0) return memory.replay.points[instant - 1];
  const MemoryTotals& start = memory.replay.start;
  return {start.allocated_bytes, start.reserved_bytes, start.active_bytes, start.requested_bytes};
}

MemoryOutline outline_of(const RecordedMemory& memory, const Instants& instants, const char* name,
                         Bytes MemoryLevels::*level) {
  MemoryOutline outline{name, instants.all(), {}};
  for (std::size_t i = 0; i < instants.all().size(); ++i) outline.values.push_back(levels_at(memory, i).*level);
  return outline;
}

// Each source line once, by the stacks that lead to it.
class Sources {
 public:
  explicit Sources(const MemoryRecording& recording) : recording_(recording) {}

  std::uint32_t number(StackId stack) {
    const auto [known, added] = of_stack_.try_emplace(stack, 0);
    if (added) {
      const std::string line = source_line(recording_, stack);
      const auto [place, fresh] = of_line_.try_emplace(line, static_cast<std::uint32_t>(lines_.size()));
      if (fresh) lines_.push_back(line);
      known->second = place->second;
    }
    return known->second;
  }
  std::uint32_t number(const std::string& line) {
    lines_.push_back(line);
    return static_cast<std::uint32_t>(lines_.size() - 1);
  }
  std::vector<std::string> take() { return std::move(lines_); }

 private:
  const MemoryRecording& recording_;
  std::unordered_map<StackId, std::uint32_t> of_stack_;
  std::map<std::string, std::uint32_t> of_line_;
  std::vector<std::string> lines_;
};

// Segments that share their free blocks, the default pools first, large blocks before small ones.
using PoolKey = std::tuple<std::uint32_t, bool, std::uint16_t>;

std::string name_of(const PoolKey& key) {
  const auto& [private_pool, small, stream] = key;
  return fmt::format("{}{} blocks, {}", private_pool ? fmt::format("Private pool {}, ", private_pool) : "",
                     private_pool ? (small ? "small" : "large") : (small ? "Small" : "Large"),
                     stream ? fmt::format("stream {}", stream) : "default stream");
}

MapBlock::Use use_of(BlockState::Use use) {
  switch (use) {
    case BlockState::Use::in_use:
      return MapBlock::Use::in_use;
    case BlockState::Use::pending:
      return MapBlock::Use::pending;
    case BlockState::Use::unmapped:
      return MapBlock::Use::unmapped;
    case BlockState::Use::free:
      break;
  }
  return MapBlock::Use::free;
}

std::string instant_text(const RecordedMemory& memory, std::optional<std::uint32_t> event) {
  if (!event) return "before the first event";
  const bool peak = !memory.replay.peak_at_start && *event == memory.replay.peak_event;
  const bool last = std::size_t{*event} + 1 == memory.device.events.size();
  return fmt::format("after event {}{}", *event, peak ? " (the peak)" : last ? " (the end)" : "");
}

}  // namespace

RecordedMemory replay_for_charts(const std::string& name, const MemoryRecording& recording,
                                 const DeviceRecording& device) {
  StartState start = find_start_state(device, recording.settings);
  AllocationTable table = tabulate_allocations(recording, device, start);
  RecordingReplay replay = replay_as_recorded(recording, device, start);
  return {name, recording, device, std::move(start), std::move(table), std::move(replay)};
}

MemoryChart memory_chart(const RecordedMemory& memory, InstantUnit axis, Bytes capacity) {
  const Instants instants(memory, axis);
  MemoryChart chart;
  chart.title = "GPU memory by kind of storage";
  chart.subtitle = subtitle_of(memory, "Between the stack and the reserved line: cached by the allocator, not in use.");
  chart.begin = instants.begin();
  chart.end = instants.end();
  chart.times = instants.all();
  chart.capacity = capacity;
  chart.unit = axis;
  chart.marks = marks_of(memory, instants);
  chart.phases = phases_of(memory, instants);
  std::vector<std::vector<Bytes>> by_kind = bytes_by_kind(memory, chart.times.size());
  MemoryLayer rounding{"rounding", {}}, pending{"pending", {}};
  for (std::size_t i = 0; i < chart.times.size(); ++i) {
    Bytes requested = 0;
    for (const std::vector<Bytes>& of : by_kind) requested += of[i];
    const MemoryLevels levels = levels_at(memory, i);
    rounding.values.push_back(std::max<Bytes>(levels.allocated - requested, 0));
    pending.values.push_back(std::max<Bytes>(levels.active - levels.allocated, 0));
  }
  for (const StorageKind kind : kLayers)
    chart.layers.push_back({std::string(to_string(kind)), std::move(by_kind[static_cast<std::size_t>(kind)])});
  chart.layers.push_back(std::move(rounding));
  chart.layers.push_back(std::move(pending));
  chart.outlines = {outline_of(memory, instants, "reserved", &MemoryLevels::reserved),
                    outline_of(memory, instants, "allocated", &MemoryLevels::allocated)};
  const RecordingReplay& replay = memory.replay;
  chart.peak =
      MemoryPeak{replay.peak_at_start || instants.all().size() == 1 ? chart.begin : instants.of(replay.peak_event),
                 replay.peak.allocated_bytes, "allocated"};
  return chart;
}

BlocksChart blocks_chart(const RecordedMemory& memory, InstantUnit axis, Bytes capacity) {
  const Instants instants(memory, axis);
  BlocksChart chart;
  chart.title = "Allocations over their lives";
  chart.subtitle =
      subtitle_of(memory, "Each band is one allocation, in requested bytes; it moves down when one below is freed.");
  chart.unit = axis;
  chart.begin = instants.begin();
  chart.end = instants.end();
  chart.kinds = kind_names();
  chart.capacity = capacity;
  chart.marks = marks_of(memory, instants);
  chart.phases = phases_of(memory, instants);
  for (const Phase phase : {Phase::unknown, Phase::forward, Phase::recompute, Phase::backward, Phase::optimizer})
    chart.phase_names.emplace_back(to_string(phase));
  Sources sources(memory.recording);
  for (const Allocation& a : memory.table.allocations)
    chart.blocks.push_back({a.begin == Allocation::kBefore ? chart.begin : instants.of(a.begin),
                            a.end == Allocation::kAfter ? kNever : instants.of(a.end), a.requested,
                            sources.number(a.stack), static_cast<std::uint16_t>(a.kind),
                            static_cast<std::uint16_t>(a.phase)});
  chart.sources = sources.take();
  chart.outlines = {outline_of(memory, instants, "reserved", &MemoryLevels::reserved)};
  return chart;
}

SegmentMapChart segment_map_chart(const RecordedMemory& memory, std::optional<std::uint32_t> event) {
  SegmentMapChart chart;
  chart.title = "Segments of the allocator " + instant_text(memory, event);
  chart.subtitle = subtitle_of(memory, "All segments at one scale, the largest first.");
  chart.kinds = kind_names();
  Sources sources(memory.recording);
  const std::uint32_t not_recorded = sources.number("not among the recorded allocations");
  std::unordered_map<Address, const Allocation*> living;
  for (const Allocation& a : memory.table.allocations)
    if (event ? a.lives_at(*event) : a.begin == Allocation::kBefore) living[a.address] = &a;

  const std::vector<SegmentState> segments =
      event ? segments_after(memory.recording, memory.device, memory.start, *event) : memory.start.segments;
  std::map<PoolKey, std::vector<MapSegment>> pools;
  for (const SegmentState& segment : segments) {
    MapSegment mapped{segment.address, segment.expandable, {}};
    for (const BlockState& block : segment.blocks) {
      if (block.size <= 0) continue;
      MapBlock drawn{block.size, block.requested, use_of(block.use), 0, not_recorded};
      if (const auto found = living.find(block.address); drawn.use == MapBlock::Use::in_use && found != living.end()) {
        drawn.kind = static_cast<std::uint16_t>(found->second->kind);
        drawn.source = sources.number(found->second->stack);
      }
      mapped.blocks.push_back(drawn);
    }
    pools[{segment.private_pool, segment.small_pool, segment.stream}].push_back(std::move(mapped));
  }
  for (auto& [key, of] : pools) chart.groups.push_back({name_of(key), std::move(of)});
  chart.sources = sources.take();
  return chart;
}

}  // namespace memwall
