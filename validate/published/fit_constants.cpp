#include "validate/published/fit_constants.h"

#include <algorithm>
#include <cmath>
#include <iterator>

namespace memwall {
namespace {

constexpr double kLeastGain = 1e-3;

// In ln: from the smallest to the largest multiple that a constant may have, and the first and last step of its search.
struct Range {
  double FrameworkConstants::* constant;
  double low, high;
};
const Range kRanges[] = {{&FrameworkConstants::kernels, std::log(0.7), std::log(2.5)},
                         {&FrameworkConstants::network, std::log(0.05), std::log(1.5)},
                         {&FrameworkConstants::host, std::log(0.5), std::log(6.0)}};
constexpr double kFirstStep = 0.2, kLastStep = 0.01;

double rounded(double value) { return std::round(value * 1000) / 1000; }

// Steps to the better neighbour, or halves the step where there is none.
double searched(const std::function<double(double)>& error, const Range& range, double start, double& least) {
  double at = std::log(start);
  for (double step = kFirstStep; step >= kLastStep;) {
    bool moved = false;
    for (const double next : {at + step, at - step}) {
      if (next < range.low || next > range.high) continue;
      const double here = error(rounded(std::exp(next)));
      if (here >= least - kLeastGain / 10) continue;
      least = here;
      at = next;
      moved = true;
      break;
    }
    if (!moved) step /= 2;
  }
  return rounded(std::exp(at));
}

}  // namespace

FittedConstants fit_constants(const std::function<double(const FrameworkConstants&)>& error, std::size_t how_many) {
  FittedConstants fitted;
  fitted.before = fitted.error = error(fitted.constants);
  for (int pass = 0; pass < 2; ++pass)
    for (std::size_t i = 0; i < std::min(how_many, std::size(kRanges)); ++i) {
      FrameworkConstants tried = fitted.constants;
      double least = fitted.error;
      const auto of_one = [&](double value) {
        FrameworkConstants other = tried;
        other.*kRanges[i].constant = value;
        return error(other);
      };
      tried.*kRanges[i].constant = searched(of_one, kRanges[i], tried.*kRanges[i].constant, least);
      if (least > fitted.error - kLeastGain) continue;
      fitted.constants = tried;
      fitted.error = least;
    }
  return fitted;
}

FittedConstants fit_constants(const std::vector<PublishedCase>& cases) {
  std::vector<PublishedCase> rows;
  for (const PublishedCase& one : cases)
    if (one.half == Half::fitted && one.step_seconds > 0) rows.push_back(one);
  if (rows.empty()) return {};
  const auto error = [&](const FrameworkConstants& constants) {
    for (PublishedCase& row : rows) row.constants = constants;
    double sum = 0;
    std::size_t counted = 0;
    for (const PublishedResult& r : predict(rows)) {
      if (r.metric != "step time" || !r.why_not.empty()) continue;
      sum += std::abs(std::log(r.predicted / r.measured));
      ++counted;
    }
    return counted == 0 ? 0 : sum / static_cast<double>(counted);
  };
  FittedConstants fitted = fit_constants(error, std::max<std::size_t>(1, rows.size() / 2));
  fitted.rows = rows.size();
  return fitted;
}

}  // namespace memwall
