// The peak in sentences that a person can act on.
#include "gui/model/peak_explanation.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "gui/model/live_set.h"
#include "gui/model/readable_name.h"
#include "gui/model/storage_name.h"
#include "traces/figure/axis.h"
#include "traces/run/analysis/peak.h"
#include "traces/run/analysis/summary.h"

namespace memwall::gui {
namespace {

constexpr std::size_t kLargest = 10;

// "3.2 GB (12 %)"
std::string part(Bytes bytes, Bytes all) {
  const double share = all > 0 ? 100.0 * static_cast<double>(bytes) / static_cast<double>(all) : 0;
  return fmt::format("{} ({:.{}f} %)", format_bytes(bytes), share, share < 1 ? 1 : 0);
}

class PeakText {
 public:
  PeakText(const OpenRun& run, std::uint32_t tier)
      : run_(run),
        outline_(run.outline().run),
        tier_(outline_.machine.tiers[tier]),
        result_(outline_.result.tiers[tier]),
        set_(live_set(run, tier, result_.peak_time)) {
    look_up_makers();
  }

  PeakExplanation explain() {
    PeakExplanation out{set_.tier, set_.time, {}, {}};
    out.sentences = {when(), by_kind()};
    if (const std::string text = by_phase(); !text.empty()) out.sentences.push_back(text);
    if (const std::string text = waiting(); !text.empty()) out.sentences.push_back(text);
    const std::size_t count = std::min(kLargest, set_.rows.size());
    Bytes sum = 0;
    for (std::size_t i = 0; i < count; ++i) sum += set_.rows[i].bytes;
    if (count > 0)
      out.sentences.push_back(count == set_.rows.size() ? fmt::format("Its storages, the largest first:")
                                                        : fmt::format("The largest {} of {} storages hold {}:", count,
                                                                      set_.rows.size(), part(sum, set_.requested)));
    for (std::size_t i = 0; i < count; ++i) {
      out.sentences.push_back(one_storage(i));
      out.largest.push_back(set_.rows[i].storage);
    }
    out.sentences.push_back(fragmentation());
    out.sentences.push_back(capacity());
    return out;
  }

 private:
  void look_up_makers() {
    const std::size_t count = std::min(kMostMakers, set_.rows.size());
    for (std::size_t i = 0; i < count; ++i) {
      const LiveRow& row = set_.rows[i];
      names_.push_back(name_of(run_, row.storage));
      by_phase_[static_cast<std::size_t>(names_.back().phase)] += row.bytes;
      looked_at_ += row.bytes;
      if (row.kind == StorageKind::activation && names_.back().phase == Phase::forward) {
        waiting_ += row.bytes;
        ++waiting_count_;
      }
    }
    by_phase_[static_cast<std::size_t>(Phase::unknown)] += set_.untracked;
    looked_at_ += set_.untracked;
  }

  std::string when() const {
    std::string step;
    for (const StepWindow& window : run_.outline().steps)
      if (window.name != "all" && window.begin <= set_.time && set_.time <= window.end && step.empty()) {
        const double length = to_seconds(window.end - window.begin);
        step = fmt::format(", {:.0f} % into step \"{}\"",
                           length > 0 ? 100 * to_seconds(set_.time - window.begin) / length : 0, window.name);
      }
    return fmt::format("{} holds most at {}{}: {} allocated, in {} storages{}.", tier_.name, format_time(set_.time),
                       step, format_bytes(set_.allocated), set_.rows.size(),
                       set_.untracked > 0 ? " and " + format_bytes(set_.untracked) + " that belong to none" : "");
  }

  std::string by_kind() const {
    std::vector<std::size_t> kinds(kStorageKinds);
    std::iota(kinds.begin(), kinds.end(), std::size_t{0});
    std::stable_sort(kinds.begin(), kinds.end(),
                     [&](std::size_t a, std::size_t b) { return set_.by_kind[a] > set_.by_kind[b]; });
    std::string text;
    for (const std::size_t kind : kinds)
      if (set_.by_kind[kind] > 0)
        text += fmt::format("{}{} {}", text.empty() ? "" : ", ", with_blanks(to_string(static_cast<StorageKind>(kind))),
                            part(set_.by_kind[kind], set_.requested));
    return text.empty() ? "Nothing was asked for." : "By kind: " + text + ".";
  }

  std::string by_phase() const {
    static constexpr Phase order[] = {Phase::forward, Phase::recompute, Phase::backward, Phase::optimizer};
    std::string text;
    for (const Phase phase : order)
      if (const Bytes bytes = by_phase_[static_cast<std::size_t>(phase)]; bytes > 0)
        text += fmt::format("{}{} in {}", text.empty() ? "" : ", ", part(bytes, set_.requested), to_string(phase));
    if (text.empty()) return "";
    if (const Bytes bytes = by_phase_[static_cast<std::size_t>(Phase::unknown)]; bytes > 0)
      text += fmt::format(", {} before the first op or in no known phase", part(bytes, set_.requested));
    text = "Made: " + text + ".";
    if (set_.requested > looked_at_)
      text += fmt::format(" The smallest {} storages ({}) were not looked up.", set_.rows.size() - names_.size(),
                          format_bytes(set_.requested - looked_at_));
    return text;
  }

  std::string waiting() const {
    if (waiting_ == 0) return "";
    return fmt::format(
        "{} of {} activations of forward wait for their backward: recomputing them (policy recompute) or moving them "
        "out (policy offload:what=activations) is what makes this peak lower.",
        part(waiting_, set_.requested), waiting_count_);
  }

  std::string one_storage(std::size_t i) const {
    const LiveRow& row = set_.rows[i];
    const StorageName& name = names_[i];
    std::string text =
        fmt::format("{}. {}, {}: {}", i + 1, format_bytes(row.bytes), with_blanks(to_string(row.kind)),
                    name.label.empty() ? fmt::format("storage {}", row.storage) : readable_name(name.label));
    if (!name.module.empty()) text += " of " + name.module;
    if (name.phase != Phase::unknown) text += fmt::format(", made in {}", to_string(name.phase));
    return text;
  }

  std::string fragmentation() const {
    const Bytes rounding = set_.allocated - set_.requested, idle = set_.reserved - set_.allocated;
    std::string text =
        fmt::format("Fragmentation at this instant: rounding adds {}, and the allocator holds {} that nothing uses.",
                    part(std::max<Bytes>(0, rounding), set_.allocated), part(std::max<Bytes>(0, idle), set_.reserved));
    const TierPressure& pressure = result_.pressure;
    if (result_.peak_reserved > set_.reserved)
      text += fmt::format(" It holds most, {}, at {}, with {} in use.", format_bytes(result_.peak_reserved),
                          format_time(pressure.peak_reserved_time), format_bytes(pressure.at_peak_reserved.allocated));
    return text;
  }

  std::string capacity() const {
    const Bytes capacity = tier_.holds();
    if (result_.missing == 0)
      return fmt::format("It fits: {} of the capacity of {} are free at the peak.",
                         part(std::max<Bytes>(0, capacity - set_.allocated), capacity), format_bytes(capacity));
    const MissingCause cause = cause_of_missing(result_, capacity);
    if (!outline_.pager.empty())
      return fmt::format("It does not fit: the pager cannot make room in {}, which has {}.", tier_.name,
                         format_bytes(capacity));
    if (cause == MissingCause::in_one_piece)
      return fmt::format(
          "It does not fit in {} ({}): {} are missing in one piece, while enough was free in several: fragmentation.",
          tier_.name, format_bytes(capacity), format_bytes(result_.missing));
    std::string text =
        fmt::format("It does not fit: {} are missing in {}, which has {}; {} are {} at the peak.",
                    format_bytes(result_.missing), tier_.name, format_bytes(capacity),
                    format_bytes(capacity + result_.missing), cause == MissingCause::reserved ? "reserved" : "in use");
    // An arena is not made smaller by a block that is not taken.
    if (waiting_ > 0 && cause == MissingCause::in_use)
      text += waiting_ >= result_.missing
                  ? fmt::format(" Without the activations that wait it would fit, with {} to spare.",
                                format_bytes(waiting_ - result_.missing))
                  : fmt::format(" Without the activations that wait {} would still be missing.",
                                format_bytes(result_.missing - waiting_));
    return text;
  }

  const OpenRun& run_;
  const Run& outline_;
  const Tier& tier_;
  const TierResult& result_;
  TierLiveSet set_;
  std::vector<StorageName> names_;  // of the first rows
  std::array<Bytes, kPhases> by_phase_{};
  Bytes looked_at_ = 0, waiting_ = 0;
  std::size_t waiting_count_ = 0;
};

}  // namespace

PeakExplanation explain_peak(const OpenRun& run, std::uint32_t tier) {
  if (!run.outline().run.trace->knowledge.allocations)
    return {tier, {}, {"Not recorded: the capture does not say what takes memory."}, {}};
  if (tier >= run.outline().run.result.tiers.size() || run.outline().run.result.tiers[tier].peak_allocated == 0)
    return {tier, {}, {"Nothing is ever held here."}, {}};
  return PeakText(run, tier).explain();
}

}  // namespace memwall::gui
