// Forecasts of memory: periods, growth, intervals and warnings, on series whose future is known.
#include "models/workload/forecast/memory_forecast.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "sim/error.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

// Uniform in [0, 1). No std distribution: their values differ between libraries.
class Random {
 public:
  explicit Random(unsigned seed) : bits_(seed) {}
  double operator()() { return static_cast<double>(bits_() >> 11) * 0x1p-53; }
  double normal() {  // Irwin and Hall: the sum of twelve
    double sum = -6;
    for (int i = 0; i < 12; ++i) sum += (*this)();
    return sum;
  }

 private:
  std::mt19937_64 bits_;
};

// A step of `period` samples: up to 1 in forward, down again in backward.
double shape(std::size_t i, std::size_t period) {
  const double x = static_cast<double>(i) / static_cast<double>(period - 1);
  return 1 - std::abs(2 * x - 1);
}

constexpr std::size_t kPeriod = 20;
constexpr double kGiB = 1 << 30;

struct Example {
  double growth = 0;   // per step
  double noise = 0;    // of each sample
  double sizes = 0;    // of steps: their height varies by this share
  double walk = 0;     // per step: a level that wanders
  double warm_up = 0;  // more in the first two steps
  double season = 4 * kGiB, level = 10 * kGiB;
};

std::vector<double> series_of(const Example& e, std::size_t steps, unsigned seed = 1) {
  Random random(seed);
  std::vector<double> bytes;
  double level = e.level;
  for (std::size_t s = 0; s < steps; ++s) {
    const double height = e.season * (1 + e.sizes * (2 * random() - 1)) + (s < 2 ? e.warm_up : 0);
    level += e.walk * random.normal();
    for (std::size_t i = 0; i < kPeriod; ++i)
      bytes.push_back(level + height * shape(i, kPeriod) + e.noise * random.normal() +
                      e.growth * (static_cast<double>(s) + static_cast<double>(i) / kPeriod));
  }
  return bytes;
}

TEST(FindPeriod, OfAPeriodicSeries) {
  for (const std::size_t steps : {3, 4, 10, 50}) EXPECT_EQ(find_period(series_of({}, steps)), kPeriod) << steps;
  EXPECT_EQ(find_period(series_of({.growth = 0.2 * kGiB}, 20)), kPeriod) << "a leak is no season";
  EXPECT_EQ(find_period(series_of({.noise = 0.2 * kGiB}, 20)), kPeriod);
  EXPECT_EQ(find_period(series_of({.sizes = 0.3}, 20)), kPeriod);
  EXPECT_EQ(find_period(series_of({.warm_up = 3 * kGiB}, 20)), kPeriod);
}

TEST(FindPeriod, NoneWhereThereIsNone) {
  EXPECT_EQ(find_period({}), 0u);
  EXPECT_EQ(find_period(std::vector<double>(500, 3e9)), 0u);
  std::vector<double> line;
  for (int i = 0; i < 300; ++i) line.push_back(1e9 + 0.1 * i);
  EXPECT_EQ(find_period(line), 0u);
  EXPECT_EQ(find_period(series_of({}, 2)), 0u) << "two periods can be chance";
}

TEST(FindPeriod, ChanceIsRarelyTakenForAPeriod) {
  int of_noise = 0, of_walks = 0;
  for (unsigned seed = 1; seed <= 200; ++seed) {
    Random random(seed);
    std::vector<double> noise, walk;
    double at = 0;
    for (int i = 0; i < 400; ++i) {
      noise.push_back(random.normal());
      walk.push_back(at += random.normal());
    }
    of_noise += find_period(noise) > 0;
    of_walks += find_period(walk) > 0;
  }
  RecordProperty("of_noise", of_noise);
  RecordProperty("of_walks", of_walks);
  EXPECT_LE(of_noise, 20);
  EXPECT_LE(of_walks, 20);
}

TEST(EqualSteps, KeepPeaksAndRepeatWhatIsShort) {
  const std::vector<double> bytes{9, 1, 5, 2, 8, 3, 4, 7, 6};
  const MemorySeries s = resample_steps(bytes, {1, 7, 9, 9}, 3);
  EXPECT_EQ(s.period, 3u);
  // Six samples in three pairs; two samples in three; an empty step.
  EXPECT_EQ(s.bytes, (std::vector<double>{5, 8, 4, 7, 7, 6, 6, 6, 6}));
}

TEST(Forecast, APeriodicSeriesGoesOnExactly) {
  const MemoryForecast f = forecast_memory({.bytes = series_of({}, 10)}, 3, 0);
  EXPECT_EQ(f.period, kPeriod);
  EXPECT_TRUE(f.period_found);
  EXPECT_EQ(f.whole_steps, 10u);
  ASSERT_EQ(f.steps.size(), 3u);
  const double highest = 10 * kGiB + 4 * kGiB * shape(9, kPeriod);
  for (const StepForecast& s : f.steps) {
    EXPECT_NEAR(static_cast<double>(s.peak), highest, 2);
    EXPECT_EQ(s.low, s.peak);
    EXPECT_EQ(s.high, s.peak);
  }
  EXPECT_EQ(f.error, 0);
  EXPECT_EQ(f.seasonal_naive_error, 0);
  EXPECT_GT(f.last_value_error, 3 * kGiB);
  EXPECT_NEAR(static_cast<double>(f.growth_per_step), 0, 1);
  EXPECT_EQ(f.backtests, 9u);
}

TEST(Forecast, ALeakIsContinuedAndTheStepThatFillsTheMemoryIsNamed) {
  const double leak = 64 << 20;
  const std::vector<double> bytes = series_of({.growth = leak}, 12);
  const double last = *std::max_element(bytes.end() - kPeriod, bytes.end());
  const auto capacity = static_cast<Bytes>(last + 25.5 * leak);
  const MemoryForecast f = forecast_memory({.bytes = bytes, .period = kPeriod}, 30, capacity);
  EXPECT_FALSE(f.period_found);
  EXPECT_NEAR(static_cast<double>(f.growth_per_step), leak, 1e-3 * leak);
  for (const StepForecast& s : f.steps) EXPECT_NEAR(static_cast<double>(s.peak), last + s.steps_ahead * leak, 100);
  EXPECT_EQ(f.steps_to_capacity, 26);
  ASSERT_TRUE(f.steps_to_limit);
  EXPECT_LE(*f.steps_to_limit, 26);
  // Beyond the horizon the interval says nothing, the growth does.
  const MemoryForecast near = forecast_memory({.bytes = bytes, .period = kPeriod}, 5, capacity);
  EXPECT_FALSE(near.steps_to_limit);
  EXPECT_EQ(near.steps_to_capacity, 26);
  EXPECT_FALSE(forecast_memory({.bytes = series_of({}, 12), .period = kPeriod}, 5, capacity).steps_to_capacity);
}

TEST(Forecast, ALeakUnderNoiseTakesTheTrend) {
  const double leak = 0.1 * kGiB;
  const MemoryForecast f =
      forecast_memory({.bytes = series_of({.growth = leak, .noise = 0.3 * kGiB}, 60), .period = kPeriod}, 1, 0);
  EXPECT_NEAR(static_cast<double>(f.growth_per_step), leak, 0.05 * leak);
  EXPECT_EQ(f.method, "STL: the season on a line through the trend");
  EXPECT_LT(f.error, f.seasonal_naive_error);
  EXPECT_LT(f.error, f.last_value_error);
}

TEST(Forecast, StepsThatVaryAreForecastAtTheirUsualLevel) {
  const MemoryForecast f = forecast_memory({.bytes = series_of({.sizes = 0.4}, 60), .period = kPeriod}, 1, 0);
  EXPECT_EQ(f.method, "STL: the season at its usual level");
  double error = 0, naive = 0;
  for (unsigned seed = 1; seed <= 20; ++seed) {
    const MemoryForecast g = forecast_memory({.bytes = series_of({.sizes = 0.4}, 60, seed), .period = kPeriod}, 1, 0);
    error += static_cast<double>(g.error);
    naive += static_cast<double>(g.seasonal_naive_error);
  }
  // Of uniform sizes, two differ by a third of their range on average, one from the middle by a quarter.
  std::printf("steps that vary: error %.3f of seasonal-naive\n", error / naive);
  EXPECT_LT(error, 0.85 * naive);
}

TEST(Forecast, AWarmUpIsForgotten) {
  const MemoryForecast f = forecast_memory({.bytes = series_of({.warm_up = 3 * kGiB}, 12), .period = kPeriod}, 2, 0);
  for (const StepForecast& s : f.steps)
    EXPECT_NEAR(static_cast<double>(s.peak), 10 * kGiB + 4 * kGiB * shape(9, kPeriod), 10);
}

TEST(Forecast, IntervalsWidenWithTheHorizonAndWithTheCoverage) {
  const MemorySeries series{.bytes = series_of({.noise = 0.2 * kGiB}, 50), .period = kPeriod};
  const MemoryForecast narrow = forecast_memory(series, 9, 0, 0.5), wide = forecast_memory(series, 9, 0, 0.9);
  for (std::size_t h = 0; h < 9; ++h) {
    EXPECT_LE(wide.steps[h].low, wide.steps[h].peak);
    EXPECT_GT(wide.steps[h].high - wide.steps[h].low, narrow.steps[h].high - narrow.steps[h].low);
    if (h > 0) {
      EXPECT_GT(wide.steps[h].high - wide.steps[h].low, wide.steps[h - 1].high - wide.steps[h - 1].low);
    }
  }
}

// How often the next step, which the forecast has not seen, lies within the interval.
double coverage_on(const Example& example, std::size_t steps) {
  int within = 0;
  constexpr int kTrials = 200;
  for (unsigned seed = 1; seed <= kTrials; ++seed) {
    std::vector<double> bytes = series_of(example, steps + 1, seed);
    const double peak = *std::max_element(bytes.end() - kPeriod, bytes.end());
    bytes.resize(bytes.size() - kPeriod);
    const MemoryForecast f = forecast_memory({.bytes = bytes, .period = kPeriod}, 1, 0);
    within += static_cast<double>(f.steps[0].low) <= peak && peak <= static_cast<double>(f.steps[0].high);
  }
  return static_cast<double>(within) / kTrials;
}

TEST(Forecast, TheIntervalCoversAboutAsOftenAsItSays) {
  const std::pair<const char*, Example> examples[] = {
      {"noise", {.noise = 0.2 * kGiB}},
      {"sizes", {.sizes = 0.3}},
      {"leak_and_noise", {.growth = 0.05 * kGiB, .noise = 0.2 * kGiB}},
      {"walk", {.walk = 0.2 * kGiB}},
  };
  for (const auto& [name, example] : examples)
    for (const std::size_t steps : {12, 40}) {
      const double share = coverage_on(example, steps);
      RecordProperty(std::string(name) + "_" + std::to_string(steps), std::to_string(share));
      std::printf("coverage of the 90 %% interval, %s, %zu steps: %.3f\n", name, steps, share);
      EXPECT_GE(share, 0.82) << name << " " << steps;
      EXPECT_LE(share, 0.98) << name << " " << steps;
    }
}

TEST(Forecast, LongStepsAreThinnedAndKeepTheirPeak) {
  std::vector<double> bytes;
  for (int s = 0; s < 5; ++s)
    for (int i = 0; i < 10000; ++i) bytes.push_back(i == 7777 ? 5e9 : 1e9 + i);
  const MemoryForecast f = forecast_memory({.bytes = bytes, .period = 10000}, 1, 0);
  EXPECT_EQ(f.steps[0].peak, 5'000'000'000);
  EXPECT_EQ(f.next_step.size(), kStepSamples);
  EXPECT_DOUBLE_EQ(*std::max_element(f.next_step.begin(), f.next_step.end()), 5e9);
}

TEST(Forecast, TwoStepsAreEnoughAndFewerAreRefused) {
  const MemoryForecast f = forecast_memory({.bytes = {1, 5, 2, 7}, .period = 2}, 1, 0);
  EXPECT_EQ(f.steps[0].peak, 7);
  EXPECT_EQ(f.backtests, 1u);
  EXPECT_GE(f.steps[0].high, 9);
  EXPECT_THROW(forecast_memory({.bytes = {1, 5, 2}, .period = 2}, 1, 0), UsageError);
  EXPECT_THROW(forecast_memory({.bytes = {1, 5, 2, 4}, .period = 1}, 1, 0), UsageError);
  EXPECT_THROW(forecast_memory({.bytes = std::vector<double>(100, 1.0)}, 1, 0), UsageError);
  EXPECT_THROW(forecast_memory({.bytes = {}}, 1, 0), UsageError);
}

TEST(Forecast, HugeSizesDoNotOverflow) {
  const MemoryForecast f = forecast_memory({.bytes = {1e18, 4e18, 2e18, 8e18, 4e18, 1.6e19}, .period = 2}, 1000, 1);
  for (const StepForecast& s : f.steps) {
    EXPECT_GE(s.low, 0);
    EXPECT_LE(s.low, s.peak);
    EXPECT_LE(s.peak, s.high);
  }
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
