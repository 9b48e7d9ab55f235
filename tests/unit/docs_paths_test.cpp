// Does every file that the documentation names exist? Links, paths and names of sources in backquotes, of every page.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>
#include <vector>

namespace memwall {
namespace MEMWALL_TEST_FILE {

namespace fs = std::filesystem;

const fs::path kRoot = MEMWALL_SOURCE;

// Files that a recipe of CONTRIBUTING.md has the reader write.
const std::set<std::string> kToBeWritten = {"policies/recipe/halve.cpp",
                                            "tests/unit/policies/recipe/halve_test.cpp",
                                            "cli/verbs/longest.cpp",
                                            "validate/bench/memset_host.cpp",
                                            "tests/golden/expected/help_longest.txt",
                                            "models/workload/import/tables/durations_csv.cpp",
                                            "models/workload/import/tables/durations_csv.h",
                                            "tests/unit/models/workload/import/tables/durations_csv_test.cpp"};

const std::set<std::string> kTop = {"sim",      "models", "policies", "traces", "study",
                                    "validate", "gui",   "cli",    "tests",    "docs"};

struct Tree {
  std::vector<fs::path> pages;  // relative to the root
  std::set<std::string> names;  // of all files, without folders
};

Tree tree() {
  Tree found;
  const auto add = [&](const fs::path& file) {
    const fs::path path = file.lexically_relative(kRoot);
    found.names.insert(path.filename());
    const std::string extension = path.extension();
    if (extension == ".md" || extension == ".1") found.pages.push_back(path);
  };
  for (const auto& entry : fs::directory_iterator(kRoot))
    if (entry.is_regular_file()) add(entry.path());
  for (const std::string& folder : kTop)
    for (const auto& entry : fs::recursive_directory_iterator(kRoot / folder))
      if (entry.is_regular_file()) add(entry.path());
  return found;
}

std::vector<std::string> all_matches(const std::string& text, const char* pattern) {
  const std::regex regex(pattern);
  std::vector<std::string> found;
  for (std::sregex_iterator m(text.begin(), text.end(), regex), end; m != end; ++m) found.push_back((*m)[1]);
  return found;
}

// From the root, or from the page's own folder. A name without an extension is also that of a header and its source.
bool exists(const fs::path& page, const std::string& path) {
  for (const fs::path& base : {kRoot, kRoot / page.parent_path()})
    if (fs::exists(base / path) || fs::exists(base / (path + ".h"))) return true;
  return false;
}

bool is_placeholder(const std::string& path) {
  return path.find("...") != std::string::npos ||
         std::regex_search(path, std::regex("[A-Z]{4,}(/|$|_|\\.[a-z]*\\.)|NAME"));
}

// Is `path` a place in this tree? "torch/optim/optimizer.py" is none: neither the tree nor the page's folder has
// "torch".
bool is_of_this_tree(const fs::path& page, const std::string& path) {
  const std::string first = path.substr(0, path.find('/'));
  if (path == "../shared") return false;                // beside the clone, where somebody has put it
  if (first.empty() || first == "build") return false;  // a place on a computer; what a build makes
  return kTop.contains(first) || fs::is_directory(kRoot / page.parent_path() / first);
}

// What a page names and the tree does not have.
std::vector<std::string> missing(const Tree& tree, const fs::path& page, const std::string& text) {
  std::vector<std::string> found;
  for (const std::string& link : all_matches(text, R"(\]\(([^)#\s]+)(?:#[^)]*)?\))"))
    if (link.find("://") == std::string::npos && !fs::exists(kRoot / page.parent_path() / link)) found.push_back(link);
  for (const std::string& path : all_matches(text, R"(`([A-Za-z0-9_./-]+)`)")) {
    if (is_placeholder(path) || kToBeWritten.contains(path)) continue;
    const bool source = std::regex_search(path, std::regex(R"(\.(h|cpp|cu|proto)$)"));
    if (path.find('/') == std::string::npos ? source && !tree.names.contains(path)
                                            : is_of_this_tree(page, path) && !exists(page, path))
      found.push_back(path);
  }
  if (page.extension() == ".1")
    for (const std::string& path : all_matches(text, R"(\b([a-z]+/[a-z_/]+\.(?:md|h|cpp))\b)"))
      if (!exists(page, path)) found.push_back(path);
  return found;
}

TEST(DocsPaths, EveryPathAndNameExists) {
  const Tree t = tree();
  for (const fs::path& page : t.pages) {
    std::ifstream in(kRoot / page);
    const std::string text(std::istreambuf_iterator<char>(in), {});
    EXPECT_EQ(missing(t, page, text), std::vector<std::string>{}) << page;
  }
  EXPECT_GT(t.pages.size(), 60u) << "the check must see the pages";
}

// The check itself: what does not exist is found, what is none of our files is not asked for.
TEST(DocsPaths, FindsWhatIsMissing) {
  const Tree t = tree();
  const auto found = [&](const std::string& text) { return missing(t, "docs/design.md", text); };
  using Names = std::vector<std::string>;
  EXPECT_EQ(found("[a](engine.md), [b](gone.md), [c](https://a.b/c.md)"), Names{"gone.md"});
  EXPECT_EQ(found("`sim/error.h`, `sim/gone.h`, `sim/`, `gone_entirely.cpp`, `torch/optim/optimizer.py`"),
            (Names{"sim/gone.h", "gone_entirely.cpp"}));
  EXPECT_EQ(found("`cli/verbs/NAME.cpp`, `gui/drawing/..._row.cpp`"), Names{});
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
