#include "traces/run/analysis/verdict_advice.h"

#include <algorithm>
#include <cstdio>
#include <tuple>

#include "sim/human_text.h"
#include "sim/number_text.h"
#include "sim/trace/kind_words.h"
#include "sim/words.h"
#include "traces/run/analysis/unasked_trials.h"

namespace memwall {
namespace {

constexpr double kMostlyHost = 0.8;  // of a step: then nothing else is worth a change
constexpr double kOftenHost = 0.2;   // of a step: waits for the host that are worth advice although kernels bind

// What would gain most from being faster, largest gain first; nothing where nobody tried.
std::vector<std::pair<double, std::string>> gains(const RunSummary& s) {
  std::vector<std::pair<double, std::string>> all;
  for (const Speedup& speedup : s.speedups)
    if (const double gain = 1 - share_of_time(speedup.step_time, s.step_time); gain >= kWorthSaying)
      all.emplace_back(gain, speedup.what == "kernels" ? "the GPU's kernels"
                             : speedup.what == "host"  ? "the host"
                                                       : speedup.what);
  std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  return all;
}

double gain_of(const RunSummary& s, std::string_view what) {
  for (const auto& [gain, name] : gains(s))
    if (name == what) return gain;
  return 0;
}

// `samples` per step; 0 = unknown, then nobody can search.
std::string smaller_or_larger(double samples) {
  if (samples == 1) return "Try a GPU with more memory.";
  return std::string("Try a smaller batch") + (samples > 1 ? " (--find-largest-batch says which fits)" : "") +
         ", or a GPU with more memory.";
}

std::string samples_words(double per_second) {
  char text[48] = "";
  if (per_second > 0) std::snprintf(text, sizeof text, ", %.4g samples/s", per_second);
  return text;
}

// Is a step of another batch among what was tried? Else nobody knows whether it can have one.
bool can_search(const RunSummary& s) {
  return std::any_of(s.tried.begin(), s.tried.end(),
                     [](const TriedChange& change) { return change.options.find("batch:") != std::string::npos; });
}

// What stands first is the fastest that leaves GPUs and batch as they are, if anything does.
std::string rank_words(const RunSummary& s) {
  const bool is_fastest = std::all_of(s.tried.begin(), s.tried.end(), [&](const TriedChange& change) {
    return !change.fits || change.step_time >= s.tried.front().step_time;
  });
  return is_fastest ? "the fastest of what was tried"
                    : "the fastest of what was tried with the same GPUs and the same batch";
}

// What of all that was tried is best.
std::string tried_sentence(const RunSummary& s, double samples) {
  const TriedChange& best = s.tried.front();
  if (!best.fits)
    return "Nothing that was tried makes it fit: with " + best.options + " " + human_bytes(best.missing) +
           " are missing in " + best.missing_in + ". " + smaller_or_larger(samples == 1 || can_search(s) ? samples : 0);
  return "It fits with " + best.options + ": " + human_bytes(best.peak_reserved) + " are reserved, a step takes " +
         changed_words(human_time(best.step_time), human_time(s.step_time), to_seconds(best.step_time),
                       to_seconds(s.step_time)) +
         samples_words(best.samples_per_second) + (s.tried.size() > 1 ? "; " + rank_words(s) + "." : ".");
}

// Is it a job of several pipeline stages? Policies that change passes refuse those.
bool divides_stages(const Trace& trace) {
  return trace.rank_table.size() > 1 &&
         std::any_of(trace.rank_table.begin(), trace.rank_table.end(), [](const Rank& r) { return !r.chunks.empty(); });
}

// What helps a stage whose memory is mostly of that kind; "" where nothing is known.
std::string stage_to_try(const Trace& trace, StorageKind kind) {
  const bool keeps_all = std::any_of(trace.recipe.begin(), trace.recipe.end(), [](const RecipeItem& item) {
    return item.setting.starts_with("checkpoint=") && item.setting != "checkpoint=full";
  });
  if (kind == StorageKind::activation && keeps_all) return "Try checkpoint=full among the job's settings";
  if (kind == StorageKind::optimizer_state) return "Try --policy offload:what=optimizer,to=host";
  if (kind == StorageKind::parameter || kind == StorageKind::gradient)
    return "Try more tensor- or pipeline-parallel ranks (memwall plan WORKLOAD --gpus N searches)";
  return "";
}

// Of what fills it, what ZeRO divides over GPUs; 0 where it is divided or moved already.
Bytes divisible_bytes(const RunSummary& s, const Filled& filled) {
  if (has_policy(s, "zero") || has_policy(s, "offload")) return 0;
  Bytes sum = 0;
  for (const auto& [bytes, kind] : filled.kinds)
    if (kind == StorageKind::parameter || kind == StorageKind::gradient || kind == StorageKind::optimizer_state)
      sum += bytes;
  return sum;
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
    if (divides_stages(run.trace)) {
      const std::string stage = has_policy(s, "offload") ? "" : stage_to_try(run.trace, kind);
      if (!stage.empty()) return stage + ": " + plural(kind) + " take " + human_bytes(bytes) + " of the peak.";
      continue;
    }
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
  // No kind alone makes up for what is missing; all that one policy divides may.
  const Bytes divisible = too_large || divides_stages(run.trace) ? 0 : divisible_bytes(s, filled);
  if (divisible >= tier.missing && divisible > 0)
    return "Try --policy zero:stage=3,ranks=N over N GPUs: parameters, gradients and optimizer states together take " +
           human_bytes(divisible) + " of the peak.";
  return smaller_or_larger(run.trace->samples_per_step);
}

// Why nothing stands behind "Try": a step of so many ops is not simulated again and again unasked.
std::string untried_words(const Run& run, const RunSummary& s) {
  if (run.trace->ops.size() <= kOpsTriedUnasked || !run.trace->knowledge.dataflow || !s.pager.empty()) return "";
  std::string text = " Nothing was tried: this step has " + grouped_text(run.trace->ops.size()) +
                     " ops, and of more than " + grouped_text(kOpsTriedUnasked) + " no change is simulated unasked.";
  if (!divides_stages(*run.trace) && !has_policy(s, "plan"))
    text +=
        " --policy plan plans it for the GPU's memory (plan:search=0 takes the first plan that keeps to it, the "
        "quickest way), memwall plan says at what price.";
  return text + " Of a smaller step (fewer passes or layers) all is tried.";
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

// What the step does not do already.
std::string fewer_calls(const Trace& trace) {
  bool compiled = false, graphs = false;
  for (const Op& op : trace.ops) {
    compiled = compiled || op.dispatch == Dispatch::compiled;
    graphs = graphs || op.kind == OpKind::graph_launch;
  }
  return std::string("Try fewer, larger calls: ") + (compiled ? "" : "torch.compile, ") +
         (graphs ? "" : "CUDA graphs, ") + "a larger batch.";
}

// Is it work of the optimizer's step, on the CPU, whatever the program calls it?
bool is_cpu_optimizer(const Trace& trace, const HostTotal& total) {
  return total.work == HostWork::work && std::ranges::any_of(trace.ops, [&](const Op& op) {
           return op.kind == OpKind::host_work && op.phase == Phase::optimizer &&
                  (trace.strings[op.operator_name] == total.name || trace.strings[op.name] == total.name);
         });
}

// By what the host does most there.
std::string host_advice(const Run& run, const RunSummary& s, bool nothing_else) {
  const std::string first = s.top.host.empty() ? "" : s.top.host.front().name;
  const std::string begin = nothing_else ? "No faster GPU or link helps much. " : "";
  if (first.find("DataLoader") != std::string::npos)
    return begin + "Try to load ahead: more workers of the data loader, prefetching.";
  if (!s.top.host.empty() && is_cpu_optimizer(*run.trace, s.top.host.front()))
    return begin + "The optimizer runs on the CPU; on the GPU it needs its states there.";
  return begin + fewer_calls(*run.trace);
}

// Of a step that fits, or of which nobody knows: what its time is bound by.
std::string time_to_try(const Run& run, const RunSummary& s, const Filled& filled, const Shares& shares,
                        const std::string& bound) {
  const double host = share_of_time(s.times[TimeClass::host], s.times.total());
  if (bound == "host" || (bound == "compute" && (host > kOftenHost || gain_of(s, "the host") > kMuch))) {
    return host_advice(run, s, host > kMostlyHost && gain_of(s, "the GPU's kernels") < kMuch);
  }
  if (bound == "copy" || (bound == "allocator" && !s.pager.empty()))
    return has_a_slow_bus(s) ? "Try a faster link (--set pcie=gen5), or move less." : "";
  if (bound == "collective" || bound.starts_with("rank")) return "";
  // What a planner was not to use is not left.
  const bool roomy = s.budgets.empty() && filled.tier != nullptr && filled.tier->peak_reserved > 0 &&
                     filled.tier->peak_reserved < filled.tier->usable / 2;
  if (bound == "compute" && shares.recompute >= 0.1 && roomy && s.fits)
    return "Memory is left: checkpoint less, and save up to " +
           human_time(s.times[TimeClass::recompute] / s.step_count) + " of recomputation per step.";
  if (bound == "compute" && roomy && s.fits && run.trace->samples_per_step > 0 && run.trace->knowledge.dataflow)
    return "Memory is left for a larger batch: --find-largest-batch says how large; memwall roofline says what holds "
           "the kernels.";
  return bound == "compute" ? "memwall roofline says what holds the kernels." : "";
}

}  // namespace

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

Shares::Shares(const RunSummary& s) {
  const Duration all = s.times.total();
  recompute = share_of_time(s.times[TimeClass::recompute], all);
  kernels = share_of_time(s.times[TimeClass::compute], all) + recompute;
  for (int c = static_cast<int>(TimeClass::copy); c < kTimeClasses; ++c) {
    const auto time_class = static_cast<TimeClass>(c);
    if (const double share = share_of_time(s.times[time_class], all); share > 0) waits.emplace_back(share, time_class);
  }
  std::stable_sort(waits.begin(), waits.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
}

bool has_policy(const RunSummary& s, std::string_view name) {
  return std::any_of(s.policies.begin(), s.policies.end(), [&](const std::string& p) { return p.starts_with(name); });
}

std::string gains_sentence(const RunSummary& s) {
  if (s.speedups.empty() || s.step_time.count() == 0) return "";
  std::vector<std::string> parts;
  for (const auto& [gain, what] : gains(s)) parts.push_back(what + " would save " + share_words(gain));
  if (parts.empty()) return "Nothing that is twice as fast saves 1 % of the step by itself.";
  return "Twice as fast, " + enumerated(parts) + " of the step.";
}

std::string what_to_try(const Run& run, const RunSummary& s, const Filled& filled, const Shares& shares,
                        const std::string& bound) {
  if (s.fits) return time_to_try(run, s, filled, shares, bound);
  return s.tried.empty() ? room_to_try(run, s, filled) + untried_words(run, s)
                         : tried_sentence(s, run.trace->samples_per_step);
}

}  // namespace memwall
