// Do tables sort, filter and name what they should, and do panels show what the models say and go where links point?
#include <gtest/gtest.h>
#include <QApplication>
#include <QClipboard>
#include <QComboBox>
#include <QDockWidget>
#include <QFile>
#include <QKeyEvent>
#include <QLabel>
#include <QLineEdit>
#include <QMainWindow>
#include <QPushButton>
#include <QTableWidget>
#include <QTemporaryDir>
#include <QTest>
#include <QTextBrowser>
#include <QToolButton>

#include <sstream>

#include "gui/drawing/run_tiers.h"
#include "gui/model/details.h"
#include "gui/model/peak_explanation.h"
#include "gui/model/storage_name.h"
#include "gui/view/panels/bookmark_panel.h"
#include "gui/view/panels/difference_table.h"
#include "gui/view/panels/figure_view.h"
#include "gui/view/panels/found_table.h"
#include "gui/view/panels/live_set_table.h"
#include "gui/view/panels/reference_browser.h"
#include "gui/view/panels/statistics_table.h"
#include "gui/view/panels/summary_text.h"
#include "gui/view/panels/table_view.h"
#include "gui/view/value_text.h"
#include "sim/error.h"
#include "tests/gui/support/panel_fixture.h"
#include "tests/support/gpt_trace.h"
#include "tests/support/test_machine.h"
#include "traces/figure/svg.h"
#include "traces/run/file/run_file.h"
#include "traces/run/run_recorder.h"

namespace memwall::gui {
namespace MEMWALL_TEST_FILE {

std::shared_ptr<const TierLiveSet> a_set(std::uint32_t count) {
  auto set = std::make_shared<TierLiveSet>();
  for (std::uint32_t i = 0; i < count; ++i)
    set->rows.push_back({i, Bytes{1000} * (count - i), i % 2 == 0 ? StorageKind::activation : StorageKind::parameter,
                         Time(static_cast<std::int64_t>((i * 7919) % count)), Time(5'000'000)});
  return set;
}

std::string svg_of(const Figure& figure) {
  std::ostringstream out;
  write_svg(figure, out);
  return out.str();
}

QStringList column_of(const ValueTable& table, int column) {
  QStringList texts;
  for (int line = 0; line < table.lines(); ++line) texts += table.text(table.row_at(line), column);
  return texts;
}

TEST(ValueText, ReadsAsInFigures) {
  EXPECT_EQ(count_text(1234567), "1,234,567");
  EXPECT_EQ(count_text(999), "999");
  EXPECT_EQ(signed_bytes_text(3'000'000), "+" + bytes_text(3'000'000));
  EXPECT_EQ(signed_bytes_text(0), bytes_text(0));
  EXPECT_EQ(instant_text(microseconds(12345), microseconds(350'000)), "12.345 ms");
  EXPECT_EQ(instant_text(Time{}, microseconds(350'000)), "0.000 ms");
  EXPECT_EQ(text_of("a\nb\x01"), "a b ");
}

TEST(LiveSetTable, SortsByValueNotByText) {
  LiveSetTable table;
  table.show(a_set(200), microseconds(5));
  table.sort(LiveSetTable::bytes, Qt::AscendingOrder);
  EXPECT_EQ(table.row_at(0), 199u);  // 1 kB; by text 100 kB would come first
  EXPECT_EQ(table.row_at(199), 0u);
  table.sort(LiveSetTable::since, Qt::AscendingOrder);
  for (int line = 1; line < table.lines(); ++line)
    EXPECT_LE(table.set().rows[table.row_at(line - 1)].begin, table.set().rows[table.row_at(line)].begin);
  table.sort(-1, Qt::AscendingOrder);
  EXPECT_EQ(table.row_at(0), 0u) << "no order is that of the table";
}

TEST(LiveSetTable, TakesNamesInBatches) {
  LiveSetTable table;
  table.show(a_set(4), microseconds(5));
  EXPECT_EQ(column_of(table, LiveSetTable::name), QStringList({"…", "…", "…", "…"}));
  EXPECT_EQ(table.unnamed_of_lines(1, 2), (std::vector<StorageId>{1, 2}));
  table.add_names({{1, {"weight", "layers.0", Phase::forward}}, {2, {"", "", Phase::unknown}}});
  EXPECT_EQ(column_of(table, LiveSetTable::name), QStringList({"…", "weight", "storage 2", "…"}));
  EXPECT_EQ(table.unnamed_of_lines(0, 3), (std::vector<StorageId>{0, 3}));
  EXPECT_EQ(table.unnamed(1), (std::vector<StorageId>{0}));
  EXPECT_FALSE(table.needs_names());
  table.filter("WEIGHT layers");
  EXPECT_TRUE(table.needs_names());
  EXPECT_EQ(column_of(table, LiveSetTable::name), QStringList({"weight"}));
  table.filter("weight backward");
  EXPECT_EQ(table.lines(), 0);
  table.filter("");
  table.sort(LiveSetTable::name, Qt::AscendingOrder);
  table.add_names({{0, {"Zebra", "", Phase::unknown}}, {3, {"apple", "", Phase::unknown}}});
  EXPECT_EQ(table.text(table.row_at(3), LiveSetTable::name), "Zebra");
  EXPECT_LT(table.line_of(3), table.line_of(1)) << "apple before weight, letters of either case";
}

TEST(LiveSetTable, AMillionRowsAreSortedAndFiltered) {
  const auto set = a_set(1'000'000);
  LiveSetTable table;
  TableView view(table, "Live set");
  view.resize(600, 400);
  view.show();
  table.show(set, microseconds(5));
  QCoreApplication::processEvents();
  table.sort(LiveSetTable::since, Qt::AscendingOrder);
  table.filter("parameter");
  EXPECT_EQ(table.lines(), 500'000);
}

TEST(ValueTable, CsvIsPlainAndQuoted) {
  CellTable table({{"Name, of it", false, {}}, {"Bytes", true, {}}});
  table.show({{{"a \"b\"", 0, {}}, {"3 MB", 3'000'000, "3000000"}}, {{"c", 0, {}}, {"5 B", 5, "5"}}});
  table.sort(1, Qt::AscendingOrder);
  EXPECT_EQ(table.to_csv(), "\"Name, of it\",Bytes\nc,5\n\"a \"\"b\"\"\",3000000\n");
  EXPECT_EQ(table.to_text(), "Name, of it\tBytes\nc\t5 B\na \"b\"\t3 MB\n");
  TableView view(table, "Differences");
  QTemporaryDir folder;
  view.write_csv(folder.filePath("x.csv"));
  QFile file(folder.filePath("x.csv"));
  ASSERT_TRUE(file.open(QIODevice::ReadOnly));
  EXPECT_EQ(QString::fromUtf8(file.readAll()), table.to_csv());
  EXPECT_THROW(view.write_csv(folder.filePath("no/such/x.csv")), UsageError);
}

TEST(StatisticsTable, TheTotalStaysLast) {
  StatisticsTable table;
  SelectionStatistics s;
  s.rows = {{"a", 2, microseconds(30), {}, microseconds(20)}, {"b", 3, microseconds(10), {}, microseconds(9)}};
  s.total = {"", 5, microseconds(40), {}, microseconds(20)};
  table.show(s, StatisticsKey::op);
  for (const auto order : {Qt::AscendingOrder, Qt::DescendingOrder}) {
    table.sort(StatisticsTable::count, order);
    EXPECT_TRUE(table.is_total(table.row_at(2)));
  }
  EXPECT_EQ(column_of(table, StatisticsTable::count), QStringList({"3", "2", "5"}));
  EXPECT_EQ(table.text(0, StatisticsTable::share), "75.0 %");
  EXPECT_EQ(table.text(0, StatisticsTable::mean), time_text(microseconds(15)));
}

TEST(FigureView, TitlesOfTheTopmostShape) {
  Figure figure{100, 100, "test", {}};
  figure.add(Rectangle{0, 0, 50, 50, Color{1, 1, 1}}, "below");
  figure.add(Rectangle{25, 25, 50, 50, Color{1, 1, 1}}, "above");
  figure.add(Polyline{{{80, 0}, {100, 0}, {100, 20}}, Color{1, 1, 1}, 1, Color{1, 1, 1}}, "area");
  EXPECT_EQ(group_title_at(figure, 10, 10), "below");
  EXPECT_EQ(group_title_at(figure, 30, 30), "above");
  EXPECT_EQ(group_title_at(figure, 95, 5), "area");
  EXPECT_EQ(group_title_at(figure, 10, 90), "");
}

TEST(LiveSetPanel, ShowsWhatTheModelSays) {
  PanelFixture scene;
  scene.show(make_live_set_panel);
  const OpenRun& run = scene.workspace.state().runs[0];
  const Time peak = run.outline().run.result.tiers[0].peak_time;
  const auto lines = [&] { return scene.part<TableView>("table").model()->rowCount(); };
  EXPECT_EQ(lines(), std::ssize(live_set(run, 0, peak).rows)) << "without a cursor: the peak";
  const Time early = run.whole().end / 10;
  scene.workspace.set_cursor(early);
  scene.settle();
  const TierLiveSet set = live_set(run, 0, early);
  ASSERT_EQ(lines(), std::ssize(set.rows))
      << scene.part<QLabel>("totals").text().toStdString() << scene.part<QLabel>("status").text().toStdString();
  EXPECT_NE(set.rows.size(), live_set(run, 0, peak).rows.size());
  const auto& table = dynamic_cast<const LiveSetTable&>(*scene.part<TableView>("table").model());
  const StorageName name = name_of(run, set.rows[0].storage);
  EXPECT_EQ(table.text(0, LiveSetTable::name),
            name.label.empty() ? QString("storage %1").arg(set.rows[0].storage) : text_of(name.label));
  EXPECT_TRUE(scene.part<QLabel>("totals").text().contains(bytes_text(set.requested)));
  scene.part<TableView>("table").setCurrentIndex(table.index(1, 0));
  EXPECT_EQ(scene.workspace.state().selection.storage, (StorageRef{0, set.rows[1].storage}));
}

TEST(DetailsPanel, ShowsFollowsAndGoesBack) {
  PanelFixture scene;
  scene.show(make_details_panel);
  const OpenRun& run = scene.workspace.state().runs[0];
  const QString first = scene.part<QTextBrowser>("text").toPlainText();
  EXPECT_TRUE(first.contains("It fits.")) << first.toStdString();
  EXPECT_TRUE(first.contains(bytes_text(run.outline().run.result.tiers[0].peak_allocated)));
  EXPECT_TRUE(first.contains(time_text(run.analysis->summary.step_time)));
  EXPECT_TRUE(first.contains("Click a span"));
  scene.workspace.go_to({0, 160, false});
  scene.settle();
  const auto sections = details_of(run, OpRef{0, 160, false});
  auto& text = scene.part<QTextBrowser>("text");
  for (const DetailSection& section : sections) EXPECT_TRUE(text.toPlainText().contains(text_of(section.title)));
  scene.part<QToolButton>("copy").click();
  EXPECT_EQ(QApplication::clipboard()->text(), QString::fromStdString(to_text(sections)));
  std::optional<OpRef> linked;
  for (const DetailSection& section : sections)
    for (const DetailLine& line : section.lines)
      if (line.op && *line.op != OpRef{0, 160, false}) linked = line.op;
  ASSERT_TRUE(linked);
  ASSERT_TRUE(text.toHtml().contains(ReferenceBrowser::address(*linked)));
  Q_EMIT text.anchorClicked(QUrl(ReferenceBrowser::address(*linked)));
  EXPECT_EQ(scene.workspace.state().selection.op, linked);
  scene.settle();
  scene.part<QToolButton>("back").click();
  EXPECT_EQ(scene.workspace.state().selection.op, (OpRef{0, 160, false}));
  scene.part<QToolButton>("forward").click();
  EXPECT_EQ(scene.workspace.state().selection.op, linked);
}

TEST(ReferenceBrowser, LinksToNowhereGoNowhere) {
  PanelFixture scene;
  ReferenceBrowser browser(scene.workspace, "test");
  for (const char* const address : {"op:0:99999999:0", "op:7:1:0", "storage:0:99999999", "op:0", "", "x:1:2"})
    EXPECT_FALSE(browser.follow(address)) << address;
  EXPECT_TRUE(browser.follow("storage:0:3"));
  EXPECT_EQ(scene.workspace.state().selection.storage, (StorageRef{0, 3}));
}

TEST(PeakPanel, JumpsToThePeak) {
  PanelFixture scene;
  scene.show(make_peak_panel);
  const OpenRun& run = scene.workspace.state().runs[0];
  const PeakExplanation peak = explain_peak(run, 0);
  const QString text = scene.part<QTextBrowser>("text").toPlainText();
  ASSERT_FALSE(peak.sentences.empty());
  for (const std::string& sentence : peak.sentences) EXPECT_TRUE(text.contains(text_of(sentence))) << sentence;
  scene.part<QToolButton>("jump").click();
  EXPECT_EQ(scene.workspace.state().selection.cursor, run.outline().run.result.tiers[0].peak_time);
}

TEST(StatisticsPanel, CountsTheSelectedRangeElseTheVisible) {
  PanelFixture scene;
  scene.show(make_statistics_panel);
  const OpenRun& run = scene.workspace.state().runs[0];
  const auto& table = dynamic_cast<const StatisticsTable&>(*scene.part<TableView>("table").model());
  EXPECT_TRUE(scene.part<QLabel>("range").text().startsWith("Visible range"));
  EXPECT_EQ(table.statistics().total.count, statistics(run, run.whole(), StatisticsKey::op, {}, {}).total.count);
  const TimeRange range{run.whole().end / 4, run.whole().end / 3};
  scene.workspace.set_range(range);
  scene.part<QComboBox>("key").setCurrentIndex(static_cast<int>(StatisticsKey::phase));
  scene.settle();
  EXPECT_TRUE(scene.part<QLabel>("range").text().startsWith("Selected range"));
  const SelectionStatistics expected = statistics(run, range, StatisticsKey::phase, {}, [](double) { return true; });
  ASSERT_EQ(table.statistics().rows.size(), expected.rows.size());
  EXPECT_EQ(table.statistics().total.work, expected.total.work);
  EXPECT_EQ(table.text(0, StatisticsTable::name), text_of(expected.rows[0].name));
}

TEST(SearchPanel, FindsMarksAndSteps) {
  PanelFixture scene;
  scene.show(make_search_panel);
  const OpenRun& run = scene.workspace.state().runs[0];
  const SearchResult expected = search(run, 0, "attention", [](double) { return true; });
  ASSERT_GT(expected.ops.size(), 2u);
  auto& box = scene.part<QLineEdit>("search");
  box.setText("attention");
  const auto press = [&](Qt::KeyboardModifiers modifiers) {
    QKeyEvent key(QEvent::KeyPress, Qt::Key_Return, modifiers);
    QApplication::sendEvent(&box, &key);
    scene.settle();
  };
  press(Qt::NoModifier);  // quicker than the search: goes to the first once that is done
  EXPECT_EQ(scene.workspace.state().found, expected.ops);
  EXPECT_EQ(scene.workspace.state().selection.op, expected.ops[0]);
  EXPECT_TRUE(scene.part<QLabel>("counts").text().startsWith(count_text(expected.ops.size()) + " ops"));
  press(Qt::NoModifier);
  EXPECT_EQ(scene.workspace.state().selection.op, expected.ops[1]);
  press(Qt::ShiftModifier);
  press(Qt::ShiftModifier);
  EXPECT_EQ(scene.workspace.state().selection.op, expected.ops.back()) << "before the first comes the last";
  const auto& table = dynamic_cast<const FoundOpsTable&>(*scene.part<TableView>("ops").model());
  EXPECT_EQ(table.text(expected.ops.size() - 1, FoundOpsTable::name), text_of(facts_of(run, expected.ops.back()).name));
  box.setText("");
  press(Qt::NoModifier);
  EXPECT_TRUE(scene.workspace.state().found.empty());
}

TEST(SummaryPanel, TellsWhatTheSummaryTells) {
  PanelFixture scene;
  scene.show(make_summary_panel);
  const OpenRun& run = scene.workspace.state().runs[0];
  const QString text = scene.part<QTextBrowser>("text").toPlainText();
  EXPECT_TRUE(text.contains(time_text(run.analysis->summary.step_time)));
  EXPECT_TRUE(text.contains(bytes_text(run.outline().run.result.tiers[0].peak_reserved)));
  OpenRun bare = run;
  bare.analysis = nullptr;
  EXPECT_FALSE(summary_html(bare, {}).contains("step time"));
  EXPECT_TRUE(summary_html(bare, {}).contains(time_text(bare.whole().end)));
}

// Thousands of rows of text would keep the window waiting for seconds.
TEST(SummaryPanel, OfManySteps) {
  GptShape shape;
  shape.layers = 1;
  shape.steps = 120;
  auto run = std::make_shared<const memwall::Run>(simulate_and_record(gpt_step(shape), test_machine(), RunSettings{}));
  OpenRun open{"many.h5", "many.h5", source_of(run), {}, {}, {}};
  const QString html = summary_html(open, {});
  EXPECT_EQ(html.count("href=\"time:"), 50 + 1) << "steps and the peak of the one tier that is used";
  EXPECT_TRUE(html.contains("and 70 more, of "));
}

TEST(SummaryPanel, TheFirstLookSaysWhatDoesNotFit) {
  PanelFixture scene;
  OpenRun open = scene.workspace.state().runs[0];
  memwall::Run large = *open.source->whole({});
  large.result.fits = false;
  large.result.tiers[0].missing = Bytes{3} << 30;
  open.source = source_of(std::make_shared<const memwall::Run>(large));
  const QString html = first_look_html(open, {});
  EXPECT_TRUE(html.contains("It does not fit.")) << html.toStdString();
  EXPECT_TRUE(html.contains(bytes_text(Bytes{3} << 30) + " missing"));
  EXPECT_FALSE(html.contains("It fits."));
}

// The same run with something else in it.
template <class Change>
OpenRun changed_run(const OpenRun& open, Change change) {
  memwall::Run run = *open.source->whole({});
  change(run);
  OpenRun other = open;
  other.source = source_of(std::make_shared<const memwall::Run>(std::move(run)));
  return other;
}

TEST(SummaryPanel, ListsThePeakByTheDevicesClockBesideTheAllocators) {
  PanelFixture scene;
  scene.show(make_summary_panel);
  const OpenRun& run = scene.workspace.state().runs[0];
  const auto& peak = run.analysis->summary.tiers[0].device_peak;
  ASSERT_TRUE(peak);
  ASSERT_NE(bytes_text(peak->bytes), bytes_text(run.outline().run.result.tiers[0].peak_allocated));
  const QString text = scene.part<QTextBrowser>("text").toPlainText();
  EXPECT_TRUE(text.contains("by the device's clock"));
  EXPECT_TRUE(text.contains(bytes_text(peak->bytes))) << text.toStdString();
  EXPECT_TRUE(text.contains(instant_text(peak->time, run.whole().end)));
  OpenRun bare = run;
  bare.analysis = nullptr;
  EXPECT_FALSE(summary_html(bare, {}).contains("by the device's clock")) << "which needs the whole run";
}

TEST(SummaryPanel, SaysWhatTheMissingBytesAreCountedFrom) {
  PanelFixture scene;
  const OpenRun open = changed_run(scene.workspace.state().runs[0], [](memwall::Run& run) {
    run.result.fits = false;
    run.result.tiers[0].missing = Bytes{3} << 30;  // neither of the peak in use nor of what is reserved: of a request
  });
  const QString words = bytes_text(Bytes{3} << 30);
  EXPECT_TRUE(first_look_html(open, {}).contains(words + " missing in one piece (fragmentation)"));
  EXPECT_TRUE(summary_html(open, {}).contains(words + " in one piece (fragmentation)"));
}

TEST(SummaryPanel, ListsTheStepWithoutPoliciesAndWhatWasTried) {
  PanelFixture scene;
  EXPECT_FALSE(summary_html(scene.workspace.state().runs[0], {}).contains("without policies"));
  EXPECT_FALSE(summary_html(scene.workspace.state().runs[0], {}).contains("What may make it fit"));
  memwall::Run run = *scene.workspace.state().runs[0].source->whole({});
  run.unchanged_step = microseconds(4321);
  run.unchanged = run.result.tiers;
  run.unchanged[0].peak_allocated = 54'300'000;
  run.tried = {{"--policy a<b", true, 12'300'000, "", 0, microseconds(777)},
               {"--policy zero:stage=1,ranks=2", false, 98'700'000, "hbm", 45'600'000, microseconds(888)}};
  const QTemporaryDir folder;
  const std::string path = folder.filePath("tried.h5").toStdString();
  write_run(run, path);
  const OpenRun open = open_in_viewer(path);  // without the analysis: a file tells all of it at once
  const QString html = summary_html(open, {});
  for (const QString& text : {QString("without policies"), time_text(microseconds(4321)),
                              "hbm: peak " + bytes_text(54'300'000), QString("--policy a&lt;b"), bytes_text(12'300'000),
                              time_text(microseconds(777)), QString("--policy zero:stage=1,ranks=2"),
                              bytes_text(98'700'000), bytes_text(45'600'000) + " in hbm", time_text(microseconds(888))})
    EXPECT_TRUE(html.contains(text)) << text.toStdString();
}

TEST(Panels, SayThatMemoryWasNotRecorded) {
  PanelFixture scene;
  const OpenRun open = changed_run(scene.workspace.state().runs[0],
                                   [](memwall::Run& run) { run.trace.edit().knowledge.allocations = false; });
  OpenRun fresh{open.path, open.name, open.source, {}, {}, {}};
  fresh.spans = std::make_shared<SpanCache>(fresh.source);
  scene.workspace.open({fresh});
  scene.settle();
  for (const auto& make : {make_summary_panel, make_details_panel, make_peak_panel, make_live_set_panel}) {
    QWidget& panel = scene.show(make);
    QString text = scene.part<QLabel>("status").text();
    if (const auto* browser = panel.findChild<QTextBrowser*>("text")) text += browser->toPlainText();
    EXPECT_TRUE(text.contains("not recorded", Qt::CaseInsensitive) || text.contains("Whether it fits is not known"))
        << panel.accessibleName().toStdString() << ": " << text.toStdString();
    EXPECT_FALSE(text.contains("It fits")) << text.toStdString();
    EXPECT_FALSE(text.contains(bytes_text(0))) << text.toStdString();
  }
}

TEST(DifferenceTable, SaysWhichRunDoesNotRecordMemory) {
  Comparison comparison;
  comparison.tiers.emplace_back();
  TierDifference& tier = comparison.tiers.back();
  tier.name = "hbm";
  tier.in_base = tier.in_other = true;
  tier.base_allocated = tier.base_reserved = 3'000'000;
  ASSERT_EQ(tier_difference_cells(comparison).front()[2].text, bytes_text(0));
  comparison.other_memory_recorded = false;
  const std::vector<ValueCell> cells = tier_difference_cells(comparison).front();
  EXPECT_EQ(cells[1].text, bytes_text(3'000'000));
  EXPECT_EQ(cells[2].text, "not recorded");
  EXPECT_EQ(cells[3].text, "–") << "nobody knows by how much they differ";
  EXPECT_EQ(cells[5].text, "not recorded");
}

// Of a large run it would keep what is looked at waiting.
TEST(Panels, BehindAnotherTabNothingIsWorkedOut) {
  PanelFixture scene;
  QMainWindow window;
  std::vector<QDockWidget*> docks;
  for (const auto& make : {make_summary_panel, make_peak_panel}) {
    docks.push_back(new QDockWidget(&window));
    docks.back()->setWidget(make(scene.workspace, docks.back()));
    window.addDockWidget(Qt::RightDockWidgetArea, docks.back());
  }
  window.tabifyDockWidget(docks[0], docks[1]);
  docks[0]->raise();
  window.resize(700, 500);
  window.show();
  scene.settle();
  const auto text = [&](std::size_t i) { return docks[i]->findChild<QTextBrowser*>("text")->toPlainText(); };
  EXPECT_FALSE(text(0).isEmpty());
  EXPECT_TRUE(text(1).isEmpty()) << text(1).toStdString();
  docks[1]->raise();
  EXPECT_TRUE(QTest::qWaitFor([&] { return !text(1).isEmpty(); }, 30'000));
}

TEST(Panels, WhatWasStoppedIsOfferedAgain) {
  PanelFixture scene;
  std::vector<OpenRun> runs = scene.workspace.state().runs;
  runs[0].history = nullptr;
  scene.workspace.open(runs);
  scene.workspace.background().cancel_all();
  scene.show(make_peak_panel);
  auto& status = scene.part<QLabel>("status");
  ASSERT_FALSE(scene.workspace.state().runs[0].history);
  EXPECT_TRUE(status.text().contains("Try again")) << status.text().toStdString();
  Q_EMIT status.linkActivated("again");
  scene.settle();
  EXPECT_TRUE(scene.workspace.state().runs[0].history);
  EXPECT_FALSE(status.text().contains("Try again"));
  EXPECT_FALSE(scene.part<QTextBrowser>("text").toPlainText().isEmpty());
}

TEST(RunTiers, OfTheOutlineAsOfTheWholeRun) {
  const OpenRun run = small_open_run("x.h5");
  const std::shared_ptr<const memwall::Run> shared = run.source->whole({});
  const memwall::Run& whole = *shared;
  EXPECT_EQ(svg_of(draw_tiers(tiers_chart(run.outline().run))), svg_of(draw_tiers(tiers_chart(whole))));
  const RunSummary summary = summarize(whole);
  const TiersChart chart = tiers_chart(run.outline().run);
  ASSERT_EQ(chart.tiers.size(), summary.tiers.size());
  Bytes sum = 0;
  for (const TierPart& part : chart.tiers[0].parts) sum += part.bytes;
  EXPECT_EQ(sum, summary.tiers[0].peak_allocated) << "in blocks, as tables say";
}

TEST(DifferencesPanel, GoesToTheLargestExampleAndAligns) {
  PanelFixture scene(2);
  scene.show(make_differences_panel);
  const auto& comparison = scene.workspace.state().comparison;
  ASSERT_TRUE(comparison);
  auto& view = scene.part<TableView>("ops");
  ASSERT_EQ(view.model()->rowCount(), std::ssize(comparison->comparison.ops));
  EXPECT_EQ(view.model()->index(0, DifferenceTable::difference).data().toString(),
            signed_time_text(comparison->comparison.ops[0].difference()));
  view.setCurrentIndex(view.model()->index(0, 0));
  QKeyEvent enter(QEvent::KeyPress, Qt::Key_Return, Qt::NoModifier);
  QApplication::sendEvent(&view, &enter);
  scene.settle();
  const auto& runs = scene.workspace.state().runs;
  const OpRef example = largest_example(*comparison, 0, *runs[0].analysis, *runs[1].analysis);
  EXPECT_EQ(scene.workspace.state().selection.op, example);
  EXPECT_EQ(scene.workspace.state().shift, comparison->shift_to(example, *runs[0].analysis, *runs[1].analysis));
}

TEST(BookmarkPanel, NamesGoesToAndRemovesMarks) {
  PanelFixture scene;
  scene.show([](Workspace& workspace, QWidget* parent) { return new BookmarkPanel(workspace, parent); });
  const Time end = scene.workspace.state().whole().end;
  const TimeRange instant{end / 8, end / 8}, range{end / 2, end * 3 / 4};
  scene.workspace.set_bookmarks({{instant, "one"}, {range, "two"}});
  auto& table = scene.part<QTableWidget>("mark_table");
  ASSERT_EQ(table.rowCount(), 2);
  EXPECT_EQ(table.item(0, 2)->text(), "") << "an instant does not last";
  EXPECT_NE(table.item(1, 2)->text(), "");

  table.item(1, 0)->setText(QStringLiteral("the long part"));
  EXPECT_EQ(scene.workspace.state().bookmarks[1].label, "the long part");
  EXPECT_EQ(scene.workspace.state().bookmarks[0].label, "one");

  Q_EMIT table.cellClicked(1, 0);
  EXPECT_EQ(scene.workspace.state().selection.range, range);
  EXPECT_EQ(scene.workspace.state().selection.cursor, range.begin);
  Q_EMIT table.cellClicked(0, 0);
  EXPECT_EQ(scene.workspace.state().selection.cursor, instant.begin);

  auto& remove = scene.part<QPushButton>("remove");
  table.clearSelection();
  remove.click();
  EXPECT_EQ(scene.workspace.state().bookmarks.size(), 2u) << "none was chosen";
  table.selectRow(0);
  remove.click();
  ASSERT_EQ(scene.workspace.state().bookmarks.size(), 1u);
  EXPECT_EQ(scene.workspace.state().bookmarks[0].range, range);
  EXPECT_EQ(table.rowCount(), 1);
}

TEST(Panels, OpenWithoutARunAndSurviveClosing) {
  for (const PanelKind& kind : panel_kinds()) {
    PanelFixture scene(2);
    QWidget& panel = scene.show(kind.make);
    EXPECT_FALSE(panel.accessibleName().isEmpty()) << kind.key.toStdString();
    scene.workspace.close();
    scene.settle();
    EXPECT_FALSE(scene.part<QLabel>("status").text().isEmpty()) << kind.key.toStdString();
  }
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall::gui
