#include "study/sweep/scenario_points.h"

#include <tbb/global_control.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <mutex>

#include "study/sweep/point_outcome.h"

namespace memwall {

void ScenarioPoints::take_each(const std::vector<const Scenario*>& scenarios, bool needs_all, const PointTaker& take) {
  std::vector<std::string> keys(scenarios.size());
  std::vector<std::size_t> left;
  for (std::size_t i = 0; i < scenarios.size(); ++i) {
    if (journal_ != nullptr) {
      if (!keys_) keys_.emplace();
      keys[i] = keys_->key(*scenarios[i], accept_gaps_);
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
  const auto jobs = std::max(1u, jobs_);
  const tbb::global_control at_most(tbb::global_control::max_allowed_parallelism, jobs);  // beyond the cores, too
  tbb::task_arena arena(static_cast<int>(jobs));
  arena.execute([&] {
    // Neighbours share what they are made of: each thread takes the next one.
    tbb::parallel_for(tbb::blocked_range<std::size_t>(0, left.size(), 1), [&](const auto& range) {
      for (std::size_t l = range.begin(); l < range.end(); ++l) {
        const std::size_t i = left[l];
        PointRecord record = point_outcome(study_, *scenarios[i], {needs_all, accept_gaps_});
        const std::lock_guard lock(mutex);
        if (journal_ != nullptr) journal_->add(keys[i], *scenarios[i], record);
        take(i, std::move(record), false);
        if (watch_) watch_(++done_, known_);
      }
    });
  });
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
