// Does every file that is no good run give a dialog with a reason, and do window and run stay?
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "tests/gui/support/window_fixture.h"
#include "tests/support/run_file_editor.h"

namespace memwall::gui {
namespace MEMWALL_TEST_FILE {

class BadFiles : public testing::Test {
 protected:
  // Opens it, expects a dialog that says `expected` and names the file; returns after it was closed.
  void refuses(const std::filesystem::path& path, const char* expected) {
    SCOPED_TRACE(path.string());
    const auto source = scene.state().runs[0].source;
    scene.window->open({path_of(path)});
    scene.settle();
    QMessageBox* box = scene.problem();
    ASSERT_NE(box, nullptr) << "no dialog";
    const std::string text = box->text().toStdString();
    EXPECT_NE(text.find(expected), std::string::npos) << text;
    EXPECT_NE(text.find(path.filename().string()), std::string::npos) << text;
    EXPECT_EQ(text.back(), '.') << "no sentence: " << text;
    QTest::keyClick(box, Qt::Key_Escape);
    QApplication::sendPostedEvents(nullptr, QEvent::DeferredDelete);
    EXPECT_EQ(scene.problem(), nullptr);
    EXPECT_TRUE(scene.window->isVisible());
    ASSERT_EQ(scene.state().runs.size(), 1u);
    EXPECT_EQ(scene.state().runs[0].source, source) << "what was open stays open";
  }
  std::filesystem::path file(const char* name, const std::string& content) {
    write_content(scene.folder / name, content);
    return scene.folder / name;
  }
  std::string good() { return content_of(scene.first_path()); }

  WindowFixture scene;
};

TEST_F(BadFiles, ThatAreNoFiles) {
  refuses(scene.folder / "missing.h5", "no such file");
  refuses(scene.folder.path(), "folder");
  const std::filesystem::path pipe = scene.folder / "pipe.h5";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  refuses(pipe, "pipe");
  refuses("/dev/zero", "device");
}

TEST_F(BadFiles, OfAnotherKind) {
  refuses(file("empty.h5", ""), "");
  refuses(file("text.h5", "hello"), "");
  refuses(file("picture.h5", "\x89PNG\r\n\x1a\n" + std::string(5000, 'x')), "");
  refuses(file("trace.mwt", "anything"), "memwall run");
}

TEST_F(BadFiles, Damaged) {
  std::string text = good();
  refuses(file("short.h5", text.substr(0, text.size() / 2)), "");
  text[text.size() / 2] = static_cast<char>(text[text.size() / 2] ^ 1);
  refuses(file("flipped.h5", text), "");
}

TEST_F(BadFiles, OfALaterVersion) {
  std::string text = good();
  text[16] = 99;
  reseal(text);  // a later memwall writes right checksums
  refuses(file("later.h5", text), "format version is 99");
}

TEST_F(BadFiles, TheSameReasonIsToldAgainWhenThePersonTriesAgain) {
  refuses(scene.folder / "missing.h5", "no such file");
  refuses(scene.folder / "missing.h5", "no such file");
}

TEST_F(BadFiles, AProblemOfAnOpenFileIsToldOnce) {
  scene.workspace().report("A block is damaged.");
  ASSERT_NE(scene.problem(), nullptr);
  scene.problem()->close();
  QApplication::sendPostedEvents(nullptr, QEvent::DeferredDelete);
  scene.workspace().report("A block is damaged.");
  EXPECT_EQ(scene.problem(), nullptr);
}

TEST_F(BadFiles, OneBadOfTwoLeavesWhatIsOpen) {
  scene.window->open({path_of(scene.first_path()), path_of(scene.folder / "missing.h5")});
  scene.settle();
  ASSERT_NE(scene.problem(), nullptr);
  scene.problem()->close();
  EXPECT_EQ(scene.state().runs.size(), 1u);
  scene.window->open({"a", "b", "c"});
  ASSERT_NE(scene.problem(), nullptr) << "three files";
  scene.problem()->close();
}

TEST_F(BadFiles, AMissingProbeIsSaid) {
  qputenv("MEMWALL_PROBE_PROGRAM", "/nonexistent/memwall-probe");
  scene.window->open({path_of(scene.second_path())});
  scene.settle();
  ASSERT_NE(scene.problem(), nullptr);
  EXPECT_TRUE(scene.problem()->text().contains("memwall-probe")) << scene.problem()->text().toStdString();
  scene.problem()->close();
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall::gui
