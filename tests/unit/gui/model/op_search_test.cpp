// Does a search find the ops and storages that a loop over the whole run finds?
#include "gui/model/op_search.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/gpt_trace.h"
#include "tests/support/tiered_run.h"

namespace memwall::gui {
namespace MEMWALL_TEST_FILE {

using WholeRun = memwall::Run;

std::shared_ptr<const WholeRun> sample() {
  GptShape shape;
  shape.layers = 12;
  return std::make_shared<const WholeRun>(tiered_run(gpt_step(shape), {}));
}

std::string lowered(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

std::vector<OpRef> loop(const WholeRun& run, const std::vector<std::string>& words) {
  std::vector<OpRef> found;
  const auto& strings = run.trace->strings;
  for (OpId id = 0; id < run.trace->ops.size(); ++id) {
    const Op& op = run.trace->ops[id];
    const bool all = std::all_of(words.begin(), words.end(), [&](const std::string& word) {
      return lowered(strings[op.name]).find(word) != std::string::npos ||
             lowered(strings[op.operator_name]).find(word) != std::string::npos ||
             lowered(strings[op.module]).find(word) != std::string::npos;
    });
    if (all) found.push_back({1, id, false});
  }
  return found;
}

TEST(OpSearch, FindsAllWordsInAnyOrderInLettersOfEitherCase) {
  const auto run = sample();
  const OpenRun open = opened(run);
  const std::vector<std::pair<std::string, std::vector<std::string>>> cases = {
      {"MLP", {"mlp"}},
      {"mlp layers.1", {"mlp", "layers.1"}},
      {" layers.1\tMlp ", {"mlp", "layers.1"}},
      {"layers.11 attention", {"layers.11", "attention"}},
      {"softmax", {"softmax"}},
      {"nothing like this", {"nothing", "like", "this"}}};
  std::size_t all = 0;
  for (const auto& [text, words] : cases) {
    const SearchResult found = search(open, 1, text, {});
    EXPECT_EQ(found.ops, loop(*run, words)) << text;
    EXPECT_TRUE(found.complete);
    all += found.ops.size();
  }
  EXPECT_GT(all, 100u);
}

TEST(OpSearch, FindsStoragesByTheirLabels) {
  const auto run = sample();
  OpenRun open = opened(run);
  std::vector<StorageRef> expected;
  for (StorageId storage = 0; storage < run->trace->storages.size(); ++storage) {
    const std::string label = lowered(run->trace->strings[run->trace->storages[storage].label]);
    if (label.find("layers.3") != std::string::npos && label.find("mlp") != std::string::npos)
      expected.push_back({0, storage});
  }
  ASSERT_FALSE(expected.empty());
  EXPECT_EQ(search(open, 0, "mlp layers.3", {}).storages, expected);
  open.history = nullptr;
  EXPECT_EQ(search(open, 0, "mlp layers.3", {}).storages, expected);
}

TEST(OpSearch, NumbersAndNothing) {
  const auto run = sample();
  const OpenRun open = opened(run);
  EXPECT_EQ(search(open, 0, "#12", {}).ops, (std::vector<OpRef>{{0, 12, false}}));
  EXPECT_EQ(search(open, 0, "Storage 4", {}).storages, (std::vector<StorageRef>{{0, 4}}));
  EXPECT_TRUE(search(open, 0, "#99999999", {}).ops.empty());
  EXPECT_TRUE(search(open, 0, "storage 99999999999999", {}).storages.empty());
  for (const char* text : {"", "  \t"}) {
    EXPECT_TRUE(search(open, 0, text, {}).ops.empty());
    EXPECT_TRUE(search(open, 0, text, {}).storages.empty());
  }
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall::gui
