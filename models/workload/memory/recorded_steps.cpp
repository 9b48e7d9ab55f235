#include "models/workload/memory/recorded_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "models/workload/memory/event_phases.h"
#include "sim/lower_case.h"

namespace memwall {
namespace {

// "Train step 12" -> "train step": ranges of one base are one series.
std::string base_of(std::string_view name) {
  std::string base = in_lower_case(std::string(name));
  std::erase_if(base, [](char c) { return (c >= '0' && c <= '9') || c == '#'; });
  while (!base.empty() && (base.back() == ' ' || base.back() == '_')) base.pop_back();
  return base;
}

bool names_a_step(const std::string& base) {
  if (base.find("optim") != base.npos || base.find("zero_grad") != base.npos) return false;
  return base.find("step") != base.npos || base.find("iteration") != base.npos || base == "iter" || base == "batch";
}

std::vector<RecordedStep> by_annotation(const std::vector<AnnotatedRange>& ranges, std::string& base) {
  for (const AnnotatedRange& range : ranges)
    if (range.name.starts_with("ProfilerStep#")) base = base_of(range.name);
  for (auto range = ranges.begin(); base.empty() && range != ranges.end(); ++range)
    if (names_a_step(base_of(range->name))) base = base_of(range->name);
  std::vector<RecordedStep> steps;
  for (const AnnotatedRange& range : ranges) {
    if (base.empty() || base_of(range.name) != base || range.begin == range.end) continue;
    if (!steps.empty() && range.begin < steps.back().end) continue;  // written twice, or nested
    steps.push_back({range.begin, range.end, range.name});
  }
  return steps;
}

struct PhaseSteps {
  std::vector<RecordedStep> steps;
  bool begun_before = false, unfinished = false;
};

PhaseSteps by_phases(const std::vector<PhaseInterval>& runs) {
  PhaseSteps found;
  bool backward = false, whole = false, open = false;
  std::uint32_t begin = 0;
  for (const PhaseInterval& run : runs) {
    if (!open && run.phase != Phase::optimizer) {
      open = true;
      whole = run.phase == Phase::forward;
      begin = found.steps.empty() ? run.begin : found.steps.back().end;
    }
    backward |= run.phase == Phase::backward;
    if (run.phase != Phase::optimizer) continue;
    if (!open && !found.steps.empty()) found.steps.back().end = run.end;
    if (!backward) continue;
    if (whole)
      found.steps.push_back({begin, run.end, fmt::format("step {}", found.steps.size() + 1)});
    else
      found.begun_before = true;
    open = backward = false;
  }
  found.unfinished = open;
  return found;
}

}  // namespace

std::vector<RecordedStep> find_steps(const MemoryRecording& recording, const DeviceRecording& device,
                                     const PhaseIntervals& runs, std::vector<std::string>& notes) {
  std::string base;
  std::vector<RecordedStep> annotated = by_annotation(annotated_ranges(recording, device), base);
  if (!annotated.empty()) {
    notes.push_back(fmt::format("Steps are those of the annotations \"{}\".", annotated.front().name));
    return annotated;
  }
  PhaseSteps found = by_phases(runs.all());
  if (!found.steps.empty())
    notes.emplace_back("Steps are told by phases: each ends with the optimizer that follows a backward pass.");
  else if (!runs.all().empty())
    notes.emplace_back("No whole training step was recorded: none goes from a forward pass to the optimizer.");
  if (found.begun_before) notes.emplace_back("The recording begins within a step; that step is not counted.");
  if (found.unfinished && !found.steps.empty())
    notes.emplace_back("The recording ends within a step; that step is not counted.");
  return std::move(found.steps);
}

}  // namespace memwall
