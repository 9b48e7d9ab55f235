// Do the shells complete what the program takes?
#include <gtest/gtest.h>

#include <set>
#include <sstream>
#include <string>

#include "tests/support/program.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

class Completion : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* shell : {"bash", "zsh", "fish"}) {
      const CommandOutcome o = run_memwall(folder_, std::string("completion ") + shell + " -o script." + shell);
      ASSERT_EQ(o.code, 0) << o.err;
    }
    run_command("mkdir 'a folder' folder && touch step.mwt 'two words.mwt'", folder_.path());
  }
  static bool has(const char* shell) {
    return std::system(("command -v " + std::string(shell) + " >/dev/null 2>&1").c_str()) == 0;
  }
  static std::set<std::string> lines_of(const std::string& text) {
    std::istringstream lines(text);
    std::set<std::string> found;
    for (std::string line; std::getline(lines, line);) found.insert(line.substr(0, line.find('\t')));
    return found;
  }
  // What bash offers for the last of the words: each in quotes, as bash keeps them ('--format' '=' 'j').
  std::set<std::string> in_bash(const std::string& words) const {
    const CommandOutcome o = run_command(
        "env -i PATH=\"$PATH\" bash --norc -c '. ./script.bash; complete -p memwall >/dev/null || exit 9; "
        "COMP_WORDS=(memwall " +
            words + "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _memwall; printf \"%s\\n\" \"${COMPREPLY[@]}\"'",
        folder_.path());
    EXPECT_EQ(o.code, 0) << o.err;
    EXPECT_EQ(o.err, "") << words;
    return lines_of(o.out);
  }
  std::set<std::string> in_fish(const std::string& line) const {
    const CommandOutcome o = run_command(
        "env HOME=\"$PWD\" XDG_CONFIG_HOME=\"$PWD\" fish --no-config -c 'source script.fish; complete -C\"memwall " +
            line + "\"'",
        folder_.path());
    EXPECT_EQ(o.code, 0) << o.err;
    return lines_of(o.out);
  }
  using Words = std::set<std::string>;
  const ScratchFolder folder_;
};

TEST_F(Completion, OfBashOffersVerbsOptionsAndValues) {
  if (!has("bash")) GTEST_SKIP() << "bash was not found";
  EXPECT_EQ(in_bash("ru"), Words{"run"});
  EXPECT_EQ(in_bash("co"), (Words{"compare", "compare-policies", "completion"}));
  EXPECT_EQ(in_bash("run --pol"), Words{"--policy"});
  EXPECT_EQ(in_bash("run step.mwt --policy che"), (Words{"checkmate", "checkpoint", "chen"}));
  EXPECT_EQ(in_bash("run step.mwt --pager l"), Words{"lru"});
  EXPECT_FALSE(in_bash("run step.mwt --policy l").contains("lru")) << "a pager is none";
  EXPECT_EQ(in_bash("run step.mwt --machine h100-s"),
            (Words{"h100-sxm-80gb", "h100-sxm-80gb-cxl", "h100-sxm-96gb-hbm2e"}));
  EXPECT_EQ(in_bash("run --format j"), Words{"json"});
  EXPECT_EQ(in_bash("run --format = j"), Words{"json"});
  EXPECT_EQ(in_bash("run --format ="), (Words{"table", "json", "csv", "md"}));
  EXPECT_EQ(in_bash("machines sh"), Words{"show"});
  EXPECT_EQ(in_bash("machines t4"), Words{"t4"});
  EXPECT_EQ(in_bash("machines show --se"), Words{"--set"});
  EXPECT_EQ(in_bash("machines show t4"), Words{"t4"});
  EXPECT_EQ(in_bash("policies of"), Words{"offload"});
  EXPECT_EQ(in_bash("generate llama3-8"), Words{"llama3-8b"});
  EXPECT_EQ(in_bash("help gen"), Words{"generate"});
  EXPECT_EQ(in_bash("--color n"), Words{"never"});
  EXPECT_EQ(in_bash("--color never ru"), Words{"run"});
  EXPECT_EQ(in_bash("run --color=al"), Words{""}) << "as one word it is no value; bash itself splits at =";
  EXPECT_EQ(in_bash("run --steps \"\""), Words{""}) << "a number has no names";
}

TEST_F(Completion, OfBashOffersFilesWhereFilesAreRead) {
  if (!has("bash")) GTEST_SKIP() << "bash was not found";
  EXPECT_EQ(in_bash("run st"), Words{"step.mwt"});
  EXPECT_EQ(in_bash("run tw"), Words{"two words.mwt"});
  EXPECT_EQ(in_bash("compare step.mwt st"), Words{"step.mwt"});
  EXPECT_EQ(in_bash("run x -o st"), Words{"step.mwt"});
  EXPECT_EQ(in_bash("run x --machine st"), Words{"step.mwt"}) << "a machine may be a file";
  EXPECT_EQ(in_bash("validate --published f"), Words{"folder"});
  EXPECT_EQ(in_bash("validate --published st"), Words{""}) << "no folder";
}

// Every option of every verb, as its help prints them.
TEST_F(Completion, OfBashKnowsEveryOption) {
  if (!has("bash")) GTEST_SKIP() << "bash was not found";
  int verbs = 0;
  for (const std::string& verb : in_bash("\"\"")) {
    if (verb == "help") continue;
    ++verbs;
    std::istringstream help(run_memwall(folder_, verb + " --help").out);
    const std::set<std::string> offered = in_bash(verb + " -");
    for (std::string line; std::getline(help, line);) {
      if (!line.starts_with("  -")) continue;
      std::istringstream names(line.substr(2, line.find(' ', 2) - 2));
      for (std::string name; std::getline(names, name, ',');)
        EXPECT_TRUE(offered.contains(name)) << verb << " " << name;
    }
    EXPECT_TRUE(offered.contains("--color")) << verb;
  }
  EXPECT_GE(verbs, 19);
}

// An option with a text behind it is known to cli/option_values.cpp, or takes a text that nobody can know.
TEST_F(Completion, OfBashOffersSomethingBehindEveryOptionThatNamesThings) {
  if (!has("bash")) GTEST_SKIP() << "bash was not found";
  const Words of_ones_own{"--alloc-conf", "--capacity",   "--lane",      "--name",       "--range",          "--scale",
                          "--set",        "--step-range", "--tier",      "--budget",     "--robust",         "--tiers",
                          "--over",       "--zip",        "--sample",    "--by",         "--only",           "--curve",
                          "--table",      "--shard",      "--slurm-mem", "--slurm-time", "--slurm-partition",
                          "--train-tokens"};
  int options = 0;
  for (const std::string& verb : in_bash("\"\"")) {
    if (verb == "help") continue;
    std::istringstream help(run_memwall(folder_, verb + " --help").out);
    for (std::string line; std::getline(help, line);) {
      if (!line.starts_with("  -") || line.find(" TEXT") == std::string::npos) continue;
      const std::string names = line.substr(2, line.find(' ', 2) - 2), name = names.substr(names.rfind(',') + 1);
      if (of_ones_own.contains(name)) continue;
      ++options;
      EXPECT_NE(in_bash(verb + " " + name + " \"\""), Words{""}) << verb << " " << name;
    }
  }
  EXPECT_GT(options, 40);
}

// Words that completion knows by itself are those that the program knows.
TEST_F(Completion, OffersTheWordsThatAreTaken) {
  if (!has("bash")) GTEST_SKIP() << "bash was not found";
  const struct {
    const char *option, *refusal;
  } lists[] = {{"run x --format", "run x --format @"},
               {"export x --to", "export x --to @"},
               {"render x --view", "render x --view @"},
               {"validate --live --backend", "validate --live --backend @"},
               {"completion", "completion @"},
               {"run x --allocator", "run x --allocator @"},
               {"memory x --allocator", "memory x --allocator @"}};
  for (const auto& list : lists) {
    const std::string refusal = run_memwall(folder_, list.refusal).err;
    const std::string expected = refusal.substr(refusal.find("expected", refusal.find('@')));
    for (const std::string& word : in_bash(std::string(list.option) + " \"\""))
      EXPECT_NE(expected.find(word), std::string::npos) << list.option << " " << word << ": " << refusal;
    // And the other way round: as many words as the sentence names.
    std::size_t named = 0;
    std::string all = expected.substr(8, expected.find_first_of(".\n") - 8);
    for (const char* other : {"one of", "(of runs)", "(of memory snapshots)"})
      if (const std::size_t at = all.find(other); at != std::string::npos) all.erase(at, std::string(other).size());
    std::set<std::string> words;
    for (char& c : all)
      if (c == ',' || c == ':') c = ' ';
    std::istringstream text(all);
    for (std::string word; text >> word;)
      if (word != "or" && word != "and") words.insert(word);
    named = words.size();
    EXPECT_EQ(named, in_bash(std::string(list.option) + " \"\"").size()) << list.option << ": " << expected;
  }
}

TEST_F(Completion, OfFishOffersTheSame) {
  if (!has("fish")) GTEST_SKIP() << "fish was not found";
  EXPECT_EQ(in_fish("ru"), Words{"run"});
  EXPECT_EQ(in_fish("run step.mwt --policy checkp"), Words{"checkpoint"});
  EXPECT_EQ(in_fish("run --format=j"), Words{"--format=json"});
  EXPECT_EQ(in_fish("machines show t4"), Words{"t4"});
  EXPECT_EQ(in_fish("run ste"), Words{"step.mwt"});
  EXPECT_TRUE(in_fish("run --").contains("--second-size"));
  EXPECT_FALSE(in_fish("compare --").contains("--second-size"));
}

TEST_F(Completion, OfZshOffersTheSame) {
  if (!has("zsh")) GTEST_SKIP() << "zsh was not found";
  EXPECT_EQ(run_command("zsh -n script.zsh", folder_.path()).err, "");
  // A shell of its own, in which the key Tab is pressed, and what it makes of the line is printed.
  write_content(folder_ / "press_tab.zsh", R"(zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell "PS1=; unsetopt zle_bracketed_paste; autoload -U compinit; compinit -u -D; source ./script.zsh; setopt no_beep"
zpty -w shell "show() { print -r -- \"<<\$BUFFER>>\"; BUFFER=; zle accept-line }; zle -N show; bindkey '^X' show; print ready''now"
zpty -r shell out '*readynow*'
sleep 0.3
zpty -w -n shell "$1"$'\t\x18'
zpty -r shell out '*<<*>>*'
print -r -- "$out"
)");
  const struct {
    const char *typed, *line;
  } cases[] = {{"memwall gen", "<<memwall generate >>"},
               {"memwall run step.mwt --poli", "<<memwall run step.mwt --policy=>>"},
               {"memwall run step.mwt --policy checkp", "<<memwall run step.mwt --policy checkpoint >>"},
               {"memwall run ste", "<<memwall run step.mwt >>"},
               {"memwall machines show t4 --form", "<<memwall machines show t4 --format=>>"},
               {"memwall run --machine b200", "<<memwall run --machine b200-sxm-180gb >>"}};
  for (const auto& c : cases) {
    const CommandOutcome o =
        run_command("timeout 30 zsh -f press_tab.zsh '" + std::string(c.typed) + "'", folder_.path());
    std::string shown;
    for (const char byte : o.out)
      if (byte != '\r' && byte != '\n') shown += byte;
    EXPECT_NE(shown.find(c.line), std::string::npos) << c.typed << "\n" << o.out << o.err;
  }
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
