// Does the legend explain what is in the picture, and nothing else?
#include "gui/drawing/legend.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/support/gpt_trace.h"
#include "tests/support/open_run_of.h"
#include "tests/support/test_machine.h"
#include "traces/run/analysis/accounting.h"

namespace memwall::gui {
namespace MEMWALL_TEST_FILE {

constexpr double kWidth = 1000;

std::vector<std::string> words_in(const Figure& figure) {
  std::vector<std::string> all;
  for (const Item& item : figure.items)
    if (const auto* text = std::get_if<Text>(&item)) all.push_back(text->text);
  return all;
}

std::size_t swatches_in(const Figure& figure) {
  return static_cast<std::size_t>(std::count_if(figure.items.begin(), figure.items.end(), [](const Item& item) {
           return std::holds_alternative<Rectangle>(item);
         })) -
         1;  // the background
}

CanvasState analysed_state() {
  CanvasState state;
  GptShape shape;
  shape.launch_cost = microseconds(2);
  shape.flops_per_second = shape.bytes_per_second = 2e9;
  OpenRun run = open_run_of(gpt_step(shape), test_machine());
  run.history = ResidencyHistory::load(*run.source, {});
  run.analysis = analyse(*run.source, {});
  state.runs.push_back(std::move(run));
  state.rows = RowList::of(state.runs);
  state.viewport = Viewport(state.whole(), kWidth - kTitleWidth);
  return state;
}

CanvasFrame sharp_frame(const CanvasState& state, double height) {
  for (const MissingBlock& block : draw_canvas(state, light_theme(), kWidth, height).missing)
    state.runs[block.run].spans->load(block.block);
  return draw_canvas(state, light_theme(), kWidth, height);
}

TEST(Legend, ExplainsTheWordsOfThePictureAndNoOthers) {
  const Figure figure = draw_legend({"copy", "activation"}, light_theme(), kWidth);
  EXPECT_EQ(words_in(figure), (std::vector<std::string>{"Time", "copy", "Memory", "activation"}));
  EXPECT_EQ(swatches_in(figure), 2u);
  EXPECT_EQ(words_in(draw_legend({"copy"}, light_theme(), kWidth)), (std::vector<std::string>{"Time", "copy"}));
}

TEST(Legend, KnowsEveryWordOfTheCanvas) {
  std::set<std::string_view> words{"event", "flow", "rounding", kDimmedWord};
  for (int c = 0; c < kSpanCategories; ++c) words.insert(to_string(static_cast<SpanCategory>(c)));
  for (int c = 0; c < kTimeClasses; ++c) words.insert(to_string(static_cast<TimeClass>(c)));
  for (int k = 0; k < kStorageKinds; ++k) words.insert(to_string(static_cast<StorageKind>(k)));
  EXPECT_EQ(swatches_in(draw_legend(words, light_theme(), kWidth)), words.size());
}

TEST(Legend, TakesNoRoomWithoutWordsAndAsManyLinesAsItNeeds) {
  EXPECT_EQ(draw_legend({}, light_theme(), kWidth).height, 0);
  const std::set<std::string_view> words{"forward", "backward", "optimizer", "copy", "host", "activation", "gradient"};
  const double one = draw_legend(words, light_theme(), kWidth).height;
  const Figure narrow = draw_legend(words, light_theme(), 200);
  EXPECT_GT(one, 0);
  EXPECT_GT(narrow.height, 2 * one);
  for (const Item& item : narrow.items)
    if (const auto* r = std::get_if<Rectangle>(&item)) {
      EXPECT_LE(r->y + r->height, narrow.height);
    }
}

TEST(Legend, HasTheWordsOfWhatIsInViewOnly) {
  CanvasState state = analysed_state();
  const std::set<std::string_view> all = sharp_frame(state, 2000).words;
  for (const char* word : {"forward", "backward", "optimizer", "compute", "host", "activation", "parameter"})
    EXPECT_TRUE(all.contains(word)) << word;
  for (const char* word : {"collective", "storage", "fault", "communication_buffer", "dimmed"})
    EXPECT_FALSE(all.contains(word)) << word;
  for (std::size_t i = 0; i < state.rows.rows().size(); ++i)
    state.rows.row(i).hidden = state.rows.rows()[i].kind != RowKind::occupancy;
  const std::set<std::string_view> memory = sharp_frame(state, 2000).words;
  EXPECT_TRUE(memory.contains("activation"));
  EXPECT_FALSE(memory.contains("forward")) << "its lanes are hidden";
  state.rows = RowList::of(state.runs);
  state.show_path = true;
  EXPECT_TRUE(sharp_frame(state, 2000).words.contains(kDimmedWord));
}

TEST(Legend, StandsBelowTheFrameThatItIsAppendedTo) {
  CanvasFrame frame = sharp_frame(analysed_state(), 400);
  const std::size_t items = frame.figure.items.size();
  append_legend(frame, light_theme());
  EXPECT_GT(frame.figure.height, 400);
  for (std::size_t i = items; i < frame.figure.items.size(); ++i) {
    if (const auto* text = std::get_if<Text>(&frame.figure.items[i])) {
      EXPECT_GT(text->at.y, 400) << text->text;
    }
    if (const auto* r = std::get_if<Rectangle>(&frame.figure.items[i])) {
      EXPECT_GE(r->y, 400);
    }
  }
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall::gui
