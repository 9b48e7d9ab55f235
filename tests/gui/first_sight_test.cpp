// What is on the screen when a run is opened, before a key is pressed: its memory whole, its step time in words, its
// ranks one by one.
#include <gtest/gtest.h>
#include <QTextBrowser>

#include "gui/model/time_sentence.h"
#include "gui/view/canvas/legend_widget.h"
#include "sim/trace/trace_builder.h"
#include "tests/gui/support/window_fixture.h"
#include "tests/support/straggling_ranks.h"

namespace memwall::gui {
namespace MEMWALL_TEST_FILE {

constexpr int kPatience = 60'000;  // milliseconds

// Where the first rows of memory stand on the screen, of each run that is open: all of each is in view.
void expect_memory_in_view(WindowFixture& scene, std::size_t runs) {
  ASSERT_TRUE(QTest::qWaitFor(
      [&] {
        const QWidget &legend = scene.window->page().legend(), &canvas = scene.canvas();
        return legend.height() > 0 && legend.y() >= canvas.y() + canvas.height() &&
               legend.y() + legend.height() <= scene.window->page().height();
      },
      kPatience));
  const CanvasState& state = scene.state();
  const double height = scene.canvas().height() - kRulerHeight;
  std::set<std::uint8_t> seen;
  for (const RowList::Place& place : state.rows.places()) {
    const CanvasRow& row = state.rows.rows()[place.row];
    if (row.kind != RowKind::occupancy || !seen.insert(row.run).second) continue;
    EXPECT_GE(place.top, state.scroll);
    EXPECT_LE(place.top + place.height - state.scroll, height) << "of run " << int{row.run} << ", in " << height;
  }
  EXPECT_EQ(seen.size(), runs);
}

TEST(FirstSight, TheMemoryIsShownInFull) {
  WindowFixture scene(0);
  for (const QSize size : {QSize(1400, 900), QSize(1100, 700)}) {
    scene.window->resize(size);
    scene.open(1);
    expect_memory_in_view(scene, 1);
  }
  scene.window->resize(1400, 900);
  scene.open(2);
  expect_memory_in_view(scene, 2);
}

// A chain of kernels, as cheap to simulate as a run of that many ops can be.
memwall::Run run_of_kernels(std::size_t kernels) {
  TraceBuilder builder;
  const std::uint16_t thread = builder.add_thread("main");
  const std::uint16_t stream = builder.add_stream("stream 7", StreamRole::compute);
  builder.trace().name = "long";
  builder.trace().knowledge.timing = true;
  const StringId name = builder.trace().strings.intern("kernel");
  for (std::size_t i = 0; i < kernels; ++i) {
    Op op;
    op.kind = OpKind::kernel;
    op.phase = Phase::forward;
    op.thread = thread;
    op.stream = stream;
    op.name = name;
    op.duration = microseconds(10);
    builder.append(op);
  }
  return simulate_and_record(std::move(builder).finish(), test_machine(), {});
}

TEST(FirstSight, ARunOfAMillionOpsSaysItsStepTimeAndWhereItGoes) {
  WindowFixture scene(0);
  write_run(run_of_kernels(1'000'001), scene.folder / "long.h5");
  scene.window->open({path_of(scene.folder / "long.h5")});
  auto* text = scene.window->findChild<QWidget*>("details")->findChild<QTextBrowser*>("text");
  ASSERT_NE(text, nullptr);
  ASSERT_TRUE(QTest::qWaitFor([&] { return text->toPlainText().contains("A step takes"); }, kPatience));
  ASSERT_TRUE(QTest::qWaitFor([&] { return text->toPlainText().contains("compute 1"); }, kPatience))
      << text->toPlainText().toStdString();
  const OpenRun& run = scene.state().runs[0];
  EXPECT_TRUE(run.analysis) << "no key was pressed";
  EXPECT_TRUE(step_sentence(run).starts_with("A step takes 10.0 s: compute 100.0 %")) << step_sentence(run);
}

// --- ranks

class Ranks : public testing::Test {
 protected:
  Ranks() {
    write_run(simulate_and_record(straggling_ranks(), test_machine(), {}), scene.folder / "ranks.h5");
    open();
  }
  void open() {
    scene.window->open({path_of(scene.folder / "ranks.h5")});
    scene.settle();
  }
  std::set<RowList::RankRef> folded() { return scene.state().rows.folded(); }
  // The middle of the title of the row that stands for a rank.
  QPoint title_of(std::uint16_t rank) {
    for (const RowList::Place& place : scene.state().rows.places())
      if (place.stands_for_rank && scene.state().rows.rows()[place.row].rank == rank)
        return QPointF(60, kRulerHeight + place.top + place.height / 2 - scene.state().scroll).toPoint();
    return {};
  }
  QPoint line_of_first() {
    return QPointF(60, kRulerHeight + RowList::kGroupHeight / 2 - scene.state().scroll).toPoint();
  }
  void click(QPoint at) { QTest::mouseClick(&scene.canvas(), Qt::LeftButton, {}, at); }

  WindowFixture scene{0};
};

TEST_F(Ranks, AClickOnItsTitleUnfoldsARankAndOneOnItsLineFoldsIt) {
  EXPECT_EQ(folded(), (std::set<RowList::RankRef>{{0, 1}, {0, 2}}));
  click(line_of_first());
  EXPECT_TRUE(folded().contains({0, 0}));
  EXPECT_FALSE(scene.state().selection.cursor) << "that was no click into the picture";
  scene.workspace().scroll_to(0);
  click(title_of(0));
  EXPECT_FALSE(folded().contains({0, 0}));
  scene.workspace().scroll_to(scene.workspace().most_scroll());
  click(title_of(1));
  EXPECT_FALSE(folded().contains({0, 1}));
  EXPECT_TRUE(folded().contains({0, 2}));
}

TEST_F(Ranks, AKeyUnfoldsAllAndFoldsAll) {
  QTest::keyClick(&scene.canvas(), Qt::Key_R);
  EXPECT_TRUE(folded().empty());
  QTest::keyClick(&scene.canvas(), Qt::Key_R);
  EXPECT_EQ(folded().size(), 3u);
}

TEST_F(Ranks, GoingToAnOpOfAFoldedRankUnfoldsIt) {
  const OpenRun& run = scene.state().runs[0];
  OpRef last;
  for (OpId id = 0; id < run.outline().ops; ++id)
    if (run.source->op(id).op.kind == OpKind::kernel) last = {0, id, false};
  scene.workspace().go_to(last);
  EXPECT_FALSE(folded().contains({0, 2}));
  EXPECT_TRUE(folded().contains({0, 1}));
}

TEST_F(Ranks, WhichAreFoldedIsRemembered) {
  scene.workspace().fold_rank({0, 0}, true);
  scene.workspace().fold_rank({0, 1}, false);
  const auto before = folded();
  scene.window->close();
  scene.start();
  open();
  EXPECT_EQ(folded(), before);
}

TEST_F(Ranks, TheFirstLookNamesTheStraggler) {
  auto* text = scene.window->findChild<QWidget*>("details")->findChild<QTextBrowser*>("text");
  ASSERT_NE(text, nullptr);
  EXPECT_TRUE(QTest::qWaitFor([&] { return text->toPlainText().contains("Rank 5 is the straggler"); }, kPatience))
      << text->toPlainText().toStdString();
  const Hit hit = hit_test(scene.state(), 60, [&] {
    for (const RowList::Place& place : scene.state().rows.places())
      if (place.stands_for_rank) return kRulerHeight + place.top + 5;
    return 0.0;
  }());
  EXPECT_TRUE(QString::fromStdString(hit.text).startsWith("Rank 5, straggler: step ")) << hit.text;
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall::gui
