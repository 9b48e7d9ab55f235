// Does an installation hold what was built, and run by itself: moved, and without the source tree?
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "tests/support/command.h"
#include "tests/support/scratch_folder.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

namespace fs = std::filesystem;

const fs::path kBuild = fs::path(MEMWALL_PROGRAM).parent_path().parent_path();

class Install : public ::testing::Test {
 protected:
  void SetUp() override {
    const CommandOutcome o = shell("cmake --install '" + kBuild.string() + "' --prefix '" + prefix_.string() + "'");
    ASSERT_EQ(o.code, 0) << o.out << o.err;
  }
  CommandOutcome shell(const std::string& line) const { return run_command(line, folder_.path()); }
  bool installed(const std::string& file) const { return fs::exists(prefix_ / file); }
  // As a user has it who knows nothing of the source tree.
  std::string program(const fs::path& prefix) const {
    return "env -i PATH=/usr/bin:/bin HOME='" + folder_.path().string() + "' '" + (prefix / "bin/memwall").string() +
           "' ";
  }

  const ScratchFolder folder_;
  const fs::path prefix_ = folder_ / "prefix";
};

TEST_F(Install, EverythingStandsInTheUsualPlaces) {
  for (const char* file :
       {"bin/memwall", "bin/memwall-bench", "bin/memwall-replay", "share/man/man1/memwall.1",
        "share/man/man1/memwall-bench.1", "share/man/man1/memwall-replay.1", "share/man/man1/memwall-run.1",
        "share/man/man1/memwall-machines.1", "share/bash-completion/completions/memwall",
        "share/zsh/site-functions/_memwall", "share/fish/vendor_completions.d/memwall.fish",
        "share/memwall/machines/t4.textproto", "share/memwall/workloads/llama3-8b.textproto",
        "share/memwall/samples/gpt_124m.mwt", "share/memwall/validate/DEVIATIONS.md"})
    EXPECT_TRUE(installed(file)) << file;
  EXPECT_TRUE(fs::is_directory(prefix_ / "share/memwall/validate/data"));
  if (installed("bin/memwall-viewer")) {
    EXPECT_TRUE(installed("share/applications/memwall-viewer.desktop"));
    EXPECT_TRUE(installed("share/man/man1/memwall-viewer.1"));
    EXPECT_EQ(shell("prefix/bin/memwall-viewer --version").code, 0);
  }
  EXPECT_EQ(shell("prefix/bin/memwall --version").code, 0);
  EXPECT_EQ(shell("prefix/bin/memwall help").code, 0);
}

// As after .ci/demo, which builds a part: the scripts of the installation look for programs that are not there.
TEST_F(Install, WhatWasNotBuiltIsLeftOut) {
  ASSERT_EQ(shell("mkdir scripts").code, 0);
  for (const char* part : {".", "gui"}) {
    std::string script = content_of(kBuild / part / "cmake_install.cmake");
    ASSERT_FALSE(script.empty());
    for (const char* built : {"/validate/memwall-bench", "/validate/memwall-replay", "/gui/memwall-viewer"}) {
      const std::string absent = "/absent" + std::string(built);
      for (std::size_t at = 0; (at = script.find(kBuild.string() + built, at)) != std::string::npos;
           at += absent.size())
        script.replace(at, kBuild.string().size() + std::string(built).size(), absent);
    }
    // Alone, not with those of other folders.
    for (std::size_t at; (at = script.find("include(\"")) != std::string::npos;) script.replace(at, 8, "message(");
    write_content(folder_ / "scripts" / (std::string(part) == "." ? "top.cmake" : "gui.cmake"), script);
  }
  for (const char* script : {"top", "gui"}) {
    const CommandOutcome o =
        shell("cmake -D CMAKE_INSTALL_PREFIX=\"$PWD/part\" -P scripts/" + std::string(script) + ".cmake");
    ASSERT_EQ(o.code, 0) << o.out << o.err;
  }
  for (const char* there : {"bin/memwall", "share/man/man1/memwall.1", "share/memwall/machines/t4.textproto"})
    EXPECT_TRUE(fs::exists(folder_ / "part" / there)) << there;
  for (const char* absent : {"bin/memwall-bench", "share/man/man1/memwall-bench.1", "bin/memwall-replay",
                             "bin/memwall-viewer", "share/applications/memwall-viewer.desktop"})
    EXPECT_FALSE(fs::exists(folder_ / "part" / absent)) << absent;
}

// What it finds is its own and moves with it: a machine that only the installation has, and none that it has not.
TEST_F(Install, FindsItsOwnDataWhereverItIsMoved) {
  const fs::path moved = folder_ / "moved elsewhere";
  fs::rename(prefix_, moved);
  const fs::path machines = moved / "share/memwall/machines", workloads = moved / "share/memwall/workloads";
  fs::rename(machines / "t4.textproto", machines / "of-this-installation.textproto");
  fs::rename(workloads / "gpt2-124m.textproto", workloads / "of-this-one.textproto");
  const std::string list = shell(program(moved) + "machines").out;
  EXPECT_NE(list.find("of-this-installation"), std::string::npos) << list;
  EXPECT_EQ(list.find("\n  t4 "), std::string::npos) << list;
  EXPECT_EQ(shell(program(moved) + "machines show t4").code, 2);
  const std::string workloads_listed = shell(program(moved) + "generate --list").out;
  EXPECT_NE(workloads_listed.find("of-this-one"), std::string::npos) << workloads_listed;
  EXPECT_EQ(workloads_listed.find("\n  gpt2-124m "), std::string::npos);
  EXPECT_EQ(shell(program(moved) + "run of-this-one:layers=1,batch=1,sequence=64 --machine of-this-installation").code,
            0);
  // The environment comes first, the source tree last.
  const std::string named = "MEMWALL_MACHINES='" MEMWALL_SOURCE "/models/hw/machines' ";
  EXPECT_EQ(shell(named + "'" + (moved / "bin/memwall").string() + "' machines show t4").code, 0);
  fs::remove_all(moved / "share/memwall");
  EXPECT_EQ(shell(program(moved) + "machines show t4").code, 0) << "the source tree is still there";
}

// The source tree hidden under an empty file system, where a user may do that.
TEST_F(Install, RunsWithoutTheSourceTree) {
  const std::string hidden = "unshare -rm sh -c 'mount -t tmpfs none \"" MEMWALL_SOURCE "\" && test ! -e \"" +
                             std::string(MEMWALL_SOURCE) + "/cli\" && ";
  if (shell(hidden + "true'").code != 0) GTEST_SKIP() << "this user may not hide a folder (unshare -rm)";
  const std::string memwall = program(prefix_);
  const std::string all = memwall + "machines && " + memwall + "machines show h100-sxm-80gb && " + memwall +
                          "generate llama3-8b --set layers=1 -o step.mwt && " + memwall +
                          "run step.mwt --machine h100-sxm-80gb && " + memwall +
                          "run prefix/share/memwall/samples/gpt_124m.mwt && " + memwall + "validate && " + memwall +
                          "help && " + memwall + "help run";
  std::string quoted = all;
  for (std::size_t at = 0; (at = quoted.find('\'', at)) != std::string::npos; at += 4) quoted.replace(at, 1, "'\\''");
  const CommandOutcome o = shell(hidden + quoted + "'");
  EXPECT_EQ(o.code, 0) << o.err;
  for (const char* word : {"h100-sxm-80gb", "One step of llama3-8b", "step time"})
    EXPECT_NE(o.out.find(word), std::string::npos) << word;
  if (installed("bin/memwall-viewer")) {
    const CommandOutcome viewer = shell(hidden + "prefix/bin/memwall-viewer --version'");
    EXPECT_EQ(viewer.code, 0) << viewer.err;
  }
  // The control: the program of the build tree knows no other folder, and that one is hidden.
  EXPECT_EQ(shell("cp '" MEMWALL_PROGRAM "' alone && " + hidden + "./alone machines'").code, 6);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
