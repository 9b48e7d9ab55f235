#include "models/workload/forecast/sharing.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <tuple>

namespace memwall {
namespace {

constexpr std::int64_t kTicksPerShortestStep = 64;
constexpr std::int64_t kTicksPerLongestStep = 4096;

double capacity_of(Bytes capacity) { return static_cast<double>(capacity); }

// The dynamic schedule, tick by tick.
class Schedule {
 public:
  Schedule(const std::vector<SharedJob>& jobs, Bytes capacity, int steps)
      : jobs_(jobs), capacity_(capacity_of(capacity)), steps_(steps) {
    choose_ticks();
    share_.waiting.assign(jobs.size(), 0);
    for (const SharedJob& job : jobs) between_steps_ += job.between_steps();
  }

  DynamicShare run() {
    share_.possible = between_steps_ <= capacity_;
    if (!share_.possible) {
      share_.why_not = fmt::format("between their steps alone the jobs hold {:.0f} bytes together", between_steps_);
      return share_;
    }
    std::vector<Waiting> waiting;
    for (std::size_t j = 0; j < jobs_.size(); ++j) waiting.push_back({j, 0, 0});
    while (!waiting.empty()) {
      // The order of readiness; those that do not fit beside what others hold wait until a job has left.
      std::sort(waiting.begin(), waiting.end(),
                [](const Waiting& a, const Waiting& b) { return std::tie(a.ready, a.job) < std::tie(b.ready, b.job); });
      const auto placed = std::find_if(waiting.begin(), waiting.end(), [&](Waiting& w) { return place(w); });
      if (placed == waiting.end()) return give_up(waiting.front().job);
      if (placed->done == steps_) waiting.erase(placed);
    }
    for (const DynamicShare::Start& s : share_.starts) share_.makespan = std::max(share_.makespan, s.end);
    share_.memory = memory_;
    share_.memory.resize(static_cast<std::size_t>(share_.makespan), between_steps_);
    return share_;
  }

 private:
  struct Waiting {
    std::size_t job = 0;
    std::int64_t ready = 0;
    int done = 0;
  };

  void choose_ticks() {
    double shortest = 0, longest = 0;
    bool known = true;
    for (const SharedJob& job : jobs_) {
      known = known && job.seconds > 0;
      shortest = shortest == 0 ? job.seconds : std::min(shortest, job.seconds);
      longest = std::max(longest, job.seconds);
    }
    double tick = 1.0 / static_cast<double>(kTicksPerShortestStep);
    if (known)
      tick = std::max(shortest / static_cast<double>(kTicksPerShortestStep),
                      longest / static_cast<double>(kTicksPerLongestStep));
    share_.seconds_per_tick = known ? tick : 0;
    for (const SharedJob& job : jobs_) {
      const auto ticks = static_cast<std::int64_t>(std::ceil((known ? job.seconds : 1) / tick - 1e-9));
      share_.step_ticks.push_back(std::max<std::int64_t>(1, ticks));
      curves_.push_back(curve_of(job, share_.step_ticks.back()));
      share_.one_after_the_other += share_.step_ticks.back() * steps_;
    }
    share_.ticks_per_step = *std::min_element(share_.step_ticks.begin(), share_.step_ticks.end());
  }

  // The highest of what falls into each tick.
  static std::vector<double> curve_of(const SharedJob& job, std::int64_t ticks) {
    std::vector<double> curve(static_cast<std::size_t>(ticks));
    const std::size_t samples = job.step.size(), n = curve.size();
    for (std::size_t t = 0; t < n; ++t) {
      const std::size_t from = t * samples / n, to = ((t + 1) * samples + n - 1) / n;
      curve[t] = *std::max_element(job.step.begin() + static_cast<std::ptrdiff_t>(from),
                                   job.step.begin() + static_cast<std::ptrdiff_t>(to));
    }
    return curve;
  }

  double memory_at(std::int64_t tick) const {
    const auto t = static_cast<std::size_t>(tick);
    return t < memory_.size() ? memory_[t] : between_steps_;
  }

  // The last tick of a step from `begin` that is too full, or -1.
  std::int64_t last_obstacle(std::size_t job, std::int64_t begin) const {
    for (std::int64_t t = share_.step_ticks[job] - 1; t >= 0; --t) {
      const double step = curves_[job][static_cast<std::size_t>(t)] - jobs_[job].between_steps();
      if (memory_at(begin + t) + step > capacity_) return begin + t;
    }
    return -1;
  }

  // Places the next step of a job; false if it does not fit beside what unfinished jobs hold at rest.
  bool place(Waiting& w) {
    const std::size_t j = w.job;
    std::int64_t begin = w.ready;
    while (last_obstacle(j, begin) >= 0) {
      if (begin >= static_cast<std::int64_t>(memory_.size())) return false;
      ++begin;
    }
    const std::int64_t end = begin + share_.step_ticks[j];
    for (std::int64_t t = begin; t < end; ++t)
      at(t) += curves_[j][static_cast<std::size_t>(t - begin)] - jobs_[j].between_steps();
    share_.starts.push_back({j, w.ready, begin, end});
    share_.waiting[j] += begin - w.ready;
    w.ready = end;
    if (++w.done == steps_) leave(j, end);
    return true;
  }

  void leave(std::size_t job, std::int64_t from) {
    while (static_cast<std::int64_t>(memory_.size()) < from) memory_.push_back(between_steps_);
    for (auto t = static_cast<std::size_t>(from); t < memory_.size(); ++t) memory_[t] -= jobs_[job].between_steps();
    between_steps_ -= jobs_[job].between_steps();
  }

  double& at(std::int64_t tick) {
    const auto t = static_cast<std::size_t>(tick);
    if (t >= memory_.size()) memory_.resize(t + 1, between_steps_);
    return memory_[t];
  }

  DynamicShare give_up(std::size_t job) {
    share_.possible = false;
    share_.why_not = fmt::format(
        "a step of {} needs {:.0f} bytes, more than is left beside what the others hold between "
        "their steps",
        jobs_[job].name, jobs_[job].peak());
    share_.starts.clear();
    return share_;
  }

  const std::vector<SharedJob>& jobs_;
  double capacity_;
  int steps_;
  double between_steps_ = 0;                 // of all unfinished jobs, after the last tick of memory_
  std::vector<std::vector<double>> curves_;  // per job and tick
  std::vector<double> memory_;               // per tick
  DynamicShare share_;
};

// All ways of giving instances to jobs, one after the other.
class MigSearch {
 public:
  MigSearch(const std::vector<SharedJob>& jobs, const Gpu& gpu)
      : jobs_(jobs), gpu_(gpu), used_(gpu.mig_profiles.size()) {
    choice_.assign(jobs.size(), -1);
    best_choice_ = choice_;
    for (const MigProfile& p : gpu.mig_profiles) {
      compute_slices_ = std::max(compute_slices_, p.compute_slices);
      memory_slices_ = std::max(memory_slices_, p.memory_slices);
    }
  }

  MigShare run() {
    search(0, compute_slices_, memory_slices_, 0, 1, 0);
    MigShare share;
    for (std::size_t j = 0; j < jobs_.size(); ++j) {
      MigShare::Place place{.profile = best_choice_[j], .slowdown_at_most = {}};
      if (place.profile >= 0) {
        place.share = share_of(place.profile);
        ++share.placed;
        if (jobs_[j].gpu_busy) place.slowdown_at_most = 1 + *jobs_[j].gpu_busy * (1 / place.share - 1);
      }
      share.places.push_back(place);
    }
    return share;
  }

 private:
  const MigProfile& profile(int p) const { return gpu_.mig_profiles[static_cast<std::size_t>(p)]; }
  double share_of(int p) const {
    const double multiprocessors = static_cast<double>(profile(p).multiprocessors) / gpu_.multiprocessors;
    return std::min({1.0, multiprocessors, static_cast<double>(profile(p).memory_slices) / memory_slices_});
  }

  void search(std::size_t job, std::uint32_t compute, std::uint32_t memory, std::size_t placed, double least,
              double sum) {
    if (placed + (jobs_.size() - job) < best_placed_) return;
    if (job == jobs_.size()) {
      const auto found = std::tuple(placed, least, sum);
      if (found <= std::tuple(best_placed_, best_least_, best_sum_)) return;
      std::tie(best_placed_, best_least_, best_sum_) = found;
      best_choice_ = choice_;
      return;
    }
    for (int p = 0; p < static_cast<int>(used_.size()); ++p) {
      const MigProfile& candidate = profile(p);
      auto& used = used_[static_cast<std::size_t>(p)];
      if (candidate.compute_slices > compute || candidate.memory_slices > memory || used >= candidate.count) continue;
      if (jobs_[job].peak() > static_cast<double>(candidate.memory)) continue;
      ++used;
      choice_[job] = p;
      search(job + 1, compute - candidate.compute_slices, memory - candidate.memory_slices, placed + 1,
             std::min(least, share_of(p)), sum + share_of(p));
      --used;
    }
    choice_[job] = -1;
    search(job + 1, compute, memory, placed, least, sum);
  }

  const std::vector<SharedJob>& jobs_;
  const Gpu& gpu_;
  std::vector<std::uint32_t> used_;
  std::uint32_t compute_slices_ = 0, memory_slices_ = 0;
  std::vector<int> choice_, best_choice_;
  std::size_t best_placed_ = 0;
  double best_least_ = 0, best_sum_ = 0;
};

}  // namespace

double SharedJob::peak() const { return *std::max_element(step.begin(), step.end()); }
double SharedJob::between_steps() const { return std::max(step.front(), step.back()); }

bool StaticSplit::all_fit() const {
  return std::all_of(parts.begin(), parts.end(), [](const Part& p) { return p.fits; });
}

StaticSplit split_equally(const std::vector<SharedJob>& jobs, Bytes capacity) {
  StaticSplit split;
  const Bytes part = capacity / static_cast<Bytes>(jobs.size());
  for (const SharedJob& job : jobs) split.parts.push_back({part, job.peak() <= static_cast<double>(part)});
  return split;
}

StaticSplit split_by_peak(const std::vector<SharedJob>& jobs, Bytes capacity) {
  double sum = 0;
  for (const SharedJob& job : jobs) sum += job.peak();
  // Peak plus a part of what is over: rounding must not cost a job that fits exactly.
  StaticSplit split;
  const double over = capacity_of(capacity) - sum;
  for (const SharedJob& job : jobs) {
    const double weight = sum > 0 ? job.peak() / sum : 1 / static_cast<double>(jobs.size());
    StaticSplit::Part part{static_cast<Bytes>(std::floor(job.peak() + over * weight)), over >= 0};
    split.parts.push_back(part);
  }
  return split;
}

DynamicShare share_by_forecast(const std::vector<SharedJob>& jobs, Bytes capacity, int steps) {
  assert(steps >= 1 && steps <= 1000 && jobs.size() <= 64);
  return Schedule(jobs, capacity, steps).run();
}

MigShare share_by_mig(const std::vector<SharedJob>& jobs, const Gpu& gpu) {
  assert(jobs.size() <= 12);
  return MigSearch(jobs, gpu).run();
}

std::optional<double> time_slicing_slowdown(const std::vector<SharedJob>& jobs) {
  double sum = 0;
  for (const SharedJob& job : jobs) {
    if (!job.gpu_busy) return std::nullopt;
    sum += *job.gpu_busy;
  }
  return std::max(1.0, sum);
}

}  // namespace memwall
