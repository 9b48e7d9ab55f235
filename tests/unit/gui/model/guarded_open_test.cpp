// Does a file that crashes, starves or stalls whoever opens it end in a sentence, and the parent go on?
#include "gui/model/guarded_open.h"

#include <chrono>
#include <filesystem>

#include <sys/wait.h>

#include <gtest/gtest.h>

#include "sim/error.h"
#include "tests/support/run_file_editor.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/varied_runs.h"
#include "traces/run/file/run_file.h"

namespace memwall::gui {
namespace MEMWALL_TEST_FILE {

class GuardedOpen : public testing::Test {
 protected:
  GuardedOpen() { write_run(gpt_run(2), file_); }

  // What is said if a program of these lines is the probe.
  std::string said_after(const std::string& lines, const ProbeLimits& limits = {}) {
    const auto program = folder_ / "probe.sh";
    write_content(program, "#!/bin/sh\n" + lines + "\n");
    std::filesystem::permissions(program, std::filesystem::perms::owner_all);
    return refused_by_probe(program, file_, limits).value_or("accepted");
  }
  static void expect_words(const std::string& said, const std::string& words) {
    EXPECT_NE(said.find(words), std::string::npos) << "said: " << said;
  }
  // No child is left behind, running or dead.
  static void expect_no_children() { EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1); }

  ScratchFolder folder_;
  std::filesystem::path file_ = folder_ / "run.h5";
  std::filesystem::path probe_ = MEMWALL_PROBE;
};

TEST_F(GuardedOpen, AcceptsEveryKindOfRun) {
  for (const NamedRun& named : varied_runs()) {
    write_run(named.run, file_);
    EXPECT_EQ(refused_by_probe(probe_, file_).value_or("accepted"), "accepted") << named.name;
  }
  expect_no_children();
}

TEST_F(GuardedOpen, SaysWhatTheChildFound) {
  std::string bytes = content_of(file_);
  bytes[5000] = static_cast<char>(bytes[5000] ^ 1);
  write_content(file_, bytes);
  expect_words(refused_by_probe(probe_, file_).value_or("accepted"), "does not match; it is damaged.");
  expect_words(refused_by_probe(probe_, folder_ / "absent.h5").value_or("accepted"), "there is no such file");
  expect_words(refused_by_probe(probe_, folder_.path()).value_or("accepted"), "this is a folder");
}

TEST_F(GuardedOpen, SaysThatTheChildCrashed) {
  expect_words(said_after("kill -SEGV $$"), "crashed (Segmentation fault)");
  expect_words(said_after("exit 3"), "ended with code 3");
  expect_words(said_after("exit 7"), "MiB of memory");
  expect_words(said_after("echo 'a sentence.' >&2; exit 6"), "a sentence.");
  expect_no_children();
}

TEST_F(GuardedOpen, EndsAChildThatStalls) {
  const auto start = std::chrono::steady_clock::now();
  expect_words(said_after("exec sleep 100", {std::uint64_t{1} << 30, 0.2}), "more than 0.2 s");
  // One that says it has nothing more to say, but goes on.
  expect_words(said_after("exec 2>&-; exec sleep 100", {std::uint64_t{1} << 30, 0.2}), "more than 0.2 s");
  expect_words(said_after("while :; do echo more >&2; done", {std::uint64_t{1} << 30, 0.2}), "more than 0.2 s");
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
  expect_no_children();
}

TEST_F(GuardedOpen, KeepsLittleOfALongAnswer) {
  EXPECT_LE(said_after("head -c 1000000 /dev/zero | tr '\\0' 'x' >&2; exit 6").size(), 5000u);
  const std::string said = said_after("printf 'a\\033[2Jb\\nc' >&2; exit 6");
  EXPECT_EQ(said.find('\033'), std::string::npos);
  EXPECT_EQ(said.find('\n'), std::string::npos);
}

TEST_F(GuardedOpen, LimitsTheMemoryOfTheChild) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer's shadow takes more than any limit";
#endif
  write_run(gpt_run(700, 1), file_);
  EXPECT_EQ(refused_by_probe(probe_, file_).value_or("accepted"), "accepted");
  EXPECT_NE(refused_by_probe(probe_, file_, {std::uint64_t{1} << 20, 10}).value_or("accepted"), "accepted");
}

TEST_F(GuardedOpen, CanBeCancelled) {
  const auto start = std::chrono::steady_clock::now();
  write_content(folder_ / "slow.sh", "#!/bin/sh\nexec sleep 100\n");
  std::filesystem::permissions(folder_ / "slow.sh", std::filesystem::perms::owner_all);
  int calls = 0;
  EXPECT_THROW(refused_by_probe(folder_ / "slow.sh", file_, {}, [&](double) { return ++calls < 3; }), LoadCancelled);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
  expect_no_children();
}

TEST_F(GuardedOpen, SaysThatItCannotStart) {
  EXPECT_THROW(refused_by_probe(folder_ / "no-such-program", file_), UsageError);
  expect_no_children();
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall::gui
