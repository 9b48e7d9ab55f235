// Does every verb that explains something answer first, on one screen, and keep the rest behind --full?
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/command.h"
#include "tests/support/shared_data.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

constexpr std::size_t kScreen = 75;  // lines: a terminal of a desktop's height, and little more
constexpr std::size_t kMostNotes = 7;

CommandOutcome memwall_in(const ScratchFolder& folder, const std::string& arguments) {
  return run_command("'" MEMWALL_PROGRAM "' " + arguments, folder.path());
}

std::size_t lines_of_text(const std::string& text) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

// The paragraph behind the first line: up to the first empty one.
std::string answer_in(const std::string& output) {
  const std::size_t first = output.find('\n'), end = output.find("\n\n");
  return first < end ? output.substr(first + 1, end - first - 1) : "";
}

std::size_t notes_in(const std::string& output) {
  const std::size_t notes = output.find("\nNotes");
  if (notes == std::string::npos) return 0;
  std::istringstream lines(output.substr(notes + 1));
  std::size_t count = 0;
  std::string line;
  std::getline(lines, line);
  while (std::getline(lines, line) && !line.empty()) count += line.starts_with("  - ");
  return count;
}

void expect_answer_first(const ScratchFolder& folder, const std::string& arguments,
                         const std::vector<std::string>& answer) {
  const CommandOutcome short_form = memwall_in(folder, arguments), full = memwall_in(folder, arguments + " --full");
  ASSERT_EQ(short_form.code, full.code) << arguments << "\n" << short_form.err << full.err;
  for (const std::string& text : answer)
    EXPECT_NE(answer_in(short_form.out).find(text), std::string::npos)
        << arguments << "\nexpected: " << text << "\nfound: " << answer_in(short_form.out);
  EXPECT_EQ(answer_in(short_form.out), answer_in(full.out)) << arguments;
  EXPECT_LE(lines_of_text(short_form.out), kScreen) << arguments << "\n" << short_form.out;
  EXPECT_LE(notes_in(short_form.out), kMostNotes) << arguments;
  EXPECT_GE(full.out.size() + 200, short_form.out.size()) << arguments;
  EXPECT_EQ(full.out.find("With --full also"), std::string::npos) << arguments;
}

std::string sample() { return "'" MEMWALL_SOURCE "/traces/samples/gpt_124m.mwt'"; }

TEST(FirstScreen, OfARunSaysWhetherItFitsAndWhatBoundsIt) {
  const ScratchFolder folder;
  expect_answer_first(folder, "run " + sample(), {"It fits", "A step takes", "bound by the GPU's kernels", "MFU"});
  expect_answer_first(folder, "run " + sample() + " --set gpu.hbm.capacity=8GB",
                      {"It does not fit", "are missing in hbm", "It fits with --policy rotor: "});
  expect_answer_first(folder, "run " + sample() + " --policy offload:what=optimizer,to=host",
                      {"waits for the host in", "CPU Adam"});
  expect_answer_first(folder,
                      "run " + sample() + " --policy checkpoint:mode=full --policy offload:what=activations,to=host",
                      {"A step takes"});
}

TEST(FirstScreen, OfAGeneratedStepSaysThatItsAttentionDoesNotRunThere) {
  const ScratchFolder folder;
  const std::string step = "run gpt2-124m:layers=1,batch=1,sequence=32,attention=flash3 --machine ";
  const std::string note = "flash_attention_3";  // as machine files write it, in the note alone
  EXPECT_NE(memwall_in(folder, step + "a100-sxm-80gb").out.find(note), std::string::npos);
  EXPECT_EQ(memwall_in(folder, step + "h100-sxm-80gb").out.find(note), std::string::npos);
}

TEST(FirstScreen, OfAGeneratedStepSaysThatItsTypeHasNoMatrixUnitsThere) {
  const ScratchFolder folder;
  const std::string step = "run gpt2-124m:layers=1,batch=1,sequence=32";
  const std::string note = "Products in bf16 run without matrix units on t4";
  EXPECT_NE(memwall_in(folder, step + " --machine t4").out.find(note), std::string::npos);
  EXPECT_EQ(memwall_in(folder, step + ",precision=amp_fp16 --machine t4").out.find("matrix units"), std::string::npos);
  EXPECT_EQ(memwall_in(folder, step + " --machine a100-sxm-40gb").out.find("matrix units"), std::string::npos);
  const std::string fp8 = "run llama3.2-1b:layers=1,batch=1,sequence=32,precision=fp8_transformer_engine --machine ";
  EXPECT_NE(memwall_in(folder, fp8 + "a100-sxm-40gb").out.find("has no matrix units for fp8"), std::string::npos);
  EXPECT_EQ(memwall_in(folder, fp8 + "h100-sxm-80gb").out.find("matrix units"), std::string::npos);
}

TEST(FirstScreen, OfAComparisonSaysWhatChangedMost) {
  const ScratchFolder folder;
  ASSERT_EQ(memwall_in(folder, "run " + sample() + " -o a.h5").code, 0);
  ASSERT_EQ(memwall_in(folder, "run " + sample() + " --policy checkpoint:mode=full -o b.h5").code, 0);
  expect_answer_first(folder, "compare a.h5 b.h5",
                      {"of the other run takes", "in the mean", "recompute +", "Its peak in hbm is", "activations -",
                       "Both fit."});
  expect_answer_first(folder, "compare a.h5 a.h5", {", as before", "Both fit."});
}

TEST(FirstScreen, OfARooflineNamesTheBoundAndTheOperatorWorthALook) {
  expect_answer_first(ScratchFolder(), "roofline " + sample(), {"bound mostly by", "and its roof: it takes"});
}

TEST(FirstScreen, OfAForecastNamesTheNextPeak) {
  const ScratchFolder folder;
  ASSERT_EQ(memwall_in(folder, "run " + sample() + " --steps 4 -o run.h5").code, 0);
  expect_answer_first(folder, "forecast run.h5 --capacity 80GB", {"The next step is expected to hold", "It fits"});
  const CommandOutcome passes = memwall_in(folder, "forecast run.h5 --capacity 8GB");
  EXPECT_EQ(passes.code, 3);
  EXPECT_NE(answer_in(passes.out).find("Out of memory ahead"), std::string::npos) << passes.out;
}

TEST(FirstScreen, OfInspectSaysWhatCanBeAsked) {
  expect_answer_first(ScratchFolder(), "inspect " + sample(), {"It knows", "policies accumulate, batch"});
}

TEST(FirstScreen, OfASnapshotSaysWhatFillsTheMemory) {
  const auto data = shared_data();
  if (!data) GTEST_SKIP() << "MEMWALL_SHARED has no captures";
  const std::string snapshot = "'" + (*data / "traces/snapshots/lm_medium_ctx256_train.pickle").string() + "'";
  const ScratchFolder folder;
  expect_answer_first(folder, "memory " + snapshot, {"It never ran out of memory", "activation takes", "model.py:39"});
  expect_answer_first(folder, "memory " + snapshot + " --capacity 8GB --search",
                      {"It does not fit in 8.000 GB", "No allocator setting lets it run"});
  // Without any activation 5.2 GB are left at the peak, and the start alone has 5.1.
  expect_answer_first(
      folder, "memory " + snapshot + " --capacity 3GB",
      {"5.101 GB that live at its start are more already", "It takes several changes together", "were made before"});
}

// What the default settings give from a clean start, no other setting is to be praised for.
TEST(FirstScreen, OfASnapshotPraisesNoSettingForACleanStart) {
  const auto data = shared_data();
  if (!data) GTEST_SKIP() << "MEMWALL_SHARED has no captures";
  const std::string snapshot = "'" + (*data / "traces/snapshots/lm_medium_ctx128_train.pickle").string() + "'";
  const ScratchFolder folder;
  const std::string memory = memwall_in(folder, "memory " + snapshot + " --capacity 7.15GB").out;
  EXPECT_EQ(answer_in(memory).find("let it run"), std::string::npos) << memory;
  expect_answer_first(folder, "memory " + snapshot + " --capacity 7.15GB",
                      {"From a clean start the default settings fit as well", "33.55 MB more", "2 of 14 settings"});
  const CommandOutcome forecast = memwall_in(folder, "forecast " + snapshot + " --capacity 7.15GB");
  EXPECT_EQ(forecast.code, 3) << "as `memory` says";
  EXPECT_NE(answer_in(forecast.out).find("Does not fit"), std::string::npos) << forecast.out;
}

// Its path is longer than its steps, for it begins before them; and no device is there to wait.
TEST(FirstScreen, OfASnapshotsRunNamesNoWaitOfTheGpu) {
  const auto data = shared_data();
  if (!data) GTEST_SKIP() << "MEMWALL_SHARED has no captures";
  const std::string snapshot =
      "'" + (*data / "traces/snapshots/lm_small_ctx100_train_from_empty.pickle").string() + "'";
  const std::string run = memwall_in(ScratchFolder(), "run " + snapshot + " --machine t4").out;
  EXPECT_EQ(run.find("what the GPU waits for"), std::string::npos) << run;
  EXPECT_NE(run.find("critical path; no work of the device is known"), std::string::npos) << run;
  EXPECT_EQ(run.find("277.9 ms"), std::string::npos) << "a third of 834 ms, of which the steps are 402: " << run;
}

TEST(FirstScreen, JsonHoldsTheVerdictAndCsvEveryTable) {
  const ScratchFolder folder;
  const std::string json = memwall_in(folder, "run " + sample() + " --format json").out;
  for (const char* key :
       {"\"verdict\"", "\"bound_by\": \"compute\"", "\"mfu\"", "\"top_operators\"", "\"host_on_path\""})
    EXPECT_NE(json.find(key), std::string::npos) << key;
  const std::string csv = memwall_in(folder, "run " + sample() + " --format csv").out;
  for (const char* table : {"\nverdict,1,answer,", "\nlinks,", "\nwaits,", "\nkernels,", "\nwhole_run,"})
    EXPECT_NE(csv.find(table), std::string::npos) << table;
  EXPECT_EQ(csv, memwall_in(folder, "run " + sample() + " --format csv --full").out);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
