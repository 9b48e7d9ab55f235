// Does a picture of a sweep show its points, under the names of axes and policies?
#include "study/charts/sweep_charts.h"

#include <gtest/gtest.h>

#include "tests/support/figure_checks.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

using Names = std::vector<std::string>;

// A sweep that was not run: each point's step time and peak are made from its number.
class SweepChartsTest : public testing::Test {
 protected:
  void study(const std::vector<std::string>& axes) {
    request_.base.step = {"traces/samples/gpt_124m.mwt"};
    request_.base.machine = "machines/mine.textproto";
    for (const std::string& text : axes) {
      request_.space.axes.push_back(parse_axis(text));
      result_.axes.push_back(request_.space.axes.back().name);
    }
    for (PointValues& values : points_of(request_.space)) {
      SweepPoint point{.values = std::move(values), .scenario = {}, .record = {}};
      const auto number = static_cast<double>(result_.points.size());
      point.record.fields = {{"fits", 1}, {"step_time_s", 1 + number}, {"peak_reserved_bytes", 1e9 * number}};
      point.meets = true;
      result_.points.push_back(std::move(point));
    }
  }
  void fail(std::size_t point) {
    result_.points[point].record = {.fields = {}, .error = "no memory", .cause = "infeasible"};
    result_.points[point].meets = false;
  }
  SweepFigure figure(const std::string& text) const { return parse_sweep_figure(text, request_); }

  SweepRequest request_;
  SweepResult result_;
};

Names names_of(const std::vector<LineSeries>& series) {
  Names names;
  for (const LineSeries& one : series) names.push_back(one.name);
  return names;
}

TEST_F(SweepChartsTest, SeriesAreNamedByAxesAndPoliciesNotByFiles) {
  study({"step=a/gpt.mwt|a/vit.mwc.gz", "policy=none|checkpoint:mode=full", "batch=1|2", "pcie=16GB/s|32GB/s"});
  const SweepFigure asked = figure("line:x=pcie,batch=2");
  const LineChart chart = line_chart(asked, ChartedSweep(asked, request_, result_));
  EXPECT_EQ(names_of(chart.series),
            (Names{"gpt, none", "gpt, checkpoint:mode=full", "vit, none", "vit, checkpoint:mode=full"}));
  EXPECT_EQ(chart.series_name, "step, policy");
  EXPECT_EQ(chart.title, "Step time by pcie, step and policy");
  EXPECT_EQ(chart.subtitle, "on mine; batch 2; 8 points");
  ASSERT_EQ(chart.series[0].points.size(), 2u);
  EXPECT_EQ(chart.series[0].points[0].x, 16e9);
  EXPECT_EQ(chart.series[0].points[0].y, 3);
  EXPECT_EQ(chart.series[0].points[1].y, 4);
  EXPECT_EQ(chart.x.unit.measure, Measure::bytes);
  EXPECT_EQ(chart.x.unit.suffix, "/s");
  const SweepFigure with_batch = figure("line:x=pcie,step=gpt,policy=none");
  EXPECT_EQ(names_of(line_chart(with_batch, ChartedSweep(with_batch, request_, result_)).series),
            (Names{"batch 1", "batch 2"}));
}

TEST_F(SweepChartsTest, FilesOfOneNameKeepTheFolderThatTellsThemApart) {
  study({"step=runs/a/gpt.mwt|runs/b/gpt.mwt", "batch=1|2"});
  const SweepFigure asked = figure("line");
  EXPECT_EQ(names_of(line_chart(asked, ChartedSweep(asked, request_, result_)).series), (Names{"a/gpt", "b/gpt"}));
}

TEST_F(SweepChartsTest, WordsStandAsCategoriesInTheirOrder) {
  study({"policy=none|plan|rotor", "machine=h100-sxm-80gb,a100-sxm-80gb"});
  fail(2);
  const SweepFigure asked = figure("line");
  const LineChart chart = line_chart(asked, ChartedSweep(asked, request_, result_));
  EXPECT_EQ(chart.categories, (Names{"none", "plan", "rotor"}));
  EXPECT_EQ(names_of(chart.series), (Names{"h100-sxm-80gb", "a100-sxm-80gb"}));
  EXPECT_EQ(chart.series[0].points[1].state, PointState::failed);
  EXPECT_EQ(chart.series[0].points[1].detail, "plan: no memory");
  EXPECT_EQ(chart.subtitle, "gpt_124m; 6 points, 1 failed");
}

TEST_F(SweepChartsTest, TheParetoFrontHasTheNamesOfItsPoints) {
  study({"policy=none|plan", "batch=1|2|3"});
  const double seconds[] = {9, 8, 7, 9, 6, 8}, peaks[] = {1, 2, 4, 3, 5, 2};
  for (std::size_t i = 0; i < 6; ++i)
    result_.points[i].record.fields = {{"step_time_s", seconds[i]}, {"peak_reserved_bytes", peaks[i] * 1e9}};
  result_.points[4].meets = false;
  request_.conditions = {"fits"};
  const SweepFigure asked = figure("pareto:y=step_time");
  const ScatterChart chart = pareto_chart(asked, ChartedSweep(asked, request_, result_));
  EXPECT_EQ(chart.series, (Names{"none", "plan"}));
  EXPECT_EQ(chart.title, "Step time against peak of GPU memory");
  EXPECT_EQ(chart.subtitle, "gpt_124m on mine; where fits; 6 points, 5 meet the condition");
  const auto front = pareto_front(chart.points, false, false);
  Names names;
  for (const std::size_t i : front) names.push_back(chart.points[i].name);
  EXPECT_EQ(names, (Names{"none, batch 1", "none, batch 2", "plan, batch 3", "none, batch 3"}));
}

TEST_F(SweepChartsTest, CellsOfAHeatMapAreTheirPoints) {
  study({"policy=none|plan", "pcie=16GB/s|32GB/s|64GB/s"});
  fail(5);
  const SweepFigure asked = figure("heatmap:x=policy,y=pcie,value=peak");
  const HeatMapChart chart = heat_map_chart(asked, ChartedSweep(asked, request_, result_));
  EXPECT_EQ(chart.columns, (Names{"none", "plan"}));
  EXPECT_EQ(chart.rows, (Names{"64 GB/s", "32 GB/s", "16 GB/s"})) << "numbers grow upwards";
  EXPECT_EQ(chart.cells[0].value, 2e9);
  EXPECT_EQ(chart.cells[1].state, PointState::failed);
  EXPECT_EQ(chart.cells[4].value, 0);
  EXPECT_EQ(chart.more_is_better, false);
}

TEST_F(SweepChartsTest, ATornadoMovesOneAxisAwayFromTheBase) {
  study({"policy=none|plan", "pcie=16GB/s|32GB/s|64GB/s"});
  result_.best = 4;  // plan, 32GB/s: 5 s
  const SweepFigure asked = figure("tornado");
  const TornadoChart chart = tornado_chart(asked, ChartedSweep(asked, request_, result_));
  EXPECT_EQ(chart.base, 5);
  EXPECT_EQ(chart.base_name, "the best point");
  ASSERT_EQ(chart.bars.size(), 2u);
  EXPECT_EQ(chart.bars[0].name, "policy");
  EXPECT_EQ(chart.bars[0].low.value, "none");
  EXPECT_EQ(chart.bars[0].low.outcome, 2);
  EXPECT_EQ(chart.bars[0].high.value, "plan");
  EXPECT_EQ(chart.bars[1].low.value, "16 GB/s");
  EXPECT_EQ(chart.bars[1].low.outcome, 4);
  EXPECT_EQ(chart.bars[1].high.outcome, 6);
  EXPECT_EQ(chart.bars[1].base_value, "32 GB/s");
}

TEST_F(SweepChartsTest, WhatFollowsAnAxisMovesWithIt) {
  study({"policy=none|zero", "zero.stage=1|2 if policy=zero", "batch=1|2"});
  const SweepFigure asked = figure("tornado");
  const TornadoChart chart = tornado_chart(asked, ChartedSweep(asked, request_, result_));
  ASSERT_EQ(chart.bars.size(), 3u);
  EXPECT_EQ(chart.base_name, "point 1");
  EXPECT_EQ(chart.bars[0].high.value, "zero");
  EXPECT_EQ(chart.bars[0].high.outcome, 5) << "point 5: zero, stage 2, batch 1";
  EXPECT_EQ(chart.bars[1].high.outcome, chart.base) << "does not apply at the base";
  EXPECT_EQ(chart.bars[1].base_value, "-");
}

TEST_F(SweepChartsTest, BudgetsHaveTheirOwnChartWhereTheyAreSizes) {
  study({"policy=plan|rotor", "budget=8GiB|16GiB"});
  fail(0);
  result_.points[2].record.fields[0].second = 0;  // does not fit
  const SweepFigure asked = figure("budget");
  const auto chart = budget_chart(asked, ChartedSweep(asked, request_, result_));
  ASSERT_TRUE(chart);
  ASSERT_EQ(chart->budgets.size(), 2u);
  EXPECT_EQ(chart->budgets[0].name, "16GiB");
  ASSERT_EQ(chart->lines.size(), 2u);
  EXPECT_EQ(chart->lines[0].name, "plan");
  EXPECT_EQ(chart->lines[0].points[0].seconds, 2);
  EXPECT_TRUE(chart->lines[0].points[0].is_on_front);
  EXPECT_EQ(chart->lines[0].points[1].outcome, BudgetOutcome::refused);
  EXPECT_EQ(chart->lines[1].points[1].outcome, BudgetOutcome::does_not_fit);
  EXPECT_FALSE(chart->lines[1].points[0].is_on_front);
  const SweepFigure peaks = figure("budget:y=peak");
  EXPECT_FALSE(budget_chart(peaks, ChartedSweep(peaks, request_, result_))) << "no time";
  expect_legible(draw_sweep(asked, request_, result_));
  expect_legible(draw_sweep(peaks, request_, result_));
}

TEST_F(SweepChartsTest, SharesOfMemoryAreDrawnAsLines) {
  study({"policy=plan|rotor", "budget=50%|70%"});
  const SweepFigure asked = figure("budget");
  EXPECT_FALSE(budget_chart(asked, ChartedSweep(asked, request_, result_)));
  const Figure drawn = draw_sweep(asked, request_, result_);
  EXPECT_NE(text_with(all_of<Text>(drawn), "budget (%)"), nullptr);
}

TEST_F(SweepChartsTest, WhereEverythingFailedEveryKindIsDrawn) {
  study({"policy=plan|rotor", "budget=8GiB|16GiB"});
  for (std::size_t i = 0; i < 4; ++i) fail(i);
  for (const std::string& kind : sweep_figure_names()) {
    const Figure drawn = draw_sweep(figure(kind), request_, result_);
    expect_legible(drawn);
    expect_within_page(drawn);
  }
}

TEST(ValueNames, HaveAsManyDigitsAsTellThemApart) {
  const auto names = value_names(parse_axis("pcie=16GB/s|22.627417GB/s|64GB/s"));
  EXPECT_EQ(names.at("22.627417GB/s"), "22.6 GB/s");
  EXPECT_EQ(value_names(parse_axis("pcie=22.62GB/s|22.63GB/s")).at("22.62GB/s"), "22.62 GB/s");
  EXPECT_EQ(value_names(parse_axis("scale.host=0.123456789|0.5")).at("0.123456789"), "0.123");
  EXPECT_EQ(value_names(parse_axis("batch=128|4096")).at("4096"), "4096");
}

TEST(FieldAxis, IsNamedForPeople) {
  EXPECT_EQ(field_axis("peak").name, "peak of GPU memory");
  EXPECT_EQ(field_axis("step_time_s").name, "step time");
  EXPECT_EQ(field_axis("step_time").unit.measure, Measure::seconds);
  EXPECT_EQ(field_axis("throughput").name, "samples per second");
  EXPECT_EQ(field_axis("throughput").unit.suffix, "");
  EXPECT_EQ(field_axis("price").unit.suffix, "$");
  EXPECT_EQ(field_axis("links.pcie_h2d.bytes").unit.measure, Measure::bytes);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
