// Is what was not said of a picture chosen from the axes, and what cannot be drawn refused with the way out?
#include "study/charts/sweep_figure.h"

#include <gtest/gtest.h>

#include "sim/error.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

SweepRequest request_of(const std::vector<std::string>& axes, const std::string& objective = "") {
  SweepRequest request;
  request.base.step = {"gpt"};
  request.objective = objective;
  for (const std::string& text : axes) request.space.axes.push_back(parse_axis(text));
  return request;
}

const std::vector<std::string> kThree = {"policy=none|checkpoint:mode=full|offload:what=activations,to=host",
                                         "pcie=16GB/s|32GB/s|64GB/s", "batch=1..4"};

std::string refusal(const std::string& text, const SweepRequest& request) {
  try {
    parse_sweep_figure(text, request);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

using Names = std::vector<std::string>;

TEST(SweepFigure, OfLinesTakesTheFirstNumericAxisAndTheOthersAsSeries) {
  const SweepFigure figure = parse_sweep_figure("line", request_of(kThree));
  EXPECT_EQ(figure.x, "pcie");
  EXPECT_EQ(figure.y, "step_time");
  EXPECT_EQ(figure.series, (Names{"policy", "batch"}));
  EXPECT_EQ(parse_sweep_figure("line", request_of(kThree, "peak")).y, "objective");
  EXPECT_EQ(parse_sweep_figure("line", request_of({"policy=none|plan", "machine=a|b"})).x, "policy");
}

TEST(SweepFigure, TakesWhatIsSaid) {
  const SweepFigure figure = parse_sweep_figure("line:x=batch,y=peak,series=policy+pcie,log=x+y", request_of(kThree));
  EXPECT_EQ(figure.x, "batch");
  EXPECT_EQ(figure.y, "peak");
  EXPECT_EQ(figure.series, (Names{"policy", "pcie"}));
  EXPECT_TRUE(figure.log_x && figure.log_y);
  EXPECT_EQ(fields_of(figure, request_of(kThree)), Names{"peak"});
}

TEST(SweepFigure, FixesAxesToValuesThatHoldCommas) {
  const SweepFigure figure =
      parse_sweep_figure("heatmap:policy=offload:what=activations,to=host,value=peak", request_of(kThree));
  ASSERT_EQ(figure.fixed.size(), 1u);
  EXPECT_EQ(figure.fixed[0].second, "offload:what=activations,to=host");
  EXPECT_EQ(figure.value, "peak");
  EXPECT_EQ(figure.x, "pcie");
  EXPECT_EQ(figure.y, "batch");
}

TEST(SweepFigure, OfParetoHasPeakAndStepTimeBySeriesOfWords) {
  const SweepFigure figure = parse_sweep_figure("pareto", request_of({"policy=none|plan", "pcie=gen3|gen4"}));
  EXPECT_EQ(figure.x, "peak");
  EXPECT_EQ(figure.y, "step_time");
  EXPECT_EQ(figure.series, Names{"policy"});
  EXPECT_FALSE(figure.more_x || figure.more_y);
  // Steps of different batches are compared by their samples.
  EXPECT_EQ(parse_sweep_figure("pareto", request_of(kThree)).y, "throughput");
  EXPECT_TRUE(parse_sweep_figure("pareto", request_of(kThree)).more_y);
  EXPECT_TRUE(parse_sweep_figure("pareto:y=throughput", request_of(kThree)).more_y);
  EXPECT_TRUE(parse_sweep_figure("pareto:x=batch,more=x", request_of(kThree)).more_x);
}

// An objective that is the peak, in whatever words, is not drawn against itself.
TEST(SweepFigure, OfParetoHasTheObjectiveUnlessThatIsThePeak) {
  const Names axes = {"policy=none|plan", "pcie=gen3|gen4"};
  for (const char* peak : {"peak", "min peak", "min peak_reserved_bytes"})
    EXPECT_EQ(parse_sweep_figure("pareto", request_of(axes, peak)).y, "step_time") << peak;
  EXPECT_EQ(parse_sweep_figure("pareto", request_of(axes, "min price")).y, "objective");
}

TEST(SweepFigure, OfBudgetsTakesTheirAxis) {
  EXPECT_EQ(parse_sweep_figure("budget", request_of({"policy=plan|rotor", "budget=8..40GiB:5"})).x, "budget");
  EXPECT_EQ(parse_sweep_figure("budget", request_of({"gpu.hbm.capacity=8..40GiB:5"})).x, "gpu.hbm.capacity");
}

TEST(SweepFigure, AxesThatGoTogetherNeedOnePlace) {
  SweepRequest request = request_of({"batch=1|2|4", "sequence=4096|2048|1024", "pcie=16GB/s|32GB/s"});
  request.space.zips = {{"batch", "sequence"}};
  EXPECT_EQ(parse_sweep_figure("line", request).series, Names{"pcie"});
  const SweepFigure map = parse_sweep_figure("heatmap", request);
  EXPECT_EQ(map.x, "batch");
  EXPECT_EQ(map.y, "pcie");
}

TEST(SweepFigure, RefusesWhatIsNotThere) {
  const SweepRequest request = request_of(kThree);
  const std::pair<const char*, const char*> cases[] = {
      {"lines", "\"lines\" is no kind of picture; expected line, pareto, heatmap, tornado, budget (nearest: line)"},
      {"line:x=pci", "x=pci: there is no such axis; expected one of policy, pcie, batch"},
      {"line:z=3", "\"z\" is neither a setting of line nor an axis"},
      {"line:x=", "x has no value"},
      {"line:log=z", "log=z: expected x or y"},
      {"line:x=policy,log=x", "the values of axis policy are no numbers"},
      {"line:policy=nine", "axis policy has no value \"nine\"; expected one of none, checkpoint:mode=full"},
      {"line:series=policy", "axis batch has 4 values and is neither x nor series; expected one of them: line:batch=1"},
      {"line:x=pcie,series=pcie", "axis pcie is x and series"},
      {"line:y=objective", "there is no --objective"},
      {"heatmap", "axis batch has 4 values and is neither x nor y; expected one of them: heatmap:batch=1"},
      {"heatmap:x=policy,y=policy,batch=1,pcie=16GB/s", "axis policy is x and y"},
      {"heatmap:x=policy,policy=none", "axis policy is x, and has one value as well"},
      {"heatmap:batch=1,pcie=16GB/s", "a heat map needs two axes"},
      {"pareto:x=policy", "the values of this axis are no numbers"},
      {"tornado:x=peak", "\"x\" is neither a setting of tornado nor an axis"},
      {"budget", "there is no axis \"budget\" or \"gpu.hbm.capacity\""}};
  for (const auto& [text, sentence] : cases) {
    const std::string said = refusal(text, request);
    EXPECT_NE(said.find(sentence), std::string::npos) << text << ": " << said;
    EXPECT_TRUE(said.starts_with("--figure ")) << said;
  }
  EXPECT_NE(refusal("line:log=x", request_of({"scale.host=0|1|2"})).find("has the value 0"), std::string::npos);
  EXPECT_NE(refusal("heatmap", request_of({"batch=1..1000", "sequence=1..1000"})).find("1000000 cells"),
            std::string::npos);
}

TEST(SweepFigure, OfSamplesIsAScatter) {
  SweepRequest request = request_of(kThree);
  set_sampling("random:20", request.space);
  EXPECT_NE(refusal("line", request).find("needs all combinations"), std::string::npos);
  EXPECT_EQ(refusal("pareto", request), "");
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
