// Can a person tell apart what the colours of a canvas and of figures mean, on a light screen and on a dark one?
#include "gui/drawing/theme.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "gui/drawing/legend.h"
#include "sim/trace/kind_words.h"
#include "tests/support/color_difference.h"
#include "traces/run/analysis/accounting.h"
#include "traces/run/run_index.h"

namespace memwall::gui {
namespace MEMWALL_TEST_FILE {

// At a glance; of lines and marks over them, which have a shape of their own, a little less is enough.
constexpr double kClearlyApart = 12, kMarksApart = 10;
// By those who lack the cones for red or green: within the rows that show times, within those that show memory, and
// within a roofline.
constexpr double kApartWithoutRedOrGreen = 6;

std::set<std::string_view> words_of_time() {
  std::set<std::string_view> words{"event", "flow"};
  for (int c = 0; c < kSpanCategories; ++c) words.insert(to_string(static_cast<SpanCategory>(c)));
  for (int c = 0; c < kTimeClasses; ++c) words.insert(to_string(static_cast<TimeClass>(c)));
  return words;
}

std::set<std::string_view> words_of_memory() {
  std::set<std::string_view> words{"rounding"};
  for (int k = 0; k < kStorageKinds; ++k) words.insert(to_string(static_cast<StorageKind>(k)));
  return words;
}

// "optimizer" is a phase, too.
std::set<std::string_view> words_of_operators() {
  std::set<std::string_view> words;
  for (int c = 0; c <= static_cast<int>(OperatorClass::memory); ++c)
    words.insert(to_string(static_cast<OperatorClass>(c)));
  return words;
}

std::set<std::string_view> all_words() {
  std::set<std::string_view> all = words_of_time();
  all.merge(words_of_memory());
  all.merge(words_of_operators());
  return all;
}

std::map<std::string, Color> colors_of(const Theme& theme, const std::set<std::string_view>& words) {
  std::map<std::string, Color> colors;
  for (const std::string_view word : words) colors[std::string(word)] = color_of(theme, word);
  return colors;
}

void expect_apart(const std::map<std::string, Color>& colors, double least, ColorVision vision, const char* where) {
  for (auto one = colors.begin(); one != colors.end(); ++one)
    for (auto other = std::next(one); other != colors.end(); ++other)
      EXPECT_GE(color_difference(seen_with(vision, one->second), seen_with(vision, other->second)), least)
          << where << ": " << one->first << " and " << other->first;
}

// The measure itself, on pairs of the paper that defines it.
TEST(ColorDifference, IsThatOfThePaper) {
  EXPECT_NEAR(color_difference(LabColor{50, 2.6772, -79.7751}, LabColor{50, 0, -82.7485}), 2.0425, 1e-4);
  EXPECT_NEAR(color_difference(LabColor{50, 2.5, 0}, LabColor{73, 25, -18}), 27.1492, 1e-4);
  EXPECT_NEAR(color_difference(LabColor{60.2574, -34.0099, 36.2677}, LabColor{60.4626, -34.1751, 39.4387}), 1.2644,
              1e-4);
  EXPECT_NEAR(color_difference(LabColor{2.0776, 0.0795, -1.1350}, LabColor{0.9033, -0.0636, -0.5514}), 0.9082, 1e-4);
  EXPECT_EQ(color_difference(Color{1, 2, 3}, Color{1, 2, 3}), 0);
  EXPECT_NEAR(color_difference(Color{0, 0, 0}, Color{255, 255, 255}), 100, 0.1);
}

TEST(Theme, NoTwoMeaningsShareAColour) {
  const std::set<std::string_view> all = all_words();
  // But for "optimizer", a phase and a class of operators.
  ASSERT_EQ(all.size(), words_of_time().size() + words_of_memory().size() + words_of_operators().size() - 1)
      << "a word has one meaning";
  for (const Theme& theme : {light_theme(), dark_theme()}) {
    const char* const where = theme.dark ? "dark" : "light";
    expect_apart(colors_of(theme, all), kClearlyApart, ColorVision::normal, where);
    const std::map<std::string, Color> marks{
        {"cursor", theme.cursor}, {"mark", theme.mark}, {"found", theme.found}, {"capacity", theme.limit}};
    std::map<std::string, Color> together = colors_of(theme, all);
    together.insert(marks.begin(), marks.end());
    expect_apart(together, kMarksApart, ColorVision::normal, where);
  }
}

TEST(Theme, PeopleWithoutRedOrGreenTellTimesKindsOfStorageAndClassesOfOperatorsApart) {
  for (const Theme& theme : {light_theme(), dark_theme()})
    for (const auto& words : {words_of_time(), words_of_memory(), words_of_operators()})
      for (const ColorVision vision : {ColorVision::without_red, ColorVision::without_green})
        expect_apart(colors_of(theme, words), kApartWithoutRedOrGreen, vision, theme.dark ? "dark" : "light");
}

TEST(Theme, EveryWordIsSeenOnItsBackgroundAndReadableInItsColour) {
  const std::set<std::string_view> all = all_words();
  for (const Theme& theme : {light_theme(), dark_theme()})
    for (const auto& [word, color] : colors_of(theme, all)) {
      // What is idle stands back.
      EXPECT_GE(color_difference(color, theme.background), word == "idle" ? 6 : kClearlyApart) << word;
      EXPECT_GE(color_difference(color, theme.band), word == "idle" ? 4 : kMarksApart) << word;
    }
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall::gui
