#include "study/explain/scenario_points.h"

#include <tbb/global_control.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <string>

#include "study/sweep/point_outcome.h"

namespace memwall {

std::vector<PointRecord> ScenarioPoints::run(const std::vector<Scenario>& scenarios, bool needs_all) {
  std::vector<PointRecord> records(scenarios.size());
  std::vector<std::string> keys(scenarios.size());
  std::map<std::string, std::size_t> first;  // scenario as text -> where it stands first
  std::vector<std::size_t> left, first_of(scenarios.size());
  for (std::size_t i = 0; i < scenarios.size(); ++i) {
    const std::string line = to_text(scenarios[i]);
    first_of[i] = first.try_emplace(line, i).first->second;
    if (first_of[i] != i) continue;
    if (const auto known = finished_.find(line);
        known != finished_.end() && (known->second.has_all || !needs_all || !known->second.error.empty())) {
      records[i] = known->second;
      continue;
    }
    if (journal_ != nullptr) {
      if (!keys_) keys_.emplace();
      keys[i] = keys_->key(scenarios[i], accept_gaps_);
      if (auto kept = journal_->find(keys[i], needs_all)) {
        records[i] = std::move(*kept);
        ++kept_;
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
    tbb::parallel_for(tbb::blocked_range<std::size_t>(0, left.size(), 1), [&](const auto& range) {
      for (std::size_t l = range.begin(); l < range.end(); ++l) {
        const std::size_t i = left[l];
        records[i] = point_outcome(study_, scenarios[i], {needs_all, accept_gaps_});
        const std::lock_guard lock(mutex);
        if (journal_ != nullptr) journal_->add(keys[i], scenarios[i], records[i]);
        if (watch_) watch_(++done_, known_);
      }
    });
  });
  for (const auto& [line, i] : first) finished_.insert_or_assign(line, records[i]);
  for (std::size_t i = 0; i < scenarios.size(); ++i) records[i] = records[first_of[i]];
  return records;
}

}  // namespace memwall
