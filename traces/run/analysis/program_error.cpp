#include "traces/run/analysis/program_error.h"

#include <array>

namespace memwall {

std::string_view to_string(JobKind kind) {
  constexpr std::array<std::string_view, kJobKinds> kNames = {"one GPU", "data-parallel", "sharded", "DeepSpeed",
                                                              "offloaded", "model-parallel"};
  return kNames[static_cast<std::size_t>(kind)];
}

ProgramDeviation program_deviation(JobKind kind) {
  constexpr std::array<ProgramDeviation, kJobKinds> kDeviations = {
      {{0.052, 0}, {0.035, 0.043}, {0, 0.044}, {0, 0.462}, {0.046, 0.26}, {0.063, 0.175}}};
  return kDeviations[static_cast<std::size_t>(kind)];
}

ProgramDeviation host_deviation() { return {0, 0.569}; }

ProgramDeviation fitted_program_deviation(JobKind kind) {
  constexpr std::array<ProgramDeviation, kJobKinds> kDeviations = {
      {{0.036, 0.014}, {0.118, 0}, {0.012, 0}, {0.024, 0.289}, {0, 0.111}, {0.089, 0}}};
  return kDeviations[static_cast<std::size_t>(kind)];
}

double carried_deviation() { return 0.222; }

}  // namespace memwall
