// Has every verb a manual page that man prints without a warning, with every option that its help names?
#include <gtest/gtest.h>

#include <filesystem>
#include <set>
#include <sstream>
#include <string>

#include "tests/support/program.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

namespace fs = std::filesystem;

class ManualPages : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(run_command("mkdir man1", folder_.path()).code, 0);
    ASSERT_EQ(run_memwall(folder_, "manual --all man1").code, 0);
  }
  static bool has(const char* program) {
    return std::system(("command -v " + std::string(program) + " >/dev/null 2>&1").c_str()) == 0;
  }
  static std::set<std::string> verbs() {
    const ScratchFolder folder;
    std::istringstream help(run_memwall(folder, "--help").out);
    std::set<std::string> names;
    bool in_list = false;
    for (std::string line; std::getline(help, line);) {
      if (line.empty()) in_list = false;
      if (in_list) names.insert(line.substr(2, line.find(' ', 2) - 2));
      if (line == "Subcommands:") in_list = true;
    }
    names.erase("help");
    return names;
  }
  // The text of a page, as man prints it to a file.
  std::string text_of(const std::string& verb) const {
    return run_command("groff -man -Tascii -rLL=2000n -P-cbou man1/memwall-" + verb + ".1", folder_.path()).out;
  }
  std::string help_of(const std::string& verb) const { return run_memwall(folder_, verb + " --help").out; }
  const ScratchFolder folder_;
};

TEST_F(ManualPages, OneForEveryVerbAndListedInThatOfTheProgram) {
  const std::set<std::string> names = verbs();
  EXPECT_GE(names.size(), 19u);
  const std::string program = content_of(fs::path(MEMWALL_SOURCE) / "docs/man/memwall.1");
  for (const std::string& verb : names) {
    EXPECT_TRUE(fs::exists(folder_ / ("man1/memwall-" + verb + ".1"))) << verb;
    EXPECT_NE(program.find("memwall\\-" + verb + " (1)"), std::string::npos) << verb << " is not in docs/man/memwall.1";
    EXPECT_EQ(run_memwall(folder_, "manual " + verb).out, content_of(folder_ / ("man1/memwall-" + verb + ".1")));
  }
}

TEST_F(ManualPages, AreSoundRoff) {
  if (!has("groff")) GTEST_SKIP() << "groff was not found";
  for (const std::string& verb : verbs()) {
    const CommandOutcome o =
        run_command("LC_ALL=C groff -ww -man -Tascii -z man1/memwall-" + verb + ".1", folder_.path());
    EXPECT_EQ(o.code, 0) << verb;
    EXPECT_EQ(o.err, "") << verb;
  }
  for (const char* page : {"memwall.1", "memwall-viewer.1", "memwall-bench.1", "memwall-replay.1"})
    EXPECT_EQ(
        run_command("LC_ALL=C groff -t -ww -man -Tascii -z '" MEMWALL_SOURCE "/docs/man/" + std::string(page) + "'",
                    folder_.path())
            .err,
        "")
        << page;
  if (!has("man")) return;
  for (const std::string& verb : verbs()) {
    const CommandOutcome o =
        run_command("LC_ALL=C.UTF-8 MANROFFSEQ='' MANWIDTH=80 man --warnings -E UTF-8 -l -Tutf8 -Z man1/memwall-" +
                        verb + ".1 >/dev/null",
                    folder_.path());
    EXPECT_EQ(o.err, "") << verb;
  }
}

TEST_F(ManualPages, NameEveryOptionAndExampleOfTheHelp) {
  if (!has("groff")) GTEST_SKIP() << "groff was not found";
  for (const std::string& verb : verbs()) {
    const std::string page = text_of(verb);
    std::istringstream help(help_of(verb));
    int options = 0;
    for (std::string line; std::getline(help, line);) {
      if (line.starts_with("  -")) {
        ++options;
        std::istringstream names(line.substr(2, line.find(' ', 2) - 2));
        for (std::string name; std::getline(names, name, ',');)
          EXPECT_NE(page.find(name), std::string::npos) << verb << " " << name;
      }
      if (line.starts_with("  memwall ")) {
        EXPECT_NE(page.find(line), std::string::npos) << verb << ": " << line;
      }
    }
    EXPECT_GE(options, 1) << verb;
  }
  const std::string machines = text_of("machines");
  for (const char* of_a_verb_below : {"--points", "--tables", "--set", "memwall machines check"})
    EXPECT_NE(machines.find(of_a_verb_below), std::string::npos) << of_a_verb_below;
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
