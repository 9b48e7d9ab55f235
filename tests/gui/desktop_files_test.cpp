// Does an installation offer the viewer for run files, and for no others?
#include <gtest/gtest.h>
#include <QGuiApplication>
#include <QMimeDatabase>
#include <QSettings>
#include <QSvgRenderer>

#include <algorithm>
#include <filesystem>

#include "gui/paint/figure_painter.h"
#include "tests/gui/support/image_check.h"
#include "tests/support/command.h"
#include "tests/support/scratch_folder.h"

#include <QPainter>

namespace memwall::gui {
namespace MEMWALL_TEST_FILE {

namespace fs = std::filesystem;

class DesktopFiles : public ::testing::Test {
 protected:
  void SetUp() override {
    const fs::path build = fs::path(MEMWALL_VIEWER).parent_path().parent_path();
    const CommandOutcome o = run_command(
        "cmake --install '" + build.string() + "' --component viewer --prefix '" + folder_.path().string() + "'",
        folder_.path());
    ASSERT_EQ(o.code, 0) << o.out << o.err;
  }
  bool has_program(const char* name) const {
    return std::system((std::string("command -v ") + name + " >/dev/null 2>&1").c_str()) == 0;
  }
  void passes(const std::string& line) {
    const CommandOutcome o = run_command(line, folder_.path());
    EXPECT_EQ(o.code, 0) << line << "\n" << o.out << o.err;
  }

  const ScratchFolder folder_;
};

TEST_F(DesktopFiles, StandInTheUsualPlaces) {
  for (const char* file :
       {"bin/memwall-viewer", "bin/memwall-probe", "share/applications/memwall-viewer.desktop",
        "share/mime/packages/memwall-run.xml", "share/icons/hicolor/scalable/apps/memwall-viewer.svg"})
    EXPECT_TRUE(fs::exists(folder_ / file)) << file;
}

TEST_F(DesktopFiles, TheEntryNamesTheProgramItsTypeAndItsIcon) {
  const fs::path entry = folder_ / "share/applications/memwall-viewer.desktop";
  const QSettings settings(QString::fromStdString(entry.string()), QSettings::IniFormat);
  const auto value = [&](const char* key) {
    return settings.value(QString("Desktop Entry/") + key).toString().toStdString();
  };
  EXPECT_EQ(value("Type"), "Application");
  EXPECT_EQ(value("Exec"), "memwall-viewer %F");
  EXPECT_EQ(value("Icon"), "memwall-viewer");
  EXPECT_FALSE(value("Name").empty());
  EXPECT_NE(content_of(entry).find("\nMimeType=application/x-memwall-run;\n"), std::string::npos);
  EXPECT_TRUE(content_of(entry).starts_with("[Desktop Entry]\n"));
  if (has_program("desktop-file-validate")) passes("desktop-file-validate '" + entry.string() + "'");
}

TEST_F(DesktopFiles, TheTypeIsWellFormed) {
  if (!has_program("xmllint")) GTEST_SKIP() << "xmllint is missing";
  passes("xmllint --noout share/mime/packages/memwall-run.xml share/icons/hicolor/scalable/apps/memwall-viewer.svg");
}

// By the rules of the desktops, as Qt follows them: in a program of its own, which reads them from here alone.
TEST_F(DesktopFiles, ARunIsKnownByItsFirstBytesWhateverItsName) {
  write_content(folder_ / "share/mime/packages/hdf5.xml",
                "<?xml version=\"1.0\"?><mime-info xmlns=\"http://www.freedesktop.org/standards/shared-mime-info\">"
                "<mime-type type=\"application/x-hdf\"><magic><match type=\"string\" offset=\"0\" "
                "value=\"\\211HDF\"/></magic><glob pattern=\"*.h5\"/></mime-type></mime-info>");
  using namespace std::string_literals;
  const std::string run = "memwall-run\r\n\x1a\n\0 and more"s;
  write_content(folder_ / "run.h5", run);
  write_content(folder_ / "odd-name.dat", run);
  write_content(folder_ / "run.memwall.h5", run);
  write_content(folder_ / "other.h5", "\x89HDF\r\n\x1a\n and more");
  qputenv("XDG_DATA_DIRS", QByteArray::fromStdString((folder_ / "share").string()));
  qputenv("XDG_DATA_HOME", QByteArray::fromStdString((folder_ / "none").string()));
  const QMimeDatabase database;
  const auto type = [&](const char* name) {
    return database.mimeTypeForFile(QString::fromStdString((folder_ / name).string())).name().toStdString();
  };
  EXPECT_EQ(type("run.h5"), "application/x-memwall-run");
  EXPECT_EQ(type("odd-name.dat"), "application/x-memwall-run");
  EXPECT_EQ(type("run.memwall.h5"), "application/x-memwall-run");
  EXPECT_EQ(type("other.h5"), "application/x-hdf");
}

TEST_F(DesktopFiles, TheIconIsAPicture) {
  QSvgRenderer renderer(
      QString::fromStdString((folder_ / "share/icons/hicolor/scalable/apps/memwall-viewer.svg").string()));
  ASSERT_TRUE(renderer.isValid());
  QImage image(128, 128, QImage::Format_RGB32);
  image.fill(Qt::white);
  QPainter painter(&image);
  renderer.render(&painter);
  painter.end();
  expect_image(image, "icon");
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall::gui
