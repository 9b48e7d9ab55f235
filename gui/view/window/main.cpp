// memwall-viewer: the program.
#include <QApplication>
#include <QCommandLineParser>

#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "gui/view/window/command_line.h"
#include "gui/view/window/export_figure.h"
#include "gui/view/window/main_window.h"
#include "gui/view/window/window_picture.h"
#include "sim/error.h"
#include "sim/files/temporary_name.h"
#include "sim/presentable.h"

namespace {

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
  if (const int code = memwall::gui::answer_without_screen(argc, argv, MEMWALL_VERSION); code >= 0) return code;
  if (wants_picture(argc, argv)) qputenv("QT_QPA_PLATFORM", "offscreen");
  const QApplication application = [&] {
    const memwall::gui::RefusesWithoutScreen guard;
    return QApplication(argc, argv);
  }();
  QApplication::setApplicationName("memwall");
  QApplication::setApplicationDisplayName({});
  QApplication::setApplicationVersion(MEMWALL_VERSION);

  QCommandLineParser parser;
  memwall::gui::describe_options(parser);
  parser.process(application);
  if (parser.isSet("picture")) return picture_of(parser);

  memwall::gui::MainWindow window;
  window.show();
  window.open(parser.positionalArguments());
  return QApplication::exec();
}
