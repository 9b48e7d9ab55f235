// Does the viewer answer, refuse and end as any program where there is no screen?
#include <gtest/gtest.h>

#include <string>

#include "tests/support/command.h"
#include "tests/support/scratch_folder.h"

namespace memwall::gui {
namespace MEMWALL_TEST_FILE {

CommandOutcome without_screen(const std::string& arguments, const std::string& environment = "") {
  const ScratchFolder folder;
  return run_command("env -u DISPLAY -u WAYLAND_DISPLAY -u QT_QPA_PLATFORM " + environment +
                         " timeout -s KILL 60 '" MEMWALL_VIEWER "' " + arguments,
                     folder.path());
}

TEST(StartWithoutScreen, HelpAndVersionArePrinted) {
  for (const char* asked : {"--help", "-h", "--help-all"}) {
    const CommandOutcome help = without_screen(asked);
    EXPECT_EQ(help.code, 0) << asked << "\n" << help.err;
    EXPECT_EQ(help.err, "") << asked;
    for (const char* word : {"Usage: ", "run.h5", "--picture", "--version"})
      EXPECT_NE(help.out.find(word), std::string::npos) << asked << ": " << word << "\n" << help.out;
  }
  for (const char* asked : {"--version", "-v", "--version run.h5"}) {
    const CommandOutcome version = without_screen(asked);
    EXPECT_EQ(version.code, 0) << version.err;
    EXPECT_TRUE(version.out.starts_with("memwall-viewer 0.")) << version.out;
  }
}

TEST(StartWithoutScreen, WhatIsNoOptionIsRefusedWithTheNearest) {
  const CommandOutcome o = without_screen("--pictur x.png");
  EXPECT_EQ(o.code, 2) << o.err;
  EXPECT_EQ(o.out, "");
  EXPECT_NE(o.err.find("memwall-viewer: the option \"pictur\" is unknown (nearest: \"picture\")"), std::string::npos)
      << o.err;
  EXPECT_EQ(without_screen("--size").code, 2) << "its value is missing";
}

TEST(StartWithoutScreen, AWindowIsRefusedWithASentence) {
  for (const char* environment : {"", "DISPLAY=:4711", "QT_QPA_PLATFORM=nonsense"}) {
    const CommandOutcome o = without_screen("run.h5", environment);
    EXPECT_EQ(o.code, 2) << environment << "\n" << o.err;
    EXPECT_TRUE(o.err.starts_with("memwall-viewer: no window can be opened (DISPLAY is")) << environment << "\n"
                                                                                          << o.err;
  }
}

TEST(StartWithoutScreen, WordsOfQtAreLeftToIt) {
  const CommandOutcome o = without_screen("-platform offscreen --version");
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_EQ(without_screen("--platform offscreen --pictur").code, 2);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall::gui
