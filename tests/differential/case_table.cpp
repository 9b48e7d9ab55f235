#include "tests/differential/case_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "tests/differential/causes.h"

namespace memwall {
namespace {

Bytes bytes_of(const std::vector<StepCopy>& copies) {
  Bytes sum = 0;
  for (const StepCopy& copy : copies) sum += copy.bytes;
  return sum;
}

std::size_t recomputed(const StepMemory& step) {
  return static_cast<std::size_t>(std::count_if(step.kernels.begin(), step.kernels.end(), [](const StepKernel& kernel) {
    return kernel.phase == Phase::recompute;
  }));
}

std::string both(auto simulated, auto executed) {
  return simulated == executed ? fmt::format("{}", executed) : fmt::format("{}; {}", simulated, executed);
}

std::string row_of(const CaseRun& run) {
  std::string row =
      fmt::format("| {} | `{}` | {} |", run.asked.name, fmt::join(run.asked.policies, " "), to_string(run.end));
  if (run.end != CaseEnd::compared) {
    std::string sentence = run.sentence;
    std::replace(sentence.begin(), sentence.end(), '\n', ' ');
    std::replace(sentence.begin(), sentence.end(), '|', '/');
    return row + fmt::format(" | | | | | | | | {} |\n", sentence);
  }
  const auto errors = peak_errors(run);
  for (std::size_t part = 0; part < kStepParts; ++part)
    row += fmt::format(" {} {:+.2f} % |", run.executed.peak[part], 100 * errors[part]);
  row += fmt::format(" {} | {} | {} | {} |", both(run.simulated.saved, run.executed.saved),
                     both(recomputed(run.simulated), recomputed(run.executed)),
                     both(bytes_of(run.simulated.out), bytes_of(run.executed.out)),
                     both(bytes_of(run.simulated.back), bytes_of(run.executed.back)));
  std::vector<std::string> causes;
  for (const auto& [name, count] : causes_of(run))
    causes.push_back(fmt::format("{}{}: {}", name.empty() ? "**unexplained" : name, name.empty() ? "**" : "", count));
  return row + fmt::format(" {} |\n", fmt::join(causes, ", "));
}

}  // namespace

std::array<double, kStepParts> peak_errors(const CaseRun& run) {
  std::array<double, kStepParts> errors{};
  for (std::size_t part = 0; part < kStepParts; ++part)
    if (run.executed.peak[part] > 0)
      errors[part] = static_cast<double>(run.simulated.peak[part]) / static_cast<double>(run.executed.peak[part]) - 1;
  return errors;
}

std::map<std::string, std::size_t> causes_of(const CaseRun& run) {
  std::map<std::string, std::size_t> causes;
  for (const Difference& d : run.differences) {
    const DifferenceCause* cause = cause_of(d);
    ++causes[cause != nullptr ? cause->name : ""];
  }
  return causes;
}

std::string table_of(const std::vector<CaseRun>& runs) {
  std::string text =
      "Bytes, as executed; where two stand, simulated and executed. Peaks: simulated / executed - 1.\n\n"
      "| case | policies | end | peak of forward | of backward | of the optimizer | saved | recomputed operators | "
      "copied out | copied back | differences by cause, or the refusal "
      "|\n|---|---|---|---|---|---|---|---|---|---|---|\n";
  for (const CaseRun& run : runs) text += row_of(run);
  return text;
}

}  // namespace memwall
