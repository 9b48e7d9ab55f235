#include "models/workload/memory/event_phases.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace memwall {
namespace {

using Action = MemoryEvent::Action;

bool is_free(const MemoryEvent& event) {
  return event.action == Action::free_requested || event.action == Action::free_completed;
}

// How a recording was made: what the absence of frames means depends on it.
struct Style {
  std::size_t without_frames = 0;
  bool any_frames = false, cpp_frames = false, frames_of_frees = false;
};

Style style_of(const DeviceRecording& device, const std::vector<StackFacts>& facts) {
  Style style;
  for (const MemoryEvent& event : device.events) {
    if (event.stack == 0 && !is_free(event)) ++style.without_frames;
    if (event.stack == 0) continue;
    style.any_frames = true;
    style.cpp_frames |= facts[event.stack].cpp_frames;
    style.frames_of_frees |= is_free(event);
  }
  return style;
}

class PhaseFinder {
 public:
  PhaseFinder(const MemoryRecording& recording, const DeviceRecording& device, const std::vector<StackFacts>& facts)
      : recording_(recording), device_(device), facts_(facts), style_(style_of(device, facts)) {}

  EventPhases find() {
    found_.phases.assign(device_.events.size(), Phase::unknown);
    found_.dropping.assign(device_.events.size(), 0);
    found_.replacing.assign(device_.events.size(), 0);
    by_frames();
    by_annotations();
    by_neighbours();
    fill_gaps();
    add_notes();
    return std::move(found_);
  }

 private:
  void by_frames();
  void by_annotations();
  void by_neighbours();
  void fill_gaps();
  void add_notes();

  const MemoryRecording& recording_;
  const DeviceRecording& device_;
  const std::vector<StackFacts>& facts_;
  Style style_;
  EventPhases found_;
};

void PhaseFinder::by_frames() {
  for (std::size_t i = 0; i < device_.events.size(); ++i) {
    const MemoryEvent& event = device_.events[i];
    found_.phases[i] = facts_[event.stack].phase;
    found_.dropping[i] = facts_[event.stack].zero_grad ? 1 : 0;
    found_.replacing[i] = facts_[event.stack].replaces_data ? 1 : 0;
    // The autograd thread has no Python frames, so where only those were recorded it has none at all.
    const bool would_show = !is_free(event) || style_.frames_of_frees;
    if (event.stack == 0 && style_.any_frames && !style_.cpp_frames && would_show) found_.phases[i] = Phase::backward;
  }
}

void PhaseFinder::by_annotations() {
  for (const AnnotatedRange& range : annotated_ranges(recording_, device_)) {
    const bool step = range.name.starts_with("Optimizer.step");
    if (!step && !range.name.starts_with("Optimizer.zero_grad")) continue;
    for (std::uint32_t i = range.begin; i < range.end; ++i) {
      if (step && found_.phases[i] == Phase::unknown && !found_.dropping[i]) found_.phases[i] = Phase::optimizer;
      if (!step && found_.phases[i] == Phase::unknown) found_.dropping[i] = 1;
    }
  }
}

// A free, or a segment's event, that has no frames happens where the event before it does.
void PhaseFinder::by_neighbours() {
  for (std::size_t i = 1; i < device_.events.size(); ++i) {
    const MemoryEvent& event = device_.events[i];
    if (event.stack != 0 || event.action == Action::alloc || found_.phases[i] != Phase::unknown || found_.dropping[i])
      continue;
    found_.phases[i] = found_.phases[i - 1];
  }
}

// The loss is often computed outside of modules: what lies between two forward events, or between the last one and the
// backward pass, is forward too. Not where gradients are dropped, a model is built, or a batch arrives; and not in a
// recording without a backward pass, where the next request may begin there.
void PhaseFinder::fill_gaps() {
  std::vector<Phase>& phases = found_.phases;
  if (std::find(phases.begin(), phases.end(), Phase::backward) == phases.end()) return;
  for (std::size_t i = 0; i < phases.size(); ++i) {
    if (phases[i] != Phase::unknown || i == 0 || phases[i - 1] != Phase::forward) continue;
    std::size_t end = i;
    while (end < phases.size() && phases[end] == Phase::unknown) ++end;
    if (end == phases.size()) return;
    if (phases[end] != Phase::forward && phases[end] != Phase::backward) continue;
    for (std::size_t k = i; k < end; ++k) {
      const StackFacts& facts = facts_[device_.events[k].stack];
      if (!found_.dropping[k] && facts.maker == StackFacts::Maker::none && !facts.from_host) phases[k] = Phase::forward;
    }
    i = end;
  }
}

void PhaseFinder::add_notes() {
  if (device_.events.empty()) return;
  if (!style_.any_frames)
    found_.notes.emplace_back(
        "No event has frames, so phases and kinds are not known: record with "
        "torch.cuda.memory._record_memory_history(stacks=\"all\").");
  else if (!style_.cpp_frames)
    found_.notes.emplace_back(
        "Only Python frames were recorded: what has none is taken as the backward pass, whose thread runs no Python.");
  else if (style_.without_frames > 0)
    found_.notes.push_back(fmt::format("{} events have no frames; their phase is not known.", style_.without_frames));
}

}  // namespace

std::vector<AnnotatedRange> annotated_ranges(const MemoryRecording& recording, const DeviceRecording& device) {
  std::vector<AnnotatedRange> ranges;
  if (!recording.has_times) return ranges;
  std::vector<std::int64_t> times;  // made ascending: a clock that was set back must not hide events
  for (const MemoryEvent& event : device.events)
    times.push_back(times.empty() ? event.time_us : std::max(times.back(), event.time_us));
  const auto event_at = [&](std::int64_t time) {
    return static_cast<std::uint32_t>(std::lower_bound(times.begin(), times.end(), time) - times.begin());
  };
  std::map<std::string, std::vector<std::size_t>> open;  // a name may be open more than once
  for (const MemoryAnnotation& annotation : recording.annotations) {
    if (annotation.device >= 0 && annotation.device != device.device) continue;
    std::vector<std::size_t>& opened = open[annotation.name];
    if (annotation.stage == "START") {
      opened.push_back(ranges.size());
      ranges.push_back({annotation.name, event_at(annotation.time_us), static_cast<std::uint32_t>(times.size())});
    } else if (annotation.stage == "END" && !opened.empty()) {
      ranges[opened.back()].end = std::max(ranges[opened.back()].begin, event_at(annotation.time_us));
      opened.pop_back();
    }
  }
  std::stable_sort(ranges.begin(), ranges.end(),
                   [](const AnnotatedRange& a, const AnnotatedRange& b) { return a.begin < b.begin; });
  return ranges;
}

EventPhases find_event_phases(const MemoryRecording& recording, const DeviceRecording& device,
                              const std::vector<StackFacts>& facts) {
  return PhaseFinder(recording, device, facts).find();
}

}  // namespace memwall
