// Loess and STL against closed forms and against an independent, slow implementation of the paper.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "models/workload/forecast/loess.h"
#include "models/workload/forecast/seasonal_trend.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

using Series = std::vector<double>;

Series noise(std::size_t n, double size, unsigned seed) {
  std::mt19937_64 bits(seed);
  Series values(n);
  // No std distribution: their values differ between libraries.
  for (double& v : values) v = size * (2 * static_cast<double>(bits() >> 11) * 0x1p-53 - 1);
  return values;
}

TEST(Loess, AConstantAndALineAreReproducedExactly) {
  Series line;
  for (int i = 0; i < 30; ++i) line.push_back(3.5 * i - 20);
  for (const std::size_t window : {3, 7, 30, 61})
    for (const double x : {-2.0, 0.0, 4.25, 15.0, 29.0, 31.5})
      EXPECT_NEAR(loess_at(line, x, {.window = window}), 3.5 * x - 20, 1e-10) << window << " " << x;
  const Series constant(9, 7.0);
  for (const double y : loess(constant, {.window = 5, .degree = 0})) EXPECT_DOUBLE_EQ(y, 7.0);
  // A straight line is straight between fitted points too.
  for (std::size_t i = 0; const double y : loess(line, {.window = 9, .jump = 7})) EXPECT_NEAR(y, line[i++], 1e-9);
}

TEST(Loess, WeightsOfATinyCaseByHand) {
  const Series y{1, 10, 100};
  // At the middle of three: lambda = 1, so that both neighbours weigh W(1) = 0.
  EXPECT_DOUBLE_EQ(loess_at(y, 1, {.window = 3, .degree = 0}), 10);
  // At the first: lambda = 2, W(1/2) = (7/8)^3 = 343/512.
  const double w = 343.0 / 512;
  EXPECT_NEAR(loess_at(y, 0, {.window = 3, .degree = 0}), (1 + w * 10) / (1 + w), 1e-12);
  // Two points with weight: the line passes through both.
  EXPECT_NEAR(loess_at(y, 0, {.window = 3, .degree = 1}), 1, 1e-12);
  // A window of 6 on 3 points: lambda = 1 * 6/3 = 2 at the middle, both neighbours weigh w.
  EXPECT_NEAR(loess_at(y, 1, {.window = 6, .degree = 0}), (10 + w * 101) / (1 + 2 * w), 1e-12);
  // Robustness takes the last point away.
  EXPECT_NEAR(loess_at(y, 1, {.window = 6, .degree = 0}, Series{1, 1, 0}), (10 + w * 1) / (1 + w), 1e-12);
  // ... where it takes the whole neighbourhood, that grows: at 0 a window of 2 has point 0 alone (W(1) = 0 for point
  // 1), one of 4 has lambda = 2 * 4/3 and with it points 1 and 2.
  const double w1 = std::pow(1 - std::pow(3.0 / 8, 3), 3), w2 = std::pow(1 - std::pow(6.0 / 8, 3), 3);
  EXPECT_NEAR(loess_at(y, 0, {.window = 2, .degree = 0}, Series{0, 1, 1}), (10 * w1 + 100 * w2) / (w1 + w2), 1e-12);
  // ... and where it takes all points, it is not regarded.
  EXPECT_NEAR(loess_at(y, 1, {.window = 6, .degree = 0}, Series{0, 0, 0}), (10 + w * 101) / (1 + 2 * w), 1e-12);
}

TEST(Loess, WindowsOfOneAndTwoPointsGiveThePoints) {
  const Series y{4, 8, 1};
  for (const std::size_t window : {1, 2}) EXPECT_EQ(loess(y, {.window = window}), y) << window;
  EXPECT_EQ(loess(Series{5}, {.window = 7}), Series{5});
}

TEST(Loess, JumpsFitAtEveryNthPointAndAtTheLast) {
  const Series y = noise(23, 5, 1);
  const Series exact = loess(y, {.window = 9});
  const Series jumped = loess(y, {.window = 9, .jump = 4});
  for (const std::size_t i : {0, 4, 8, 12, 16, 20, 22}) EXPECT_EQ(jumped[i], exact[i]) << i;
  EXPECT_DOUBLE_EQ(jumped[6], (exact[4] + exact[8]) / 2);
  EXPECT_DOUBLE_EQ(jumped[21], (exact[20] + exact[22]) / 2);
}

// The paper once more, as plainly as possible: every neighbourhood by sorting distances, every line by the normal
// equations, every average by its definition.
namespace slow {

double fit(const Series& y, double x, std::size_t q, const Series& rho) {
  std::vector<std::pair<double, std::size_t>> near;
  for (std::size_t i = 0; i < y.size(); ++i) near.emplace_back(std::abs(static_cast<double>(i) - x), i);
  std::sort(near.begin(), near.end());
  const std::size_t count = std::min(q, y.size());
  double lambda = near[count - 1].first;
  if (q > y.size()) lambda *= static_cast<double>(q) / static_cast<double>(y.size());
  double a = 0, b = 0, c = 0, d = 0, e = 0;
  for (const auto& [distance, i] : near) {
    if (distance >= lambda) continue;
    const double w = std::pow(1 - std::pow(distance / lambda, 3), 3) * rho[i], t = static_cast<double>(i);
    a += w;
    b += w * t;
    c += w * t * t;
    d += w * y[i];
    e += w * t * y[i];
  }
  const double slope = (a * e - b * d) / (a * c - b * b);
  return (d - slope * b) / a + slope * x;
}

Series average(const Series& y, std::size_t n) {
  Series means;
  for (std::size_t i = 0; i + n <= y.size(); ++i) {
    double sum = 0;
    for (std::size_t j = i; j < i + n; ++j) sum += y[j];
    means.push_back(sum / static_cast<double>(n));
  }
  return means;
}

SeasonalTrend decompose(const Series& y, std::size_t p, std::size_t ns, std::size_t nt, std::size_t nl, int inner,
                        int outer) {
  const std::size_t n = y.size();
  const Series ones(2 * n + 2 * p, 1.0);
  SeasonalTrend s{Series(n, 0.0), Series(n, 0.0), Series(n, 0.0), Series(n, 1.0)};
  for (int o = 0; o <= outer; ++o) {
    for (int k = 0; k < inner; ++k) {
      Series c(n + 2 * p);
      for (std::size_t place = 0; place < p; ++place) {
        Series sub, rho;
        for (std::size_t i = place; i < n; i += p) {
          sub.push_back(y[i] - s.trend[i]);
          rho.push_back(s.weights[i]);
        }
        for (int j = -1; j <= static_cast<int>(sub.size()); ++j)
          c[static_cast<std::size_t>(j + 1) * p + place] = fit(sub, j, ns, rho);
      }
      const Series low = average(average(average(c, p), p), 3);
      Series rest(n);
      for (std::size_t i = 0; i < n; ++i) {
        s.seasonal[i] = c[i + p] - fit(low, static_cast<double>(i), nl, ones);
        rest[i] = y[i] - s.seasonal[i];
      }
      for (std::size_t i = 0; i < n; ++i) s.trend[i] = fit(rest, static_cast<double>(i), nt, s.weights);
    }
    Series sizes(n);
    for (std::size_t i = 0; i < n; ++i) {
      s.remainder[i] = y[i] - s.trend[i] - s.seasonal[i];
      sizes[i] = std::abs(s.remainder[i]);
    }
    if (o == outer) break;
    Series sorted = sizes;
    std::sort(sorted.begin(), sorted.end());
    const double h = 6 * (sorted[n / 2] + sorted[(n - 1) / 2]) / 2;
    for (std::size_t i = 0; i < n; ++i) s.weights[i] = sizes[i] >= h ? 0 : std::pow(1 - std::pow(sizes[i] / h, 2), 2);
  }
  return s;
}

}  // namespace slow

// Twelve seasons of seven, a bent trend, noise, and one outlier.
Series example(std::size_t seasons = 12, std::size_t period = 7) {
  Series y = noise(seasons * period + 3, 2, 7);
  for (std::size_t i = 0; i < y.size(); ++i) {
    const auto t = static_cast<double>(i);
    y[i] += 100 + 0.4 * t + 0.004 * t * t + 15 * std::sin(2 * 3.141592653589793 * t / static_cast<double>(period));
  }
  y[40] += 9;  // no more: the slow implementation has no rule for a neighbourhood without weight
  return y;
}

void expect_near(const Series& a, const Series& b, double tolerance, const char* what) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], tolerance) << what << " " << i;
}

TEST(SeasonalTrend, EqualsASlowImplementation) {
  const Series y = example();
  struct Case {
    std::size_t ns, nt, nl;
    int inner, outer;
  };
  for (const Case& c : {Case{7, 15, 7, 2, 0}, Case{7, 15, 7, 1, 5}, Case{13, 21, 9, 2, 1}, Case{35, 101, 7, 2, 2}}) {
    const SeasonalTrend fast = decompose(y, {.period = 7,
                                             .seasonal_window = c.ns,
                                             .trend_window = c.nt,
                                             .low_pass_window = c.nl,
                                             .inner_iterations = c.inner,
                                             .outer_iterations = c.outer});
    const SeasonalTrend slow = slow::decompose(y, 7, c.ns, c.nt, c.nl, c.inner, c.outer);
    expect_near(fast.trend, slow.trend, 1e-8, "trend");
    expect_near(fast.seasonal, slow.seasonal, 1e-8, "seasonal");
    expect_near(fast.remainder, slow.remainder, 1e-8, "remainder");
    expect_near(fast.weights, slow.weights, 1e-8, "weights");
  }
}

TEST(SeasonalTrend, WindowsNotGivenAreThePapers) {
  const Series y = example();
  // n_t = least odd >= 1.5 * 7 / (1 - 1.5 / 7) = 13.4: 15. n_l = least odd >= 7.
  const SeasonalTrend chosen = decompose(y, {.period = 7});
  const SeasonalTrend given = decompose(y, {.period = 7, .trend_window = 15, .low_pass_window = 7});
  EXPECT_EQ(chosen.trend, given.trend);
  EXPECT_EQ(chosen.seasonal, given.seasonal);
  EXPECT_NE(chosen.trend, decompose(y, {.period = 7, .trend_window = 17}).trend);
  EXPECT_NE(chosen.seasonal, decompose(y, {.period = 7, .low_pass_window = 9}).seasonal);
}

TEST(SeasonalTrend, PartsAddUpToTheSeries) {
  for (const std::size_t window : {0, 7}) {
    const Series y = example();
    const SeasonalTrend s = decompose(y, {.period = 7, .seasonal_window = window, .outer_iterations = 3, .jumps = 10});
    for (std::size_t i = 0; i < y.size(); ++i) {
      EXPECT_NEAR(s.trend[i] + s.seasonal[i] + s.remainder[i], y[i], 1e-12 * std::abs(y[i]));
      EXPECT_GE(s.weights[i], 0);
      EXPECT_LE(s.weights[i], 1);
    }
  }
}

TEST(SeasonalTrend, AKnownTrendAndSeasonAreFound) {
  const Series shape{-30, 10, 25, 5, -10};  // adds up to 0
  Series y;
  for (int i = 0; i < 60; ++i) y.push_back(1000 + 2.0 * i + shape[static_cast<std::size_t>(i % 5)]);
  for (const std::size_t window : {0, 7}) {
    const SeasonalTrend s = decompose(y, {.period = 5, .seasonal_window = window, .inner_iterations = 10});
    for (std::size_t i = 0; i < y.size(); ++i) {
      EXPECT_NEAR(s.trend[i], 1000 + 2.0 * static_cast<double>(i), 0.05) << window << " " << i;
      EXPECT_NEAR(s.seasonal[i], shape[i % 5], 0.05) << window << " " << i;
    }
  }
}

TEST(SeasonalTrend, ThePeriodicSeasonIsTheSameInEverySeason) {
  const SeasonalTrend s = decompose(example(), {.period = 7, .seasonal_window = 0});
  for (std::size_t i = 7; i < s.seasonal.size(); ++i) EXPECT_NEAR(s.seasonal[i], s.seasonal[i - 7], 1e-9);
}

TEST(SeasonalTrend, RobustWeightsTakeAnOutlierAway) {
  Series clean = noise(70, 1, 3);
  for (std::size_t i = 0; i < clean.size(); ++i) clean[i] += 50 + (i % 7 == 0 ? 20 : 0);
  Series hit = clean;
  hit[35] += 500;
  const SeasonalTrendSettings robust{.period = 7, .outer_iterations = 6}, plain{.period = 7, .outer_iterations = 0};
  const auto damage = [&](const SeasonalTrendSettings& settings) {
    const Series a = decompose(clean, settings).trend, b = decompose(hit, settings).trend;
    double most = 0;
    for (std::size_t i = 0; i < a.size(); ++i) most = std::max(most, std::abs(a[i] - b[i]));
    return most;
  };
  EXPECT_GT(damage(plain), 10);
  EXPECT_LT(damage(robust), 1);
  const SeasonalTrend s = decompose(hit, robust);
  EXPECT_EQ(s.weights[35], 0);
  EXPECT_NEAR(s.remainder[35], 500, 5);
}

TEST(SeasonalTrend, JumpsChangeLittle) {
  const Series y = example(40, 50);
  const SeasonalTrend exact = decompose(y, {.period = 50}), quick = decompose(y, {.period = 50, .jumps = 10});
  for (std::size_t i = 0; i < y.size(); ++i) EXPECT_NEAR(exact.trend[i], quick.trend[i], 0.5) << i;
  EXPECT_NE(exact.trend, quick.trend);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
