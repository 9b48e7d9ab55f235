#include "cli/print/memory_verdict.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>

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
  if (r.despite_device) text += ", which is more: a limit of the process was reached, or another process had it before";
  if (is_fragmentation(r))
    return text + fmt::format(". Fragmentation is why: {} lay unused in the cache, in pieces of {} at most{}.",
                              human_bytes(cached), human_bytes(r.largest_free),
                              cached >= r.request
                                  ? ""
                                  : fmt::format(", {} with what the device had", human_bytes(cached + r.device_free)));
  if (r.despite_device)
    return text + fmt::format(". What lives is why, not fragmentation: {} lay unused in the cache, less than that.",
                              human_bytes(cached));
  return text + fmt::format(". What lives is why, not fragmentation: with every unused byte {} would still be missing.",
                            human_bytes(r.request - cached - r.device_free));
}

std::string memory_words(const MemoryStudy& study) {
  return study.capacity_from_refusal ? "the " + human_bytes(*study.capacity) + " that the recording had"
                                     : human_bytes(*study.capacity);
}

// From where on memory is taken as unlimited: the first thing that did not fit.
std::string from_where(const MemoryStudy& study) {
  const RecordingReplay& asked = study.asked();
  if (study.capacity && asked.start.active_bytes > *study.capacity)
    return fmt::format("the {} that live at its start are more already. With no limit",
                       human_bytes(asked.start.active_bytes));
  return "with no limit from the refused request on";
}

std::string capacity_sentence(const MemoryStudy& study) {
  const RecordingReplay& asked = study.asked();
  const std::string peak = fmt::format("{} are reserved at most, {} in use", human_bytes(asked.peak_reserved),
                                       human_bytes(asked.peak.active_bytes));
  if (asked.missing > 0)
    return fmt::format("It does not fit{}: {}, {} are reserved at most, {} more; {} are in use. {}",
                       study.capacity ? " in " + memory_words(study) : std::string(), from_where(study),
                       human_bytes(asked.peak_reserved), human_bytes(asked.missing),
                       human_bytes(asked.peak.active_bytes),
                       settings_may_help(study)
                           ? fmt::format("The {} that are requested at once would fit: fragmentation and rounding are "
                                         "why.",
                                         human_bytes(asked.peak.requested_bytes))
                           : "What lives is why, not fragmentation.");
  if (study.capacity)
    return fmt::format("{} in {}: {}.", study.capacity_from_refusal ? "Replayed as asked, it fits" : "It fits",
                       memory_words(study), peak);
  return fmt::format("It never ran out of memory: {}.", peak);
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
  Bytes older = 0;
  for (const LiveGroup& group : live.by_line) {
    if (group.name == "before the recording") older = group.requested;
    // "model.py:39 forward"; not "before the recording", "5 other lines", "AccumulateGrad aten::empty".
    const std::size_t colon = group.name.find(':');
    if (colon + 1 >= group.name.size() || group.name[colon + 1] < '0' || group.name[colon + 1] > '9') continue;
    const std::string line = fmt::format("{} ({})", group.name, human_bytes(group.requested));
    if (older == 0) return text + "; the source line that holds most is " + line + ".";
    return text +
           fmt::format("; {} were made before the recording, without a source line; of what has one {} holds most.",
                       human_bytes(older), line);
  }
  if (older > 0) text += fmt::format("; {} were made before the recording, without a source line", human_bytes(older));
  return text + ".";
}

std::string leak_sentence(const MemoryStudy& study) {
  if (study.leaks.leaks.empty()) return "";
  const Leak& leak = study.leaks.leaks.front();
  return fmt::format("It leaks: {} leaves {} behind in every step.", leak.line, human_bytes(leak.per_step));
}

// What can be done about memory of one kind.
struct Remedy {
  StorageKind kind;
  const char *text, *without;
};
constexpr std::array kRemedies{
    Remedy{StorageKind::activation, "make the batch smaller or checkpoint", "activations"},
    Remedy{StorageKind::optimizer_state, "offload or shard the optimizer states (ZeRO)", "optimizer states"},
    Remedy{StorageKind::gradient, "shard the gradients over GPUs (ZeRO-2)", "gradients"},
    Remedy{StorageKind::parameter, "shard the parameters over GPUs (ZeRO-3, FSDP)", "parameters"}};

// The most that is left to hold without what `remedies` may take away at best.
Bytes left_after(const MemoryStudy& study, const std::vector<Remedy>& remedies) {
  std::vector<StorageKind> kinds;
  for (const Remedy& remedy : remedies) kinds.push_back(remedy.kind);
  const auto goes = [&](StorageKind kind) { return std::find(kinds.begin(), kinds.end(), kind) != kinds.end(); };
  Bytes left = highest_without(study.table, kinds);
  if (study.refused.empty()) return left;
  const RecordedOutOfMemory& r = study.refused.back();
  const Phase phase = study.table.phases[r.event];
  const bool forward = phase == Phase::forward || phase == Phase::recompute;
  Bytes then = forward && goes(StorageKind::activation) ? 0 : r.request;
  for (const Allocation& a : study.table.allocations)
    if (a.lives_at(r.event) && !goes(a.kind)) then += a.requested;
  return std::max(left, then);
}

// Those of which there is something, what takes most first.
std::vector<Remedy> remedies_of(const MemoryStudy& study) {
  const LiveSet& live = study.refused.empty() ? study.peak : study.refused.back().live;
  const auto bytes = [&](const Remedy& remedy) {
    for (const LiveGroup& group : live.by_kind)
      if (group.name == to_string(remedy.kind)) return group.requested;
    return Bytes{0};
  };
  std::vector<Remedy> remedies;
  for (const Remedy& remedy : kRemedies)
    if (std::any_of(study.table.allocations.begin(), study.table.allocations.end(),
                    [&](const Allocation& a) { return a.kind == remedy.kind; }))
      remedies.push_back(remedy);
  std::stable_sort(remedies.begin(), remedies.end(),
                   [&](const Remedy& a, const Remedy& b) { return bytes(a) > bytes(b); });
  return remedies;
}

std::vector<std::string> texts_of(const std::vector<Remedy>& remedies, const char* Remedy::*text) {
  std::vector<std::string> texts;
  for (const Remedy& remedy : remedies) texts.emplace_back(remedy.*text);
  return texts;
}

// The fewest remedies after which what is left may fit; those that take away most first.
std::string smaller_advice(const MemoryStudy& study) {
  const std::vector<Remedy> all = remedies_of(study);
  if (!study.capacity || all.empty()) return "Make less live at once, or take a GPU with more memory.";
  for (std::size_t count = 1; count <= all.size(); ++count) {
    std::vector<bool> chosen(all.size());
    std::fill_n(chosen.begin(), count, true);
    do {
      std::vector<Remedy> some;
      for (std::size_t i = 0; i < all.size(); ++i)
        if (chosen[i]) some.push_back(all[i]);
      const Bytes left = left_after(study, some);
      if (left > *study.capacity) continue;
      std::string text = fmt::format("{}", fmt::join(texts_of(some, &Remedy::text), "; "));
      if (count == 1) text.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(text.front())));
      return fmt::format("{}{}: without any {} at most {} are requested at once.",
                         count == 1 ? "" : "It takes several changes together: ", text,
                         enumerated(texts_of(some, &Remedy::without)), human_bytes(left));
    } while (std::prev_permutation(chosen.begin(), chosen.end()));
  }
  return fmt::format(
      "No policy is enough on this GPU: without any {} still {} are requested at once. Take a GPU with "
      "more memory.",
      enumerated(texts_of(all, &Remedy::without)), human_bytes(left_after(study, all)));
}

// Every row of the search begins with a clean cache. Where that alone lets the recorded settings run, no other setting
// is to be praised for it.
std::string clean_start_sentence(const MemoryStudy& study, const SearchRow& unchanged, const SearchRow& best,
                                 std::size_t tried) {
  const Bytes cost = study.asked().peak_reserved - unchanged.peak_reserved;
  const std::string name = unchanged.name.empty() ? "the default settings" : unchanged.name;
  std::string text = fmt::format("{} {} fit as well, with {} reserved",
                                 study.start.empty ? "Replayed in that much memory," : "From a clean start", name,
                                 human_bytes(unchanged.peak_reserved));
  if (!study.start.empty && cost > 0)
    text += fmt::format(": the state in which the recording starts, its cache and its gaps, costs {} more",
                        human_bytes(cost));
  std::size_t less = 0;
  for (const SearchRow& row : study.search)
    if (row.variant.allocator != "planned" && row.missing <= 0 && row.peak_reserved < unchanged.peak_reserved) ++less;
  if (less == 0) return text + fmt::format(". None of {} settings tried reserves less.", tried);
  return text + fmt::format(". {} of {} settings tried {} less, {} least: {}.", less, tried,
                            by_number(less, "reserves", "reserve"), best.name, human_bytes(best.peak_reserved));
}

// As it was asked for, or as it was.
bool runs_out(const MemoryStudy& study) { return study.other ? study.other->missing > 0 : !study.refused.empty(); }

std::string search_sentence(const MemoryStudy& study) {
  const SearchRow *best = nullptr, *unchanged = nullptr;
  std::size_t tried = 0, fitting = 0;
  const std::string recorded = to_string(study.recording.settings);
  for (const SearchRow& row : study.search) {
    if (row.variant.allocator == "planned") continue;  // no setting
    if (tried++ == 0) best = &row;
    if (row.name == recorded) unchanged = &row;
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
  if (unchanged != nullptr && unchanged->missing <= 0 && runs_out(study))
    return clean_start_sentence(study, *unchanged, *best, tried);
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
