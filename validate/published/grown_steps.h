// Steps of jobs that are divided over several ranks, from steps of few micro-batches: what rows that differ only in how
// many micro-batches a step has have in common is simulated once.
#pragma once

#include <cstdint>
#include <functional>
#include <future>
#include <map>
#include <mutex>
#include <string>

#include "validate/published/published.h"
#include "validate/published/steady_passes.h"

namespace memwall {

// What a simulated step says of a row.
struct SimulatedStep {
  bool fits = true;
  std::int64_t batch = 0;
  std::optional<JobKind> job;
  HostShare host{};
  double seconds = 0, low = 0, high = 0;
  double low_fitted = 0, high_fitted = 0;  // were constants fitted to its program
  double peak = 0, reserved = 0, on_device = 0, seconds_at_peak = 0;
};

// A step of few micro-batches, and what each further one adds.
struct GrownStep {
  StepGrowth growth;
  SimulatedStep few;

  // Of so many micro-batches, at least growth.few. Memory is that of the few: a full pipeline holds no more later. The
  // interval is as wide as theirs.
  SimulatedStep at(std::int64_t passes) const;
};

// All that decides a row's step but the number of its micro-batches.
std::string job_text(const PublishedCase& one);

class GrownSteps {
 public:
  // That of the row's job: as `grow` says it, or as it said it of a row before. May be called from several threads.
  // Throws what `grow` throws.
  GrownStep of(const PublishedCase& one, const std::function<GrownStep()>& grow);

 private:
  std::mutex mutex_;
  std::map<std::string, std::shared_future<GrownStep>> steps_;
};

}  // namespace memwall
