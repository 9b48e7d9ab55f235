#include "cli/print/memory_verdict.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/human_text.h"
#include "sim/number_text.h"
#include "sim/words.h"

namespace memwall {
namespace {

constexpr double kMuchCached = 0.1;   // of what is reserved
constexpr double kLeastShare = 0.01;  // of what lives: a kind worth naming

double share_of_bytes(Bytes part, Bytes whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

std::string refusal_sentence(const MemoryStudy& study) {
  const RecordedOutOfMemory& r = study.refused.back();
  const Bytes cached = r.at.reserved - r.at.active;
  std::string text = fmt::format(
      "It ran out of memory{}: at event {} it asked for {} when {} of {} were in use and the device had {} left",
      study.refused.size() > 1 ? fmt::format(" {} times, here the last", study.refused.size()) : "",
      grouped_text(r.event), human_bytes(r.request), human_bytes(r.at.active), human_bytes(r.at.reserved),
      human_bytes(r.device_free));
  if (is_fragmentation(r))
    return text + fmt::format(". Fragmentation is why: {} lay unused in the cache, in pieces of {} at most.",
                              human_bytes(cached), human_bytes(r.largest_free));
  return text + fmt::format(". What lives is why, not fragmentation: with every unused byte {} would still be missing.",
                            human_bytes(r.request - cached - r.device_free));
}

std::string capacity_sentence(const MemoryStudy& study) {
  const RecordingReplay& asked = study.asked();
  const std::string peak = fmt::format("{} are reserved at most, {} in use", human_bytes(asked.peak_reserved),
                                       human_bytes(asked.peak.active_bytes));
  if (asked.missing > 0)
    return fmt::format(
        "It does not fit{}: with no limit from the refused request on, {} are reserved at most, {} more; {} "
        "are in use. {}",
        study.capacity ? " in " + human_bytes(*study.capacity) : std::string(), human_bytes(asked.peak_reserved),
        human_bytes(asked.missing), human_bytes(asked.peak.active_bytes),
        settings_may_help(study)
            ? fmt::format("The {} that are requested at once would fit: fragmentation and rounding are "
                          "why.",
                          human_bytes(asked.peak.requested_bytes))
            : "What lives is why, not fragmentation.");
  if (study.capacity && !study.capacity_from_refusal)
    return fmt::format("It fits in {}: {}.", human_bytes(*study.capacity), peak);
  return study.refused.empty() ? fmt::format("It never ran out of memory: {}.", peak)
                               : fmt::format("Replayed as asked: {}.", peak);
}

// Of when memory ran out, else of the peak: what is for what, and who made most.
std::string contents_sentence(const MemoryStudy& study) {
  const bool out = !study.refused.empty();
  const LiveSet& live = out ? study.refused.back().live : study.peak;
  if (live.requested == 0) return "";
  std::vector<std::string> kinds;
  for (const LiveGroup& group : live.by_kind)
    if (kinds.size() < 2 && share_of_bytes(group.requested, live.requested) >= kLeastShare)
      kinds.push_back(fmt::format("{} {}{} ({})", group.name, kinds.empty() ? "takes " : "",
                                  human_bytes(group.requested),
                                  share_words(share_of_bytes(group.requested, live.requested))));
  std::string text = fmt::format("{} {}", out ? "Of what lived then" : "Of the peak", enumerated(kinds));
  for (const LiveGroup& group : live.by_line) {
    // "model.py:39 forward"; not "before the recording", "5 other lines", "AccumulateGrad aten::empty".
    const std::size_t colon = group.name.find(':');
    if (colon + 1 >= group.name.size() || group.name[colon + 1] < '0' || group.name[colon + 1] > '9') continue;
    return text +
           fmt::format("; the source line that holds most is {} ({}).", group.name, human_bytes(group.requested));
  }
  return text + ".";
}

std::string leak_sentence(const MemoryStudy& study) {
  if (study.leaks.leaks.empty()) return "";
  const Leak& leak = study.leaks.leaks.front();
  return fmt::format("It leaks: {} leaves {} behind in every step.", leak.line, human_bytes(leak.per_step));
}

// What makes less of what there is most of.
std::string smaller_advice(const MemoryStudy& study) {
  const LiveSet& live = study.refused.empty() ? study.peak : study.refused.back().live;
  const std::string kind = live.by_kind.empty() ? "" : live.by_kind.front().name;
  if (kind == "activation") return "Make the batch smaller, or checkpoint: activations take most.";
  if (kind == "optimizer_state") return "Offload or shard the optimizer states (ZeRO), which take most.";
  if (kind == "parameter" || kind == "gradient")
    return "Shard parameters and gradients over GPUs (ZeRO-3, FSDP), or take a GPU with more memory.";
  return "Make less live at once, or take a GPU with more memory.";
}

std::string search_sentence(const MemoryStudy& study) {
  const SearchRow* best = nullptr;
  std::size_t tried = 0, fitting = 0;
  for (const SearchRow& row : study.search) {
    if (row.variant.allocator == "planned") continue;  // no setting
    if (tried++ == 0) best = &row;
    if (row.missing <= 0) ++fitting;
  }
  if (best == nullptr) return "";
  const std::string name = best->name.empty() ? "the default settings" : best->name;
  if (!study.capacity)
    return fmt::format("Best of {} settings tried: {}, which reserves {} at most.", tried, name,
                       human_bytes(best->peak_reserved));
  if (best->missing > 0)
    return fmt::format("No allocator setting lets it run: the best of {}, {}, still lacks {}. {}", tried, name,
                       human_bytes(best->missing), smaller_advice(study));
  return fmt::format("{} of {} settings tried let it run; the best is {}, which reserves {} at most.", fitting, tried,
                     name, human_bytes(best->peak_reserved));
}

std::string memory_to_try(const MemoryStudy& study) {
  if (!study.search.empty()) return search_sentence(study);
  const RecordingReplay& asked = study.asked();
  const Bytes cached = asked.peak_reserved - asked.peak.active_bytes;
  if (study.other && study.capacity && asked.missing <= 0) return "";  // what was asked for lets it run
  if (settings_may_help(study))
    return "Try --search: it replays the program under other allocator settings and says which let it run.";
  if (!study.refused.empty() || asked.missing > 0)
    return "No allocator setting can make up for that. " + smaller_advice(study);
  if (share_of_bytes(cached, asked.peak_reserved) > kMuchCached)
    return fmt::format("{} of what is reserved is never in use at once: --search says which settings reserve less.",
                       human_bytes(cached));
  return "";
}

}  // namespace

std::vector<std::string> verdict_of(const MemoryStudy& study) {
  std::vector<std::string> sentences;
  if (!study.refused.empty()) sentences.push_back(refusal_sentence(study));
  if (study.refused.empty() || study.other) sentences.push_back(capacity_sentence(study));
  for (std::string sentence : {contents_sentence(study), leak_sentence(study), memory_to_try(study)})
    if (!sentence.empty()) sentences.push_back(std::move(sentence));
  return sentences;
}

}  // namespace memwall
