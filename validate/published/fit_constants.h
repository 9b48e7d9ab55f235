// Fits FrameworkConstants to the fitted half of a table's rows. The judged half is not looked at.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "validate/published/published.h"

namespace memwall {

struct FittedConstants {
  FrameworkConstants constants;
  std::size_t rows = 0;       // that they were fitted to
  double before = 0, error = 0;  // mean of |ln(predicted / measured)| over them: with all 1, and with these
};

// Constants that make `error` small, and how small. One after another (kernels, network, host; twice), each by a search
// over its own range that halves its step; a constant that gains less than 1e-3 stays 1. `how_many` of them, in that
// order. Deterministic.
FittedConstants fit_constants(const std::function<double(const FrameworkConstants&)>& error, std::size_t how_many);

// Of one table's cases: step times of those with Half::fitted, at most one constant to two rows. All 1 where there are
// none.
FittedConstants fit_constants(const std::vector<PublishedCase>& cases);

}  // namespace memwall
