// Every verb that writes: what is left where the disk is full, and where the program is ended in the middle.
#include <gtest/gtest.h>

#include <filesystem>
#include <set>
#include <string>

#include "tests/support/program.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

const std::string kSample = MEMWALL_SOURCE "/traces/samples/gpt_124m.mwt";
const std::string kCapture = MEMWALL_SOURCE "/traces/samples/captures/gpt2_124m.mwc.gz";

std::set<std::string> names_in(const ScratchFolder& folder) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
    names.insert(entry.path().filename().string());
  return names;
}

class OutputFiles : public ::testing::Test {
 protected:
  // Where a limit of a file's size stops more than the program's own files.
  static bool limits_reach_a_sanitizer() {
#if defined(__SANITIZE_THREAD__)
    return true;
#else
    return false;
#endif
  }
  // Signals of a program show as 128 and more.
  CommandOutcome shell(const std::string& line) const { return run_command(line, folder_.path()); }
  static std::string memwall(const std::string& arguments) { return " '" MEMWALL_PROGRAM "' " + arguments; }
  const ScratchFolder folder_;
};

// `ulimit -f` counts 512 or 1024 bytes: 0 lets nothing be written, and 8 less than any of these files.
TEST_F(OutputFiles, AFullDiskIsASentenceAndTheOldFileStays) {
  if (limits_reach_a_sanitizer()) GTEST_SKIP() << "the thread sanitizer begins with a file of its own";
  ASSERT_EQ(shell(memwall("run '" + kSample + "' -o run.h5")).code, 0);
  for (const std::string& verb :
       {"run '" + kSample + "' -o out", "run '" + kSample + "' --steps 20 -o out",
        std::string("export run.h5 --to csv -o out"), std::string("export run.h5 --to perfetto -o out"),
        std::string("render run.h5 -o out.svg"), "import '" + kCapture + "' -o out.mwt",
        "roofline '" + kCapture + "' --machine h100-sxm-80gb --svg out.svg", "schedule '" + kSample + "' -o out",
        std::string("generate gpt2-124m -o out.mwt")}) {
    const std::string target = verb.substr(verb.rfind(' ') + 1);
    write_content(folder_ / target, "old");
    const auto before = names_in(folder_);
    for (const char* blocks : {"0", "1", "8"}) {
      // The limit is the program's alone: what it says goes into a file, too.
      const CommandOutcome o = shell("{ ( ulimit -f " + std::string(blocks) + "; exec" + memwall(verb) +
                                     " 2>&1 >/dev/null ); echo \"code $?\"; } | cat >&2");
      EXPECT_NE(o.err.find("code 2\n"), std::string::npos) << verb << "\n" << o.err;
      EXPECT_NE(o.err.find(target + ": the file cannot be written (File too large)."), std::string::npos)
          << verb << "\n"
          << o.err;
      EXPECT_EQ(content_of(folder_ / target), "old") << verb;
      EXPECT_EQ(names_in(folder_), before) << verb;
    }
    std::filesystem::remove(folder_ / target);
  }
}

TEST_F(OutputFiles, AFullDiskEndsWithTheDocumentedCode) {
  if (limits_reach_a_sanitizer()) GTEST_SKIP() << "the thread sanitizer begins with a file of its own";
  for (const char* blocks : {"0", "3", "100", "400"}) {
    const CommandOutcome o = shell("ulimit -f " + std::string(blocks) + "; exec" +
                                   memwall("run '" + kSample + "' --steps 8 -o out.h5") + " 2>&1 >/dev/null");
    EXPECT_EQ(o.code, 2) << blocks << o.out;
    EXPECT_EQ(names_in(folder_), std::set<std::string>{}) << blocks;
  }
}

// What a long simulation found is told, though it cannot be kept.
TEST_F(OutputFiles, AFullDiskTakesNoResultAway) {
  if (limits_reach_a_sanitizer()) GTEST_SKIP() << "the thread sanitizer begins with a file of its own";
  const CommandOutcome o = shell("{ ( ulimit -f 0; exec" + memwall("run '" + kSample + "' -o out.h5") +
                                 " 2>/dev/null ); echo \"code $?\"; } | cat");
  EXPECT_NE(o.out.find("step time"), std::string::npos) << o.out;
  EXPECT_NE(o.out.find("code 2\n"), std::string::npos) << o.out;
}

TEST_F(OutputFiles, WhatIsReadIsNeverReplaced) {
  const std::string machine = content_of(MEMWALL_SOURCE "/models/hw/machines/a100-sxm-40gb.textproto");
  for (const std::string& verb : {"run '" + kSample + "' --machine m.textproto -o m.textproto",
                                  "run '" + kSample + "' --measured-on m.textproto --machine t4 -o ./m.textproto",
                                  "schedule '" + kSample + "' --machine m.textproto -o m.textproto",
                                  "roofline '" + kCapture + "' --machine ./m.svg --svg m.svg"}) {
    const std::string target = verb.ends_with(".svg") ? "m.svg" : "m.textproto";
    write_content(folder_ / target, machine);
    const CommandOutcome o = shell(memwall(verb));
    EXPECT_EQ(o.code, 2) << verb << "\n" << o.err;
    EXPECT_NE(o.err.find("the output would replace what is read"), std::string::npos) << verb << "\n" << o.err;
    EXPECT_EQ(content_of(folder_ / target), machine) << verb;
  }
}

TEST_F(OutputFiles, AFullStandardOutputIsASentence) {
  ASSERT_EQ(shell(memwall("run '" + kSample + "' -o run.h5")).code, 0);
  for (const char* verb : {"policies", "machines", "compare run.h5 run.h5", "export run.h5 --to csv -o -",
                           "export run.h5 --to perfetto -o -", "--help"}) {
    const CommandOutcome o = shell("exec" + memwall(verb) + " >/dev/full");
    EXPECT_EQ(o.code, 1) << verb;
    EXPECT_NE(o.err.find("standard output cannot be written to."), std::string::npos) << verb << o.err;
  }
  EXPECT_EQ(shell("exec" + memwall("run '" + kSample + "' -o /dev/full")).code, 2);
}

// However it ends, there is the old file or the new one, and nothing beside it.
TEST_F(OutputFiles, AProgramThatIsEndedLeavesTheOldFileAlone) {
  write_content(folder_ / "out.h5", "old");
  for (const char* signal : {"KILL", "INT", "TERM", "HUP"})
    for (const char* delay : {"0.02", "0.05", "0.08", "0.11", "0.15", "0.2", "0.3", "0.4"}) {
      shell("timeout -s " + std::string(signal) + " " + delay + memwall("run '" + kSample + "' --steps 30 -o out.h5"));
      // Between the name of a whole file and its renaming lie some microseconds, in which SIGKILL leaves that name.
      if (std::string(signal) == "KILL" && names_in(folder_).size() > 1)
        shell(memwall("run '" + kSample + "' -o out.h5"));
      EXPECT_EQ(names_in(folder_), std::set<std::string>{"out.h5"}) << signal << delay;
      const std::string content = content_of(folder_ / "out.h5");
      EXPECT_TRUE(content == "old" || content.starts_with("memwall-run")) << signal << delay;
    }
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
