// Do the keys and the mouse do what the help page says? With real events, on a screen (Xvfb) and without one.
#include <gtest/gtest.h>
#include <QClipboard>
#include <QDialog>
#include <QDockWidget>
#include <QInputDialog>
#include <QLineEdit>
#include <QPointer>
#include <QWheelEvent>

#include "gui/view/bookmarks.h"
#include "gui/view/canvas/overview_widget.h"
#include "gui/view/window/commands.h"
#include "tests/gui/support/window_fixture.h"

namespace memwall::gui {
namespace MEMWALL_TEST_FILE {

class Walk : public testing::Test {
 protected:
  void SetUp() override { scene.canvas().setFocus(); }
  void key(Qt::Key key, Qt::KeyboardModifiers modifiers = Qt::NoModifier) {
    QWidget* focus = QApplication::focusWidget();
    QTest::keyClick(focus ? focus : &scene.canvas(), key, modifiers);
  }
  void key(char letter, Qt::KeyboardModifiers modifiers = Qt::NoModifier) {
    QWidget* focus = QApplication::focusWidget();
    QTest::keyClick(focus ? focus : &scene.canvas(), letter, modifiers);
  }
  void drag(QWidget& widget, QPoint from, QPoint to, Qt::MouseButton button = Qt::LeftButton) {
    QTest::mousePress(&widget, button, {}, from);
    move(widget, (from + to) / 2, button);
    move(widget, to, button);
    QTest::mouseRelease(&widget, button, {}, to);
  }
  // With the button held: QTest's moves hold none.
  static void move(QWidget& widget, QPoint to, Qt::MouseButtons buttons) {
    QMouseEvent event(QEvent::MouseMove, to, widget.mapToGlobal(QPointF(to)), Qt::NoButton, buttons, Qt::NoModifier);
    QApplication::sendEvent(&widget, &event);
  }
  void wheel(QWidget& widget, QPoint at, QPoint angle, Qt::KeyboardModifiers modifiers = Qt::NoModifier) {
    QWheelEvent event(at, widget.mapToGlobal(QPointF(at)), {}, angle, Qt::NoButton, modifiers, Qt::NoScrollPhase,
                      false);
    QApplication::sendEvent(&widget, &event);
  }
  QPoint middle() { return {static_cast<int>(kTitleWidth + scene.state().viewport.width() / 2), 200}; }
  // Clicks a wide span; returns it.
  OpRef click_span() {
    const OpRef op = scene.wide_op();
    const TimeRange time = time_of(scene.state().runs[0], op);
    scene.workspace().change_viewport([&](Viewport& v) {
      v.show({time.begin - time.length(), time.end + time.length()});
    });
    scene.settle();
    const std::uint32_t lane = *lane_of(scene.state().runs[0], op);
    for (std::size_t i = 0; i < scene.state().rows.rows().size(); ++i) {
      const CanvasRow& row = scene.state().rows.rows()[i];
      if (row.kind == RowKind::lane && row.index == lane) place_ = i;
    }
    scene.workspace().reveal_row(place_);
    for (const RowList::Place& place : scene.state().rows.places()) {
      if (place.row != place_) continue;
      span_at_ = QPointF(kTitleWidth + scene.state().viewport.x(time.begin + time.length() / 2),
                         kRulerHeight + place.top + place.height / 2 - scene.state().scroll)
                     .toPoint();
    }
    QTest::mouseClick(&scene.canvas(), Qt::LeftButton, {}, span_at_);
    return op;
  }

  WindowFixture scene;
  std::size_t place_ = 0;
  QPoint span_at_;
};

TEST_F(Walk, WAndSZoomAtThePointerAndBackspaceGoesBack) {
  const TimeRange whole = scene.visible();
  move(scene.canvas(), middle(), Qt::NoButton);
  const Time under = scene.state().viewport.time(middle().x() - kTitleWidth);
  key(Qt::Key_W);
  const TimeRange nearer = scene.visible();
  EXPECT_LT(nearer.length(), whole.length());
  const double x = scene.state().viewport.x(under);
  EXPECT_NEAR(x, middle().x() - kTitleWidth, 1) << "the instant under the pointer stays there";
  key(Qt::Key_S);
  EXPECT_GT(scene.visible().length(), nearer.length());
  QTest::qWait(600);  // another gesture
  key(Qt::Key_W, Qt::ShiftModifier);
  const TimeRange fast = scene.visible();
  EXPECT_LT(fast.length(), nearer.length()) << "Shift is faster";
  key(Qt::Key_Backspace);
  EXPECT_NE(scene.visible(), fast);
  for (int i = 0; i < 10; ++i) key(Qt::Key_Backspace);
  EXPECT_EQ(scene.visible(), whole);
}

TEST_F(Walk, AHeldKeyGoesOnUntilItIsReleased) {
  QTest::keyPress(&scene.canvas(), Qt::Key_W);
  const Duration tap = scene.visible().length();
  // A loaded machine paints few frames, each of which moves little: how far it goes in a time is not asked.
  EXPECT_TRUE(QTest::qWaitFor([&] { return scene.visible().length() * 4 < tap * 3; }, 30'000));
  QTest::keyRelease(&scene.canvas(), Qt::Key_W);
  const TimeRange released = scene.visible();
  QTest::qWait(300);
  EXPECT_EQ(scene.visible(), released);
}

TEST_F(Walk, AAndDAndArrowsPanAndHomeAndEndReachTheEnds) {
  for (int i = 0; i < 4; ++i) key(Qt::Key_W);
  const TimeRange before = scene.visible();
  key(Qt::Key_D);
  EXPECT_GT(scene.visible().begin, before.begin);
  EXPECT_EQ(scene.visible().length(), before.length());
  key(Qt::Key_A);
  EXPECT_NEAR(static_cast<double>(scene.visible().begin.count()), static_cast<double>(before.begin.count()), 10);
  key(Qt::Key_Right);
  EXPECT_GT(scene.visible().begin, before.begin);
  key(Qt::Key_Home);
  EXPECT_EQ(scene.visible().begin, Time{});
  key(Qt::Key_End);
  EXPECT_EQ(scene.visible().end, scene.state().whole().end);
  key(Qt::Key_F, Qt::ShiftModifier);
  EXPECT_EQ(scene.visible(), scene.state().whole());
}

TEST_F(Walk, WheelsZoomScrollAndPan) {
  const TimeRange whole = scene.visible();
  wheel(scene.canvas(), middle(), {0, 120}, Qt::ControlModifier);
  const TimeRange nearer = scene.visible();
  EXPECT_LT(nearer.length(), whole.length());
  wheel(scene.canvas(), middle(), {0, -120}, Qt::ShiftModifier);
  EXPECT_GT(scene.visible().begin, nearer.begin);
  EXPECT_EQ(scene.visible().length(), nearer.length());
  const TimeRange here = scene.visible();
  wheel(scene.canvas(), {middle().x(), 10}, {0, 120});
  EXPECT_LT(scene.visible().length(), here.length()) << "above the ruler the wheel zooms";
  scene.workspace().change_rows([](RowList& rows) { rows.row(0).height = 900; });
  const TimeRange there = scene.visible();
  wheel(scene.canvas(), middle(), {0, -120});
  EXPECT_GT(scene.state().scroll, 0);
  EXPECT_EQ(scene.visible(), there) << "where lanes can be scrolled the wheel scrolls";
}

TEST_F(Walk, ALeftDragChoosesARangeThatFZoomsTo) {
  drag(scene.canvas(), {static_cast<int>(kTitleWidth) + 100, 200}, {static_cast<int>(kTitleWidth) + 300, 220});
  ASSERT_TRUE(scene.state().selection.range);
  const TimeRange range = *scene.state().selection.range;
  EXPECT_NEAR(scene.state().viewport.x(range.begin), 100, 1);
  EXPECT_NEAR(scene.state().viewport.x(range.end), 300, 1);
  // An end can be dragged on.
  drag(scene.canvas(), {static_cast<int>(kTitleWidth) + 300, 200}, {static_cast<int>(kTitleWidth) + 400, 200});
  EXPECT_EQ(scene.state().selection.range->begin, range.begin);
  EXPECT_NEAR(scene.state().viewport.x(scene.state().selection.range->end), 400, 1);
  const TimeRange chosen = *scene.state().selection.range;
  key(Qt::Key_F);
  EXPECT_EQ(scene.visible(), chosen);
  key(Qt::Key_Escape);
  EXPECT_FALSE(scene.state().selection.range);
}

TEST_F(Walk, MiddleAndRightDragsAndSpacePan) {
  for (int i = 0; i < 4; ++i) key(Qt::Key_W);
  for (const Qt::MouseButton button : {Qt::MiddleButton, Qt::RightButton}) {
    const TimeRange before = scene.visible();
    drag(scene.canvas(), middle(), middle() - QPoint(50, 0), button);
    EXPECT_GT(scene.visible().begin, before.begin);
    EXPECT_FALSE(scene.state().selection.range);
  }
  const TimeRange before = scene.visible();
  QTest::keyPress(&scene.canvas(), Qt::Key_Space);
  drag(scene.canvas(), middle(), middle() + QPoint(50, 0));
  QTest::keyRelease(&scene.canvas(), Qt::Key_Space);
  EXPECT_LT(scene.visible().begin, before.begin);
  EXPECT_FALSE(scene.state().selection.range);
}

TEST_F(Walk, AClickChoosesAndKeysGoOnFromThere) {
  const OpRef op = click_span();
  ASSERT_TRUE(scene.state().selection.op) << "nothing was hit";
  EXPECT_EQ(scene.state().selection.op->op, op.op);
  EXPECT_TRUE(scene.state().selection.cursor);
  key('.');
  ASSERT_TRUE(scene.state().selection.op);
  const OpRef next = *scene.state().selection.op;
  EXPECT_NE(next, op);
  EXPECT_EQ(next, next_in_lane(scene.state().runs[0], op, Direction::forward));
  key(',');
  EXPECT_EQ(scene.state().selection.op->op, op.op);
  key('[');
  EXPECT_EQ(scene.state().selection.op, along_dependency(scene.state().runs[0], op, Direction::back).value_or(op));
  scene.workspace().select(op);
  key(']');
  EXPECT_EQ(scene.state().selection.op, along_dependency(scene.state().runs[0], op, Direction::forward).value_or(op));
}

TEST_F(Walk, ADoubleClickZoomsToTheSpan) {
  const OpRef op = click_span();
  key(Qt::Key_F, Qt::ShiftModifier);
  const TimeRange time = time_of(scene.state().runs[0], op);
  scene.workspace().change_viewport([&](Viewport& v) {
    v.show({time.begin - time.length() * 3, time.end + time.length() * 3});
  });
  const QPoint at(static_cast<int>(kTitleWidth + scene.state().viewport.x(time.begin + time.length() / 2)),
                  span_at_.y());
  QTest::mouseDClick(&scene.canvas(), Qt::LeftButton, {}, at);
  EXPECT_LE(scene.visible().begin, time.begin);
  EXPECT_GE(scene.visible().end, time.end);
  EXPECT_LT(scene.visible().length(), time.length() * 3 / 2);
}

TEST_F(Walk, KeysWithoutAChosenOpSayWhatTheyNeed) {
  for (const char letter : {'.', ',', '[', ']', 'f', 'm', '='}) {
    QString said;
    const auto connection =
        QObject::connect(&scene.workspace(), &Workspace::said, [&](const QString& text) { said = text; });
    key(letter);
    EXPECT_FALSE(said.isEmpty()) << letter;
    QObject::disconnect(connection);
  }
}

TEST_F(Walk, PJumpsToThePeakAndMMarksIt) {
  key(Qt::Key_P);
  const Time peak = scene.state().runs[0].outline().run.result.tiers[0].peak_time;
  EXPECT_EQ(scene.state().selection.cursor, peak);
  EXPECT_TRUE(scene.visible().contains(peak));
  key(Qt::Key_M);
  ASSERT_EQ(scene.state().bookmarks.size(), 1u);
  EXPECT_EQ(scene.state().bookmarks[0].range, (TimeRange{peak, peak}));
}

TEST_F(Walk, EscLeavesTheSearch) {
  key('/');
  auto* edit = qobject_cast<QLineEdit*>(QApplication::focusWidget());
  ASSERT_NE(edit, nullptr);
  key('m');
  EXPECT_EQ(edit->text(), "m");
  key(Qt::Key_Escape);
  EXPECT_EQ(QApplication::focusWidget(), &scene.canvas());
  key(Qt::Key_P);
  EXPECT_TRUE(scene.state().selection.cursor);
}

TEST_F(Walk, AFlagInTheRulerNamesItsMark) {
  key(Qt::Key_P);
  key(Qt::Key_M);
  ASSERT_EQ(scene.state().bookmarks.size(), 1u);
  const double x = kTitleWidth + scene.state().viewport.x(scene.state().bookmarks[0].range.begin);
  QTest::mouseDClick(&scene.canvas(), Qt::LeftButton, {}, QPoint(static_cast<int>(x) + 6, 6));
  QInputDialog* dialog = nullptr;
  ASSERT_TRUE(QTest::qWaitFor([&] {
    dialog = scene.window->findChild<QInputDialog*>("bookmark_name");
    return dialog && dialog->isVisible();
  }));
  dialog->setTextValue("the peak");
  dialog->accept();
  EXPECT_EQ(scene.state().bookmarks[0].label, "the peak");
  remove_bookmark(scene.workspace(), 0);
  EXPECT_TRUE(scene.state().bookmarks.empty());
}

TEST_F(Walk, TheCriticalPathIsToggled) {
  key(Qt::Key_Q);
  EXPECT_TRUE(scene.state().show_path);
  key(Qt::Key_K);
  EXPECT_FALSE(scene.state().show_path);
}

TEST_F(Walk, TShowsMemoryOnTheDevicesClockAndAgainOnTheHosts) {
  key(Qt::Key_T);
  EXPECT_EQ(scene.state().clock, MemoryClock::device);
  scene.settle();
  ASSERT_NE(scene.state().runs[0].device_history, nullptr);
  EXPECT_FALSE(scene.state().runs[0].device_history->residencies().empty());
  key(Qt::Key_T);
  EXPECT_EQ(scene.state().clock, MemoryClock::host);
  scene.open();
  EXPECT_EQ(scene.state().runs[0].device_history, nullptr) << "what another file needs is asked for anew";
}

TEST_F(Walk, SlashSearchesAndLettersAreTextThere) {
  const TimeRange before = scene.visible();
  key('/');
  auto* edit = qobject_cast<QLineEdit*>(QApplication::focusWidget());
  ASSERT_NE(edit, nullptr) << "no field to type in";
  QTest::keyClicks(edit, "wasd.fp");
  EXPECT_EQ(edit->text(), "wasd.fp");
  EXPECT_EQ(scene.visible(), before);
  EXPECT_FALSE(scene.state().selection.cursor);
}

TEST_F(Walk, TitlesHideMoveAndGrow) {
  const auto places = scene.state().rows.places();
  ASSERT_GE(places.size(), 3u);
  const auto y = [](const RowList::Place& place) {
    return static_cast<int>(kRulerHeight + place.top + place.height / 2);
  };
  const double bottom = kRulerHeight + places[1].top + places[1].height;
  drag(scene.canvas(), {50, static_cast<int>(bottom) - 1}, {50, static_cast<int>(bottom) + 29});
  EXPECT_NEAR(scene.state().rows.rows()[places[1].row].height, places[1].height + 30, 1.5);
  const double height = scene.state().rows.rows()[places[1].row].height;
  key(Qt::Key_W);
  key(Qt::Key_D);
  EXPECT_EQ(scene.state().rows.rows()[places[1].row].height, height) << "heights stay";
  const auto now = scene.state().rows.places();
  const std::string first = scene.state().rows.rows()[now[1].row].key();
  drag(scene.canvas(), {50, y(now[1])}, {50, y(now[2])});
  EXPECT_EQ(scene.state().rows.rows()[now[2].row].key(), first) << "dragged one place down";
}

TEST_F(Walk, HandsThatGoTooFarDoNoHarm) {
  CanvasWidget& canvas = scene.canvas();
  const auto places = scene.state().rows.places();
  const int edge = static_cast<int>(kRulerHeight + places[1].top + places[1].height);
  drag(canvas, {50, edge}, {50, edge - 300});
  EXPECT_GE(scene.state().rows.rows()[places[1].row].height, 6) << "a lane does not vanish";
  EXPECT_LT(scene.state().rows.rows()[places[1].row].height, places[1].height);

  // A range that is dragged beyond the edge takes the picture along.
  scene.workspace().change_viewport([](Viewport& viewport) { viewport.zoom(8, viewport.width() / 2); });
  const TimeRange before = scene.visible();
  const QPoint right{canvas.width() - 20, 200};
  QTest::mousePress(&canvas, Qt::LeftButton, {}, right);
  move(canvas, right + QPoint(60, 0), Qt::LeftButton);
  QTest::mouseRelease(&canvas, Qt::LeftButton, {}, right + QPoint(60, 0));
  EXPECT_GT(scene.visible().begin, before.begin);
  ASSERT_TRUE(scene.state().selection.range);
  EXPECT_GT(scene.state().selection.range->end, before.end);

  // Another button during a drag ends nothing.
  QTest::mousePress(&canvas, Qt::LeftButton, {}, middle());
  move(canvas, middle() + QPoint(40, 0), Qt::LeftButton);
  QTest::mouseRelease(&canvas, Qt::RightButton, {}, middle() + QPoint(40, 0));
  move(canvas, middle() + QPoint(120, 0), Qt::LeftButton);
  QTest::mouseRelease(&canvas, Qt::LeftButton, {}, middle() + QPoint(120, 0));
  const TimeRange range = *scene.state().selection.range;
  EXPECT_NEAR(scene.state().viewport.x(range.end) - scene.state().viewport.x(range.begin), 120, 2);
}

TEST_F(Walk, DragsScrollTheRulerOnlySetsTheCursorAndAltTurnsTheWheel) {
  CanvasWidget& canvas = scene.canvas();
  scene.workspace().change_rows([](RowList& rows) { rows.row(0).height = 900; });
  drag(canvas, middle(), middle() - QPoint(0, 100), Qt::MiddleButton);
  EXPECT_NEAR(scene.state().scroll, 100, 1);
  drag(canvas, middle(), middle() + QPoint(0, 400), Qt::MiddleButton);
  EXPECT_EQ(scene.state().scroll, 0);

  const OpRef op = click_span();
  ASSERT_EQ(scene.state().selection.op, op);
  QTest::mouseClick(&canvas, Qt::LeftButton, {}, {middle().x(), 10});
  EXPECT_EQ(scene.state().selection.op, op) << "the ruler chooses no op";
  ASSERT_TRUE(scene.state().selection.cursor);
  EXPECT_NEAR(scene.state().viewport.x(*scene.state().selection.cursor), middle().x() - kTitleWidth, 1);

  // Where a desktop turns the wheel with Shift, or Alt, held.
  const TimeRange before = scene.visible();
  wheel(canvas, middle(), {-120, 0}, Qt::ShiftModifier);
  EXPECT_GT(scene.visible().begin, before.begin);
  EXPECT_EQ(scene.visible().length(), before.length());
}

TEST_F(Walk, TheFilterHidesLanes) {
  const std::size_t before = scene.state().rows.shown().size();
  QTest::keyClicks(&scene.window->page().filter(), "hbm");
  EXPECT_LT(scene.state().rows.shown().size(), before);
  EXPECT_EQ(scene.state().rows.filter(), "hbm");
  scene.canvas().setFocus();
  key(Qt::Key_L, Qt::ShiftModifier);
  EXPECT_GE(scene.state().rows.shown().size(), before);
  EXPECT_TRUE(scene.window->page().filter().text().isEmpty());
}

TEST_F(Walk, TheOverviewChoosesAndMovesTheVisibleRange) {
  OverviewWidget& overview = scene.window->page().overview();
  const int width = overview.width();
  drag(overview, {width / 4, 30}, {width / 2, 30});
  const double length = static_cast<double>(scene.state().whole().length().count());
  EXPECT_NEAR(static_cast<double>(scene.visible().begin.count()) / length, 0.25, 0.01);
  EXPECT_NEAR(static_cast<double>(scene.visible().end.count()) / length, 0.5, 0.01);
  drag(overview, {width * 3 / 8, 30}, {width * 5 / 8, 30});
  EXPECT_NEAR(static_cast<double>(scene.visible().begin.count()) / length, 0.5, 0.01);
  key(Qt::Key_Backspace);
  EXPECT_NEAR(static_cast<double>(scene.visible().begin.count()) / length, 0.25, 0.01);
  wheel(overview, {width / 4, 30}, {0, 120});
  EXPECT_LT(static_cast<double>(scene.visible().length().count()) / length, 0.24);
}

TEST_F(Walk, QuestionMarkShowsEveryKey) {
  key(Qt::Key_F1);
  const QPointer<QDialog> page = scene.window->findChild<QDialog*>("shortcuts");
  ASSERT_NE(page, nullptr);
  EXPECT_TRUE(page->isVisible());
  QTest::keyClick(page, Qt::Key_Escape);
  EXPECT_TRUE(QTest::qWaitFor([&] { return !page || !page->isVisible(); }, 30'000));
}

TEST_F(Walk, CopiesDetailsAndPicture) {
  key(Qt::Key_C, Qt::ControlModifier | Qt::ShiftModifier);
  EXPECT_FALSE(QApplication::clipboard()->image().isNull());
  click_span();
  key(Qt::Key_C, Qt::ControlModifier);
  EXPECT_FALSE(QApplication::clipboard()->text().isEmpty());
}

TEST_F(Walk, ControlWClosesTheRunNotTheWindow) {
  key(Qt::Key_W, Qt::ControlModifier);
  EXPECT_FALSE(scene.workspace().has_run());
  EXPECT_TRUE(scene.window->isVisible());
}

class WalkOfTwo : public Walk {
 protected:
  void SetUp() override {
    scene.open(2);
    Walk::SetUp();
  }
};

TEST_F(WalkOfTwo, CPutsTheSecondRunAsideAndBack) {
  ASSERT_EQ(scene.state().runs.size(), 2u);
  EXPECT_NE(scene.state().comparison, nullptr);
  for (int i = 0; i < 10; ++i) key(Qt::Key_W);
  const TimeRange visible = scene.visible();
  ASSERT_LT(visible.end, scene.state().runs[0].whole().end) << "within the shorter run";
  key(Qt::Key_C);
  EXPECT_EQ(scene.state().runs.size(), 1u);
  EXPECT_EQ(scene.visible(), visible) << "people go on looking at the same place";
  key(Qt::Key_C);
  EXPECT_EQ(scene.state().runs.size(), 2u);
}

TEST_F(WalkOfTwo, EqualsAlignsAtTheChosenOp) {
  OpRef late;
  for (const OpPair& pair : scene.state().comparison->pairs) {
    if (scene.state().runs[0].source->op(pair.base).record.start != kNever) late = {0, pair.base, false};
  }
  ASSERT_NE(late.op, kNoOp);
  scene.workspace().go_to(late);
  key('=');
  const auto other = scene.state().comparison->counterpart(late);
  ASSERT_TRUE(other);
  const Time begin = time_of(scene.state().runs[0], late).begin;
  EXPECT_EQ(time_of(scene.state().runs[1], *other).begin + scene.state().shift, begin);
  EXPECT_NE(scene.state().shift, Duration{});
  const Time end = scene.state().runs[1].whole().end + scene.state().shift;
  EXPECT_LE(end, scene.state().viewport.whole().end) << "the end of the shifted run can be reached";
  EXPECT_EQ(scene.state().viewport.whole().begin, std::min(Time{}, Time{} + scene.state().shift));
  key(Qt::Key_Escape);
  key('=');
  EXPECT_EQ(scene.state().shift, Duration{});
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall::gui
