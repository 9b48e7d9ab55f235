// What it takes to train on so many tokens: the step of a run, over and over.
//
// Nothing else is counted: no restarts, no evaluation, no checkpoints written, nothing that breaks.
#pragma once

#include <optional>
#include <string_view>

namespace memwall {

struct RunSummary;

struct TrainingCost {
  double tokens = 0, steps = 0;
  double seconds = 0, gpu_hours = 0;
  std::optional<double> dollars;  // absent without a price per GPU and hour
  std::optional<double> joules;   // absent without the powers of the GPU (traces/run/analysis/energy.h)
};

// `price_per_gpu_hour`: in dollars, instead of the machine's. Nothing where the run does not know its tokens, or takes
// no time.
std::optional<TrainingCost> training_cost(const RunSummary& summary, double tokens,
                                          std::optional<double> price_per_gpu_hour);

// "15T", "300B", "1e9": a positive number, with k, M, B (1e9) or T (1e12) behind it or nothing. Throws UsageError that
// names `option`.
double parse_tokens(std::string_view text, std::string_view option);

}  // namespace memwall
