#include "traces/run/analysis/program_error.h"

#include <array>

namespace memwall {

std::string_view to_string(JobKind kind) {
  constexpr std::array<std::string_view, kJobKinds> kNames = {"one GPU", "data-parallel", "sharded", "DeepSpeed",
                                                              "offloaded"};
  return kNames[static_cast<std::size_t>(kind)];
}

double program_deviation(JobKind kind) {
  constexpr std::array<double, kJobKinds> kDeviations = {0.037, 0.061, 0.034, 0.256, 0.107};
  return kDeviations[static_cast<std::size_t>(kind)];
}

}  // namespace memwall
