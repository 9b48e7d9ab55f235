// Does the window explain its colours, out of the way, and only as long as one wants it?
#include <gtest/gtest.h>

#include "gui/view/canvas/legend_widget.h"
#include "tests/gui/support/window_fixture.h"

namespace memwall::gui {
namespace MEMWALL_TEST_FILE {

constexpr int kPatience = 30'000;  // milliseconds

LegendWidget& legend_of(WindowFixture& scene) { return scene.window->page().legend(); }

// There, and the canvas has given it room.
bool appears(WindowFixture& scene) {
  return QTest::qWaitFor(
      [&] {
        const QWidget &legend = legend_of(scene), &canvas = scene.canvas();
        return legend.isVisible() && legend.height() > 0 && legend.y() >= canvas.y() + canvas.height() &&
               legend.y() + legend.height() <= scene.window->page().height();
      },
      kPatience);
}

TEST(LegendStrip, StandsBelowTheCanvasAndCoversNothing) {
  WindowFixture scene;
  ASSERT_TRUE(appears(scene));
  const QWidget& canvas = scene.canvas();
  EXPECT_GE(legend_of(scene).y(), canvas.y() + canvas.height());
  EXPECT_TRUE(scene.canvas().words().contains("forward"));
  EXPECT_TRUE(scene.canvas().words().contains("activation"));
  EXPECT_FALSE(scene.canvas().words().contains("storage")) << "the run reads no disk";
}

TEST(LegendStrip, AKeyHidesItAndBringsItBack) {
  WindowFixture scene;
  ASSERT_TRUE(appears(scene));
  const int height = scene.canvas().height();
  QTest::keyClick(&scene.canvas(), Qt::Key_L);
  EXPECT_FALSE(legend_of(scene).isVisible());
  EXPECT_TRUE(QTest::qWaitFor([&] { return scene.canvas().height() > height; }, kPatience))
      << "its room is the canvas's";
  QTest::keyClick(&scene.canvas(), Qt::Key_L);
  EXPECT_TRUE(appears(scene));
}

TEST(LegendStrip, ThatItIsHiddenIsRemembered) {
  WindowFixture scene;
  scene.workspace().show_legend(false);
  scene.window->close();
  scene.start();
  scene.open();
  EXPECT_FALSE(scene.state().show_legend);
  EXPECT_FALSE(legend_of(scene).isVisible());
}

TEST(LegendStrip, IsPartOfTheCopiedPicture) {
  WindowFixture scene;
  ASSERT_TRUE(appears(scene));
  const QPixmap with = scene.window->page().picture();
  EXPECT_EQ(with.height(), scene.canvas().height() + legend_of(scene).height());
  scene.workspace().show_legend(false);
  EXPECT_EQ(scene.window->page().picture().height(), scene.canvas().picture().height());
}

// A strip that shrank with what the higher canvas shows less of would grow again.
TEST(LegendStrip, DoesNotGoUpAndDown) {
  WindowFixture scene;
  ASSERT_TRUE(appears(scene));
  const int height = legend_of(scene).height();
  scene.workspace().change_rows([](RowList& rows) { rows.filter("hbm"); });
  scene.settle();
  ASSERT_TRUE(QTest::qWaitFor([&] { return !scene.canvas().words().contains("forward"); }, kPatience));
  scene.settle();
  EXPECT_EQ(legend_of(scene).height(), height);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall::gui
