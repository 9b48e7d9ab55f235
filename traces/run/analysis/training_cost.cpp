#include "traces/run/analysis/training_cost.h"

#include <charconv>
#include <cmath>
#include <string>

#include "sim/error.h"
#include "traces/run/analysis/summary.h"

namespace memwall {

std::optional<TrainingCost> training_cost(const RunSummary& s, double tokens,
                                          std::optional<double> price_per_gpu_hour) {
  constexpr double kSecondsPerHour = 3600;
  if (s.tokens_per_second <= 0) return std::nullopt;
  TrainingCost cost;
  cost.tokens = tokens;
  cost.seconds = tokens / s.tokens_per_second;
  const double step = to_seconds(s.times.total()) / s.step_count;
  if (step <= 0) return std::nullopt;
  cost.steps = cost.seconds / step;
  cost.gpu_hours = cost.seconds / kSecondsPerHour * s.energy_price.gpus;
  if (price_per_gpu_hour)
    cost.dollars = *price_per_gpu_hour * cost.gpu_hours;
  else if (s.energy_price.price)
    cost.dollars = *s.energy_price.price * cost.steps;
  if (s.energy_price.energy) cost.joules = *s.energy_price.energy * cost.steps;
  return cost;
}

double parse_tokens(std::string_view text, std::string_view option) {
  double number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, problem] = std::from_chars(text.data(), end, number);
  const std::string_view unit(stop, static_cast<std::size_t>(end - stop));
  double factor = unit.empty() ? 1 : 0;
  constexpr std::pair<char, double> kUnits[] = {{'k', 1e3}, {'K', 1e3}, {'M', 1e6}, {'B', 1e9}, {'T', 1e12}};
  for (const auto& [letter, of] : kUnits)
    if (unit.size() == 1 && unit.front() == letter) factor = of;
  if (problem != std::errc{} || factor == 0 || !std::isfinite(number * factor) || number <= 0)
    throw UsageError(std::string(option) + " \"" + std::string(text) +
                     "\": expected a number of tokens, with k, M, B or T for thousands to trillions: 15T, 300B.");
  return number * factor;
}

}  // namespace memwall
