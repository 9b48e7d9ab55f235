// Is it said in words what a step takes and where its time goes?
#include "gui/model/time_sentence.h"

#include <gtest/gtest.h>

#include <regex>

#include "tests/support/gpt_trace.h"
#include "tests/support/open_run_of.h"
#include "tests/support/straggling_ranks.h"
#include "tests/support/test_machine.h"
#include "traces/figure/axis.h"

namespace memwall::gui {
namespace MEMWALL_TEST_FILE {

OpenRun gpt_run() {
  GptShape shape;
  shape.steps = 2;
  shape.launch_cost = microseconds(2);
  shape.flops_per_second = shape.bytes_per_second = 2e9;
  return open_run_of(gpt_step(shape), test_machine());
}

OpenRun analysed(OpenRun run) {
  run.analysis = analyse(*run.source, {});
  return run;
}

double sum_of_percents(const std::string& text) {
  static const std::regex percent(R"(([\d.]+) %)");
  double sum = 0;
  for (std::sregex_iterator at(text.begin(), text.end(), percent), end; at != end; ++at) sum += std::stod((*at)[1]);
  return sum;
}

TEST(TimeSentence, SaysTheStepTimeAndSharesThatAddUp) {
  const OpenRun run = analysed(gpt_run());
  const std::string text = step_sentence(run);
  EXPECT_TRUE(text.starts_with("A step takes " + format_time(run.analysis->summary.step_time) + ": ")) << text;
  EXPECT_NE(text.find("compute "), std::string::npos) << text;
  EXPECT_NEAR(sum_of_percents(text), 100, 0.3) << text;
}

// Runs that are too large to be analysed at once are not silent.
TEST(TimeSentence, WithoutAnAnalysisSaysTheStepTimeAndWhatStreamsDo) {
  const OpenRun run = gpt_run();
  const std::string text = step_sentence(run);
  const OpenRun whole = analysed(gpt_run());
  EXPECT_TRUE(text.starts_with("A step takes " + format_time(whole.analysis->summary.step_time) + ";")) << text;
  std::smatch found;
  ASSERT_TRUE(std::regex_search(text, found, std::regex(R"(work (\d+) % of the time: about )"))) << text;
  const ClassTimes& times = whole.analysis->summary.times;
  const double compute = 100 * to_seconds(times[TimeClass::compute]) / to_seconds(times.total());
  EXPECT_NEAR(std::stod(found[1]), compute, 2) << text;
  EXPECT_NE(text.find("forward "), std::string::npos) << text;
  EXPECT_NE(text.find("backward "), std::string::npos) << text;
}

TEST(TimeSentence, OfARankSaysItsOwnStep) {
  const OpenRun run = analysed(open_run_of(straggling_ranks(), test_machine()));
  // Rank 5 computes 30 us before each collective of 8 us, the others 10 us.
  EXPECT_NE(rank_times(run, 1).find("compute 79 %, collective 21 %"), std::string::npos) << rank_times(run, 1);
  EXPECT_NE(rank_times(run, 0).find("collective 74 %, compute 26 %"), std::string::npos) << rank_times(run, 0);
  EXPECT_EQ(rank_times(open_run_of(straggling_ranks(), test_machine()), 0), "") << "nothing is known of it yet";
}

TEST(TimeSentence, NamesTheStraggler) {
  OpenRun run = open_run_of(straggling_ranks(), test_machine());
  EXPECT_EQ(rank_title(run, 1), "Rank 5");
  run = analysed(std::move(run));
  EXPECT_EQ(rank_title(run, 0), "Rank 4");
  EXPECT_EQ(rank_title(run, 1), "Rank 5, straggler");
  EXPECT_TRUE(rank_sentence(run, 1).starts_with("Rank 5, straggler: step ")) << rank_sentence(run, 1);
  EXPECT_TRUE(rank_sentence(run, 1).ends_with("; held the others up " + format_time(microseconds(160))))
      << rank_sentence(run, 1);
  EXPECT_EQ(rank_sentence(run, 0).find("held"), std::string::npos);
  EXPECT_EQ(rank_title(run, 2), "Rank 6");
  const OpenRun even = analysed(open_run_of(straggling_ranks(microseconds(10)), test_machine()));
  EXPECT_EQ(rank_title(even, 1), "Rank 5") << "nobody waits for anybody";
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall::gui
