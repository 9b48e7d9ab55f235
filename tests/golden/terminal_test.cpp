// Is output laid out for the terminal it goes to, and in color only there?
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>
#include <string>

#include "sim/utf8.h"
#include "tests/support/pickle_writer.h"
#include "tests/support/program.h"
#include "tests/support/pseudo_terminal.h"
#include "tests/support/small_capture.h"
#include "tests/support/synthetic_snapshot.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

const std::string kProgram = "'" MEMWALL_PROGRAM "' ";
constexpr const char *kBold = "\x1b[1m", *kRed = "\x1b[31m";

class TerminalOutput : public ::testing::Test {
 protected:
  // `environment`: assignments, or `unset NAME;`.
  CommandOutcome on_terminal(const std::string& arguments, int columns = 100, const std::string& environment = "") {
    return run_on_terminal(environment + " " + kProgram + arguments, folder_.path(), columns);
  }
  CommandOutcome piped(const std::string& arguments, const std::string& environment = "") {
    return run_command("unset COLUMNS NO_COLOR; " + environment + " " + kProgram + arguments, folder_.path());
  }
  static std::size_t widest_line(const std::string& text) {
    std::istringstream lines(text);
    std::size_t widest = 0;
    for (std::string line; std::getline(lines, line);) widest = std::max(widest, line.size());
    return widest;
  }
  static bool is_colored(const CommandOutcome& o) { return (o.out + o.err).find('\x1b') != std::string::npos; }

  const ScratchFolder folder_;
};

TEST_F(TerminalOutput, IsAsWideAsTheTerminal) {
  const std::string table = "--color=never policies";
  const std::size_t usual = widest_line(piped(table).out);
  ASSERT_GT(usual, 100u) << "or there is nothing to wrap";
  EXPECT_LE(usual, 120u);
  for (const int columns : {80, 100}) {
    const std::size_t width = widest_line(on_terminal(table, columns).out);
    EXPECT_LE(width, static_cast<std::size_t>(columns));
    EXPECT_GT(width, static_cast<std::size_t>(columns) - 20);
  }
  EXPECT_GT(widest_line(on_terminal(table, 200).out), 120u);
  for (const char* verb : {"", "run", "forecast", "validate", "completion", "manual"}) {
    std::istringstream help(on_terminal("--color=never " + std::string(verb) + " --help", 80).out);
    for (std::string line; std::getline(help, line);) {
      const bool command = line.starts_with("  ") && line.find("memwall") != std::string::npos;
      const bool of_another = line.starts_with("  nvidia-smi") || line.starts_with("  source");
      EXPECT_TRUE(line.size() <= 80 || command || of_another) << verb << ": " << line;
    }
  }
}

TEST_F(TerminalOutput, ColumnsDecideEverywhereAndTheLeastIsSixty) {
  const std::string table = "--color=never policies";
  EXPECT_LE(widest_line(piped(table, "COLUMNS=80").out), 80u);
  EXPECT_LE(widest_line(on_terminal(table, 200, "COLUMNS=80").out), 80u);
  EXPECT_EQ(on_terminal(table, 20).out, on_terminal(table, 60).out);
  EXPECT_EQ(piped(table, "COLUMNS=1").out, piped(table, "COLUMNS=60").out);
  for (const char* nonsense : {"COLUMNS=", "COLUMNS=0", "COLUMNS=-5", "COLUMNS=wide", "COLUMNS=80x"})
    EXPECT_EQ(piped(table, nonsense).out, piped(table).out) << nonsense;
  EXPECT_EQ(piped("policies --format json", "COLUMNS=60").out, piped("policies --format json").out);
}

// Also of tables whose numbers alone are wider: those go on below themselves.
TEST_F(TerminalOutput, NoTableOfAnyVerbIsWiderThanColumns) {
  const std::string sample = "'" MEMWALL_SOURCE "/traces/samples/gpt_124m.mwt'";
  const std::string capture = "'" MEMWALL_SOURCE "/traces/samples/captures/gpt2_124m.mwc.gz' --machine a100-sxm-40gb";
  write_content(folder_ / "small.pickle", pickled(small_snapshot()));
  ASSERT_EQ(piped("run " + sample + " --no-provenance -o base.h5").code, 0);
  ASSERT_EQ(piped("run " + sample + " --policy checkpoint --no-provenance -o run.h5").code, 0);
  for (const std::string& arguments :
       {"run " + sample + " --full --no-provenance", "run " + capture + " --policy zero:stage=2,ranks=8 --full",
        "run " + sample + " --set gpu.hbm.capacity=6GB", std::string("compare base.h5 run.h5 --full"),
        "roofline " + capture + " --full", std::string("memory small.pickle --full --search --capacity 1MiB"),
        std::string("inspect '" MEMWALL_SOURCE "/traces/samples/captures/gpt2_124m.mwc.gz' --full"),
        std::string("machines show a100-sxm-40gb"), std::string("machines"), std::string("forecast base.h5 --full"),
        std::string("policies show offload"), "run " + capture + " --find-largest-batch --set gpu.hbm.capacity=4GB"})
    for (const std::size_t columns : {80u, 60u}) {
      std::istringstream lines(piped(arguments, "COLUMNS=" + std::to_string(columns)).out);
      std::size_t count = 0;
      for (std::string line; std::getline(lines, line); ++count)
        EXPECT_LE(count_characters(line), columns) << arguments << ": " << line;
      EXPECT_GT(count, 5u) << arguments;
    }
}

TEST_F(TerminalOutput, HeadingsAreBoldOnATerminalAlone) {
  const CommandOutcome o = on_terminal("machines show t4");
  EXPECT_EQ(o.code, 0) << o.out;
  EXPECT_TRUE(o.out.starts_with(kBold)) << o.out.substr(0, 100);
  EXPECT_NE(on_terminal("--help").out.find(std::string(kBold) + "Options:"), std::string::npos);
  EXPECT_FALSE(is_colored(piped("machines show t4")));
  EXPECT_FALSE(is_colored(on_terminal("machines --format json")));
  EXPECT_FALSE(is_colored(on_terminal("machines --format csv")));
}

TEST_F(TerminalOutput, ColorsGoByTheEnvironmentAndTheFlag) {
  for (const char* none : {"NO_COLOR=1", "TERM=dumb"})
    EXPECT_FALSE(is_colored(on_terminal("machines show t4", 100, none))) << none;
  EXPECT_TRUE(is_colored(on_terminal("machines show t4", 100, "NO_COLOR="))) << "empty is as not set";
  for (const char* never : {"--color=never machines show t4", "--color never machines show t4",
                            "machines show t4 --color=never", "machines show t4 --color never"})
    EXPECT_FALSE(is_colored(on_terminal(never))) << never;
  EXPECT_TRUE(is_colored(piped("machines show t4 --color=always", "NO_COLOR=1")));
  EXPECT_EQ(piped("machines show t4 --color=auto").out, piped("machines show t4").out);
  const CommandOutcome wrong = piped("machines --color alwys");
  EXPECT_EQ(wrong.code, 2);
  EXPECT_NE(wrong.err.find("--color \"alwys\" is unknown; expected auto, always or never. Did you mean 'always'?"),
            std::string::npos)
      << wrong.err;
  EXPECT_NE(piped("machines --color").err.find("--color: a value is missing"), std::string::npos);
}

TEST_F(TerminalOutput, ErrorsAndWhatDoesNotFitAreRed) {
  const CommandOutcome wrong = on_terminal("runn");
  EXPECT_TRUE(wrong.out.starts_with(std::string(kRed) + "memwall:\x1b[0m the verb \"runn\"")) << wrong.out;
  write_content(folder_ / "step.json", small_capture());
  const CommandOutcome o = on_terminal(
      "run step.json --machine h100-sxm-80gb --set gpu.hbm.capacity=1MB --set "
      "gpu.hbm.unavailable=0B");
  EXPECT_EQ(o.code, 3) << o.out;
  EXPECT_NE(o.out.find(std::string(kRed) + "does not fit\x1b[0m"), std::string::npos) << o.out;
}

// A name in a file is no style of ours.
TEST_F(TerminalOutput, NamesDoNotColor) {
  std::string capture = small_capture();
  const std::string name = "aten::mm";
  for (std::size_t at; (at = capture.find(name)) != std::string::npos;)
    capture.replace(at, name.size(), "evil\\u001b[2J\\u001b[31mred");
  write_content(folder_ / "evil.json", capture);
  const CommandOutcome o = on_terminal("roofline evil.json --machine h100-sxm-80gb", 200);
  EXPECT_EQ(o.code, 0) << o.out;
  EXPECT_NE(o.out.find("evil\\x1b[2J\\x1b[31mred"), std::string::npos) << o.out;
  EXPECT_EQ(o.out.find("\x1b[2J"), std::string::npos);
  EXPECT_EQ(o.out.find("\x1b[31mred"), std::string::npos);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
