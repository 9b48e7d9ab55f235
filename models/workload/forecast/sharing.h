// Several jobs on one GPU: which ways of dividing its memory let them run, and what each way costs.
//
// What is known of a job is the forecast of its next step. Three ways: a static split, where each job has a part of its
// own all the time; dynamic, where a job's step starts when the upper bound of its memory fits beside the others over
// the whole step, and else waits; and MIG, where the GPU itself is cut into instances. docs/forecast.md has the rules.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/machine/machine.h"
#include "sim/units.h"

namespace memwall {

struct SharedJob {
  std::string name;
  std::vector<double> step;        // upper bound of its memory over a step, bytes at equal distances in time; not empty
  double seconds = 0;              // of a step; 0 = unknown
  std::optional<double> gpu_busy;  // share of a step in which its kernels run, where known
  double peak() const;
  // Between steps: the higher one of its first and last sample.
  double between_steps() const;
};

// A part of the memory for each job, all the time.
struct StaticSplit {
  struct Part {
    Bytes bytes = 0;
    bool fits = false;  // the job's peak
  };
  std::vector<Part> parts;  // as the jobs; the sum is at most the capacity
  bool all_fit() const;
};
StaticSplit split_equally(const std::vector<SharedJob>& jobs, Bytes capacity);
// In proportion to the peaks: all fit exactly where the sum of the peaks does.
StaticSplit split_by_peak(const std::vector<SharedJob>& jobs, Bytes capacity);

// Steps in time. The unit is a tick: all steps last whole ticks (rounded up).
struct DynamicShare {
  struct Start {
    std::size_t job = 0;
    std::int64_t ready = 0, begin = 0, end = 0;  // ticks; it waits from ready to begin
  };
  bool possible = false;
  std::string why_not;                // "" where it is possible
  double seconds_per_tick = 0;        // 0: the duration of some job is unknown, and every step is taken to last as long
  std::int64_t ticks_per_step = 0;    // of the shortest job
  std::vector<Start> starts;          // in the order in which they were admitted
  std::vector<std::int64_t> waiting;  // per job, ticks, of all its steps
  std::vector<std::int64_t> step_ticks;  // per job
  std::vector<double> memory;            // per tick: the upper bound of all jobs together
  std::int64_t makespan = 0;             // until the last job has ended
  std::int64_t one_after_the_other = 0;  // the same without sharing: the sum of all steps
};
// Every job runs `steps` steps, one after the other, and leaves. A step is placed, in the order in which steps become
// ready, at the earliest instant at which it fits over its whole length beside all that was placed before; what
// unfinished jobs hold between their steps counts always. What kernels of several jobs cost each other is not in it.
// REQUIRES: 1 <= steps <= 1000, at most 64 jobs.
DynamicShare share_by_forecast(const std::vector<SharedJob>& jobs, Bytes capacity, int steps);

// One instance per job.
struct MigShare {
  struct Place {
    int profile = -1;  // index into the profiles; -1 = the job has no instance
    // The longest a step can become, as a multiple: its kernels run on this share of multiprocessors and memory
    // slices, the rest of it is unchanged. Nothing where the job's gpu_busy is unknown.
    std::optional<double> slowdown_at_most;
    double share = 0;  // the smaller one of its shares of multiprocessors and of memory slices
  };
  std::vector<Place> places;  // as the jobs
  std::size_t placed = 0;
};
// As many jobs as can be at once; among such ways the one whose smallest share is largest, then that with the largest
// sum of shares. REQUIRES: at most 12 jobs.
MigShare share_by_mig(const std::vector<SharedJob>& jobs, const Gpu& gpu);

// Kernels of several jobs on one GPU take turns: where their busy shares add up to more than the time that there is,
// every job is slower by that factor on average. Nothing where a job's is unknown.
std::optional<double> time_slicing_slowdown(const std::vector<SharedJob>& jobs);

}  // namespace memwall
