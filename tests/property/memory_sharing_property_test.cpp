// Whatever the jobs: a schedule never passes the capacity at any instant, and each job runs all its steps in order.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <numeric>

#include "models/workload/forecast/sharing.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

std::vector<SharedJob> any_jobs() {
  std::vector<SharedJob> jobs;
  const int count = *rc::gen::inRange(1, 6);
  for (int j = 0; j < count; ++j) {
    SharedJob job{.name = std::to_string(j), .step = {}, .seconds = 0, .gpu_busy = {}};
    const int samples = *rc::gen::inRange(1, 12);
    for (int i = 0; i < samples; ++i) job.step.push_back(*rc::gen::inRange(0, 1000));
    job.seconds = *rc::gen::element(0.0, 0.001, 0.5, 1.0, 7.3);
    jobs.push_back(std::move(job));
  }
  return jobs;
}

// The jobs' own samples at an instant of the schedule, by another way: what each holds then, step by step.
double held_at(const std::vector<SharedJob>& jobs, const DynamicShare& d, double tick) {
  double sum = 0;
  for (std::size_t j = 0; j < jobs.size(); ++j) {
    std::int64_t last = 0;
    double mine = jobs[j].between_steps();
    for (const auto& s : d.starts) {
      if (s.job != j) continue;
      last = std::max(last, s.end);
      if (tick < static_cast<double>(s.begin) || tick >= static_cast<double>(s.end)) continue;
      const double share = (tick - static_cast<double>(s.begin)) / static_cast<double>(s.end - s.begin);
      mine = jobs[j].step[static_cast<std::size_t>(share * static_cast<double>(jobs[j].step.size()))];
    }
    if (tick < static_cast<double>(last)) sum += mine;
  }
  return sum;
}

TEST(MemorySharing, NeverPassesTheCapacity) {
  EXPECT_TRUE(rc::check("at every instant, for every job's own samples", [] {
    const std::vector<SharedJob> jobs = any_jobs();
    const Bytes capacity = *rc::gen::inRange(1, 4000);
    const int steps = *rc::gen::inRange(1, 5);
    const DynamicShare d = share_by_forecast(jobs, capacity, steps);
    RC_TAG(d.possible);
    if (!d.possible) {
      RC_ASSERT(!d.why_not.empty());
      // It is honest: at rest they do not fit, or one alone beside others at rest does not.
      double between_steps = 0, highest = 0;
      for (const SharedJob& job : jobs) between_steps += job.between_steps(), highest = std::max(highest, job.peak());
      RC_ASSERT(between_steps + highest > static_cast<double>(capacity));
      return;
    }
    RC_ASSERT(d.starts.size() == jobs.size() * static_cast<std::size_t>(steps));
    for (std::int64_t t = 0; t < d.makespan; ++t) {
      RC_ASSERT(d.memory[static_cast<std::size_t>(t)] <= static_cast<double>(capacity) + 1e-6);
      for (const double within : {0.0, 0.5, 0.999})
        RC_ASSERT(held_at(jobs, d, static_cast<double>(t) + within) <= static_cast<double>(capacity) + 1e-6);
    }
  }));
}

TEST(MemorySharing, StepsOfAJobFollowEachOther) {
  EXPECT_TRUE(rc::check("no step begins before it is ready, and waiting adds up", [] {
    const std::vector<SharedJob> jobs = any_jobs();
    const DynamicShare d = share_by_forecast(jobs, *rc::gen::inRange(1, 4000), 4);
    if (!d.possible) return;
    std::vector<std::int64_t> end(jobs.size(), 0), waited(jobs.size(), 0);
    for (const auto& s : d.starts) {
      RC_ASSERT(s.ready == end[s.job]);
      RC_ASSERT(s.begin >= s.ready);
      RC_ASSERT(s.end == s.begin + d.step_ticks[s.job]);
      waited[s.job] += s.begin - s.ready;
      end[s.job] = s.end;
    }
    RC_ASSERT(waited == d.waiting);
    RC_ASSERT(d.makespan == *std::max_element(end.begin(), end.end()));
  }));
}

TEST(MemorySharing, SplitsHandOutNoMoreThanThereIs) {
  EXPECT_TRUE(rc::check("by peak fits exactly where the sum of the peaks does", [] {
    const std::vector<SharedJob> jobs = any_jobs();
    const Bytes capacity = *rc::gen::inRange(1, 4000);
    for (const StaticSplit& split : {split_equally(jobs, capacity), split_by_peak(jobs, capacity)}) {
      Bytes sum = 0;
      for (std::size_t j = 0; j < jobs.size(); ++j) {
        sum += split.parts[j].bytes;
        RC_ASSERT(!split.parts[j].fits || jobs[j].peak() <= static_cast<double>(split.parts[j].bytes));
      }
      RC_ASSERT(sum <= capacity);
    }
    double peaks = 0;
    for (const SharedJob& job : jobs) peaks += job.peak();
    RC_ASSERT(split_by_peak(jobs, capacity).all_fit() == (peaks <= static_cast<double>(capacity)));
  }));
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
