// Is what a file says was measured read as it stands there, and compared like with like?
#include "study/observation.h"

#include <gtest/gtest.h>

#include "sim/error.h"
#include "tests/support/pickle_writer.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/small_capture.h"
#include "tests/support/synthetic_snapshot.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

std::string refusal_of(const std::filesystem::path& file) {
  try {
    (void)read_measured_step(file);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

std::string without(std::string text, const std::string& part, const std::string& instead) {
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + instead.size()))
    text.replace(at, part.size(), instead);
  return text;
}

TEST(MeasuredStep, OfAProfileHasItsStepsAndTheHighestTotals) {
  const ScratchFolder folder;
  write_content(folder / "profile.json", small_capture());
  const MeasuredStep measured = read_measured_step(folder / "profile.json");
  EXPECT_EQ(measured.peak_reserved, 2'097'152);
  EXPECT_EQ(measured.peak_allocated, 2'048);
  EXPECT_EQ(measured.steps, 1u);
  EXPECT_EQ(measured.step_time, microseconds(1000));
}

TEST(MeasuredStep, OfAProfileWithoutStepsIsItsMemoryAlone) {
  const ScratchFolder folder;
  write_content(folder / "profile.json", without(small_capture(), "ProfilerStep#1", "my range"));
  const MeasuredStep measured = read_measured_step(folder / "profile.json");
  EXPECT_EQ(measured.steps, 0u);
  EXPECT_EQ(measured.step_time, Duration{});
  EXPECT_EQ(measured.peak_reserved, 2'097'152);
}

TEST(MeasuredStep, AProfileThatSaysNeitherIsRefused) {
  const ScratchFolder folder;
  write_content(folder / "profile.json",
                without(without(small_capture(), "ProfilerStep#1", "my range"), "[memory]", "other"));
  EXPECT_NE(refusal_of(folder / "profile.json").find("it has neither steps (ProfilerStep#N) nor memory events"),
            std::string::npos);
}

TEST(MeasuredStep, OfASnapshotIsItsPeak) {
  const ScratchFolder folder;
  write_content(folder / "small.pickle", pickled(small_snapshot()));
  const MeasuredStep measured = read_measured_step(folder / "small.pickle");
  EXPECT_EQ(measured.kind, "memory snapshot");
  EXPECT_GT(measured.peak_allocated, 0);
  EXPECT_GE(measured.peak_reserved, measured.peak_allocated);
  EXPECT_EQ(measured.steps, 0u);
}

TEST(MeasuredStep, OtherFilesAreRefusedByWhatTheyAre) {
  const std::string trace = MEMWALL_SOURCE "/traces/samples/gpt_124m.mwt";
  EXPECT_EQ(refusal_of(trace), "--observed " + trace +
                                   ": this is a memwall trace; expected what was measured: a memory snapshot "
                                   "(torch.cuda.memory._dump_snapshot) or a profile of torch.profiler.");
  EXPECT_THROW((void)read_measured_step("nowhere.pickle"), InputError);
}

TEST(Observation, ComparesReservedWithReservedElseAllocatedWithAllocated) {
  Observation o;
  o.simulated = {"simulation", 1000, 800, microseconds(10000), 1};
  EXPECT_EQ(o.more_memory(), 0) << "nothing was measured";
  EXPECT_EQ(o.time_ratio(), 1);
  o.measured.peak_allocated = 900;
  EXPECT_EQ(o.more_memory(), 100);
  o.measured.peak_reserved = 950;
  EXPECT_EQ(o.more_memory(), -50);
  o.measured.step_time = microseconds(12000);
  EXPECT_DOUBLE_EQ(o.time_ratio(), 1.2);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
