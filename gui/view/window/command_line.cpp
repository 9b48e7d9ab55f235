#include "gui/view/window/command_line.h"

#include <unistd.h>
#include <QCoreApplication>
#include <QStringList>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "sim/error.h"
#include "sim/presentable.h"

namespace memwall::gui {
namespace {

// Words of Qt's own (QGuiApplication, QApplication), which it takes away before anybody else sees them.
constexpr std::array kQtWordsWithValue{"platform", "platformpluginpath", "platformtheme", "plugin",
                                       "display",  "qwindowgeometry",    "geometry",      "qwindowicon",
                                       "icon",     "qwindowtitle",       "title",         "session",
                                       "style",    "stylesheet"};
constexpr std::array kQtWords{"reverse", "widgetcount", "nograb", "dograb"};

// Options that make a picture of the window instead of showing it.
QList<QCommandLineOption> picture_options() {
  return {{"picture", "Write a picture of the window (.png) and end; needs no screen.", "file"},
          {"size", "Of the picture: width x height in pixels.", "size", "1600x1000"},
          {"theme", "Of the picture: light or dark.", "theme", "light"},
          {"range", "Of the picture: what is visible, as memwall render --range has it.", "range"},
          {"op", "Of the picture: the number of the op that is chosen.", "number"},
          {"press", "Of the picture: the key of a command; may be repeated.", "key"}};
}

template <class Words>
bool holds(const Words& words, const QString& word) {
  return std::any_of(words.begin(), words.end(), [&](const char* w) { return word == QLatin1String(w); });
}

QStringList without_words_of_qt(int argc, char** argv) {
  QStringList words;
  for (int i = 0; i < argc; ++i) {
    const QString word = QString::fromLocal8Bit(argv[i]);
    const QString name = word.startsWith("--") ? word.mid(2) : word.startsWith('-') ? word.mid(1) : QString();
    if (i > 0 && holds(kQtWords, name)) continue;
    if (i > 0 && holds(kQtWordsWithValue, name)) {
      ++i;
      continue;
    }
    if (i > 0 && holds(kQtWordsWithValue, name.section('=', 0, 0)) && name.contains('=')) continue;
    words.push_back(word);
  }
  return words;
}

// The parser's sentence ends without a full stop and knows no nearest name.
std::string mistake_of(const QCommandLineParser& parser) {
  const QStringList unknown = parser.unknownOptionNames();
  if (unknown.isEmpty()) return parser.errorText().toStdString();
  std::vector<std::string> known{"help", "version"};
  for (const QCommandLineOption& option : picture_options()) known.push_back(option.names().front().toStdString());
  const std::string name = unknown.front().toStdString(), near = nearest_name(name, known);
  return "the option \"" + name + "\" is unknown" + (near.empty() ? "" : " (nearest: \"" + near + "\")") +
         "; expected one of " + listed(known) + ".";
}

std::string shown_variable(const char* name) {
  const char* const value = std::getenv(name);
  return std::string(name) + (value == nullptr ? " is not set" : " is \"" + std::string(value) + "\"");
}

void end_without_screen(QtMsgType type, const QMessageLogContext&, const QString& message) {
  if (type != QtFatalMsg) return;  // of plugins; the sentence below says all of it
  const std::string first = message.section('\n', 0, 0).toStdString();
  std::fprintf(stderr,
               "memwall-viewer: no window can be opened (%s, %s; Qt: %s); `memwall-viewer --picture` and `memwall "
               "render` make pictures without a screen.\n",
               presentable_line(shown_variable("DISPLAY")).c_str(),
               presentable_line(shown_variable("WAYLAND_DISPLAY")).c_str(), presentable_line(first).c_str());
  ::_exit(2);
}

QtMessageHandler& handler_before() {
  static QtMessageHandler before = nullptr;  // Qt knows one handler, for the whole program
  return before;
}

}  // namespace

void describe_options(QCommandLineParser& parser) {
  parser.setApplicationDescription(
      "Shows a run of memwall: what ran when, what waited for what, what lived where.\n"
      "With two runs: compares them op by op.");
  parser.addHelpOption();
  parser.addVersionOption();
  parser.addPositionalArgument("run.h5", "the run to show; without one the window says how to open one", "[run.h5]");
  parser.addPositionalArgument("other.h5", "a second run to compare it with", "[other.h5]");
  parser.addOptions(picture_options());
}

int answer_without_screen(int argc, char** argv, const std::string& version) {
  const QCoreApplication application(argc, argv);  // without a screen; names the program in its help
  QCoreApplication::setApplicationName("memwall-viewer");
  QCoreApplication::setApplicationVersion(QString::fromStdString(version));
  QCommandLineParser parser;
  describe_options(parser);
  if (!parser.parse(without_words_of_qt(argc, argv))) {
    std::fprintf(stderr, "memwall-viewer: %s\nTry `memwall-viewer --help`.\n",
                 presentable_line(mistake_of(parser)).c_str());
    return 2;
  }
  const bool asks_version = parser.isSet("version");
  if (!asks_version && !parser.isSet("help") && !parser.isSet("help-all")) return -1;
  const std::string text = asks_version ? "memwall-viewer " + version + "\n" : parser.helpText().toStdString();
  if (std::fputs(text.c_str(), stdout) >= 0 && std::fflush(stdout) == 0) return 0;
  std::fputs("memwall-viewer: standard output cannot be written to.\n", stderr);
  return 1;
}

RefusesWithoutScreen::RefusesWithoutScreen() { handler_before() = qInstallMessageHandler(end_without_screen); }

RefusesWithoutScreen::~RefusesWithoutScreen() { qInstallMessageHandler(handler_before()); }

}  // namespace memwall::gui
