// memwall-viewer: the program.
#include <QApplication>
#include <QCommandLineParser>

#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "sim/files/temporary_name.h"
#include "gui/view/window/export_figure.h"
#include "gui/view/window/main_window.h"
#include "gui/view/window/window_picture.h"
#include "sim/error.h"
#include "sim/presentable.h"

namespace {

// Options that make a picture of the window instead of showing it.
void add_picture_options(QCommandLineParser& parser) {
  parser.addOption({"picture", "Write a picture of the window (.png) and end; needs no screen.", "file"});
  parser.addOption({"size", "Of the picture: width x height in pixels.", "size", "1600x1000"});
  parser.addOption({"theme", "Of the picture: light or dark.", "theme", "light"});
  parser.addOption({"range", "Of the picture: what is visible, as memwall render --range has it.", "range"});
  parser.addOption({"op", "Of the picture: the number of the op that is chosen.", "number"});
  parser.addOption({"press", "Of the picture: the key of a command; may be repeated.", "key"});
}

int picture_of(const QCommandLineParser& parser) {
  using namespace memwall::gui;
  try {
    const WindowPicture picture{parser.value("picture"), parse_size(parser.value("size")),
                                parser.value("theme"),   parser.value("range"),
                                parser.value("op"),      parser.values("press")};
    return write_window_picture(picture, parser.positionalArguments());
  } catch (const memwall::UsageError& error) {
    std::fprintf(stderr, "memwall-viewer: %s\n", memwall::presentable(error.what()).c_str());
    return 2;
  }
}

// Before there is an application, which needs a screen unless told otherwise.
bool wants_picture(int argc, char** argv) {
  for (int i = 1; i < argc; ++i)
    if (std::strncmp(argv[i], "--picture", 9) == 0) return true;
  return false;
}

}  // namespace

int main(int argc, char** argv) {
  memwall::prepare_program();
  if (argc > 1 && std::strcmp(argv[1], "--export") == 0) {
    return memwall::gui::export_main(std::vector<std::string>(argv + 1, argv + argc));
  }
  if (wants_picture(argc, argv)) qputenv("QT_QPA_PLATFORM", "offscreen");
  const QApplication application(argc, argv);
  QApplication::setApplicationName("memwall");
  QApplication::setApplicationDisplayName({});
  QApplication::setApplicationVersion(MEMWALL_VERSION);

  QCommandLineParser parser;
  parser.setApplicationDescription(
      "Shows a run of memwall: what ran when, what waited for what, what lived where.\n"
      "With two runs: compares them op by op.");
  parser.addHelpOption();
  parser.addVersionOption();
  parser.addPositionalArgument("run.h5", "the run to show; without one the window says how to open one", "[run.h5]");
  parser.addPositionalArgument("other.h5", "a second run to compare it with", "[other.h5]");
  add_picture_options(parser);
  parser.process(application);
  if (parser.isSet("picture")) return picture_of(parser);

  memwall::gui::MainWindow window;
  window.show();
  window.open(parser.positionalArguments());
  return QApplication::exec();
}
