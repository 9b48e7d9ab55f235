// memwall-viewer: the program.
#include <QApplication>
#include <QCommandLineParser>

#include <cstring>
#include <string>
#include <vector>

#include "gui/view/export_figure.h"
#include "gui/view/main_window.h"

int main(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], "--export") == 0) {
    return memwall::gui::export_main(std::vector<std::string>(argv + 1, argv + argc));
  }
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
  parser.process(application);

  memwall::gui::MainWindow window;
  window.show();
  window.open(parser.positionalArguments());
  return QApplication::exec();
}
