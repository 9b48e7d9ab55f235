// The panels as people see them, on a small run.
#include <gtest/gtest.h>
#include <QAbstractAnimation>
#include <QApplication>
#include <QKeyEvent>
#include <QLineEdit>
#include <QStyleFactory>
#include <QTabWidget>
#include <QTableWidget>

#include "gui/view/panels/bookmark_panel.h"
#include "gui/view/window/theme_choice.h"
#include "tests/gui/support/image_check.h"
#include "tests/gui/support/panel_fixture.h"

namespace memwall::gui {
namespace MEMWALL_TEST_FILE {

// A text field fades its button in: on a busy computer that would still be under way.
void finish_animations(QWidget& widget) {
  for (QAbstractAnimation* animation : widget.findChildren<QAbstractAnimation*>())
    animation->setCurrentTime(animation->totalDuration());
}

class PanelImage : public testing::Test {
 protected:
  // The same style and font wherever the test runs.
  void SetUp() override {
    QApplication::setStyle(QStyleFactory::create(QStringLiteral("Fusion")));
    QFont font(QStringLiteral("DejaVu Sans"));
    font.setPixelSize(12);
    QApplication::setFont(font);
  }

  static OpRef a_kernel(const Workspace& workspace) {
    const SpanBlock spans = workspace.state().runs[0].source->spans(0);
    for (OpId id = 150; id < spans.size(); ++id)
      if (spans.kind[id] == OpKind::kernel) return {0, id, false};
    return {};
  }

  static void expect(QWidget& panel, const char* name) {
    // Without the cursor of a text field, which blinks.
    if (QWidget* const focus = QApplication::focusWidget()) focus->clearFocus();
    finish_animations(panel);
    expect_image(panel.grab().toImage().convertToFormat(QImage::Format_RGB32), name);
  }
};

TEST_F(PanelImage, DetailsOfAnOp) {
  PanelFixture scene;
  scene.workspace.go_to(a_kernel(scene.workspace));
  expect(scene.show(make_details_panel), "panel_details");
}

TEST_F(PanelImage, FirstLook) {
  PanelFixture scene;
  expect(scene.show(make_details_panel), "panel_first_look");
}

TEST_F(PanelImage, LiveSet) {
  PanelFixture scene;
  expect(scene.show(make_live_set_panel, {800, 400}), "panel_live_set");
}

TEST_F(PanelImage, Peak) {
  PanelFixture scene;
  expect(scene.show(make_peak_panel, {600, 400}), "panel_peak");
}

TEST_F(PanelImage, Statistics) {
  PanelFixture scene;
  expect(scene.show(make_statistics_panel, {700, 300}), "panel_statistics");
}

TEST_F(PanelImage, Search) {
  PanelFixture scene;
  scene.show(make_search_panel, {500, 300});
  scene.part<QLineEdit>("search").setClearButtonEnabled(false);  // it fades in: the picture would depend on the load
  scene.part<QLineEdit>("search").setText(QStringLiteral("attention"));
  QKeyEvent enter(QEvent::KeyPress, Qt::Key_Return, Qt::NoModifier);
  QApplication::sendEvent(&scene.part<QLineEdit>("search"), &enter);
  scene.settle();
  expect(*scene.part<QLineEdit>("search").window(), "panel_search");
}

TEST_F(PanelImage, Hierarchy) {
  PanelFixture scene;
  expect(scene.show(make_hierarchy_panel, {700, 400}), "panel_hierarchy");
}

TEST_F(PanelImage, Summary) {
  PanelFixture scene;
  expect(scene.show(make_summary_panel, {800, 700}), "panel_summary");
}

TEST_F(PanelImage, Marks) {
  PanelFixture scene;
  scene.show([](Workspace& workspace, QWidget* parent) { return new BookmarkPanel(workspace, parent); }, {500, 200});
  const Time end = scene.workspace.state().whole().end;
  scene.workspace.set_bookmarks({{{end / 4, end / 4}, "where it begins"}, {{end / 2, end * 3 / 4}, "the long part"}});
  scene.settle();
  expect(*scene.part<QTableWidget>("mark_table").window(), "panel_marks");
}

TEST_F(PanelImage, Differences) {
  PanelFixture scene(2);
  QWidget& panel = scene.show(make_differences_panel, {800, 300});
  expect(panel, "panel_differences");
  scene.part<QTabWidget>("tabs").setCurrentIndex(1);
  scene.settle();
  expect(panel, "panel_differences_memory");
}

TEST_F(PanelImage, Waterfall) {
  PanelFixture scene(2);
  expect(scene.show(make_waterfall_panel, {700, 400}), "panel_waterfall");
}

TEST_F(PanelImage, Dark) {
  PanelFixture scene;
  ThemeChoice themes;
  scene.workspace.set_theme(themes.apply("dark"));
  expect(scene.show(make_details_panel), "panel_first_look_dark");
  scene.workspace.go_to(a_kernel(scene.workspace));
  expect(scene.show(make_details_panel), "panel_details_dark");
  expect(scene.show(make_live_set_panel, {800, 400}), "panel_live_set_dark");
  expect(scene.show(make_peak_panel, {600, 400}), "panel_peak_dark");
  expect(scene.show(make_statistics_panel, {700, 300}), "panel_statistics_dark");
  expect(scene.show(make_hierarchy_panel, {700, 400}), "panel_hierarchy_dark");
  expect(scene.show(make_summary_panel, {800, 700}), "panel_summary_dark");
  themes.apply("system");
}

TEST_F(PanelImage, DarkComparison) {
  PanelFixture scene(2);
  ThemeChoice themes;
  scene.workspace.set_theme(themes.apply("dark"));
  expect(scene.show(make_differences_panel, {800, 300}), "panel_differences_dark");
  expect(scene.show(make_waterfall_panel, {700, 400}), "panel_waterfall_dark");
  themes.apply("system");
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall::gui
