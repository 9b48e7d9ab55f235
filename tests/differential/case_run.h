// One family's cases: planned here, executed by PyTorch (execute.py), compared.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "tests/differential/cases.h"
#include "tests/differential/step_comparison.h"

namespace memwall {

enum class CaseEnd : std::uint8_t {
  compared,
  not_planned,      // memwall refuses the policy
  nothing_planned,  // the plan holds no decision: the step is as it is
  refused_by_both,  // memwall says that a program cannot execute all of the plan, and memwall_apply refuses it
  refused,          // by memwall_apply alone
  failed            // in PyTorch, by an error that is no refusal
};
std::string_view to_string(CaseEnd end);

struct CaseRun {
  DifferentialCase asked;
  CaseEnd end = CaseEnd::failed;
  std::string sentence;            // of the refusal or the error
  std::string unnamed;             // why a program cannot execute all of the plan, by memwall; "" = it can
  StepMemory simulated, executed;  // compared ones
  std::vector<Difference> differences;
};

// The program that the tests start; "" where none has torch and memwall_apply's folder is there.
std::string python_with_torch();

// Files of the cases stay in `folder`. Throws where the network itself cannot be captured.
std::vector<CaseRun> run_cases(const std::string& python, const DifferentialFamily& family,
                               std::vector<DifferentialCase> cases, const std::filesystem::path& folder);

}  // namespace memwall
