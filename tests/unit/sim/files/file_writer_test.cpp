// A file is replaced whole or not at all, and nothing else is left in its folder.
#include "sim/files/file_writer.h"

#include <gtest/gtest.h>

#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <csignal>
#include <functional>
#include <set>
#include <string>

#include "sim/files/output_stream.h"
#include "sim/error.h"
#include "tests/support/scratch_folder.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

std::set<std::string> names_in(const ScratchFolder& folder) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
    names.insert(entry.path().filename().string());
  return names;
}

// How a child that does `act` ends, as wait() says it.
int end_of_child(const std::function<void()>& act) {
  const pid_t child = fork();
  if (child == 0) {
    // Whatever started the tests may have had some of them ignored: nohup, a shell's &.
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE}) ::signal(signal, SIG_DFL);
    prepare_program();
    act();
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}

std::string sentence_of(const std::function<void()>& act) {
  try {
    act();
  } catch (const UsageError& error) {
    return error.what();
  }
  return "nothing was refused";
}

class FileWriterOf : public ::testing::TestWithParam<PartialFile> {
 protected:
  const ScratchFolder folder_;
};

TEST_P(FileWriterOf, ReplacesAtCommitAndNotBefore) {
  write_content(folder_ / "a", "old");
  FileWriter file(folder_ / "a", GetParam());
  file.append("new ");
  file.append("content");
  file.write_at(0, "N");
  EXPECT_EQ(content_of(folder_ / "a"), "old");
  EXPECT_EQ(file.size(), 11u);
  char read[4] = {};
  EXPECT_EQ(file.read_at(8, read, sizeof(read)), 3u);
  file.commit();
  EXPECT_EQ(content_of(folder_ / "a"), "New content");
  EXPECT_EQ(names_in(folder_), std::set<std::string>{"a"});
}

TEST_P(FileWriterOf, MakesAFileThatWasNotThereWithTheUsualRights) {
  const mode_t before = ::umask(0027);
  FileWriter file(folder_ / "b", GetParam());
  file.append("x");
  file.commit();
  ::umask(before);
  struct stat state {};
  ASSERT_EQ(::stat((folder_ / "b").c_str(), &state), 0);
  EXPECT_EQ(state.st_mode & 0777, 0640u);
}

TEST_P(FileWriterOf, KeepsWhoMayReadAFileAndWhatLinksToIt) {
  const ScratchFolder folder;
  write_content(folder / "secret", "old");
  std::filesystem::permissions(folder / "secret",
                               std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  std::filesystem::create_symlink("secret", folder / "link");
  FileWriter file(folder / "link", GetParam());
  file.append("new");
  file.commit();
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "link"));
  EXPECT_EQ(content_of(folder / "secret"), "new");
  EXPECT_EQ(std::filesystem::status(folder / "secret").permissions(),
            std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
}

TEST_P(FileWriterOf, LeavesNothingWithoutCommit) {
  write_content(folder_ / "a", "old");
  { FileWriter(folder_ / "a", GetParam()).append("half"); }
  EXPECT_EQ(content_of(folder_ / "a"), "old");
  EXPECT_EQ(names_in(folder_), std::set<std::string>{"a"});
}

TEST_P(FileWriterOf, LeavesNothingWhenASignalEndsTheProgram) {
  write_content(folder_ / "a", "old");
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE}) {
    const int status = end_of_child([&] {
      const rlimit no_core{0, 0};
      ::setrlimit(RLIMIT_CORE, &no_core);
      FileWriter file(folder_ / "a", GetParam());
      file.append("half");
      ::raise(signal);
    });
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == signal) << signal << ": a shell must see the signal";
    EXPECT_EQ(names_in(folder_), std::set<std::string>{"a"}) << signal;
  }
  EXPECT_EQ(content_of(folder_ / "a"), "old");
}

TEST_P(FileWriterOf, TheNextWriteRemovesWhatAKilledProgramLeft) {
  const int status = end_of_child([&] {
    FileWriter file(folder_ / "a", GetParam());
    file.append("half");
    ::raise(SIGKILL);
  });
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(names_in(folder_).size(), GetParam() == PartialFile::named ? 1u : 0u);
  write_content(folder_ / "a.partial-notes", "a file of somebody's");
  FileWriter file(folder_ / "a", GetParam());
  file.append("whole");
  file.commit();
  EXPECT_EQ(names_in(folder_), (std::set<std::string>{"a", "a.partial-notes"}));
}

TEST_P(FileWriterOf, TwoAtOnceDoNotMeet) {
  FileWriter first(folder_ / "a", GetParam()), second(folder_ / "a", GetParam());
  first.append("first");
  second.append("second");
  second.commit();
  first.commit();
  EXPECT_EQ(content_of(folder_ / "a"), "first");
  EXPECT_EQ(names_in(folder_), std::set<std::string>{"a"});
}

TEST_P(FileWriterOf, AFullDiskIsASentence) {
  write_content(folder_ / "a", "old");
  const int status = end_of_child([&] {
    const rlimit small{1000, 1000};
    ::setrlimit(RLIMIT_FSIZE, &small);
    const std::string sentence = sentence_of([&] {
      FileWriter file(folder_ / "a", GetParam());
      FileWriterStream stream(file);
      for (int i = 0; i < 100'000; ++i) stream << "0123456789";
      stream.flush();
      file.commit();
    });
    _exit(sentence == (folder_ / "a").string() + ": the file cannot be written (File too large)." ? 7 : 8);
  });
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 7);
  EXPECT_EQ(content_of(folder_ / "a"), "old");
  EXPECT_EQ(names_in(folder_), std::set<std::string>{"a"});
}

INSTANTIATE_TEST_SUITE_P(Both, FileWriterOf, ::testing::Values(PartialFile::unnamed_if_possible, PartialFile::named));

TEST(FileWriter, RefusesWhatIsNoOrdinaryFile) {
  const ScratchFolder folder;
  EXPECT_NE(sentence_of([&] { FileWriter file(folder.path()); }).find("(this is a folder)"), std::string::npos);
  EXPECT_EQ(sentence_of([] { FileWriter file("/dev/full"); }),
            "/dev/full: the file cannot be written (this is no ordinary file).");
  EXPECT_NE(sentence_of([&] { FileWriter file(folder / "no/where"); }).find("(No such file or directory)"),
            std::string::npos);
}

TEST(FileWriter, ANameAsLongAsTheSystemAllowsCanBeWritten) {
  const ScratchFolder folder;
  const std::string name(255, 'n');
  for (int round = 0; round < 2; ++round) {
    FileWriter file(folder / name, round == 0 ? PartialFile::named : PartialFile::unnamed_if_possible);
    file.append("x");
    file.commit();
  }
  EXPECT_EQ(names_in(folder), std::set<std::string>{name});
}

TEST(PrepareProgram, ASignalThatTheCallerIgnoredStaysIgnored) {
  const int status = end_of_child([] {
    ::signal(SIGHUP, SIG_IGN);  // as nohup does
    prepare_program();
    ::raise(SIGHUP);
    _exit(5);
  });
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 5);
}

TEST(PrepareProgram, WhatIsPrintedToAClosedOutputDoesNotGoIntoAFile) {
  const ScratchFolder folder;
  const int status = end_of_child([&] {
    ::close(1);
    prepare_program();
    FileWriter file(folder / "a");
    const bool refused = ::write(1, "printed", 7) < 0;
    file.append("written");
    file.commit();
    _exit(refused ? 5 : 6);
  });
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 5);
  EXPECT_EQ(content_of(folder / "a"), "written");
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
