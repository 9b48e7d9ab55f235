// What memwall-viewer was told, found out before there is a window: an application that can have one needs a screen.
#pragma once

#include <QCommandLineParser>

#include <string>

namespace memwall::gui {

// The options of memwall-viewer.
void describe_options(QCommandLineParser& parser);

// Answers --help and --version, and refuses what is no option with the nearest one: the exit code of the program (0 or
// 2) where that ends it, else -1. Words that Qt takes itself (-platform, -style) are left to it. REQUIRES: there is no
// application yet.
int answer_without_screen(int argc, char** argv, const std::string& version);

// While it lives, an application that finds no screen ends the program with a sentence and exit code 2, where Qt would
// abort.
class RefusesWithoutScreen {
 public:
  RefusesWithoutScreen();
  ~RefusesWithoutScreen();
  RefusesWithoutScreen(const RefusesWithoutScreen&) = delete;
  RefusesWithoutScreen& operator=(const RefusesWithoutScreen&) = delete;
};

}  // namespace memwall::gui
