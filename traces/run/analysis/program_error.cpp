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
      {{0, 0.037}, {0.035, 0.4}, {0, 0.041}, {0, 0.448}, {0.069, 0.26}, {0, 0.463}}};
  return kDeviations[static_cast<std::size_t>(kind)];
}

double carried_deviation() { return 0.222; }

}  // namespace memwall
