// Does every include point down? The rules of docs/design.md, checked on the source text.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>

namespace memwall {
namespace {

// For a room of models/workload/import: the rooms that it names, and what all of them stand on.
std::set<std::string> import_rooms(std::set<std::string> named) {
  std::set<std::string> all = {"sim", "models/workload/flops.h", "models/workload/operator_class.h",
                               "models/workload/import/bytes"};
  for (const std::string& room : named) all.insert("models/workload/import/" + room);
  return all;
}

// Folder -> folders and files of this project that its files may include. Of a file the longest folder decides.
const std::map<std::string, std::set<std::string>> kMayInclude = {
    {"sim", {"sim"}},
    {"models/hw", {"sim", "models/hw"}},
    {"models/workload", {"sim", "models/workload/flops.h", "models/workload/operator_class.h"}},
    {"models/workload/memory", {"sim", "models/workload/memory"}},
    {"models/workload/forecast",
     {"sim", "models/workload/import/bytes", "models/workload/memory", "models/workload/forecast"}},
    {"models/workload/generate",
     {"sim", "models/workload/flops.h", "models/workload/operator_class.h", "models/workload/import/bytes",
      "models/workload/generate"}},
    {"models/workload/import/bytes", {"sim", "models/workload/import/bytes"}},
    {"models/workload/import/timed", import_rooms({"timed"})},
    {"models/workload/import/execution_trace", import_rooms({"timed", "execution_trace"})},
    {"models/workload/import/kineto", import_rooms({"timed", "execution_trace", "kineto"})},
    {"models/workload/import/mwc", import_rooms({"timed", "execution_trace", "mwc"})},
    {"models/workload/import/chakra", import_rooms({"timed", "execution_trace", "chakra"})},
    {"models/workload/import/cupti", import_rooms({"timed", "execution_trace", "cupti"})},
    {"models/workload/import/snapshot",
     {"sim", "models/workload/import/bytes", "models/workload/import/timed", "models/workload/memory",
      "models/workload/import/snapshot"}},
    {"models/workload/import/tables", import_rooms({"timed", "execution_trace", "tables"})},
    {"models/workload/import", import_rooms({"timed", "execution_trace", "kineto", "mwc", "chakra", "cupti", "snapshot",
                                             "tables", "importer.h", "trace_coverage.h"})},
    {"models/workload/import/ranks",
     import_rooms({"timed", "execution_trace", "kineto", "cupti", "importer.h", "ranks"})},
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

// The longest of kMayInclude's folders around a file.
std::string folder_of(const std::string& file) {
  std::string longest;
  for (const auto& [folder, allowed] : kMayInclude)
    if (file.starts_with(folder + "/") && folder.size() > longest.size()) longest = folder;
  return longest;
}

std::vector<std::string> violations(const std::string& folder, const std::string& file, std::istream& text) {
  static const std::regex include(R"(^\s*#include\s+"([^"]+)\")");
  std::vector<std::string> found;
  std::smatch match;
  for (std::string line; std::getline(text, line);) {
    if (!std::regex_search(line, match, include)) continue;
    const std::string target = match[1];
    bool allowed = target.ends_with(".pb.h");  // generated from the folder's own schema
    for (const std::string& prefix : kMayInclude.at(folder))
      allowed = allowed || target == prefix || target.starts_with(prefix + "/");
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
      const std::string file = entry.path().lexically_relative(root);
      if (folder_of(file) != folder) continue;
      ++files;
      std::ifstream text(entry.path());
      const auto found = violations(folder, file, text);
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
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(std::filesystem::path(MEMWALL_SOURCE) / "sim")) {
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
