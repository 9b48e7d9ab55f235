// Does a damaged table of PyTorch's measurements, or of deviations, end in a sentence or in sound rows? Seeded, so
// that a failure can be repeated.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "sim/error.h"
#include "tests/support/damage.h"
#include "tests/support/scratch_folder.h"
#include "validate/report/deviations.h"
#include "validate/report/pytorch.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

constexpr int kTries = 5'000;

std::string pytorch_text() {
  std::string text =
      "model,variant,kernels,batch,status,step_seconds,step_low,step_high,steps,forward_seconds,backward_seconds,"
      "optimizer_seconds,peak_allocated,peak_reserved,samples,date,gpu,driver,torch,cuda,note\n";
  for (const char* variant : {"baseline", "checkpoint=full", "offload=pinned", "dtype=bf16"})
    text += std::string("gpt2,") + variant +
            ",same,4,measured,0.25,0.24,0.27,9,0.1,0.12,0.03,1000,2000,4,2026-01-02,GPU,1,2,3,\n";
  return text + "vit,compile,changed,4,failed,,,,,,,,,,,,,,,,why\n";
}

TEST(PytorchCasesFuzz, DamageIsRefusedOrHarmless) {
  const ScratchFolder folder;
  const std::string whole = pytorch_text();
  std::mt19937_64 random(8);
  int refusals = 0;
  for (int i = 0; i < kTries; ++i) {
    write_content(folder / "results.csv", i == 0 ? whole : damaged(whole, random));
    try {
      std::vector<PytorchComparison> comparisons;
      for (const PytorchCase& c : read_pytorch_cases(folder / "results.csv")) {
        EXPECT_TRUE(std::isfinite(c.step) && c.step >= 0 && c.peak_allocated >= 0);
        EXPECT_EQ(c.model.find('/'), std::string::npos);
        if (c.measured()) comparisons.push_back({c, {.step = 1, .peak_allocated = 1}});
      }
      for (const ValidationRow& row : pytorch_rows("gpu", comparisons)) EXPECT_TRUE(std::isfinite(row.error()));
    } catch (const InputError& error) {
      ++refusals;
      const std::string sentence = error.what();
      EXPECT_NE(sentence.find("results.csv"), std::string::npos) << sentence;
      EXPECT_EQ(sentence.back(), '.') << sentence;
    }
    ASSERT_TRUE(i > 0 || refusals == 0);
  }
  EXPECT_GT(refusals, kTries / 10);
  EXPECT_LT(refusals, kTries);
}

TEST(DeviationsFuzz, DamageIsRefusedOrHarmless) {
  const std::string whole =
      "# Deviations\n\nProse.\n\n| machine | case | metric | ours | theirs | why | state "
      "|\n|---|---|---|---|---|---|---|\n"
      "| two-core | gpt.resident | step time | 1 s | 2 s | a reason | accepted |\n"
      "| two-core | gpt.resident | `hbm busy` | 1 s | 2 s | another | open |\n";
  ASSERT_EQ(parse_deviations(whole, "DEVIATIONS.md").size(), 2u);
  std::mt19937_64 random(9);
  int refusals = 0;
  for (int i = 0; i < kTries; ++i) {
    const std::string text = damaged(whole, random);
    try {
      EXPECT_LE(parse_deviations(text, "DEVIATIONS.md").size(), text.size() / 8);
    } catch (const InputError& error) {
      ++refusals;
      const std::string sentence = error.what();
      EXPECT_EQ(sentence.find("DEVIATIONS.md:"), 0u) << sentence;
      EXPECT_EQ(sentence.back(), '.') << sentence;
    }
  }
  EXPECT_GT(refusals, kTries / 10);
  EXPECT_LT(refusals, kTries);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
