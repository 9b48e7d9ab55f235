// Does the solver find what a look at all values finds, and are its bounds and duals what they are said to be?
#include "policies/solver/linear_program.h"

#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <random>

#include "sim/error.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

using Term = LinearProgram::Term;

class LinearProgramTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!LinearProgram::is_available()) GTEST_SKIP() << LinearProgram::missing();
  }
};

// Columns from 0 to 2, whole; rows of small whole factors.
struct SmallProgram {
  explicit SmallProgram(std::uint32_t seed) {
    std::mt19937 random(seed);
    const auto between = [&](int low, int high) {
      return low + static_cast<int>(random() % static_cast<std::uint32_t>(high - low + 1));
    };
    columns = between(1, 7);
    for (int i = 0; i < columns; ++i) costs.push_back(between(-9, 9));
    for (int r = between(1, 5); r > 0; --r) {
      factors.emplace_back();
      for (int i = 0; i < columns; ++i) factors.back().push_back(between(-4, 4));
      const int low = between(-6, 6);
      bounds.emplace_back(low, low + between(0, 5));
    }
    for (const int cost : costs) program.add_column(0, 2, cost, true);
    for (std::size_t r = 0; r < factors.size(); ++r) {
      std::vector<Term> terms;
      for (std::size_t i = 0; i < factors[r].size(); ++i) terms.push_back({i, static_cast<double>(factors[r][i])});
      program.add_row(terms, bounds[r].first, bounds[r].second);
    }
  }

  // Of all values that keep to the rows, the least cost.
  std::optional<int> least() const {
    std::optional<int> best;
    std::vector<int> values(static_cast<std::size_t>(columns), 0);
    for (;;) {
      if (keeps(values)) {
        const int cost = sum(costs, values);
        best = std::min(best.value_or(cost), cost);
      }
      std::size_t i = 0;
      while (i < values.size() && ++values[i] == 3) values[i++] = 0;
      if (i == values.size()) return best;
    }
  }
  bool keeps(const std::vector<int>& values) const {
    for (std::size_t r = 0; r < factors.size(); ++r) {
      const int value = sum(factors[r], values);
      if (value < bounds[r].first || value > bounds[r].second) return false;
    }
    return true;
  }
  static int sum(const std::vector<int>& factors, const std::vector<int>& values) {
    int total = 0;
    for (std::size_t i = 0; i < values.size(); ++i) total += factors[i] * values[i];
    return total;
  }

  int columns = 0;
  std::vector<int> costs;
  std::vector<std::vector<int>> factors;
  std::vector<std::pair<int, int>> bounds;
  LinearProgram program;
};

TEST_F(LinearProgramTest, FindsTheLeastOfAllValues) {
  int feasible = 0, looser = 0;
  for (std::uint32_t seed = 0; seed < 150; ++seed) {
    SCOPED_TRACE(seed);
    const SmallProgram small(seed);
    const std::optional<int> least = small.least();
    const SolverAnswer answer = small.program.minimise(), relaxed = small.program.relaxed();
    if (!least) {
      EXPECT_EQ(answer.status, SolverStatus::infeasible);
      continue;
    }
    ++feasible;
    ASSERT_EQ(answer.status, SolverStatus::optimal);
    EXPECT_NEAR(answer.objective, *least, 1e-6);
    EXPECT_NEAR(answer.bound, *least, 1e-6);
    std::vector<int> values;
    for (const double value : answer.values) values.push_back(static_cast<int>(value));
    EXPECT_TRUE(small.keeps(values));
    EXPECT_EQ(SmallProgram::sum(small.costs, values), *least);
    ASSERT_EQ(relaxed.status, SolverStatus::optimal);
    EXPECT_LE(relaxed.objective, *least + 1e-6);
    looser += relaxed.objective < *least - 1e-6 ? 1 : 0;
  }
  EXPECT_GT(feasible, 30);
  EXPECT_LT(feasible, 150);
  EXPECT_GT(looser, 10) << "whole numbers cost something";
}

// A diet: 2 x + y >= 8, x + 3 y >= 9, at costs 3 and 4. The corner: x = 3, y = 2 costs 17. One more of the first row
// moves it to x = 3.6, y = 1.8: 18; one more of the second to x = 2.8, y = 2.4: 18.
TEST_F(LinearProgramTest, DualsSayWhatARowCosts) {
  LinearProgram p;
  const std::size_t x = p.add_column(0, LinearProgram::kInfinity, 3), y = p.add_column(0, LinearProgram::kInfinity, 4);
  p.add_row({{x, 1}, {y, 1}, {x, 1}}, 8, LinearProgram::kInfinity);  // terms of x add up
  p.add_row({{x, 1}, {y, 3}}, 9, LinearProgram::kInfinity);
  p.add_row({{x, 1}}, -LinearProgram::kInfinity, 100);
  const SolverAnswer answer = p.relaxed();
  ASSERT_EQ(answer.status, SolverStatus::optimal);
  EXPECT_NEAR(answer.objective, 17, 1e-9);
  EXPECT_NEAR(answer.values[x], 3, 1e-9);
  EXPECT_NEAR(answer.values[y], 2, 1e-9);
  ASSERT_EQ(answer.duals.size(), 3u);
  EXPECT_NEAR(answer.duals[0], 1, 1e-9);
  EXPECT_NEAR(answer.duals[1], 1, 1e-9);
  EXPECT_NEAR(answer.duals[2], 0, 1e-9);
  EXPECT_EQ(p.minimise().duals, answer.duals) << "no column is whole";
}

TEST_F(LinearProgramTest, SaysWhatHasNoAnswer) {
  LinearProgram none;
  none.add_row({{none.add_column(0, 1, 1, true), 2}}, 3, 4);
  EXPECT_EQ(none.minimise().status, SolverStatus::infeasible);
  EXPECT_EQ(none.relaxed().status, SolverStatus::infeasible);
  LinearProgram endless;
  endless.add_column(0, LinearProgram::kInfinity, -1);
  endless.add_row({{0, 1}}, 0, LinearProgram::kInfinity);
  EXPECT_EQ(endless.relaxed().status, SolverStatus::unbounded);
}

// A knapsack of 40 things whose sizes and worths are near each other: a search without nodes left says so, and what it
// found lies between the bound and the start.
TEST_F(LinearProgramTest, KeepsItsLimitsAndIsTheSameTwice) {
  LinearProgram p;
  std::mt19937 random(5);
  std::vector<Term> first, second;
  for (int i = 0; i < 40; ++i) {
    const double size = 1000 + static_cast<double>(random() % 100), other = 1000 + static_cast<double>(random() % 100);
    p.add_column(0, 1, -(size + other) - static_cast<double>(random() % 7), true);
    first.push_back({static_cast<std::size_t>(i), size});
    second.push_back({static_cast<std::size_t>(i), other});
  }
  p.add_row(first, 0, 20'517);
  p.add_row(second, 0, 20'623);
  const SolverAnswer one = p.minimise({.nodes = 50}), two = p.minimise({.nodes = 50});
  ASSERT_EQ(one.status, SolverStatus::limited);
  EXPECT_LT(one.bound, one.objective);
  EXPECT_EQ(one.values, two.values);
  EXPECT_EQ(one.bound, two.bound);
  const SolverAnswer none = p.minimise({.nodes = 0}, one.values);
  EXPECT_LE(none.objective, one.objective + 1e-6) << "no worse than its start";
}

TEST(LinearProgramWithoutSolver, NamesThePackages) {
  EXPECT_NE(std::string(LinearProgram::missing()).find("coinor-libcbc"), std::string::npos);
  if (!LinearProgram::is_available()) {
    EXPECT_THROW(LinearProgram().minimise(), UsageError);
    EXPECT_THROW(LinearProgram().relaxed(), UsageError);
  }
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
