// Does every include point down? The rules of docs/design.md, checked on the source text.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>

namespace memwall {
namespace {

// Folder -> folders of this project that its files may include.
const std::map<std::string, std::set<std::string>> kMayInclude = {
    {"sim", {"sim"}},
    {"models/hw", {"sim", "models/hw"}},
    {"models/workload", {"sim", "models/workload"}},
    {"policies", {"sim", "policies"}},
    {"traces/trace", {"sim", "traces/trace"}},
    {"traces/figure", {"sim", "traces/figure"}},
    {"traces/run", {"sim", "traces/run", "traces/figure"}},
    {"gui/model", {"sim", "traces/run", "traces/figure", "gui/model"}},
    {"gui/drawing", {"sim", "traces/run", "traces/figure", "gui/model", "gui/drawing"}},
    {"gui/paint", {"sim", "traces/figure", "gui/paint"}},
    {"gui/probe", {"gui/model"}},
    {"gui/view", {"sim", "traces/run", "traces/figure", "gui"}},
    {"validate/measurement", {"sim", "validate/measurement"}},
    {"validate/replay", {"sim", "validate/measurement", "validate/replay"}},
    {"validate/bench", {"sim", "validate/measurement", "validate/replay", "validate/bench"}},
    {"validate/calibrate", {"sim", "models/hw", "validate/measurement", "validate/calibrate"}},
    {"validate/report", {"sim", "models", "policies", "traces", "validate"}},
    {"validate/published", {"sim", "models", "traces", "validate/published"}},
    {"validate/transfer", {"sim", "models", "validate/published", "validate/transfer"}},
};

std::vector<std::string> violations(const std::string& folder, const std::string& file, std::istream& text) {
  static const std::regex include(R"(^\s*#include\s+"([^"]+)\")");
  std::vector<std::string> found;
  std::smatch match;
  for (std::string line; std::getline(text, line);) {
    if (!std::regex_search(line, match, include)) continue;
    const std::string target = match[1];
    bool allowed = target.ends_with(".pb.h");  // generated from the folder's own schema
    for (const std::string& prefix : kMayInclude.at(folder)) allowed = allowed || target.starts_with(prefix + "/");
    if (!allowed) found.push_back(file + " includes " + target);
  }
  return found;
}

TEST(Layers, EveryIncludePointsDown) {
  const std::filesystem::path root = MEMWALL_SOURCE;
  std::size_t files = 0;
  for (const auto& [folder, allowed] : kMayInclude) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root / folder)) {
      const std::string extension = entry.path().extension();
      if (extension != ".h" && extension != ".cpp" && extension != ".cu") continue;
      ++files;
      std::ifstream text(entry.path());
      const auto found = violations(folder, entry.path().lexically_relative(root), text);
      EXPECT_EQ(found, std::vector<std::string>{});
    }
  }
  EXPECT_GT(files, 50u) << "the check must see the source";
}

TEST(Layers, AnUpwardIncludeIsSeen) {
  std::istringstream text("#include <vector>\n#include \"sim/trace/op.h\"\n  #include \"policies/lru.h\"\n");
  EXPECT_EQ(violations("sim", "sim/x.h", text), std::vector<std::string>{"sim/x.h includes policies/lru.h"});
}

// Two types of one name in one namespace are one type to the linker: it keeps one of their inline
// functions for both, and writes over memory where their sizes differ.
TEST(Layers, NoTwoHeadersDefineATypeOfOneName) {
  static const std::regex definition(R"(^(?:struct|class) ([A-Z]\w*)(?: final)?(?: :.*)? ?\{)");
  std::map<std::string, std::string> file_of;
  for (const char* folder : {"sim", "models", "policies", "traces", "validate", "gui", "cli"}) {
    for (const auto& entry :
         std::filesystem::recursive_directory_iterator(std::filesystem::path(MEMWALL_SOURCE) / folder)) {
      if (entry.path().extension() != ".h") continue;
      std::ifstream text(entry.path());
      std::smatch match;
      for (std::string line; std::getline(text, line);) {
        if (!std::regex_search(line, match, definition)) continue;
        const auto [first, is_new] = file_of.emplace(match[1], entry.path());
        EXPECT_TRUE(is_new) << match[1] << " is defined in " << first->second << " and in " << entry.path();
      }
    }
  }
  EXPECT_GT(file_of.size(), 100u) << "the check must see the source";
}

TEST(Layers, TheEngineUsesTheStandardLibraryOnly) {
  static const std::regex angle(R"(^\s*#include\s+<([^>]+)>)");
  for (const auto& entry : std::filesystem::directory_iterator(std::filesystem::path(MEMWALL_SOURCE) / "sim")) {
    std::ifstream text(entry.path());
    std::smatch match;
    for (std::string line; std::getline(text, line);)
      if (std::regex_search(line, match, angle)) {
        EXPECT_EQ(match[1].str().find_first_of("./"), std::string::npos) << entry.path() << ": " << line;
      }
  }
}

}  // namespace
}  // namespace memwall
