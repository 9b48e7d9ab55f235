// Does validate/pytorch/matrix.py do what its help says? Without torch: its list and its refusals. With torch
// (python3, or the program that MEMWALL_PYTHON names): one tiny case on the CPU, from start to row.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <regex>
#include <set>
#include <sstream>
#include <string>

#include "tests/support/command.h"
#include "tests/support/scratch_folder.h"
#include "validate/report/pytorch_cases.h"
#include "validate/report/pytorch_prediction.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

CommandOutcome python(const std::string& arguments) {
  const char* named = std::getenv("MEMWALL_PYTHON");
  return run_command(fmt::format("{} {} 2>&1", named != nullptr ? named : "python3", arguments), ".");
}

CommandOutcome matrix(const std::string& arguments) {
  return python(fmt::format("{}/validate/pytorch/matrix.py {}", MEMWALL_SOURCE, arguments));
}

class PytorchScript : public testing::Test {
 protected:
  void SetUp() override {
    if (python("--version").code != 0) GTEST_SKIP() << "no python3 here";
  }
};

TEST_F(PytorchScript, ListsEveryCaseOnceWithABaselineFirst) {
  const CommandOutcome list = matrix("--list");
  ASSERT_EQ(list.code, 0) << list.out;
  EXPECT_TRUE(list.out.starts_with("gpt2-124m baseline\n")) << list.out;
  std::set<std::string> lines;
  std::istringstream text(list.out);
  for (std::string line; std::getline(text, line);) EXPECT_TRUE(lines.insert(line).second) << line;
  // Eight models, sixteen variants and eight plans, one capture of offload.
  EXPECT_EQ(lines.size(), 8u * (16u + 8u) + 1u);
  EXPECT_TRUE(lines.contains("llama-3b offload=pinned"));
}

TEST_F(PytorchScript, EveryVariantThatAPolicyStandsForIsInTheList) {
  const std::string list = matrix("--list").out;
  int known = 0;
  for (const char* variant :
       {"baseline", "checkpoint=full", "checkpoint=every2", "offload=pinned", "offload=pageable", "optimizer=cpu"}) {
    EXPECT_TRUE(policies_of_variant(variant).has_value()) << variant;
    EXPECT_NE(list.find(fmt::format("bert-large {}\n", variant)), std::string::npos) << variant;
    ++known;
  }
  EXPECT_EQ(known, 6);
}

TEST_F(PytorchScript, RefusesAMissingFolderAndAnUnknownDevice) {
  EXPECT_EQ(matrix("").code, 2);
  EXPECT_NE(matrix("").out.find("--out is missing"), std::string::npos);
  EXPECT_EQ(matrix("--out x --device tpu").code, 2);
}

TEST_F(PytorchScript, WithTorchATinyCaseLeavesARowAndACapture) {
  if (python("-c 'import torch'").code != 0) GTEST_SKIP() << "this python3 has no torch";
  const ScratchFolder folder;
  std::string arguments = "--device cpu --tiny --seconds 0.2 --minutes 3 --only 'tiny-gpt baseline' --out ";
  arguments += folder / "out";
  const CommandOutcome first = matrix(arguments);
  ASSERT_EQ(first.code, 0) << first.out;
  const auto cases = read_pytorch_cases(folder / "out" / "results.csv");
  ASSERT_EQ(cases.size(), 1u) << first.out;
  EXPECT_TRUE(cases[0].measured()) << first.out;
  EXPECT_GT(cases[0].step, 0);
  EXPECT_GT(cases[0].backward, 0);
  EXPECT_TRUE(std::filesystem::exists(folder / "out" / "baseline" / "tiny-gpt.kineto.json.gz"));
  // A case that has ended is not run again.
  EXPECT_EQ(matrix(arguments).code, 0);
  EXPECT_EQ(read_pytorch_cases(folder / "out" / "results.csv").size(), 1u);
}

TEST_F(PytorchScript, WithTorchAPlanStandsBesideWhatIsMeasured) {
  if (python("-c 'import torch'").code != 0) GTEST_SKIP() << "this python3 has no torch";
  const ScratchFolder folder;
  const CommandOutcome run = matrix(
      "--device cpu --tiny --seconds 0.2 --minutes 5 --only 'tiny-gpt plan=checkpoint' --machine a100-sxm-40gb "
      "--memwall '" MEMWALL_PROGRAM "' --out " +
      (folder / "out").string());
  ASSERT_EQ(run.code, 0) << run.out;
  EXPECT_EQ(read_pytorch_cases(folder / "out" / "results.csv").size(), 2u);  // with checkpoint_and_offload
  std::istringstream lines(content_of(folder / "out" / "plans.csv"));
  std::string names, row;
  std::getline(lines, names);
  std::getline(lines, row);
  EXPECT_TRUE(names.starts_with("model,variant,status,planned_step_seconds,step_seconds,")) << names;
  // Both times stand there.
  EXPECT_TRUE(std::regex_search(row, std::regex("^tiny-gpt,plan=checkpoint,measured,0\\.[0-9]+,0\\.[0-9]+,"))) << row;
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
