#include "traces/run/analysis/verdict.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "sim/human_text.h"
#include "sim/trace/kind_words.h"
#include "sim/words.h"
#include "traces/run/analysis/longest_sequence.h"
#include "traces/run/analysis/missing_beside.h"
#include "traces/run/analysis/pipeline_verdict.h"
#include "traces/run/analysis/summary.h"
#include "traces/run/analysis/verdict_advice.h"

namespace memwall {
namespace {

constexpr double kTight = 0.95;         // of what is usable: then what is left is named
constexpr double kMostlyHidden = 0.5;   // of a step: kernels that run in more of it and still do not bound it
constexpr double kMostlyOneRank = 0.5;  // of all that ranks hold each other up

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

// Whose memory it is: "hbm"; of a stage "hbm of rank 8 (stage 1 of 8, layers 12 to 23)".
std::string name_of_tier(const RunSummary& s, const TierSummary& tier) {
  const std::string stage = stage_of_tier(s, tier);
  return stage.empty() ? tier.name : tier.name.substr(0, tier.name.find(" rank ")) + " of " + stage;
}

// How much is missing, and of what.
std::string missing_words(const RunSummary& s, const TierSummary& tier) {
  const std::string at_least = s.lives_recorded ? "" : "at least ";
  const std::string missing = human_bytes(tier.missing), usable = human_bytes(tier.usable);
  if (tier.missing_cause == MissingCause::in_one_piece)
    return "It does not fit in " + name_of_tier(s, tier) + " (" + usable + "): " + missing +
           " are missing in one piece, while enough was free in several: fragmentation";
  const Bytes needed = tier.missing + tier.usable;
  const bool of_blocks = tier.missing_cause != MissingCause::reserved;
  return "It does not fit: " + at_least + missing + " are missing in " + name_of_tier(s, tier) + ", which has " +
         usable + (tier.shared > 0 ? " (a rank's part of " + human_bytes(tier.shared) + ")" : "") + "; " + at_least +
         human_bytes(needed) + (of_blocks ? " are in use" : " are reserved") + " at the peak" +
         (of_blocks && tier.peak_reserved > needed ? ", " + human_bytes(tier.peak_reserved) + " are reserved for it"
                                                   : "");
}

std::string memory_sentence(const RunSummary& s, const Filled& filled) {
  if (!s.memory_recorded) return "Whether it fits is not known: the capture does not say what takes memory.";
  if (filled.tier == nullptr) return "Whether it fits is not known: the machine has no memory.";
  const TierSummary& tier = *filled.tier;
  const Bytes beyond = beyond_blocks(tier);
  std::string text;
  if (s.fits) {
    const double used = static_cast<double>(tier.peak_reserved) / static_cast<double>(std::max<Bytes>(tier.usable, 1));
    const std::string stage = stage_of_tier(s, tier);
    text = std::string(s.lives_recorded ? "It fits: " : "Whether it fits is not known: ") +
           (stage.empty() ? "" : stage + " peaks: ") + (s.lives_recorded ? "at most " : "at least ") +
           human_bytes(tier.peak_reserved) + " of " + human_bytes(tier.usable) + " in " +
           (stage.empty() ? tier.name : tier.name.substr(0, tier.name.find(" rank "))) + " are reserved (" +
           share_words(used) +
           (used > kTight ? "; " + human_bytes(tier.usable - tier.peak_reserved) + " are left" : "") + ")" +
           (s.lives_recorded ? "" : ", as the capture does not say how long storages live");
  } else if (!s.pager.empty()) {
    // What a tier holds once it counts as unlimited, copies brought in again included, is no need of the step.
    return "It does not fit: the pager cannot make room in " + tier.name + ", which has " + human_bytes(tier.usable) +
           "; times take memory as unlimited and say little.";
  } else {
    text = missing_words(s, tier);
    if (s.pipeline) text += other_stages_missing(s, tier);
    for (const TierSummary& other : s.tiers)
      if (&other != &tier && other.missing > 0 && stage_of_tier(s, other).empty())
        text += "; " + human_bytes(other.missing) + " are missing in " + other.name + ", too";
  }
  if (static_cast<double>(beyond) > kMuch * static_cast<double>(tier.peak_reserved))
    text += (s.fits ? ", " : "; ") + human_bytes(beyond) + (s.fits ? " are" : " of what is reserved are") +
            " the allocator's cache and fragmentation";
  return text + peak_words(filled) + ".";
}

// Of a model's configuration, which says what it can take at most, not what it is trained at.
std::string sequence_sentence(const RunSummary& s) {
  const bool longest = std::ranges::any_of(
      s.recipe, [](const RecipeItem& item) { return item.what == "batch" && item.value.ends_with(kLongestSequence); });
  if (s.fits || !longest) return "";
  return "No sequence length was given, so that it is the longest that the model takes: a shorter one (sequence=4096, "
         "say, behind the file's name) needs less memory.";
}

// Nobody has measured what stands beside the allocator's memory, so that it decides nothing: where there is no place
// for it, that is said.
std::string beside_sentence(const RunSummary& s) {
  const Bytes missing = missing_beside_allocator(s).value_or(0);
  if (missing == 0) return "";
  const DeviceMemory& memory = *s.device_memory;
  std::vector<std::string> parts;
  if (memory.communication > 0) parts.push_back("NCCL's buffers (" + human_bytes(memory.communication) + ")");
  if (memory.workspaces > 0) parts.push_back("cuBLAS's workspaces (" + human_bytes(memory.workspaces) + ")");
  return "Only just: beside that stand " + enumerated(parts) + ", for which " + human_bytes(missing) +
         " are missing; with them the job may run out of memory, or empty its cache in every step.";
}

// What planners of memory plans were to keep to. A GPU with more memory lets the allocator's cache grow beyond it.
std::string budget_sentence(const MemoryBudget& budget, const Filled& filled, bool lives_recorded) {
  const std::string bytes = human_bytes(budget.bytes);
  if (budget.over > 0)
    return "Over the budget: the step's storages need " + human_bytes(budget.over) + " more than the " + bytes +
           " that " + budget.policy + " was given.";
  std::string text = "Within the budget: " + budget.policy + " keeps the step's storages" +
                     (lives_recorded ? "" : ", as far as the capture shows how long they live,") + " to " + bytes;
  if (filled.tier != nullptr && filled.tier->name == "hbm" && filled.tier->peak_reserved > budget.bytes)
    text += "; what is reserved beyond that is cache that a GPU with more memory lets grow";
  return text + ".";
}

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
  if (first == TimeClass::collective && !s.pipeline)
    if (const RankSummary* rank = straggler(s)) return "rank " + std::to_string(rank->number);
  return std::string(to_string(first));
}

std::string bound_words(const RunSummary& s, const std::string& bound) {
  const bool paged = !s.pager.empty();
  if (bound == "collective" && s.pipeline)
    if (const auto waits = communication_waits(s); !waits.empty())
      return waits.front().second == "for other stages" ? "the wait for other stages" : waits.front().second.substr(4);
  if (bound == "allocator" && paged) return "the room that the pager makes by copies";
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
  if (s.top.flops && s.top.flops->recomputed > 0 && s.top.flops->hfu <= 1)
    parts.push_back("HFU " + share_words(s.top.flops->hfu));
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
                     ", bound by " + bound_words(s, bound) +
                     (bound != "compute" && shares.kernels > kMostlyHidden ? ", behind which kernels hide" : "") +
                     ": kernels run in " + share_words(shares.kernels) + " of it";
  if (shares.recompute > 0) text += " (" + share_words(shares.recompute) + " compute again)";
  std::vector<std::string> waits;
  for (const auto& [share, what] : communication_waits(s)) waits.push_back(what + " in " + share_words(share));
  for (const auto& [share, time_class] : shares.waits)
    if (share >= kWorthSaying && time_class != TimeClass::idle && !(s.pipeline && time_class == TimeClass::collective))
      waits.push_back(std::string(awaited(time_class)) + " in " + share_words(share) +
                      (time_class == TimeClass::host && share > kMuch ? host_words(s) : ""));
  if (!waits.empty()) text += ", the GPU waits " + enumerated(waits);
  return text + ".";
}

// A time of what nobody called a step says so; a window that is mostly in front of the GPU's first work is a start.
std::string window_sentence(const Run& run, const RunSummary& s) {
  if (!s.is_window() || s.device_ops == 0) return "";
  std::string text = "The capture marks no steps: its whole " + s.steps.front().name + " counts as one";
  Time first = kNever;
  for (OpId id = 0; id < run.trace->ops.size() && id < run.result.records.size(); ++id)
    if (runs_on_device(run.trace->ops[id].kind)) first = std::min(first, run.result.records[id].start);
  constexpr double kStart = 0.5;  // of the window
  if (first != kNever && to_seconds(first - Time{}) > kStart * to_seconds(s.step_time))
    text += "; " + human_time(first - Time{}) +
            " of it pass before the GPU's first work, as where a program starts: record later steps";
  return text + ".";
}

// Who holds up the others, where that is a part of the step worth naming.
std::string rank_sentence(const RunSummary& s) {
  if (s.pipeline) return stages_sentence(s);
  const RankSummary* rank = straggler(s);
  if (rank == nullptr || rank->steps == 0) return "";
  const double per_step = rank->held_up.seconds() / rank->steps;
  if (per_step < kMuch * to_seconds(rank->step_time)) return "";
  return "Rank " + std::to_string(rank->number) + " comes last to " + std::to_string(rank->last) + " of " +
         std::to_string(rank->collectives) + " collectives and holds up the others by " +
         human_time(from_seconds(per_step)) + " per step" +
         (s.job_ranks > s.by_rank.size() ? ", of the ranks that were captured." : ".");
}

// Where the allocator's cache does not fit beside what lives, and emptying it takes time worth naming. Under a pager
// the waits are the pager's.
std::string cache_sentence(const RunSummary& s) {
  constexpr double kWorthNaming = 0.01;  // of the run
  if (!s.fits || !s.pager.empty() || s.total.count() == 0) return "";
  Duration longest{};
  for (const LaneWait& wait : s.waits.lanes)
    if (wait.on_host && wait.reason == WaitReason::memory) longest = std::max(longest, wait.time);
  std::uint64_t given_back = 0;
  for (const TierSummary& tier : s.tiers) given_back += tier.memory.events.device_frees;
  const double share = to_seconds(longest) / to_seconds(s.total);
  if (share < kWorthNaming || given_back == 0) return "";
  return "To make room the allocator waits for the device, gives cached memory back (" +
         counted_text(given_back, "segment") + ") and obtains it anew: that holds the host for " + human_time(longest) +
         ", " + share_words(share) + " of the run.";
}

// What drives make of a step that runs for weeks: slower than this one once their write cache is full, and worn out.
std::string drive_sentence(const RunSummary& s) {
  constexpr double kWorthNaming = 0.01, kWarrantyDays = 5 * 365;  // of the step; the usual life of a drive that is sold
  std::string text;
  for (const TierSummary& tier : s.tiers) {
    if (!tier.writes) continue;
    const DriveWrites& writes = *tier.writes;
    const double slower = to_seconds(s.steady_step_time) - to_seconds(s.step_time);
    if (writes.falls_off && s.steady_step_time > Duration{} &&
        std::abs(slower) > kWorthNaming * to_seconds(s.step_time)) {
      const std::string cache = "the write cache of " + tier.name + "'s drives";
      if (writes.cache_full > Duration{} || !writes.full_after_steps)
        text += "In a long row of steps, which find in " + cache + " what those before have left, one takes ";
      else
        text += "T" + cache.substr(1) + " is full after " + counted_text(*writes.full_after_steps, "step") + " (" +
                span_words(static_cast<double>(*writes.full_after_steps) * to_seconds(s.step_time)) +
                "); then a step takes ";
      text += changed_words(human_time(s.steady_step_time), human_time(s.step_time), to_seconds(s.steady_step_time),
                            to_seconds(s.step_time)) +
              ". ";
    }
    if (writes.life_days && *writes.life_days < kWarrantyDays)
      text += human_bytes(std::llround(std::min(writes.per_day, 9e18))) + " written a day wear out the drives of " +
              tier.name + " in " + span_words(*writes.life_days * 86400) + ". ";
  }
  if (!text.empty()) text.pop_back();
  return text;
}

// What policies and a pager changed.
std::string effect_sentence(const RunSummary& s, const Filled& filled) {
  const bool pager_failed = !s.pager.empty() && !s.fits;
  if (s.unchanged_step_time.count() == 0 || pager_failed || filled.tier == nullptr || !filled.tier->unchanged ||
      !s.memory_recorded)
    return "";
  const Bytes now = filled.tier->peak_reserved, before = filled.tier->unchanged->peak_reserved;
  const char* without = s.policies.empty() ? "the pager" : s.pager.empty() ? "policies" : "policies and pager";
  const std::string reserved =
      std::string("Against the step without ") + without + ": in " + filled.tier->name + " are reserved " +
      changed_words(human_bytes(now), human_bytes(before), static_cast<double>(now), static_cast<double>(before));
  // What does not fit is run in as much memory as it takes, where nothing is given back to make room.
  if (filled.tier->missing > 0 && filled.tier->unchanged->missing == 0)
    return reserved + ", which fitted; times are not compared, since the step as it is now cannot run.";
  return reserved + (filled.tier->unchanged->missing > 0 ? ", which did not fit; " : "; ") +
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

}  // namespace

std::string completeness_sentence(Completeness completeness, const std::string& reason) {
  if (completeness == Completeness::complete) return "";
  if (completeness == Completeness::not_a_replay)
    return "The capture is not a replay, its step time means nothing. " + reason;
  return std::string("The capture has gaps, its step time ") +
         (completeness == Completeness::gaps ? "may be" : "is likely") + " wrong. " + reason;
}

Verdict verdict_of(const Run& run, const RunSummary& summary) {
  const Shares shares(summary);
  const Filled filled = fullest(summary);
  Verdict verdict{bound_by(summary, shares), {}};
  if (const std::string gaps = completeness_sentence(summary.completeness, summary.completeness_reason); !gaps.empty())
    verdict.sentences.push_back(gaps);
  verdict.sentences.push_back(memory_sentence(summary, filled));
  if (const std::string longest = sequence_sentence(summary); !longest.empty()) verdict.sentences.push_back(longest);
  if (const std::string beside = beside_sentence(summary); !beside.empty()) verdict.sentences.push_back(beside);
  for (const MemoryBudget& budget : summary.budgets)
    verdict.sentences.push_back(budget_sentence(budget, filled, summary.lives_recorded));
  verdict.sentences.push_back(time_sentence(summary, shares, verdict.bound_by));
  if (const std::string window = window_sentence(run, summary); !window.empty()) verdict.sentences.push_back(window);
  if (const std::string rank = rank_sentence(summary); !rank.empty()) verdict.sentences.push_back(rank);
  if (const std::string cache = cache_sentence(summary); !cache.empty()) verdict.sentences.push_back(cache);
  if (const std::string drives = drive_sentence(summary); !drives.empty()) verdict.sentences.push_back(drives);
  if (const std::string effect = effect_sentence(summary, filled); !effect.empty()) verdict.sentences.push_back(effect);
  if (const std::string changes = changes_sentence(summary); !changes.empty()) verdict.sentences.push_back(changes);
  if (const std::string gain = gains_sentence(summary); !gain.empty()) verdict.sentences.push_back(gain);
  if (const std::string next = what_to_try(run, summary, filled, shares, verdict.bound_by); !next.empty())
    verdict.sentences.push_back(next);
  return verdict;
}

}  // namespace memwall
