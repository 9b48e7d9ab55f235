// Do the lists of the documentation hold every registered policy, and none that there is not?
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>

#include "sim/policy/registry.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

using Names = std::set<std::string>;

const std::filesystem::path kSource = MEMWALL_SOURCE;

std::string page(const std::string& path) {
  std::ifstream in(kSource / path);
  return {std::istreambuf_iterator<char>(in), {}};
}

Names matches_in(const std::string& text, const char* pattern) {
  const std::regex regex(pattern);
  Names found;
  for (std::sregex_iterator m(text.begin(), text.end(), regex), end; m != end; ++m) found.insert((*m)[1]);
  return found;
}

// From `begin` to the next `end` behind it.
std::string part_of(const std::string& text, const std::string& begin, const std::string& end) {
  const std::size_t from = text.find(begin);
  if (from == std::string::npos) return "";
  return text.substr(from, text.find(end, from + begin.size()) - from);
}

// Without those that tests of this program register.
Names registered(bool (*is_listed)(const PolicyInfo&)) {
  Names names;
  for (const auto& [name, info] : policies())
    if (is_listed(info) && !name.starts_with("test_")) names.insert(name);
  return names;
}

// Those whose files stand in policies/planners.
Names planners_by_file() {
  Names names;
  for (const auto& file : std::filesystem::directory_iterator(kSource / "policies/planners"))
    if (file.path().extension() == ".cpp")
      names.merge(matches_in(page(file.path().lexically_relative(kSource)), R"RX(\{\.name = "(\w+)",)RX"));
  return names;
}

// What `memwall compare-policies` asks where no policy is named.
bool is_asked_unnamed(const PolicyInfo& info) {
  const auto is_budget = [](const ParameterInfo& parameter) { return parameter.name == "budget"; };
  const auto is_required = [](const ParameterInfo& parameter) { return parameter.required(); };
  return info.kind == PolicyKind::memory_plan && std::ranges::any_of(info.parameters, is_budget) &&
         std::ranges::none_of(info.parameters, is_required);
}

TEST(PolicyLists, ReadmeNamesEveryPolicyInItsRoom) {
  const std::string row = part_of(page("README.md"), "\n| `policies/` |", "\n");
  ASSERT_NE(row, "");
  Names listed;
  const std::regex list(R"(\(([a-z0-9_, ]+)\))");
  for (std::sregex_iterator m(row.begin(), row.end(), list), end; m != end; ++m)
    listed.merge(matches_in((*m)[1], R"((\w+))"));
  for (const char* room : {"offload", "batch", "fusion"})  // rooms of one policy, which has their name
    if (row.find('`' + std::string(room) + "/`") != std::string::npos) listed.insert(room);
  EXPECT_EQ(listed, registered([](const PolicyInfo&) { return true; }));
}

TEST(PolicyLists, ThePageOfPlannersHasARowForEachOfThem) {
  const Names planners = planners_by_file();
  EXPECT_GT(planners.size(), 15u) << "the check must see the source";
  for (const std::string& name : planners) EXPECT_TRUE(policies().contains(name)) << name;
  const std::string table = part_of(page("docs/policies.md"), "\n| planner | what it does |", "\n\n");
  EXPECT_EQ(matches_in(table, R"(\n\| `(\w+)` \|)"), planners);
}

TEST(PolicyLists, EveryComparisonOfPlannersIsOfAllThatTakeABudget) {
  Names expected = registered(is_asked_unnamed);
  EXPECT_TRUE(expected.contains("plan"));
  expected.insert("none");  // checkpoint:mode=full stands beside, too
  const std::string planning = page("docs/planning.md");
  std::size_t tables = 0;
  for (std::size_t at = planning.find("\n| planner |"); at != std::string::npos;
       at = planning.find("\n| planner |", at + 1), ++tables) {
    const std::string table = planning.substr(at, planning.find("\n\n", at) - at);
    EXPECT_EQ(matches_in(table.substr(table.find("---")), R"(\n\| (\w+) \|)"), expected) << "table " << tables + 1;
  }
  EXPECT_GE(tables, 4u);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
