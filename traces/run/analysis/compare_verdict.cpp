// What a comparison answers, in words.
#include <algorithm>
#include <cstdlib>

#include "sim/human_text.h"
#include "sim/number_text.h"
#include "sim/trace/kind_words.h"
#include "sim/words.h"
#include "traces/run/analysis/compare.h"

namespace memwall {
namespace {

// The parts that make a difference, largest first, at most two: "recompute +21.33 ms and copy +12.72 ms".
template <class Number, class Words>
std::string largest_changes(std::vector<std::pair<Number, std::string>> parts, Words words) {
  std::erase_if(parts, [](const auto& part) { return part.first == Number{}; });
  std::stable_sort(parts.begin(), parts.end(), [](const auto& a, const auto& b) {
    return std::abs(static_cast<double>(a.first)) > std::abs(static_cast<double>(b.first));
  });
  if (parts.size() > 2) parts.resize(2);
  std::vector<std::string> texts;
  for (const auto& [change, name] : parts) texts.push_back(name + " " + (change > 0 ? "+" : "") + words(change));
  return enumerated(texts);
}

std::string time_sentence(const Comparison& c) {
  std::string text = "The other run takes " +
                     changed_words(human_time(c.other_time), human_time(c.base_time), to_seconds(c.other_time),
                                   to_seconds(c.base_time)) +
                     ", all steps together";
  std::vector<std::pair<std::int64_t, std::string>> parts;
  for (int k = 0; k < kTimeClasses; ++k)
    parts.emplace_back(c.waterfall[static_cast<TimeClass>(k)].count(), to_string(static_cast<TimeClass>(k)));
  const std::string changes = largest_changes(parts, [](std::int64_t change) { return human_time(Duration(change)); });
  return text + (changes.empty() || c.other_time == c.base_time ? "" : ": " + changes) + ".";
}

std::string memory_sentence(const Comparison& c) {
  if (!c.base_memory_recorded || !c.other_memory_recorded) return "";
  for (const TierDifference& tier : c.tiers) {
    if (tier.name != "hbm" || (tier.base_allocated == 0 && tier.other_allocated == 0)) continue;
    std::string text =
        "Its peak in hbm is " + changed_words(human_bytes(tier.other_allocated), human_bytes(tier.base_allocated),
                                              static_cast<double>(tier.other_allocated),
                                              static_cast<double>(tier.base_allocated));
    std::vector<std::pair<Bytes, std::string>> parts;
    for (int k = 0; k < kStorageKinds; ++k)
      parts.emplace_back(tier.by_kind[static_cast<std::size_t>(k)], plural(static_cast<StorageKind>(k)));
    const std::string changes = largest_changes(parts, human_bytes);
    return text + (changes.empty() ? "" : ": " + changes) + ".";
  }
  return "";
}

std::string fit_sentence(const Comparison& c) {
  if (!c.base_memory_recorded || !c.other_memory_recorded)
    return "Memory is not compared: a capture does not say what takes it.";
  if (c.base_fits && c.other_fits) return "Both fit.";
  if (c.base_fits) return "The base run fits, the other does not; its times take memory as unlimited.";
  if (c.other_fits) return "The base run does not fit, the other does.";
  return "Neither fits; their times take memory as unlimited.";
}

// Of runs of different steps: what a pair of ops means.
std::string matching_sentence(const Comparison& c) {
  if (c.same_lineage) return "";
  const std::uint64_t matched = c.ops_equal + c.ops_changed;
  return "The runs are of different steps, " + c.base_trace + " and " + c.other_trace +
         ": ops are matched by thread, kind, name and order alone, " + grouped_text(matched) + " of " +
         grouped_text(matched + c.ops_removed) + " and " + grouped_text(matched + c.ops_added) + ".";
}

}  // namespace

std::vector<std::string> verdict_of(const Comparison& comparison) {
  std::vector<std::string> sentences{time_sentence(comparison), memory_sentence(comparison), fit_sentence(comparison),
                                     matching_sentence(comparison)};
  std::erase(sentences, "");
  return sentences;
}

}  // namespace memwall
