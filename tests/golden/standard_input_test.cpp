// Is "-" standard input for every verb that reads a file, and standard output where one is written?
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <string>

#include "tests/support/pickle_writer.h"
#include "tests/support/program.h"
#include "tests/support/pseudo_terminal.h"
#include "tests/support/small_capture.h"
#include "tests/support/synthetic_snapshot.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

const std::string kProgram = MEMWALL_PROGRAM;
const std::string kMachine = MEMWALL_SOURCE "/models/hw/machines/h100-sxm-80gb.textproto";

class StandardInput : public ::testing::Test {
 protected:
  void SetUp() override {
    write_content(folder_ / "stdin.json", small_capture());  // so called that results name it alike
    ASSERT_EQ(shell("memwall run stdin.json --machine h100-sxm-80gb --no-provenance -o run.h5").code, 0);
    ASSERT_EQ(shell("memwall import stdin.json -o stdin.mwt").code, 0);
  }
  // `line` has `memwall` in it; one that waits for ever is code 124.
  CommandOutcome shell(const std::string& line) const {
    return run_command("memwall() { timeout 60 '" + kProgram + "' \"$@\"; }; " + line, folder_.path());
  }
  // What comes through a pipe and what is redirected give what the file gives.
  void reads_as(const std::string& file, const std::string& arguments_of_file) {
    std::string of_input = arguments_of_file;
    of_input.replace(of_input.find(file), file.size(), "-");
    const CommandOutcome expected = shell("memwall " + arguments_of_file);
    ASSERT_EQ(expected.code, 0) << arguments_of_file << "\n" << expected.err;
    for (const std::string& line : {"cat " + file + " | memwall " + of_input, "memwall " + of_input + " <" + file}) {
      const CommandOutcome o = shell(line);
      EXPECT_EQ(o.code, 0) << line << "\n" << o.err;
      EXPECT_EQ(o.out.size() / 100, expected.out.size() / 100) << line << "\n" << o.out;
      EXPECT_GT(o.out.size(), 50u) << line;
      EXPECT_EQ(o.err.find("/dev/stdin"), std::string::npos) << line << "\n" << o.err;
    }
  }
  void refuses(const std::string& line, int code, const std::string& sentence) {
    const CommandOutcome o = shell(line);
    EXPECT_EQ(o.code, code) << line << "\n" << o.err;
    EXPECT_NE(o.err.find(sentence), std::string::npos) << line << "\nexpected: " << sentence << "\n" << o.err;
    EXPECT_EQ(o.err.find("/dev/stdin"), std::string::npos) << line << "\n" << o.err;
  }

  const ScratchFolder folder_;
};

TEST_F(StandardInput, IsReadByEveryVerbThatReadsAFile) {
  for (const char* arguments :
       {"run stdin.mwt --machine h100-sxm-80gb --format csv", "run stdin.json --machine h100-sxm-80gb --format csv",
        "inspect stdin.mwt --format csv", "inspect stdin.json --format csv", "import stdin.json --explain --format csv",
        "roofline stdin.mwt --machine h100-sxm-80gb --format csv",
        "run stdin.mwt --measured-on h100-sxm-80gb --format csv"})
    reads_as(std::string(arguments).find(".mwt") != std::string::npos ? "stdin.mwt" : "stdin.json", arguments);
  for (const char* arguments : {"export run.h5 --to csv", "compare run.h5 ./run.h5 --format csv", "render run.h5"})
    reads_as("run.h5", arguments);
  ASSERT_EQ(shell("cp '" + kMachine + "' own.textproto").code, 0);
  for (const char* arguments :
       {"machines own.textproto --format csv", "machines show own.textproto --format csv",
        "machines compare t4 own.textproto --format csv", "run stdin.mwt --machine own.textproto --format csv",
        "run llama3-8b:layers=2 --machine own.textproto --format csv"})
    reads_as("own.textproto", arguments);
  write_content(
      folder_ / "config.json",
      R"({"model_type": "gpt2", "n_layer": 2, "n_embd": 64, "n_head": 2, "vocab_size": 100, "n_positions": 64})");
  reads_as("config.json", "generate config.json --batch 1 --format csv");
  write_content(folder_ / "snapshot.pickle", pickled(small_snapshot()));
  reads_as("snapshot.pickle", "memory snapshot.pickle --format csv");
  write_content(folder_ / "log.csv", [] {
    std::string log = "seconds,bytes\n";
    for (int i = 0; i < 200; ++i) log += std::to_string(i) + "," + std::to_string(1000000 * (1 + i % 10)) + "\n";
    return log;
  }());
  reads_as("log.csv", "forecast log.csv --format csv");
  reads_as("log.csv", "watch --csv log.csv --samples 100 --interval 10");
  ASSERT_EQ(shell("cp '" MEMWALL_SOURCE "/validate/data/two-core-epyc/results.csv' .").code, 0);
  reads_as("results.csv", "calibrate results.csv --format csv");
  ASSERT_EQ(shell("cp '" MEMWALL_SOURCE "/traces/samples/gpt_124m.mwt' sample.mwt").code, 0);
  reads_as("sample.mwt", "schedule sample.mwt -o x.schedule --format csv");
  reads_as("own.textproto", "memory snapshot.pickle --machine own.textproto --format csv");
  reads_as("own.textproto", "forecast log.csv --machine own.textproto --format csv");
}

TEST_F(StandardInput, IsNamedInSentencesAndTitles) {
  refuses("printf nonsense | memwall run -", 6, "memwall run: standard input: the file is of an unknown kind");
  refuses("memwall export - --to csv <stdin.json", 6, "standard input");
  refuses("memwall memory - </dev/null", 6, "standard input: this is a device");
  refuses("memwall compare - run.h5 <&-", 6, "standard input: this is a device");
  refuses("printf 'name: 1' | memwall machines show -", 6, "standard input:1:");
  const CommandOutcome titled = shell("memwall inspect - <stdin.mwt");
  EXPECT_TRUE(titled.out.starts_with("standard input (memwall trace)\n")) << titled.out.substr(0, 200);
}

TEST_F(StandardInput, IsNamedOnceInACommand) {
  for (const char* line : {"cat run.h5 | memwall compare - -", "cat stdin.json | memwall run - --machine -",
                           "cat stdin.json | memwall import stdin.json - --et - -o x.mwt",
                           "cat run.h5 | memwall forecast --share - -  --capacity 80GB"})
    refuses(line, 2, "standard input is named 2 times");
  refuses("memwall compare run.h5 - --format jsn <run.h5", 2, "jsn");
}

TEST_F(StandardInput, ThatIsATerminalIsRefusedAtOnce) {
  for (const char* arguments : {"run -", "inspect -", "memory -", "compare - run.h5", "export - --to csv", "forecast -",
                                "machines show -", "generate -", "render -", "watch --csv -"}) {
    const CommandOutcome o = run_on_terminal("'" + kProgram + "' " + arguments, folder_.path(), 100);
    EXPECT_EQ(o.code, 6) << arguments << "\n" << o.out;
    EXPECT_NE(o.out.find("standard input: this is a terminal, and nothing is piped into it"), std::string::npos)
        << arguments << "\n"
        << o.out;
  }
}

// Some programs connect theirs by sockets (Node.js does).
TEST_F(StandardInput, MayBeASocket) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()), 0);
  const std::string content = content_of(folder_ / "stdin.mwt");
  const ::pid_t writer = ::fork();
  if (writer == 0) {
    ::close(ends[0]);
    std::size_t done = 0;
    while (done < content.size()) {
      const ::ssize_t written = ::write(ends[1], content.data() + done, content.size() - done);
      if (written <= 0) break;
      done += static_cast<std::size_t>(written);
    }
    ::_exit(0);
  }
  ::close(ends[1]);
  const int status = std::system(
      ("'" + kProgram + "' inspect - <&" + std::to_string(ends[0]) + " >'" + (folder_ / "out").string() + "' 2>&1")
          .c_str());
  ::close(ends[0]);
  ::waitpid(writer, nullptr, 0);
  EXPECT_EQ(status, 0);
  EXPECT_NE(content_of(folder_ / "out").find("standard input (memwall trace)"), std::string::npos)
      << content_of(folder_ / "out");
}

TEST_F(StandardInput, AWindowDoesNotReadIt) { refuses("memwall view - <run.h5", 2, "standard input comes once"); }

TEST_F(StandardInput, StepsAndRunsGoThroughPipes) {
  const CommandOutcome piped = shell(
      "memwall import stdin.json -o - | memwall run - --machine h100-sxm-80gb --no-provenance -o - | memwall compare - "
      "run.h5 --format csv");
  EXPECT_EQ(piped.code, 0) << piped.err;
  EXPECT_NE(piped.out.find("table,row,column,value"), std::string::npos) << piped.out;
  EXPECT_EQ(shell("memwall run stdin.mwt --machine h100-sxm-80gb --no-provenance -o - >direct.h5").code, 0);
  EXPECT_EQ(shell("memwall run stdin.mwt --machine h100-sxm-80gb --no-provenance -o named.h5").code, 0);
  EXPECT_TRUE(content_of(folder_ / "direct.h5") == content_of(folder_ / "named.h5"));
  EXPECT_EQ(shell("memwall generate llama3-8b --set layers=1 -o - >a.mwt && memwall generate llama3-8b --set layers=1 "
                  "-o b.mwt && cmp a.mwt b.mwt")
                .code,
            0);
  const CommandOutcome told = shell("memwall run stdin.mwt --machine h100-sxm-80gb -o - >x.h5");
  EXPECT_EQ(told.out, "");
  EXPECT_GT(told.err.size(), 500u) << "the report goes to stderr";
  EXPECT_NE(shell("memwall import stdin.json -o - >/dev/full").code, 0);
}

TEST_F(StandardInput, ATerminalIsSpared) {
  for (const char* arguments : {"import stdin.json -o -", "run stdin.mwt --machine h100-sxm-80gb -o -"}) {
    const CommandOutcome o = run_on_terminal("'" + kProgram + "' " + arguments, folder_.path(), 100);
    EXPECT_EQ(o.code, 2) << o.out;
    EXPECT_NE(o.out.find("standard output: the file cannot be written (it is a terminal"), std::string::npos) << o.out;
  }
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
