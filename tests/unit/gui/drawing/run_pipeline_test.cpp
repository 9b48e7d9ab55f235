// The picture of a pipeline: a line per stage, each pass where it ran, and what is refused.
#include <gtest/gtest.h>

#include <sstream>

#include "gui/drawing/run_figures.h"
#include "sim/error.h"
#include "tests/support/drawn_figure.h"
#include "tests/support/rank_program.h"
#include "tests/support/test_machine.h"
#include "traces/figure/pipeline_figure.h"
#include "traces/figure/svg.h"
#include "traces/run/run_recorder.h"

namespace memwall::gui {
namespace MEMWALL_TEST_FILE {

constexpr Duration us(std::int64_t n) { return microseconds(n); }

std::string text_of(const Figure& figure) {
  expect_drawn(figure);
  std::ostringstream out;
  write_svg(figure, out);
  return out.str();
}

PipelinePassBar bar(PipelineWork work, std::uint32_t microbatch, Duration begin, Duration end) {
  return {work, 0, microbatch, Time{} + begin, Time{} + end, "pass " + std::to_string(microbatch)};
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

TEST(PipelineFigure, DrawsEachPassWithItsNumber) {
  PipelineChart chart{
      .title = "Pipeline", .subtitle = "job", .begin = Time{}, .end = Time{} + us(100), .chunks = 1, .rows = {}};
  chart.rows.push_back({"rank 0",
                        "layers 0 to 1",
                        {bar(PipelineWork::forward, 0, us(0), us(40)), bar(PipelineWork::forward, 7, us(40), us(80))},
                        {{Time{} + us(80), Time{} + us(85)}}});
  const std::string text = text_of(draw_pipeline(chart));
  EXPECT_NE(text.find("pass 0"), std::string::npos);
  EXPECT_NE(text.find(">7<"), std::string::npos);
  EXPECT_NE(text.find("layers 0 to 1"), std::string::npos);
}

TEST(PipelineFigure, DrawsWhatIsTooThinAsOne) {
  PipelineChart chart{.title = "Pipeline",
                      .subtitle = "job",
                      .begin = Time{},
                      .end = Time{} + us(1'000'000),
                      .chunks = 1,
                      .rows = {{"rank 0", "", {}, {}}}};
  for (std::uint32_t i = 0; i < 10'000; ++i)
    chart.rows[0].passes.push_back(bar(PipelineWork::forward, i, us(100 * i), us(100 * i + 90)));
  EXPECT_LT(count(text_of(draw_pipeline(chart)), "pass "), 4000u);
}

TEST(PipelineFigure, IsRefusedWhereThereAreNoStages) {
  RankAuthor a(0), b(1);
  a.kernel(us(10));
  b.kernel(us(10));
  const memwall::Run run = simulate_and_record(joined(std::move(a), std::move(b)), test_machine(), {});
  try {
    run_figure({&run}, {"run"}, {.view = "pipeline", .range = {}, .lanes = {}});
    FAIL() << "drawn";
  } catch (const UsageError& error) {
    EXPECT_NE(std::string(error.what()).find("says nothing of any"), std::string::npos) << error.what();
  }
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall::gui
