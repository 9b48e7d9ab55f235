#include "gui/model/op_search.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <optional>

#include "gui/model/load_progress.h"

namespace memwall::gui {
namespace {

std::string lowered(std::string text) {
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return text;
}

std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> words(1);
  for (const char c : lowered(text))
    if (c == ' ' || c == '\t' || c == '\n' || c == '\r')
      words.emplace_back();
    else
      words.back() += c;
  std::erase(words, "");
  return words;
}

std::optional<std::uint32_t> number_of(const std::string& digits) {
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc{} || end != digits.data() + digits.size()) return std::nullopt;
  return number;
}

// Per word: the texts that hold it.
std::vector<std::vector<bool>> texts_with(const std::vector<std::string>& words,
                                          const std::vector<std::string>& texts) {
  std::vector<std::vector<bool>> with(words.size(), std::vector<bool>(texts.size(), false));
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const std::string text = lowered(texts[i]);
    for (std::size_t w = 0; w < words.size(); ++w) with[w][i] = text.find(words[w]) != std::string::npos;
  }
  return with;
}

// Ops that hold every word in one of their texts, ascending; at most kMostFound + 1.
std::vector<OpId> ops_with_all(const OpenRun& run, const std::vector<std::vector<bool>>& with,
                               const LoadProgress& progress) {
  const std::size_t most = with.size() == 1 ? kMostFound + 1 : static_cast<std::size_t>(run.outline().ops);
  std::vector<OpId> all;
  for (std::size_t w = 0; w < with.size(); ++w) {
    const auto share = [&](std::size_t i) { return static_cast<double>(i) / static_cast<double>(with.size()); };
    std::vector<OpId> found = run.source->ops_with(with[w], most, part_of(progress, share(w), share(w + 1)));
    if (w > 0) {
      std::vector<OpId> both;
      std::set_intersection(all.begin(), all.end(), found.begin(), found.end(), std::back_inserter(both));
      found = std::move(both);
    }
    all = std::move(found);
    if (all.empty()) break;
  }
  if (all.size() > kMostFound) all.resize(kMostFound + 1);
  return all;
}

void find_storages(const std::vector<StringId>& labels, const std::vector<std::vector<bool>>& with, std::uint8_t number,
                   SearchResult& result) {
  for (StorageId storage = 0; storage < labels.size(); ++storage) {
    const StringId label = labels[storage];
    if (!std::all_of(with.begin(), with.end(), [&](const auto& set) { return label < set.size() && set[label]; }))
      continue;
    if (result.storages.size() == kMostFound) {
      result.complete = false;
      return;
    }
    result.storages.push_back({number, storage});
  }
}

}  // namespace

SearchResult search(const OpenRun& run, std::uint8_t number, const std::string& text, const LoadProgress& progress) {
  SearchResult result;
  const std::vector<std::string> words = words_of(text);
  if (words.empty()) return result;
  if (words.size() == 1 && words[0][0] == '#') {
    const auto op = number_of(words[0].substr(1));
    if (op && *op < run.outline().ops) result.ops.push_back({number, *op, false});
    if (op) return result;
  }
  if (words.size() == 2 && words[0] == "storage") {
    const auto storage = number_of(words[1]);
    if (storage && *storage < run.outline().storages) result.storages.push_back({number, *storage});
    if (storage) return result;
  }
  const auto with = texts_with(words, run.source->texts(part_of(progress, 0, 0.2)));
  for (const OpId op : ops_with_all(run, with, part_of(progress, 0.2, 0.9))) {
    if (result.ops.size() == kMostFound) {
      result.complete = false;
      break;
    }
    result.ops.push_back({number, op, false});
  }
  if (run.history)
    find_storages(run.history->storages().label, with, number, result);
  else
    find_storages(run.source->storages(part_of(progress, 0.9, 1)).label, with, number, result);
  return result;
}

}  // namespace memwall::gui
