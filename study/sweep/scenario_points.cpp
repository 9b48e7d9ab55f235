#include "study/sweep/scenario_points.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <mutex>

#include "study/parallel_tasks.h"
#include "study/sweep/point_outcome.h"

namespace memwall {

void ScenarioPoints::take_each(const std::vector<const Scenario*>& scenarios, bool needs_all, const PointTaker& take) {
  std::vector<std::string> keys(scenarios.size());
  std::vector<std::size_t> left;
  for (std::size_t i = 0; i < scenarios.size(); ++i) {
    if (journal_ != nullptr) {
      if (!keys_) keys_.emplace();
      keys[i] = keys_->key(*scenarios[i], accept_gaps_, folds_ && FoldedScenarios::takes(study_, *scenarios[i]));
      if (auto kept = journal_->find(keys[i], needs_all)) {
        ++kept_;
        take(i, std::move(*kept), true);
        continue;
      }
    }
    left.push_back(i);
  }
  known_ += left.size();
  simulated_ += left.size();
  std::mutex mutex;
  // Neighbours share what they are made of: each thread takes the next one.
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t l = next++; l < left.size(); l = next++) {
      const std::size_t i = left[l];
      try {
        PointRecord record =
            point_outcome(study_, *scenarios[i], {needs_all, accept_gaps_, folds_ ? &folded_ : nullptr});
        const std::lock_guard lock(mutex);
        if (journal_ != nullptr) journal_->add(keys[i], *scenarios[i], record);
        take(i, std::move(record), false);
        if (watch_) watch_(++done_, known_);
      } catch (...) {
        next = left.size();  // nobody goes on
        throw;
      }
    }
  };
  const auto threads = static_cast<unsigned>(std::min<std::size_t>(std::max(1u, jobs_), left.size()));
  run_tasks(std::vector<std::function<void()>>(threads, work), threads);
}

std::vector<PointRecord> ScenarioPoints::run(const std::vector<Scenario>& scenarios, bool needs_all) {
  std::vector<std::string> lines;
  std::vector<const Scenario*> asked;
  std::vector<std::string> asked_lines;
  for (const Scenario& scenario : scenarios) {
    lines.push_back(to_text(scenario));
    const auto known = finished_.find(lines.back());
    const bool is_known =
        known != finished_.end() && (known->second.has_all || !needs_all || !known->second.error.empty());
    if (is_known || std::ranges::find(asked_lines, lines.back()) != asked_lines.end()) continue;
    asked.push_back(&scenario);
    asked_lines.push_back(lines.back());
  }
  take_each(asked, needs_all, [&](std::size_t i, PointRecord record, bool) {
    finished_.insert_or_assign(asked_lines[i], std::move(record));
  });
  std::vector<PointRecord> records;
  for (const std::string& line : lines) records.push_back(finished_.at(line));
  return records;
}

}  // namespace memwall
