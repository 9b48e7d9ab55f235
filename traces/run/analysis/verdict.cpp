#include "traces/run/analysis/verdict.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <tuple>

#include "sim/human_text.h"
#include "sim/trace/kind_words.h"
#include "sim/words.h"
#include "traces/run/analysis/summary.h"

namespace memwall {
namespace {

constexpr double kWorthSaying = 0.01;   // share of a step below which a class is not named
constexpr double kMuch = 0.05;          // of what is reserved, of a step: then a part of it is named
constexpr double kTight = 0.95;         // of what is usable: then what is left is named
constexpr double kMostlyHost = 0.8;     // of a step: then nothing else is worth a change
constexpr double kOftenHost = 0.2;      // of a step: waits for the host that are worth advice although kernels bind
constexpr double kMostlyHidden = 0.5;   // of a step: kernels that run in more of it and still do not bound it
constexpr double kMostlyOneRank = 0.5;  // of all that ranks hold each other up

double share_of_time(Duration part, Duration whole) {
  return whole.count() > 0 ? static_cast<double>(part.count()) / static_cast<double>(whole.count()) : 0;
}

const char* awaited(TimeClass time_class) {
  switch (time_class) {
    case TimeClass::copy:
      return "for copies";
    case TimeClass::collective:
      return "for collectives";
    case TimeClass::storage:
      return "for storage";
    case TimeClass::allocator:
      return "for the allocator";
    case TimeClass::fault:
      return "for pages";
    case TimeClass::host:
      return "for the host";
    default:
      return "for nothing";
  }
}

// A tier and what lives in it when it holds most, largest first.
struct Filled {
  const TierSummary* tier = nullptr;
  std::vector<std::pair<Bytes, StorageKind>> kinds;
};

// The GPU memory that lacks most, else is fullest; a tier of another kind where only that one lacks any.
Filled fullest(const RunSummary& s) {
  Filled filled;
  const auto rank = [](const TierSummary& t) {
    return std::tuple(t.missing > 0, t.name.starts_with("hbm"), t.tier_class == TierClass::device, t.missing,
                      t.peak_reserved);
  };
  for (const TierSummary& tier : s.tiers)
    if ((tier.tier_class == TierClass::device || tier.missing > 0) &&
        (filled.tier == nullptr || rank(tier) > rank(*filled.tier)))
      filled.tier = &tier;
  if (filled.tier == nullptr) return filled;
  for (int k = 0; k < kStorageKinds; ++k)
    if (const Bytes bytes = filled.tier->peak.by_kind[static_cast<std::size_t>(k)]; bytes > 0)
      filled.kinds.emplace_back(bytes, static_cast<StorageKind>(k));
  std::stable_sort(filled.kinds.begin(), filled.kinds.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  return filled;
}

// What the allocator took beyond the blocks that anybody ever used at once.
Bytes beyond_blocks(const TierSummary& tier) { return tier.peak_reserved - tier.peak_allocated; }

// ". Of its peak of 2.909 GB activations take 1.829 GB and workspaces 823.4 MB; the largest storage is ..."
std::string peak_words(const Filled& filled) {
  if (filled.kinds.empty()) return "";
  std::string text = ". Of its peak of " + human_bytes(filled.tier->peak_allocated) + " ";
  std::vector<std::string> kinds;
  for (const auto& [bytes, kind] : filled.kinds)
    if (kinds.size() < 2 && kind != StorageKind::unknown)
      kinds.push_back(plural(kind) + std::string(kinds.empty() ? " take " : " ") + human_bytes(bytes));
  const std::vector<PeakStorage>& largest = filled.tier->peak.largest;
  const auto says_nothing = [](const std::string& label) {
    return label.empty() || label == "unknown" || label == "no frames recorded";
  };
  const bool named = !largest.empty() && !says_nothing(largest.front().label);
  if (kinds.empty() && !named) return "";
  text += enumerated(kinds);
  if (named)
    text += std::string(kinds.empty() ? "" : "; ") + "the largest storage is " + largest.front().label + " (" +
            human_bytes(largest.front().bytes) + ")";
  return text;
}

// How much is missing, and of what.
std::string missing_words(const TierSummary& tier) {
  const std::string missing = human_bytes(tier.missing), usable = human_bytes(tier.usable);
  if (tier.missing_cause == MissingCause::in_one_piece)
    return "It does not fit in " + tier.name + " (" + usable + "): " + missing +
           " are missing in one piece, while enough was free in several: fragmentation";
  return "It does not fit: " + missing + " are missing in " + tier.name + ", which has " + usable + "; " +
         human_bytes(tier.missing + tier.usable) +
         (tier.missing_cause == MissingCause::reserved ? " are reserved" : " are in use") + " at the peak";
}

std::string memory_sentence(const RunSummary& s, const Filled& filled) {
  if (!s.memory_recorded) return "Whether it fits is not known: the capture does not say what takes memory.";
  if (filled.tier == nullptr) return "Whether it fits is not known: the machine has no memory.";
  const TierSummary& tier = *filled.tier;
  const Bytes beyond = beyond_blocks(tier);
  std::string text;
  if (s.fits) {
    const double used = static_cast<double>(tier.peak_reserved) / static_cast<double>(std::max<Bytes>(tier.usable, 1));
    text = "It fits: at most " + human_bytes(tier.peak_reserved) + " of " + human_bytes(tier.usable) + " in " +
           tier.name + " are reserved (" + share_words(used) +
           (used > kTight ? "; " + human_bytes(tier.usable - tier.peak_reserved) + " are left" : "") + ")";
  } else if (!s.pager.empty()) {
    // What a tier holds once it counts as unlimited, copies brought in again included, is no need of the step.
    return "It does not fit: the pager cannot make room in " + tier.name + ", which has " + human_bytes(tier.usable) +
           "; times take memory as unlimited and say little.";
  } else {
    text = missing_words(tier);
    for (const TierSummary& other : s.tiers)
      if (&other != &tier && other.missing > 0)
        text += "; " + human_bytes(other.missing) + " are missing in " + other.name + ", too";
  }
  if (static_cast<double>(beyond) > kMuch * static_cast<double>(tier.peak_reserved))
    text += (s.fits ? ", " : "; ") + human_bytes(beyond) + (s.fits ? " are" : " of what is reserved are") +
            " the allocator's cache and fragmentation";
  return text + peak_words(filled) + ".";
}

// Of a step's time by class, kernels together.
struct Shares {
  double kernels = 0, recompute = 0;
  std::vector<std::pair<double, TimeClass>> waits;  // largest first

  explicit Shares(const RunSummary& s) {
    const Duration all = s.times.total();
    recompute = share_of_time(s.times[TimeClass::recompute], all);
    kernels = share_of_time(s.times[TimeClass::compute], all) + recompute;
    for (int c = static_cast<int>(TimeClass::copy); c < kTimeClasses; ++c) {
      const auto time_class = static_cast<TimeClass>(c);
      if (const double share = share_of_time(s.times[time_class], all); share > 0)
        waits.emplace_back(share, time_class);
    }
    std::stable_sort(waits.begin(), waits.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  }
  bool kernels_bind() const { return waits.empty() || kernels >= waits.front().first; }
};

// The rank to which the others come too early, where it is one.
const RankSummary* straggler(const RunSummary& s) {
  const RankSummary* worst = nullptr;
  double all = 0;
  for (const RankSummary& rank : s.by_rank) {
    all += rank.held_up.seconds();
    if (worst == nullptr || rank.held_up.seconds() > worst->held_up.seconds()) worst = &rank;
  }
  return worst != nullptr && all > 0 && worst->held_up.seconds() > kMostlyOneRank * all ? worst : nullptr;
}

// What the critical path is most of: what kernels do behind the host, a copy or a collective takes no time.
TimeClass most_of_path(const RunSummary& s, const Shares& shares) {
  const Duration kernels = s.path[TimeClass::compute] + s.path[TimeClass::recompute];
  auto first = TimeClass::compute;
  for (int c = static_cast<int>(TimeClass::copy); c < kTimeClasses; ++c) {
    const auto time_class = static_cast<TimeClass>(c);
    const Duration longest = first == TimeClass::compute ? kernels : s.path[first];
    if (time_class != TimeClass::idle && s.path[time_class] > longest) first = time_class;
  }
  const bool stands_still = !shares.kernels_bind() && shares.waits.front().second == TimeClass::idle;
  return stands_still ? TimeClass::idle : first;
}

std::string bound_by(const RunSummary& s, const Shares& shares) {
  if (s.times.total().count() == 0 || s.device_ops == 0) return "";
  if (!s.by_rank.empty() && shares.kernels_bind()) return "compute";
  // Of several ranks the path lies on the slowest: what the others wait for is in their times.
  const TimeClass first = s.by_rank.empty() ? most_of_path(s, shares) : shares.waits.front().second;
  if (first == TimeClass::collective)
    if (const RankSummary* rank = straggler(s)) return "rank " + std::to_string(rank->number);
  return std::string(to_string(first));
}

std::string bound_words(const std::string& bound) {
  if (bound == "compute") return "the GPU's kernels";
  if (bound == "copy") return "copies";
  if (bound == "collective") return "collectives";
  if (bound == "fault") return "pages that a pager brings in";
  if (bound == "idle") return "nothing: most of it the GPU and the host stand still";
  return bound.starts_with("rank") ? bound + ", for which the others wait" : "the " + bound;
}

std::string rates(const RunSummary& s) {
  std::vector<std::string> parts;
  char text[64];
  const auto add = [&](const char* format, double value) {
    std::snprintf(text, sizeof text, format, value);
    parts.emplace_back(text);
  };
  if (s.samples_per_second > 0) add("%.4g samples/s", s.samples_per_second);
  if (s.tokens_per_second > 0) add("%.0f tokens/s", s.tokens_per_second);
  if (s.top.flops && s.top.flops->mfu <= 1) parts.push_back("MFU " + share_words(s.top.flops->mfu));
  std::string all;
  for (const std::string& part : parts) all += (all.empty() ? " (" : ", ") + part;
  return all.empty() ? "" : all + ")";
}

// There is one critical path of all ranks.
std::int64_t steps_of_path(const RunSummary& s) {
  return std::max<std::int64_t>(
      1, s.by_rank.empty() ? s.step_count : s.step_count / static_cast<std::int64_t>(s.by_rank.size()));
}

// What of the host takes most, where it has a name.
std::string host_words(const RunSummary& s) {
  for (const HostTotal& total : s.top.host)
    if (!total.name.empty())
      return std::string(" (the largest part ") + (total.work == HostWork::gap ? "before " : "in ") + total.name +
             ", " + human_time(total.time / steps_of_path(s)) + ")";
  return "";
}

std::string time_sentence(const RunSummary& s, const Shares& shares, const std::string& bound) {
  if (s.times.total().count() == 0) return "It takes no time: no op has a duration.";
  if (bound.empty())
    return "It spans " + human_time(s.step_time) +
           " of the host and knows no work of the device: what bounds the step is not known.";
  std::string text = (s.step_count > 1 ? "A step takes " : "The step takes ") + human_time(s.step_time) + rates(s) +
                     ", bound by " + bound_words(bound) +
                     (bound != "compute" && shares.kernels > kMostlyHidden ? ", behind which kernels hide" : "") +
                     ": kernels run in " + share_words(shares.kernels) + " of it";
  if (shares.recompute > 0) text += " (" + share_words(shares.recompute) + " compute again)";
  std::vector<std::string> waits;
  for (const auto& [share, time_class] : shares.waits)
    if (share >= kWorthSaying && time_class != TimeClass::idle)
      waits.push_back(std::string(awaited(time_class)) + " in " + share_words(share) +
                      (time_class == TimeClass::host && share > kMuch ? host_words(s) : ""));
  if (!waits.empty()) text += ", the GPU waits " + enumerated(waits);
  return text + ".";
}

// Who holds up the others, where that is a part of the step worth naming.
std::string rank_sentence(const RunSummary& s) {
  const RankSummary* rank = straggler(s);
  if (rank == nullptr || rank->steps == 0) return "";
  const double per_step = rank->held_up.seconds() / rank->steps;
  if (per_step < kMuch * to_seconds(rank->step_time)) return "";
  return "Rank " + std::to_string(rank->number) + " comes last to " + std::to_string(rank->last) + " of " +
         std::to_string(rank->collectives) + " collectives and holds up the others by " +
         human_time(from_seconds(per_step)) + " per step" +
         (s.job_ranks > s.by_rank.size() ? ", of the ranks that were captured." : ".");
}

bool has_policy(const RunSummary& s, std::string_view name) {
  return std::any_of(s.policies.begin(), s.policies.end(), [&](const std::string& p) { return p.starts_with(name); });
}

// What policies and a pager changed.
std::string effect_sentence(const RunSummary& s, const Filled& filled) {
  const bool pager_failed = !s.pager.empty() && !s.fits;
  if (s.unchanged_step_time.count() == 0 || pager_failed || filled.tier == nullptr || !filled.tier->unchanged ||
      !s.memory_recorded)
    return "";
  const Bytes now = filled.tier->peak_reserved, before = filled.tier->unchanged->peak_reserved;
  const char* without = s.policies.empty() ? "the pager" : s.pager.empty() ? "policies" : "policies and pager";
  return std::string("Against the step without ") + without + ": in " + filled.tier->name + " are reserved " +
         changed_words(human_bytes(now), human_bytes(before), static_cast<double>(now), static_cast<double>(before)) +
         (filled.tier->unchanged->missing > 0 ? ", which did not fit; " : "; ") +
         (s.step_count > 1 ? "a step takes " : "the step takes ") +
         changed_words(human_time(s.step_time), human_time(s.unchanged_step_time), to_seconds(s.step_time),
                       to_seconds(s.unchanged_step_time)) +
         ".";
}

// What overrides and scales gave.
std::string changes_sentence(const RunSummary& s) {
  if (s.changes.step_without.count() == 0) return "";
  std::vector<std::string> changes = s.changes.overrides;
  for (const std::string& scale : s.changes.scale) changes.push_back("--scale " + scale);
  return "With " + enumerated(changes) + (s.step_count > 1 ? " a step takes " : " the step takes ") +
         changed_words(human_time(s.step_time), human_time(s.changes.step_without), to_seconds(s.step_time),
                       to_seconds(s.changes.step_without)) +
         (s.changes.scale.empty() || s.policies.empty() ? "." : "; what policies add is not scaled.");
}

// `samples` per step; 0 = unknown, then nobody can search.
std::string smaller_or_larger(double samples) {
  if (samples == 1) return "Try a GPU with more memory.";
  return std::string("Try a smaller batch") + (samples > 1 ? " (--find-largest-batch says which fits)" : "") +
         ", or a GPU with more memory.";
}

// What of all that was tried is best.
std::string tried_sentence(const RunSummary& s, double samples) {
  const TriedChange& best = s.tried.front();
  if (!best.fits)
    return "Nothing that was tried makes it fit: with " + best.options + " " + human_bytes(best.missing) +
           " are missing in " + best.missing_in + ". " + smaller_or_larger(samples);
  return "It fits with " + best.options + ": " + human_bytes(best.peak_reserved) + " are reserved, a step takes " +
         changed_words(human_time(best.step_time), human_time(s.step_time), to_seconds(best.step_time),
                       to_seconds(s.step_time)) +
         (s.tried.size() > 1 ? "; the best of what was tried." : ".");
}

// Of a step that does not fit.
std::string room_to_try(const Run& run, const RunSummary& s, const Filled& filled) {
  const TierSummary& tier = *filled.tier;
  if (tier.tier_class != TierClass::device) return "Try a machine with more memory in " + tier.name + ".";
  if (!s.pager.empty()) return smaller_or_larger(run.trace->samples_per_step);
  // Blocks in use cannot be packed: only what lies between them.
  const bool in_pieces = tier.missing_cause == MissingCause::in_one_piece || tier.peak_allocated <= tier.usable;
  if (s.allocator == "pytorch" && in_pieces && s.allocator_settings.find("expandable_segments") == std::string::npos)
    return "Try --alloc-conf expandable_segments:True: what is cached or fragmented is more than what is missing.";
  if (!run.trace->knowledge.dataflow)
    return "Policies need to know which op uses what: memwall inspect says how to capture that.";
  const bool too_large = !tier.peak.largest.empty() && tier.peak.largest.front().bytes > tier.usable;
  for (const auto& [bytes, kind] : filled.kinds) {
    if (too_large || bytes < tier.missing) break;  // no policy can make up for it
    if (kind == StorageKind::activation && !has_policy(s, "checkpoint"))
      return "Try --policy checkpoint:mode=full: activations take " + human_bytes(bytes) + " of the peak.";
    if (kind == StorageKind::optimizer_state && !has_policy(s, "offload") && !has_policy(s, "zero"))
      return "Try --policy offload:what=optimizer,to=host, or --policy zero:stage=1,ranks=N over N GPUs: optimizer "
             "states take " +
             human_bytes(bytes) + " of the peak.";
    if ((kind == StorageKind::parameter || kind == StorageKind::gradient) && !has_policy(s, "zero"))
      return std::string("Try --policy zero:stage=3,ranks=N over N GPUs: ") + plural(kind) + " take " +
             human_bytes(bytes) + " of the peak.";
  }
  return smaller_or_larger(run.trace->samples_per_step);
}

// Is there a link of a slower generation, which nobody has overridden?
bool has_a_slow_bus(const RunSummary& s) {
  constexpr double kGen5 = 50e9;  // bytes per second, and a little less than x16 carries
  const bool overridden = std::any_of(s.changes.overrides.begin(), s.changes.overrides.end(), [](const std::string& o) {
    return o.starts_with("pcie") || o.starts_with("link.");
  });
  return !overridden && std::any_of(s.links.begin(), s.links.end(), [](const LinkSummary& link) {
    return link.name.starts_with("pcie") && link.bytes > 0 && link.bandwidth < kGen5;
  });
}

// By what the host does most there.
std::string host_advice(const RunSummary& s) {
  const std::string first = s.top.host.empty() ? "" : s.top.host.front().name;
  if (first.find("DataLoader") != std::string::npos)
    return " (load ahead: more workers of the data loader, prefetching).";
  if (first == "CPU Adam") return " (the optimizer runs on the CPU; on the GPU it needs its states there).";
  return " (fewer, larger calls: torch.compile, CUDA graphs, a larger batch; --scale host=0.5 tries a faster host).";
}

// Of a step that fits, or of which nobody knows: what its time is bound by.
std::string time_to_try(const Run& run, const RunSummary& s, const Shares& shares, const std::string& bound) {
  const auto at_best = [&](TimeClass time_class) {
    return human_time((s.times.total() - s.times[time_class]) / s.step_count);
  };
  const double host = share_of_time(s.times[TimeClass::host], s.times.total());
  if (bound == "host" || (bound == "compute" && host > kOftenHost))
    return (host > kMostlyHost ? "No faster GPU or link helps much; without" : "Without") +
           std::string(" any wait for the host a step takes ") + at_best(TimeClass::host) + host_advice(s);
  if (bound == "copy")
    return "With all copies hidden a step takes " + at_best(TimeClass::copy) +
           (has_a_slow_bus(s) ? ": try a faster link (--set pcie=gen5), or move less." : ": move less.");
  if (bound == "collective" || bound.starts_with("rank"))
    return "With all communication hidden a step takes " + at_best(TimeClass::collective) + ".";
  const Filled filled = fullest(s);
  const bool roomy =
      filled.tier != nullptr && filled.tier->peak_reserved > 0 && filled.tier->peak_reserved < filled.tier->usable / 2;
  if (bound == "compute" && shares.recompute >= 0.1 && roomy && s.fits)
    return "Memory is left: checkpoint less, and save up to " +
           human_time(s.times[TimeClass::recompute] / s.step_count) + " of recomputation per step.";
  if (bound == "compute" && roomy && s.fits && run.trace->samples_per_step > 0 && run.trace->knowledge.dataflow)
    return "Memory is left for a larger batch: --find-largest-batch says how large; memwall roofline says what holds "
           "the kernels.";
  return bound == "compute" ? "memwall roofline says what holds the kernels." : "";
}

}  // namespace

Verdict verdict_of(const Run& run, const RunSummary& summary) {
  const Shares shares(summary);
  const Filled filled = fullest(summary);
  Verdict verdict{bound_by(summary, shares), {}};
  verdict.sentences.push_back(memory_sentence(summary, filled));
  verdict.sentences.push_back(time_sentence(summary, shares, verdict.bound_by));
  if (const std::string rank = rank_sentence(summary); !rank.empty()) verdict.sentences.push_back(rank);
  if (const std::string effect = effect_sentence(summary, filled); !effect.empty()) verdict.sentences.push_back(effect);
  if (const std::string changes = changes_sentence(summary); !changes.empty()) verdict.sentences.push_back(changes);
  const std::string next = summary.fits            ? time_to_try(run, summary, shares, verdict.bound_by)
                           : summary.tried.empty() ? room_to_try(run, summary, filled)
                                                   : tried_sentence(summary, run.trace->samples_per_step);
  if (!next.empty()) verdict.sentences.push_back(next);
  return verdict;
}

}  // namespace memwall
