// What to try next, from a run's figures. Internal to traces/run/analysis, as what verdicts are made of.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "traces/run/analysis/summary.h"
#include "traces/run/run.h"

namespace memwall {

inline constexpr double kWorthSaying = 0.01;  // share of a step below which a part of it is not named
inline constexpr double kMuch = 0.05;         // of what is reserved, of a step: then a part of it is named

// 0 of no time.
inline double share_of_time(Duration part, Duration whole) {
  return whole.count() > 0 ? static_cast<double>(part.count()) / static_cast<double>(whole.count()) : 0;
}

// A tier and what lives in it when it holds most, largest first.
struct Filled {
  const TierSummary* tier = nullptr;
  std::vector<std::pair<Bytes, StorageKind>> kinds;
};

// The GPU memory that lacks most, else is fullest; a tier of another kind where only that one lacks any.
Filled fullest(const RunSummary& s);

// Of a step's time by class, kernels together.
struct Shares {
  double kernels = 0, recompute = 0;
  std::vector<std::pair<double, TimeClass>> waits;  // largest first

  explicit Shares(const RunSummary& s);
  bool kernels_bind() const { return waits.empty() || kernels >= waits.front().first; }
};

bool has_policy(const RunSummary& summary, std::string_view name);

// Which parts of the step would save how much of it, were they twice as fast. "" where nobody tried.
std::string gains_sentence(const RunSummary& summary);
// What makes it fit, or faster; "" if nothing follows from the figures. `bound`: Verdict::bound_by.
std::string what_to_try(const Run& run, const RunSummary& summary, const Filled& filled, const Shares& shares,
                        const std::string& bound);

}  // namespace memwall
