#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "models/workload/memory/memory_report.h"
#include "models/workload/memory/source_lines.h"

namespace memwall {
namespace {

// An allocation that is alive at the end of the step after the one that made it.
struct RetainedAllocation {
  std::size_t made = 0, gone = 0;  // steps; gone: the first at whose end it no longer lives
  Bytes requested = 0;
  StorageKind kind = StorageKind::unknown;
};

class LeakFinder {
 public:
  LeakFinder(const MemoryRecording& recording, const AllocationTable& table)
      : table_(table), lines_(recording), steps_(table.steps.size()) {}

  LeakReport find();

 private:
  // The last step that begins at or before the event, steps_ if there is none or the event lies behind its end.
  std::size_t step_of(std::uint32_t event) const;
  // The first step that ends after the event: the first at whose end a block freed there is gone.
  std::size_t gone_at(std::uint32_t event) const;
  void add(const Allocation& a, LeakReport& report);
  bool grows(const std::vector<RetainedAllocation>& retained) const;

  const AllocationTable& table_;
  SourceLines lines_;
  std::size_t steps_;
  std::map<std::string, std::vector<RetainedAllocation>> by_line_;
};

std::size_t LeakFinder::step_of(std::uint32_t event) const {
  const auto after = std::upper_bound(table_.steps.begin(), table_.steps.end(), event,
                                      [](std::uint32_t e, const RecordedStep& step) { return e < step.begin; });
  if (after == table_.steps.begin() || event >= (after - 1)->end) return steps_;
  return static_cast<std::size_t>(after - table_.steps.begin()) - 1;
}

std::size_t LeakFinder::gone_at(std::uint32_t event) const {
  if (event == Allocation::kAfter) return steps_;
  const auto found = std::upper_bound(table_.steps.begin(), table_.steps.end(), event,
                                      [](std::uint32_t e, const RecordedStep& step) { return e < step.end; });
  return static_cast<std::size_t>(found - table_.steps.begin());
}

void LeakFinder::add(const Allocation& a, LeakReport& report) {
  const std::size_t first = a.begin == Allocation::kBefore ? 0 : gone_at(a.begin), gone = gone_at(a.end);
  if (first >= gone) return;
  report.at_step_end[first] += a.requested;  // differences; summed up at the end
  if (gone < steps_) report.at_step_end[gone] -= a.requested;
  if (a.begin == Allocation::kBefore) return;
  const std::size_t made = step_of(a.begin);
  if (made + 1 >= steps_ || gone <= made + 1) return;
  by_line_[lines_.of(a.stack)].push_back({made, gone, a.requested, a.kind});
}

// In every step but the first, and more at each step's end than at the one before. Of the last step it cannot be said
// what the next would free, so only what it frees counts. Three steps leave one to go by; the first must show it too.
bool LeakFinder::grows(const std::vector<RetainedAllocation>& retained) const {
  if (retained.size() + 2 < steps_) return false;  // not one for each
  std::vector<Bytes> made(steps_), more(steps_);
  for (const RetainedAllocation& stay : retained) {
    made[stay.made] += stay.requested;
    more[stay.made] += stay.requested;
    if (stay.gone < steps_) more[stay.gone] -= stay.requested;
  }
  for (std::size_t step = 1; step + 1 < steps_; ++step)
    if (made[step] == 0 || more[step] <= 0) return false;
  return more.back() >= 0 && (steps_ > 3 || made[0] > 0);
}

Leak leak_of(const std::string& line, const std::vector<RetainedAllocation>& retained) {
  std::array<double, kStorageKinds> kinds{};
  std::set<std::size_t> steps;
  double bytes = 0;
  for (const RetainedAllocation& stay : retained) {
    steps.insert(stay.made);
    bytes += static_cast<double>(stay.requested);
    kinds[static_cast<std::size_t>(stay.kind)] += static_cast<double>(stay.requested);
  }
  Leak leak;
  leak.line = line;
  leak.steps = static_cast<std::uint32_t>(steps.size());
  leak.per_step = static_cast<Bytes>(bytes / static_cast<double>(steps.size()));
  leak.blocks = retained.size();
  leak.kind = static_cast<StorageKind>(std::max_element(kinds.begin(), kinds.end()) - kinds.begin());
  return leak;
}

LeakReport LeakFinder::find() {
  LeakReport report;
  report.at_step_end.resize(steps_);
  for (const Allocation& a : table_.allocations)
    if (steps_ > 0) add(a, report);
  for (std::size_t step = 1; step < steps_; ++step) report.at_step_end[step] += report.at_step_end[step - 1];
  if (steps_ < 3) {
    report.why_not = fmt::format(
        "The recording shows {} whole training step{}; what grows from step to step shows in three or more.", steps_,
        steps_ == 1 ? "" : "s");
    return report;
  }
  for (const auto& [line, retained] : by_line_)
    if (grows(retained)) report.leaks.push_back(leak_of(line, retained));
  std::stable_sort(report.leaks.begin(), report.leaks.end(),
                   [](const Leak& a, const Leak& b) { return a.per_step > b.per_step; });
  return report;
}

}  // namespace

LeakReport find_leaks(const MemoryRecording& recording, const AllocationTable& table) {
  return LeakFinder(recording, table).find();
}

}  // namespace memwall
