// Does the window open, remember, and put its parts where they belong?
#include <gtest/gtest.h>
#include <QDockWidget>
#include <QLabel>
#include <QMenuBar>
#include <QProgressBar>
#include <QPushButton>

#include <atomic>
#include <thread>

#include "gui/view/window/shortcut_page.h"
#include "tests/gui/support/window_fixture.h"

namespace memwall::gui {
namespace MEMWALL_TEST_FILE {

TEST(MainWindow, WithoutAFileItSaysHowToOpenOne) {
  WindowFixture scene(0);
  auto* open = scene.window->findChild<QPushButton*>("open");
  ASSERT_NE(open, nullptr);
  EXPECT_TRUE(open->isVisible());
  EXPECT_FALSE(scene.canvas().isVisible());
  EXPECT_EQ(scene.window->windowTitle(), "memwall viewer");
}

TEST(MainWindow, OpensARunAndShowsIt) {
  WindowFixture scene;
  EXPECT_TRUE(scene.canvas().isVisible());
  EXPECT_TRUE(scene.window->windowTitle().startsWith("base.h5"));
  EXPECT_EQ(scene.visible(), scene.state().whole());
  EXPECT_NE(scene.state().runs[0].history, nullptr);
  EXPECT_NE(scene.state().runs[0].analysis, nullptr) << "small runs get it at once";
  EXPECT_EQ(scene.state().viewport.width(), scene.canvas().width() - kTitleWidth);
  // The picture is no empty sheet.
  const QImage picture = scene.canvas().picture().toImage();
  std::set<QRgb> colours;
  for (int y = 0; y < picture.height(); y += 3) {
    for (int x = 0; x < picture.width(); x += 3) colours.insert(picture.pixel(x, y));
  }
  EXPECT_GT(colours.size(), 10u);
}

TEST(MainWindow, PanelsThatCompareNeedTwoRuns) {
  WindowFixture scene;
  const auto shown = [&](const char* key) {
    auto* dock = scene.window->findChild<QDockWidget*>(key);
    return dock && !dock->isHidden();
  };
  EXPECT_TRUE(shown("details"));
  EXPECT_FALSE(shown("differences"));
  scene.open(2);
  EXPECT_TRUE(shown("details"));
  EXPECT_TRUE(shown("differences"));
  EXPECT_TRUE(scene.window->windowTitle().contains("against"));
}

TEST(MainWindow, WhatIsArrangedIsThereAgain) {
  WindowFixture scene;
  scene.workspace().change_rows([](RowList& rows) {
    rows.row(0).hidden = true;
    rows.row(1).height = 77;
    rows.move(2, 1);
  });
  const std::vector<Bookmark> marks{{{Time(3), Time(5)}, "here"}};
  scene.workspace().set_bookmarks(marks);
  scene.workspace().show_path(true);
  const Duration third = scene.state().whole().length() / 3;
  scene.workspace().change_viewport([&](Viewport& viewport) { viewport.show({third, third * 2}); });
  const FileSession before = session_of(scene.state());
  const TimeRange visible = scene.visible();
  scene.window->close();
  scene.start();
  scene.open();
  EXPECT_EQ(session_of(scene.state()).rows, before.rows);
  EXPECT_EQ(scene.state().bookmarks, marks);
  EXPECT_TRUE(scene.state().show_path);
  EXPECT_EQ(scene.visible(), visible);
  scene.open(2);
  EXPECT_TRUE(scene.state().bookmarks.empty()) << "the pair has a session of its own";
}

TEST(MainWindow, ABrokenSessionIsIgnoredWithALine) {
  WindowFixture scene;
  scene.window->close();
  const SessionStore store(scene.sessions());
  write_content(store.file_path({path_of(scene.first_path())}).toStdString(), "{");
  write_content(store.program_path().toStdString(), "[]");
  scene.start();
  auto* message = scene.window->findChild<QLabel*>("message");
  EXPECT_TRUE(message->text().contains("viewer.json")) << message->text().toStdString();
  scene.open();
  EXPECT_TRUE(scene.workspace().has_run());
  EXPECT_TRUE(message->text().contains("ignored")) << message->text().toStdString();
  EXPECT_EQ(scene.problem(), nullptr);
}

TEST(MainWindow, RecentFilesAreOffered) {
  WindowFixture scene;
  scene.open(2);
  scene.window->close();
  QString complaint;
  const QStringList recent = SessionStore(scene.sessions()).program(complaint).recent;
  EXPECT_EQ(recent, (QStringList{path_of(scene.second_path()), path_of(scene.first_path())}));
}

TEST(MainWindow, LongWorkShowsProgressAndIsCancelled) {
  WindowFixture scene;
  std::atomic<bool> ended = false;
  scene.workspace().background().start("Counting sheep", [&](const LoadProgress& progress) -> std::function<void()> {
    while (progress(0.5)) std::this_thread::yield();
    ended = true;
    throw LoadCancelled{};
  });
  QPushButton* cancel = nullptr;
  const auto buttons = scene.window->findChildren<QPushButton*>("cancel");
  ASSERT_TRUE(QTest::qWaitFor(
      [&] {
        for (QPushButton* button : buttons)
          if (button->isVisible()) cancel = button;
        return cancel != nullptr;
      },
      30'000))
      << "no progress is shown";
  QTest::mouseClick(cancel, Qt::LeftButton);
  scene.settle();
  EXPECT_TRUE(ended);
  EXPECT_FALSE(cancel->isVisible());
  EXPECT_TRUE(scene.workspace().has_run());
}

// A key twice would do nothing at all: the toolkit calls it ambiguous.
TEST(MainWindow, NoKeyHasTwoMeanings) {
  const WindowFixture scene(0);
  std::set<QString> keys;
  for (const Command& command : scene.window->commands()) {
    for (const QString& key : command.keys) EXPECT_TRUE(keys.insert(key).second) << key.toStdString();
  }
  for (const char* key :
       {"W", "S", "A", "D", "F", ".", ",", "[", "]", "/", "P", "M", "C", "?", "Backspace", "Ctrl+O"}) {
    EXPECT_TRUE(keys.contains(key)) << key;
  }
}

TEST(MainWindow, TheHelpPageListsEveryKeyWithASentence) {
  const WindowFixture scene(0);
  const QString page = ShortcutPage::html_of(scene.window->commands());
  for (const Command& command : scene.window->commands()) {
    if (command.keys.isEmpty()) continue;
    EXPECT_TRUE(command.help.endsWith('.')) << command.text.toStdString();
    EXPECT_TRUE(page.contains(command.help.toHtmlEscaped())) << command.text.toStdString();
  }
}

TEST(MainWindow, ThemesChangeCanvasAndWidgets) {
  WindowFixture scene;
  const auto choose = [&](const char* text) {
    for (QAction* action : scene.window->findChildren<QAction*>()) {
      if (action->text() == text) return action->trigger();
    }
    FAIL() << text;
  };
  choose("Dark");
  EXPECT_TRUE(scene.workspace().theme().dark);
  EXPECT_LT(QApplication::palette().color(QPalette::Window).lightness(), 128);
  choose("Light");
  EXPECT_FALSE(scene.workspace().theme().dark);
  EXPECT_GT(QApplication::palette().color(QPalette::Window).lightness(), 128);
  choose("As the desktop");
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall::gui
