// What a comparison answers, in words.
#include <algorithm>
#include <cstdlib>
#include <tuple>

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

// The mean of a step, over the steps of all ranks.
Duration per_step(Duration all, std::uint64_t steps) {
  return from_seconds(to_seconds(all) / static_cast<double>(std::max<std::uint64_t>(steps, 1)));
}

std::string time_sentence(const Comparison& c) {
  const Duration base = per_step(c.base_time, c.base_steps), other = per_step(c.other_time, c.other_steps);
  const bool several = c.base_steps > 1 || c.other_steps > 1;
  std::string text = std::string(several ? "A step of the other run takes " : "The other run takes ") +
                     changed_words(human_time(other), human_time(base), to_seconds(other), to_seconds(base)) +
                     (several ? " in the mean" : "");
  std::vector<std::pair<std::int64_t, std::string>> parts;
  for (int k = 0; k < kTimeClasses; ++k) {
    const auto time_class = static_cast<TimeClass>(k);
    const Duration change =
        c.base_steps == c.other_steps
            ? per_step(c.waterfall[time_class], c.base_steps)
            : per_step(c.other_classes[time_class], c.other_steps) - per_step(c.base_classes[time_class], c.base_steps);
    parts.emplace_back(change.count(), to_string(time_class));
  }
  const std::string changes = largest_changes(parts, [](std::int64_t change) { return human_time(Duration(change)); });
  return text + (changes.empty() || other == base ? "" : ": " + changes) + ".";
}

// What is asked of first: the tier that lacks most, GPU memory before others, then the fullest.
auto importance(const TierDifference& tier) {
  return std::tuple(std::max(tier.base_missing, tier.other_missing) > 0, tier.on_device,
                    std::max(tier.base_missing, tier.other_missing), tier.name.starts_with("hbm"),
                    std::max(tier.base_reserved, tier.other_reserved),
                    std::max(tier.base_allocated, tier.other_allocated));
}

std::string memory_sentence(const Comparison& c) {
  if (!c.base_memory_recorded || !c.other_memory_recorded) return "";
  const TierDifference* first = nullptr;
  for (const TierDifference& tier : c.tiers)
    if ((tier.on_device || tier.base_missing > 0 || tier.other_missing > 0) &&
        (tier.base_allocated != 0 || tier.other_allocated != 0) &&
        (first == nullptr || importance(tier) > importance(*first)))
      first = &tier;
  if (first == nullptr) return "";
  std::string text =
      "Its peak in " + first->name + " is " +
      changed_words(human_bytes(first->other_allocated), human_bytes(first->base_allocated),
                    static_cast<double>(first->other_allocated), static_cast<double>(first->base_allocated));
  std::vector<std::pair<Bytes, std::string>> parts;
  for (int k = 0; k < kStorageKinds; ++k)
    parts.emplace_back(first->by_kind[static_cast<std::size_t>(k)], plural(static_cast<StorageKind>(k)));
  const std::string changes = largest_changes(parts, human_bytes);
  return text + (changes.empty() ? "" : ": " + changes) + ".";
}

// " (3.000 GB are missing in hbm rank 3)", of the tier that lacks most.
std::string lacking(const Comparison& c, Bytes TierDifference::* missing) {
  const auto most = std::max_element(c.tiers.begin(), c.tiers.end(), [&](const auto& a, const auto& b) {
    return a.*missing < b.*missing;
  });
  if (most == c.tiers.end() || (*most).*missing == 0) return "";
  return " (" + human_bytes((*most).*missing) + " are missing in " + most->name + ")";
}

std::string fit_sentence(const Comparison& c) {
  if (!c.base_memory_recorded || !c.other_memory_recorded)
    return "Memory is not compared: a capture does not say what takes it.";
  const bool lower_bounds = !c.base_lives_recorded || !c.other_lives_recorded;
  if (c.base_fits && c.other_fits)
    return lower_bounds ? "Whether they fit is not known: a capture does not say how long storages live, so that its "
                          "peaks are lower bounds."
                        : "Both fit.";
  const std::string base = lacking(c, &TierDifference::base_missing);
  const std::string other = lacking(c, &TierDifference::other_missing);
  if (c.base_fits) return "The base run fits, the other does not" + other + "; its times take memory as unlimited.";
  if (c.other_fits) return "The base run does not fit" + base + ", the other does.";
  return "Neither fits" + (base.empty() ? other : base) + "; their times take memory as unlimited.";
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
