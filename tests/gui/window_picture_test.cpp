// Does the viewer write a picture of its window without a screen, and say what is wrong with a request?
#include "gui/view/window/window_picture.h"

#include <gtest/gtest.h>
#include <QImage>

#include "sim/error.h"
#include "tests/support/gpt_trace.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/test_machine.h"
#include "traces/run/file/run_file.h"
#include "traces/run/run_recorder.h"

namespace memwall::gui {
namespace MEMWALL_TEST_FILE {

class WindowPictureTest : public testing::Test {
 protected:
  WindowPictureTest() {
    qputenv("MEMWALL_PROBE_PROGRAM", MEMWALL_PROBE);
    write_run(simulate_and_record(gpt_step(GptShape{}), test_machine(), {}), folder_ / "run.h5");
  }
  QString path(const char* name) { return QString::fromStdString((folder_ / name).string()); }
  WindowPicture of_file(const char* name) {
    WindowPicture picture;
    picture.file = path(name);
    return picture;
  }
  static WindowPicture asked(const char* theme, const char* range, const char* op, const QStringList& press) {
    WindowPicture picture;
    picture.size = {900, 600};
    picture.theme = theme;
    picture.range = range;
    picture.op = op;
    picture.press = press;
    return picture;
  }
  int write(WindowPicture picture) {
    picture.file = path("window.png");
    return write_window_picture(picture, {path("run.h5")});
  }
  QImage written() { return QImage(path("window.png")); }

  ScratchFolder folder_;
};

TEST_F(WindowPictureTest, HasTheSizeAndTheThemeThatWereAskedFor) {
  ASSERT_EQ(write(asked("light", "", "", {})), 0);
  const QImage light = written();
  EXPECT_EQ(light.size(), QSize(900, 600));
  ASSERT_EQ(write(asked("dark", "", "", {})), 0);
  const QImage dark = written();
  const QPoint corner(5, 595);  // of the status bar
  EXPECT_GT(qGray(light.pixel(corner)), qGray(dark.pixel(corner)) + 60);
}

TEST_F(WindowPictureTest, ShowsTheRangeTheOpAndWhatKeysDo) {
  ASSERT_EQ(write(asked("light", "", "", {})), 0);
  const QImage whole = written();
  ASSERT_EQ(write(asked("light", ":50ns", "", {})), 0);
  const QImage part = written();
  EXPECT_NE(part, whole);
  ASSERT_EQ(write(asked("light", ":50ns", "20", {})), 0);
  const QImage chosen = written();
  EXPECT_NE(chosen, part);
  ASSERT_EQ(write(asked("light", "", "", {"P"})), 0);
  EXPECT_NE(written(), whole);
}

TEST_F(WindowPictureTest, SaysWhatIsWrong) {
  EXPECT_THROW(parse_size("big"), UsageError);
  EXPECT_THROW(parse_size("1600x"), UsageError);
  EXPECT_THROW(parse_size("99999x99999"), UsageError);
  EXPECT_EQ(write(asked("green", "", "", {})), 2);
  EXPECT_EQ(write(asked("light", "soon", "", {})), 2);
  EXPECT_EQ(write(asked("light", "", "-1", {})), 2);
  EXPECT_EQ(write(asked("light", "", "", {"§"})), 2);
  EXPECT_EQ(write_window_picture(of_file("window.jpg"), {path("run.h5")}), 2);
  EXPECT_EQ(write_window_picture(of_file("window.png"), {path("absent.h5")}), 6);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "window.png"));
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall::gui
