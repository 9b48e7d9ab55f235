#include "validate/calibrate/transfer_time_model.h"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "sim/machine/machine.h"
#include "sim/quantile.h"

namespace memwall {
namespace {

constexpr double kNoise = 0.05;   // relative; what medians of repeated measurements differ by
constexpr double kNoLoss = 0.01;  // relative; a point of the curve that explains less is dropped
constexpr double kLoose = 0.25;   // relative; a time that spreads by more says little
constexpr std::size_t kMostSizes = 64;

// Both ends, and the rest evenly.
std::vector<SizedTime> thinned(const std::vector<SizedTime>& times) {
  if (times.size() <= kMostSizes) return times;
  std::vector<SizedTime> kept;
  for (std::size_t i = 0; i < kMostSizes; ++i) kept.push_back(times[i * (times.size() - 1) / (kMostSizes - 1)]);
  return kept;
}

// A latency near the whole time would make the rest a difference of noise.
double moving_seconds(const SizedTime& t, double latency) { return std::max(t.seconds - latency, 0.01 * t.seconds); }

// A line through the smallest sizes, which may rise faster than 1 / bandwidth: small transfers are inefficient.
double latency_at(const std::vector<SizedTime>& times, double bandwidth, std::size_t ends) {
  double slope = 1 / bandwidth;
  std::vector<double> slopes, found;
  for (std::size_t i = 0; i < ends; ++i)
    for (std::size_t j = i + 1; j < ends; ++j)
      slopes.push_back((times[j].seconds - times[i].seconds) / (times[j].bytes - times[i].bytes));
  if (!slopes.empty()) slope = std::max(slope, median(slopes));
  for (std::size_t i = 0; i < ends; ++i) found.push_back(times[i].seconds - times[i].bytes * slope);
  return std::max(0.0, median(found));
}

void fit_line(const std::vector<SizedTime>& times, bool fastest_at_large, TransferTimeModel& law) {
  const std::size_t ends = std::clamp<std::size_t>(times.size() / 3, 1, 3);
  const std::size_t large = fastest_at_large ? 1 : ends;
  for (int round = 0; round < 60; ++round) {
    std::vector<double> rates;
    for (std::size_t i = times.size() - large; i < times.size(); ++i)
      rates.push_back(times[i].bytes / moving_seconds(times[i], law.latency));
    law.bandwidth = median(rates);
    law.latency = latency_at(times, law.bandwidth, ends);
  }
  if (fastest_at_large) return;
  double best = 0;
  for (const SizedTime& t : times)
    if (t.spread <= kLoose && t.seconds - law.latency > 0.5 * t.seconds) {
      const double rate = t.bytes / (t.seconds - law.latency);
      if (rate > (1 + kNoise + t.spread) * law.bandwidth) best = std::max(best, rate);
    }
  if (best == 0) return;
  law.bandwidth = best;
  law.latency = latency_at(times, law.bandwidth, ends);
}

// What 1 / efficiency would have to be at a size. The relative error of the time is linear in it; the weight
// is the square of the slope over the spread: least squares need nothing else.
struct Cost {
  double value = 1, weight = 0;
};

std::vector<Cost> costs_of(const std::vector<SizedTime>& times, const TransferTimeModel& law) {
  std::vector<Cost> costs;
  for (const SizedTime& t : times) {
    const double slope = t.bytes / (law.bandwidth * t.seconds), error = slope / std::max(t.spread, 0.02);
    costs.push_back({(t.seconds - law.latency) * law.bandwidth / t.bytes, error * error});
  }
  return costs;
}

// Pool adjacent violators: the weighted least-squares fit among sequences that do not rise.
std::vector<double> falling_fit(const std::vector<Cost>& costs) {
  struct Block {
    Cost mean;
    std::size_t count = 0;
  };
  std::vector<Block> blocks;
  for (const Cost& cost : costs) {
    blocks.push_back({cost, 1});
    while (blocks.size() > 1 && blocks[blocks.size() - 2].mean.value <= blocks.back().mean.value) {
      const Block last = blocks.back();
      blocks.pop_back();
      Block& into = blocks.back();
      const double weight = into.mean.weight + last.mean.weight;
      into.mean.value = (into.mean.value * into.mean.weight + last.mean.value * last.mean.weight) / weight;
      into.mean.weight = weight;
      into.count += last.count;
    }
  }
  std::vector<double> fit;
  for (const Block& block : blocks) fit.insert(fit.end(), block.count, block.mean.value);
  return fit;
}

std::vector<double> efficiencies(const std::vector<SizedTime>& times, const TransferTimeModel& law) {
  const std::vector<Cost> costs = costs_of(times, law);
  std::vector<double> fit = falling_fit(costs);
  for (double& cost : fit) cost = std::max(cost, 1.0);
  bool missed = false;
  for (std::size_t i = 0; i < times.size(); ++i) {
    // A curve that may go anywhere cannot make a cost below 1 right either.
    const double slope = times[i].bytes / (law.bandwidth * times[i].seconds);
    const double error = std::abs(fit[i] - std::max(costs[i].value, 1.0)) * slope;
    missed = missed || (times[i].spread <= kLoose && error > kNoise + times[i].spread);
  }
  for (std::size_t i = 0; i < times.size(); ++i) {
    if (missed) fit[i] = std::max(costs[i].value, 1.0);
    fit[i] = 1 / fit[i];
  }
  return fit;
}

double largest_change(const std::vector<SizedTime>& times, const TransferTimeModel& a, const TransferTimeModel& b) {
  double worst = 0;
  for (const SizedTime& t : times) {
    const double before = a.seconds(t.bytes);
    worst = std::max(worst, std::abs(b.seconds(t.bytes) - before) / before);
  }
  return worst;
}

void drop_needless_points(const std::vector<SizedTime>& times, TransferTimeModel& law) {
  const TransferTimeModel full = law;
  while (!law.efficiency.empty()) {
    TransferTimeModel best;
    double least = kNoLoss;
    bool found = false;
    for (std::size_t i = 0; i < law.efficiency.size(); ++i) {
      TransferTimeModel without = law;
      without.efficiency.erase(without.efficiency.begin() + static_cast<std::ptrdiff_t>(i));
      const double change = largest_change(times, full, without);
      if (change > least || (found && change == least)) continue;
      best = without;
      least = change;
      found = true;
    }
    if (!found) return;
    law = best;
  }
}

}  // namespace

double TransferTimeModel::seconds(double bytes) const {
  return latency + bytes / (bandwidth * EfficiencyCurve{efficiency}.at(bytes));
}

TransferTimeModel fit_transfer_time(std::vector<SizedTime> times, bool fastest_at_large) {
  times = thinned(times);
  assert(times.size() >= 2);
  std::vector<SizedTime> firm;
  for (const SizedTime& t : times)
    if (t.spread <= kLoose) firm.push_back(t);
  TransferTimeModel law;
  fit_line(firm.size() >= 3 && 2 * firm.size() >= times.size() ? firm : times, fastest_at_large, law);
  const std::vector<double> shares = efficiencies(times, law);
  for (std::size_t i = 0; i < times.size(); ++i) law.efficiency.emplace_back(times[i].bytes, shares[i]);
  drop_needless_points(times, law);
  return law;
}

}  // namespace memwall
