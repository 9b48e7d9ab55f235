#include "policies/cycle/rerun_order.h"

#include <algorithm>

namespace memwall {
namespace {

// So many times the bytes that lack time at first are chosen at most.
constexpr double kMostChosen = 2;

// The program with storages of less than `least` bytes where they are, in each slot together: they do not move.
CycleProgram with_small_ones_fixed(CycleProgram program, Bytes least) {
  if (least <= 0) return program;
  std::vector<Bytes> change(program.slots.size() + 1, 0);
  std::erase_if(program.storages, [&](const CycleStorage& s) {
    if (s.fixed || s.held >= least) return false;
    change[s.first] += s.held;
    change[s.last + 1] -= s.held;
    return true;
  });
  Bytes held = 0;
  for (std::uint32_t slot = 0; slot < program.slots.size(); ++slot) {
    held += change[slot];
    if (held == 0) continue;
    CycleStorage small;
    small.held = small.moved = held;
    small.first = small.last = slot;
    small.fixed = true;
    program.storages.push_back(std::move(small));
  }
  return program;
}

class Ordering {
 public:
  Ordering(const StepProfile& profile, const CycledStep& step, const CycleLinks& links, Bytes budget,
           const std::vector<RerunCandidate>& candidates)
      : p_(profile), step_(step), links_(links), budget_(budget), rest_(candidates) {}

  RerunOrder run(const RerunOrderSettings& settings) {
    double bytes = 0;  // of what is chosen in a round
    peaks_ = settings.peaks;
    Bytes least = settings.least_bytes;
    for (int round = 0;; ++round) {
      CycledStep step = step_with_chosen();
      MovesBound bound = bound_of(std::move(step.program), least);
      if (!bound.feasible && least > 0) {  // then small ones have to move, too
        least = 0;
        bound = bound_of(step_with_chosen().program, least);
      }
      if (round == 0 || bound.seconds < order_.seconds) {
        order_.seconds = bound.seconds;
        order_.best = order_.candidates.size();
      }
      if (round == 0)
        for (const BindingWindow& window : bound.windows)
          bytes = std::max(bytes, settings.share_per_round * static_cast<double>(window.deficit));
      const bool is_last = round * settings.share_per_round >= kMostChosen;
      if (is_last || bound.windows.empty() || !take(step, bound, bytes)) break;
    }
    order_.candidates.insert(order_.candidates.end(), rest_.begin(), rest_.end());
    return std::move(order_);
  }

 private:
  CycledStep step_with_chosen() const {
    return cycle_with_reruns(p_, step_, order_.candidates, order_.candidates.size()).step;
  }

  MovesBound bound_of(CycleProgram program, Bytes least) const {
    return moves_bound(StepCycle(with_small_ones_fixed(std::move(program), least)), links_, budget_, peaks_);
  }

  // Seconds that the device waits less for each byte that is not there in the gap.
  double relief(const CycledStep& step, const MovesBound& bound, const Gap& gap) const {
    const auto turn = static_cast<std::int64_t>(step.places.size());
    const std::int64_t begin = step.slot_of[gap.after] + 1, end = step.slot_of[gap.before];
    const std::int64_t written = step.slot_of[written_by(gap)];
    double seconds = 0;
    for (const BindingWindow& window : bound.windows)
      for (const std::int64_t shift : {std::int64_t{0}, turn, -turn}) {
        const std::int64_t peak = (window.out ? window.to : window.from) + shift;
        if (peak < begin || peak >= end) continue;
        if (window.out ? written >= window.from + shift : end <= window.to + shift)
          seconds += 1 / (window.out ? links_.total_out : links_.total_in);
      }
    return seconds;
  }

  OpId written_by(const Gap& gap) const {
    const std::uint32_t version = p_.flow().version_before(gap.storage, gap.after + 1);
    const OpId op = p_.flow().writer(gap.storage, version);
    return op == kNoOp ? 0 : op;  // what no op of the step has written is there from its first slot on
  }

  // The best of the rest, until they hold so many bytes. False: none is worth its time.
  bool take(const CycledStep& step, const MovesBound& bound, double bytes) {
    struct Valued {
      double cost;  // seconds for each second less
      std::size_t index;
    };
    std::vector<Valued> valued;
    for (std::size_t i = 0; i < rest_.size(); ++i)
      if (const double seconds = relief(step, bound, rest_[i].gap); seconds > rest_[i].seconds_per_byte)
        valued.push_back({rest_[i].seconds_per_byte / seconds, i});
    std::stable_sort(valued.begin(), valued.end(), [](const Valued& a, const Valued& b) { return a.cost < b.cost; });
    std::vector<bool> taken(rest_.size(), false);
    for (const Valued& one : valued) {
      if (bytes <= 0) break;
      bytes -= static_cast<double>(p_.held(rest_[one.index].gap.storage));
      taken[one.index] = true;
      order_.candidates.push_back(rest_[one.index]);
    }
    std::size_t index = 0;
    std::erase_if(rest_, [&](const RerunCandidate&) { return taken[index++]; });
    return !valued.empty();
  }

  const StepProfile& p_;
  const CycledStep& step_;
  const CycleLinks& links_;
  const Bytes budget_;
  std::size_t peaks_ = kPeaksOfBound;
  std::vector<RerunCandidate> rest_;
  RerunOrder order_;
};

}  // namespace

RerunOrder order_by_bound(const StepProfile& profile, const CycledStep& step, const CycleLinks& links, Bytes budget,
                          const std::vector<RerunCandidate>& candidates, const RerunOrderSettings& settings) {
  return Ordering(profile, step, links, budget, candidates).run(settings);
}

}  // namespace memwall
