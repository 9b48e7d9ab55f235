// Is the policy as simulated the policy as PyTorch executes it? For each case memwall plans on the capture of a real
// network's step (networks.py, on fake CUDA tensors), the package memwall_apply puts the plan into the network, that
// step is captured (execute.py), and both are compared kernel by kernel, storage by storage and copy by copy. What
// differs has one of the causes in causes.cpp.
//
// Needs a Python with torch (python3, or the program that MEMWALL_PYTHON names); skipped without. A few cases of two
// networks are asked in every run of the tests; all of them with MEMWALL_DIFFERENTIAL=full (.ci/long differential),
// MEMWALL_DIFFERENTIAL=NAME,NAME those whose name holds one of these. A table of each network's cases is left in the
// build folder.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "tests/differential/case_table.h"
#include "tests/differential/causes.h"
#include "tests/support/scratch_folder.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

// What a peak may be off by: in all cases, and in nearly all.
constexpr double kMost = 0.02, kMostOfNearlyAll = 0.005, kNearlyAll = 0.95;
// Of the cases; of the others the planner sees no reason to do anything, or nothing that PyTorch can do.
constexpr double kExecuted = 0.8;

std::string asked_for() {
  const char* text = std::getenv("MEMWALL_DIFFERENTIAL");
  return text != nullptr ? text : "";
}

bool is_asked_for(const DifferentialCase& one, const std::string& asked) {
  std::istringstream names(asked);
  for (std::string name; std::getline(names, name, ',');)
    if (one.name.find(name) != std::string::npos) return true;
  return false;
}

std::vector<DifferentialCase> chosen_cases(const DifferentialFamily& family) {
  const std::string asked = asked_for(), name = family.name;
  if (asked.empty()) return name == "gpt2" || name == "resnet" ? quick_cases(family) : std::vector<DifferentialCase>{};
  std::vector<DifferentialCase> cases = differential_cases(family);
  if (asked != "full") std::erase_if(cases, [&](const DifferentialCase& one) { return !is_asked_for(one, asked); });
  return cases;
}

std::filesystem::path folder_of(const std::string& name) {
  return std::filesystem::path(MEMWALL_DIFFERENTIAL_FOLDER) / name;
}

void check_end(const CaseRun& run) {
  EXPECT_NE(run.end, CaseEnd::failed) << run.sentence;
  EXPECT_NE(run.end, CaseEnd::refused) << "memwall says that a program can execute the plan; memwall_apply: "
                                       << run.sentence;
  // A plan of which memwall says that no program can execute all of it is refused.
  if (!run.unnamed.empty()) {
    EXPECT_EQ(run.end, CaseEnd::refused_by_both) << run.unnamed;
  }
}

void check_step(const CaseRun& run) {
  const int most_told = asked_for() == "full" ? 5 : 100;
  int told = 0;
  for (const Difference& d : run.differences)
    if (cause_of(d) == nullptr && ++told <= most_told) ADD_FAILURE() << text_of(d);
  if (told > most_told) ADD_FAILURE() << told << " differences without a cause";
  const auto errors = peak_errors(run);
  for (std::size_t part = 0; part < kStepParts; ++part)
    EXPECT_LE(std::abs(errors[part]), kMost) << "peak of " << kStepPartNames[part] << ": simulated "
                                             << run.simulated.peak[part] << ", executed " << run.executed.peak[part];
}

class Differential : public testing::TestWithParam<DifferentialFamily> {
 protected:
  void SetUp() override {
    python_ = python_with_torch();
    if (python_.empty()) GTEST_SKIP() << "no python with torch here; MEMWALL_PYTHON may name one";
  }
  std::string python_;
};

TEST_P(Differential, StepsAreExecutedAsSimulated) {
  const std::vector<DifferentialCase> cases = chosen_cases(GetParam());
  if (cases.empty()) GTEST_SKIP() << "MEMWALL_DIFFERENTIAL=full asks for this network's cases";
  const std::filesystem::path folder = folder_of(GetParam().name);
  const std::vector<CaseRun> runs = run_cases(python_, GetParam(), cases, folder);
  write_content(folder.string() + ".md", table_of(runs));
  std::size_t peaks = 0, near = 0, compared = 0;
  for (const CaseRun& run : runs) {
    SCOPED_TRACE(run.asked.name);
    check_end(run);
    if (run.end != CaseEnd::compared) continue;
    ++compared;
    check_step(run);
    for (const double error : peak_errors(run)) {
      ++peaks;
      near += std::abs(error) <= kMostOfNearlyAll ? 1 : 0;
    }
  }
  if (asked_for() == "full" || asked_for().empty()) {
    EXPECT_GE(static_cast<double>(compared), kExecuted * static_cast<double>(cases.size())) << "executed and compared";
  }
  if (asked_for() == "full") {  // of a few cases, one is more than that
    EXPECT_GE(static_cast<double>(near), kNearlyAll * static_cast<double>(peaks));
  }
}

std::string name_of(const testing::TestParamInfo<DifferentialFamily>& one) { return one.param.name; }

INSTANTIATE_TEST_SUITE_P(, Differential, testing::ValuesIn(differential_families()), name_of);

// --- each cause is there: where it is gone, it must go from the list, too

class DifferentialCause : public testing::TestWithParam<DifferenceCause> {};

TEST_P(DifferentialCause, Occurs) {
  const std::string python = python_with_torch();
  if (python.empty()) GTEST_SKIP() << "no python with torch here; MEMWALL_PYTHON may name one";
  if (asked_for() != "full") GTEST_SKIP() << "MEMWALL_DIFFERENTIAL=full asks for this";
  const std::string name = GetParam().occurs_in;
  for (const DifferentialFamily& family : differential_families()) {
    if (!name.starts_with(std::string(family.name) + "-")) continue;
    std::vector<DifferentialCase> cases = differential_cases(family);
    std::erase_if(cases, [&](const DifferentialCase& one) { return one.name != name; });
    ASSERT_EQ(cases.size(), 1u) << name;
    const std::vector<CaseRun> runs =
        run_cases(python, family, cases, folder_of(std::string("cause_") + GetParam().name));
    ASSERT_EQ(runs[0].end, CaseEnd::compared) << runs[0].sentence;
    EXPECT_TRUE(causes_of(runs[0]).contains(GetParam().name)) << GetParam().sentence;
  }
}

INSTANTIATE_TEST_SUITE_P(, DifferentialCause, testing::ValuesIn(difference_causes()),
                         [](const testing::TestParamInfo<DifferenceCause>& one) {
                           std::string name = one.param.name;
                           for (char& letter : name) letter = letter == ' ' ? '_' : letter;
                           return name;
                         });

TEST(DifferentialCauses, AreFewAndHaveNames) {
  EXPECT_LE(difference_causes().size(), 5u);
  std::size_t cases = 0;
  for (const DifferentialFamily& family : differential_families()) cases += differential_cases(family).size();
  EXPECT_GE(cases, 150u);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
