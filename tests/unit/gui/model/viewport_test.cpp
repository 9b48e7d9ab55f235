// Do pixels and instants agree, and does zooming keep the instant under the pointer?
#include "gui/model/viewport.h"

#include <gtest/gtest.h>

namespace memwall::gui {
namespace MEMWALL_TEST_FILE {

TimeRange second() { return {Time{}, from_seconds(1)}; }

TEST(Viewport, ShowsAllAtFirst) {
  const Viewport view(second(), 500);
  EXPECT_EQ(view.visible(), second());
  EXPECT_EQ(view.x(Time{}), 0);
  EXPECT_EQ(view.x(from_seconds(1)), 500);
  EXPECT_EQ(view.time(250), from_seconds(0.5));
  EXPECT_EQ(view.picoseconds_per_pixel(), 2e9);
}

TEST(Viewport, TimesBeyondTheEdgesHavePlacesToo) {
  Viewport view(second(), 500);
  view.show({from_seconds(0.4), from_seconds(0.6)});
  EXPECT_NEAR(view.x(Time{}), -1000, 1e-6);
  EXPECT_NEAR(view.x(from_seconds(1)), 1500, 1e-6);
}

TEST(Viewport, ZoomingKeepsTheInstantUnderThePointer) {
  for (const double at : {0.0, 1.0, 123.0, 499.0, 500.0}) {
    Viewport view(second(), 500);
    view.show({from_seconds(0.2), from_seconds(0.8)});
    const Time before = view.time(at);
    for (int i = 0; i < 8; ++i) view.zoom(1.7, at);
    const double pixel = view.picoseconds_per_pixel();
    EXPECT_NEAR(static_cast<double>(view.time(at).count()), static_cast<double>(before.count()), 8 * pixel) << at;
    EXPECT_NEAR(to_seconds(view.visible().length()), 0.6 / std::pow(1.7, 8), 1e-9);
  }
}

TEST(Viewport, StopsAtTheEndsAndAtANanosecond) {
  Viewport view(second(), 500);
  view.zoom(1e15, 250);
  EXPECT_EQ(view.visible().length(), nanoseconds(1));
  view.zoom(1e-15, 250);
  EXPECT_EQ(view.visible(), second());
  view.show({from_seconds(0.9), from_seconds(1)});
  view.pan(1e6);
  EXPECT_EQ(view.visible().end, from_seconds(1));
  EXPECT_EQ(view.visible().length(), from_seconds(0.1));
  view.pan(-1e9);
  EXPECT_EQ(view.visible().begin, Time{});
}

TEST(Viewport, PanningMovesByPixels) {
  Viewport view(second(), 500);
  view.show({from_seconds(0.2), from_seconds(0.3)});
  view.pan(100);
  EXPECT_EQ(view.visible().begin, from_seconds(0.22));
  view.pan(-50);
  EXPECT_EQ(view.visible().begin, from_seconds(0.21));
}

TEST(Viewport, UndoGoesBackStepByStep) {
  Viewport view(second(), 500);
  view.show({from_seconds(0.2), from_seconds(0.4)});
  view.show({from_seconds(0.25), from_seconds(0.3)});
  view.remember();  // a gesture that changes nothing leaves nothing to undo
  EXPECT_TRUE(view.undo());
  EXPECT_EQ(view.visible(), (TimeRange{from_seconds(0.2), from_seconds(0.4)}));
  EXPECT_TRUE(view.undo());
  EXPECT_EQ(view.visible(), second());
  EXPECT_FALSE(view.undo());
}

TEST(Viewport, OfAnotherWholeKeepsWhatLiesWithin) {
  Viewport view(second(), 500);
  view.show({from_seconds(0.2), from_seconds(0.4)});
  view.set_whole({from_seconds(-0.5), from_seconds(1)});
  EXPECT_EQ(view.visible(), (TimeRange{from_seconds(0.2), from_seconds(0.4)}));
  EXPECT_EQ(view.time(-1e9), from_seconds(-0.5));
  view.set_whole({Time{}, from_seconds(0.3)});
  EXPECT_EQ(view.visible().end, from_seconds(0.3));
  EXPECT_EQ(view.visible().length(), from_seconds(0.2));
  EXPECT_TRUE(view.undo());
  EXPECT_EQ(view.visible(), (TimeRange{Time{}, from_seconds(0.3)})) << "no farther back than the run goes";
}

TEST(Viewport, RevealsWhatIsOutOfViewWithoutZooming) {
  Viewport view(second(), 500);
  view.show({from_seconds(0.2), from_seconds(0.4)});
  view.reveal(from_seconds(0.3));
  EXPECT_EQ(view.visible().begin, from_seconds(0.2)) << "it was in view";
  view.reveal(from_seconds(0.7));
  EXPECT_EQ(view.visible(), (TimeRange{from_seconds(0.6), from_seconds(0.8)}));
  view.reveal(Time{});
  EXPECT_EQ(view.visible(), (TimeRange{Time{}, from_seconds(0.2)}));
}

TEST(Viewport, AnEmptyRunHasAPlaceForEverything) {
  const Viewport view(TimeRange{}, 500);
  EXPECT_EQ(view.x(Time{}), 0);
  EXPECT_EQ(view.time(100), Time{});
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall::gui
