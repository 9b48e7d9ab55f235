#include "study/memory_study.h"

#include <fmt/format.h>

#include <algorithm>

#include "models/workload/memory/snapshot_device.h"
#include "models/workload/import/snapshot/snapshot_reader.h"
#include "sim/memory/allocator.h"
#include "sim/byte_units.h"
#include "sim/error.h"

namespace memwall {
namespace {

// Above this many events nobody waits for thirty replays that were not asked for.
constexpr std::size_t kEventsSearchedUnasked = 200'000;
constexpr Bytes kUnlimited = Bytes{1} << 60;

Bytes largest_free_block(const std::vector<SegmentState>& segments) {
  Bytes largest = 0;
  for (const SegmentState& segment : segments)
    for (const BlockState& block : segment.blocks)
      if (block.use == BlockState::Use::free) largest = std::max(largest, block.size);
  return largest;
}

// A segment is at most a page, or what is obtained for several requests, larger than what it is for.
bool has_room(const AllocatorSettings& settings, Bytes device_free, Bytes request) {
  const Bytes page = std::max<Bytes>(settings.large_segment_size, 1);
  return device_free >= (round_request(settings, request) + page - 1) / page * page;
}

std::vector<RecordedOutOfMemory> refusals(const MemoryStudy& study, std::size_t limit) {
  std::vector<RecordedOutOfMemory> found;
  const auto& events = study.of_device().events;
  for (std::uint32_t i = 0; i < events.size(); ++i) {
    if (events[i].action != MemoryEvent::Action::oom) continue;
    RecordedOutOfMemory refused;
    refused.event = i;
    refused.request = events[i].size;
    refused.device_free = static_cast<Bytes>(events[i].address);
    refused.despite_device = has_room(study.recording.settings, refused.device_free, refused.request);
    refused.at = study.recorded.points[i];
    refused.largest_free = largest_free_block(segments_after(study.recording, study.of_device(), study.start, i));
    refused.live = live_set_at(study.recording, study.table, i, limit);
    found.push_back(std::move(refused));
  }
  return found;
}

void raise(MemoryLevels& highest, const MemoryLevels& point) {
  highest.allocated = std::max(highest.allocated, point.allocated);
  highest.reserved = std::max(highest.reserved, point.reserved);
  highest.active = std::max(highest.active, point.active);
  highest.requested = std::max(highest.requested, point.requested);
}

std::string step_name_at(const AllocationTable& table, std::uint32_t event) {
  for (const RecordedStep& step : table.steps)
    if (event >= step.begin && event < step.end) return step.name;
  return {};
}

// Runs of one phase within one step. What has no phase belongs to the run before it, and so does a run too short to
// be more than an accident of a stack (a tensor's destructor seen from another phase).
std::vector<MemoryStretch> stretches_of(const AllocationTable& table, const RecordingReplay& replay) {
  constexpr std::uint32_t kShortest = 16;
  const auto& phases = table.phases;
  const auto count = static_cast<std::uint32_t>(std::min(phases.size(), replay.points.size()));
  std::vector<std::uint32_t> begins;
  std::vector<Phase> of;
  Phase now = Phase::unknown;
  for (std::uint32_t i = 0; i < count; ++i) {
    if (i > 0 && (phases[i] == Phase::unknown || phases[i] == now)) continue;
    std::uint32_t run = i;
    while (run < count && run - i < kShortest && phases[run] == phases[i]) ++run;
    if (i > 0 && run - i < kShortest) continue;
    now = phases[i];
    begins.push_back(i);
    of.push_back(now);
  }
  std::vector<MemoryStretch> stretches;
  for (std::size_t k = 0; k < begins.size(); ++k) {
    MemoryStretch stretch;
    stretch.begin = begins[k];
    stretch.end = k + 1 < begins.size() ? begins[k + 1] : count;
    const std::string step = step_name_at(table, stretch.begin);
    stretch.name = of[k] == Phase::unknown ? "other" : std::string(to_string(of[k]));
    if (!step.empty()) stretch.name = step + " " + stretch.name;
    for (std::uint32_t i = stretch.begin; i < stretch.end; ++i) raise(stretch.highest, replay.points[i]);
    stretch.last = replay.points[stretch.end - 1];
    stretches.push_back(std::move(stretch));
  }
  return stretches;
}

// What there was when the recorded program ran out of memory: reserved and free then. Of a limit of the process no more
// is known than that the program once reserved so much.
std::optional<Bytes> capacity_at_refusal(const MemoryStudy& study) {
  std::optional<Bytes> capacity;
  for (const RecordedOutOfMemory& r : study.refused)
    capacity = std::max(
        {capacity.value_or(0), r.at.reserved + left_to_obtain(r), r.despite_device ? study.recorded.peak_reserved : 0});
  return capacity;
}

std::string words_of(const AllocatorSettings& settings) {
  const std::string text = to_string(settings);
  return text.empty() ? "default settings" : text;
}

void ask_otherwise(MemoryStudy& study, const MemoryQuestion& question) {
  if (!question.settings && question.allocator == "pytorch" && !question.capacity) return;
  ReplayVariant variant;
  variant.settings = question.settings ? parse_allocator_settings(*question.settings) : study.recording.settings;
  variant.allocator = question.allocator;
  variant.capacity = study.capacity.value_or(kUnlimited);
  variant.device_total = question.device_total;
  if (variant.allocator == "pytorch" && variant.settings.backend == AllocatorSettings::Backend::cuda_malloc_async)
    variant.allocator = "cuda_async";
  study.other = replay_variant(study.recording, study.of_device(), study.start, variant);
  study.asked_for = variant.allocator;
  if (variant.allocator == "pytorch") study.asked_for += ", " + words_of(variant.settings);
  if (!study.capacity) return;
  study.asked_for +=
      fmt::format(", {} for segments{}", scaled_text(static_cast<double>(*study.capacity), kDecimalBytes, 4),
                  study.capacity_from_refusal ? " (what the recording had)" : "");
}

void check(const MemoryQuestion& question) {
  if (question.allocator == "arena")
    throw UsageError("--allocator arena plans with the whole recording known: --search shows what that would give.");
  make_allocator(question.allocator, 0);
  if (!question.settings) return;
  const AllocatorSettings settings = parse_allocator_settings(*question.settings);
  if (question.allocator != "pytorch" && settings != AllocatorSettings{})
    throw UsageError(fmt::format("--alloc-conf {} is of the allocator 'pytorch'; --allocator is '{}'.",
                                 *question.settings, question.allocator));
}

}  // namespace

Bytes left_to_obtain(const RecordedOutOfMemory& refused) {
  return refused.despite_device ? 0 : std::max<Bytes>(0, refused.device_free);
}

std::optional<Bytes> recorded_missing(const MemoryStudy& study) {
  Bytes missing = 0;
  for (const RecordedOutOfMemory& r : study.refused) {
    if (r.despite_device) return std::nullopt;
    missing = std::max(missing, r.request - r.device_free);
  }
  if (missing <= 0 && !study.refused.empty()) return std::nullopt;
  return missing;
}

bool is_fragmentation(const RecordedOutOfMemory& refused) {
  return refused.at.reserved - refused.at.active + left_to_obtain(refused) >= refused.request;
}

bool settings_may_help(const MemoryStudy& study) {
  if (!study.other) return !study.refused.empty() && is_fragmentation(study.refused.back());
  // No setting needs less than what is requested at once; rounding and pieces are the allocator's.
  const RecordingReplay& asked = study.asked();
  return study.capacity && asked.missing > 0 && asked.peak.requested_bytes <= *study.capacity;
}

std::vector<std::string> study_notes(const MemoryStudy& study) {
  std::vector<std::string> notes = study.recording.notes;
  const auto add = [&](const std::vector<std::string>& more) { notes.insert(notes.end(), more.begin(), more.end()); };
  add(study.start.contradictions);
  add(study.recorded.notes);
  if (study.other) add(study.other->notes);
  add(study.table.notes);
  if (!study.leaks.why_not.empty() && !study.table.steps.empty()) notes.push_back(study.leaks.why_not);
  if (!study.search.empty())
    notes.push_back(
        "The search: highest reserved and allocated; calls of cudaMalloc and cudaFree, or mapping and unmapping. What "
        "lives at the start is allocated anew in every row, so that all begin alike; the recording may have cached "
        "more or less by then.");
  return notes;
}

MemoryStudy study_memory(const MemoryQuestion& question, Watch* watch) {
  check(question);  // a wrong name or setting is told before a long read
  MemoryStudy study;
  {
    const auto reading = watch != nullptr ? watch->reading(question.snapshot) : nullptr;
    study.recording = read_snapshot(question.snapshot);
  }
  study.device = snapshot_device(study.recording, question.snapshot, question.device);
  const DeviceRecording& device = study.of_device();
  study.start = find_start_state(device, study.recording.settings);
  study.recorded = replay_as_recorded(study.recording, device, study.start);
  study.table = tabulate_allocations(study.recording, device, study.start);
  const AllocatorSettings& settings = study.recording.settings;
  const bool at_start = study.recorded.peak_at_start;
  const std::uint32_t peak = at_start ? Allocation::kBefore : study.recorded.peak_event;
  study.peak = live_set_at(study.recording, study.table, peak, question.limit);
  study.at_peak =
      fragmentation_of(at_start ? study.start.segments : segments_after(study.recording, device, study.start, peak),
                       question.limit, settings);
  study.at_end = fragmentation_of(study.recorded.end_segments, question.limit, settings);
  study.leaks = find_leaks(study.recording, study.table);
  study.held = find_late_frees(study.table, peak);
  study.refused = refusals(study, question.limit);
  study.capacity = question.capacity ? question.capacity : capacity_at_refusal(study);
  study.capacity_from_refusal = study.capacity && !question.capacity;
  ask_otherwise(study, question);
  study.stretches = stretches_of(study.table, study.asked());
  const bool is_short = device.events.size() <= kEventsSearchedUnasked;
  if (!question.search && !(is_short && settings_may_help(study))) return study;
  study.search = search_settings(study.recording, device, study.start, study.capacity.value_or(kUnlimited),
                                 [&](double share) {
                                   if (watch != nullptr) watch->searched(share);
                                 });
  return study;
}

}  // namespace memwall
