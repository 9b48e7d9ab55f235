// Does code that CONTRIBUTING.md shows as that of a file stand in that file? (What it shows of files that there are not
// is compiled and run by contributing_code_test.cpp.)
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace memwall {
namespace MEMWALL_TEST_FILE {

const std::filesystem::path kTop = MEMWALL_SOURCE;

std::string source_text(const std::string& path) {
  std::ifstream in(kTop / path);
  return {std::istreambuf_iterator<char>(in), {}};
}

// Without indentation and without a comment behind it.
std::string code_of(const std::string& line) {
  const std::size_t begin = line.find_first_not_of(' ');
  if (begin == std::string::npos || line.compare(begin, 2, "//") == 0) return "";
  const std::string code = line.substr(begin, line.find("  //") - begin);
  return code.substr(0, code.find_last_not_of(' ') + 1);
}

std::vector<std::string> code_lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);)
    if (const std::string code = code_of(line); !code.empty()) lines.push_back(code);
  return lines;
}

// The first block of C++ behind a sentence; "" where there is none.
std::string block_behind(const std::string& page, const std::string& sentence) {
  const std::size_t at = page.find(sentence);
  if (at == std::string::npos) return "";
  const std::string fence = "```cpp\n";
  const std::size_t begin = page.find(fence, at);
  return page.substr(begin + fence.size(), page.find("```\n", begin + fence.size()) - begin - fence.size());
}

struct ShownCode {
  const char *sentence, *file;
};

TEST(ContributingExamples, ShownCodeStandsInItsFile) {
  const std::string page = source_text("CONTRIBUTING.md");
  for (const ShownCode& shown :
       {ShownCode{"this is what `chen.cpp` ends with", "policies/planners/chen.cpp"},
        ShownCode{"This is how `policies/planners/vdnn.cpp` does it", "policies/planners/vdnn.cpp"},
        ShownCode{"`layer_norm` in `operators_normalization.cpp` shows all of them",
                  "models/workload/generate/operators/operators_normalization.cpp"}}) {
    const std::vector<std::string> lines = code_lines(block_behind(page, shown.sentence));
    EXPECT_GT(lines.size(), 5u) << "no code behind: " << shown.sentence;
    const std::vector<std::string> written = code_lines(source_text(shown.file));
    const std::set<std::string> there(written.begin(), written.end());
    for (const std::string& line : lines) EXPECT_TRUE(there.contains(line)) << shown.file << " has no line: " << line;
  }
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
