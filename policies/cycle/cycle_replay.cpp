#include "policies/cycle/cycle_replay.h"

#include <algorithm>

#include "policies/cycle/copy_queue.h"

namespace memwall {
namespace {

// Turns until the time of one repeats: copies that one turn leaves to the next settle within a few.
constexpr int kMostTurns = 12;

CopyQueue queue_of(const CycleLinks& links, bool out) {
  std::vector<CopyQueue::Path> paths;
  for (const CyclePath& path : links.paths)
    paths.push_back(out ? CopyQueue::Path{path.out_rate, path.out_latency}
                        : CopyQueue::Path{path.in_rate, path.in_latency});
  return {std::move(paths), out ? links.total_out : links.total_in};
}

class Replay {
 public:
  Replay(const StepCycle& cycle, const CycleLinks& links, const MovePlan& plan)
      : cycle_(cycle), links_(links), plan_(plan), out_(queue_of(links, true)), in_(queue_of(links, false)) {
    const std::size_t size = cycle.size();
    copies_at_.resize(size), drops_at_.resize(size), fetches_at_.resize(size), uses_at_.resize(size);
    const auto wrapped = [&](std::int32_t slot) {
      const auto turn = static_cast<std::int32_t>(size);
      return static_cast<std::size_t>(((slot % turn) + turn) % turn);
    };
    for (std::uint32_t m = 0; m < plan.moves.size(); ++m) {
      const PlannedMove& move = plan.moves[m];
      if (move.copy != PlannedMove::kNoCopy) copies_at_[wrapped(move.copy)].push_back(m);
      drops_at_[wrapped(move.drop)].push_back(m);
    }
    for (const std::uint32_t m : plan.fetch_order) {
      const CycleGap& gap = cycle.gaps()[plan.moves[m].gap];
      if (!gap.needs_content || !gap.returns) continue;
      fetches_at_[wrapped(plan.moves[m].fetch)].push_back(m);
      uses_at_[wrapped(gap.end)].push_back(m);
    }
    left_.assign(plan.moves.size(), kNoJob);
    back_.assign(plan.moves.size(), kNoJob);
    by_version_.assign(cycle.versions(), kNoJob);
  }

  ReplayedCycle run() {
    ReplayedCycle result;
    Time before{}, previous{-1};
    for (int turn = 0; turn < kMostTurns; ++turn) {
      result.waits.assign(cycle_.size(), Duration{});
      result.for_move.assign(cycle_.size(), ReplayedCycle::kNone);
      for (std::uint32_t slot = 0; slot < cycle_.size(); ++slot) run_slot(slot, result);
      result.turn = now_ - before;
      if (turn > 1 && result.turn == previous) break;
      previous = result.turn;
      before = now_;
    }
    // A queue that grows a little from turn to turn makes the device wait only much later.
    result.turn = std::max(result.turn, needed_by_links());
    return result;
  }

 private:
  static constexpr std::size_t kNoJob = static_cast<std::size_t>(-1);

  // What one turn puts on the links.
  Duration needed_by_links() const {
    std::vector<double> out(links_.paths.size(), 0), in(out);
    double all_out = 0, all_in = 0;
    for (const PlannedMove& move : plan_.moves) {
      const CycleGap& gap = cycle_.gaps()[move.gap];
      const CyclePath& path = links_.paths[move.path];
      const auto bytes = static_cast<double>(cycle_.storages()[gap.storage].moved);
      if (move.copy != PlannedMove::kNoCopy) {
        out[move.path] += to_seconds(path.out_latency) + bytes / path.out_rate;
        all_out += bytes / links_.total_out;
      }
      if (!gap.needs_content || !gap.returns) continue;
      in[move.path] += to_seconds(path.in_latency) + bytes / path.in_rate;
      all_in += bytes / links_.total_in;
    }
    for (std::size_t p = 0; p < out.size(); ++p) all_out = std::max(all_out, out[p]), all_in = std::max(all_in, in[p]);
    return from_seconds(std::max(all_out, all_in));
  }

  void wait(Time until, std::uint32_t slot, std::uint32_t move, ReplayedCycle& result) {
    if (until <= now_) return;
    result.waits[slot] += until - now_;
    result.for_move[slot] = move;
    now_ = until;
  }

  void run_slot(std::uint32_t slot, ReplayedCycle& result) {
    for (const std::uint32_t m : copies_at_[slot]) {
      const CycleGap& gap = cycle_.gaps()[plan_.moves[m].gap];
      by_version_[gap.version] = out_.issue(plan_.moves[m].path, cycle_.storages()[gap.storage].moved, now_);
    }
    for (const std::uint32_t m : drops_at_[slot]) {
      const CycleGap& gap = cycle_.gaps()[plan_.moves[m].gap];
      left_[m] = gap.needs_copy ? by_version_[gap.version] : kNoJob;
      if (left_[m] != kNoJob) wait(out_.done(left_[m]), slot, m, result);
    }
    for (const std::uint32_t m : fetches_at_[slot]) {
      const CycleGap& gap = cycle_.gaps()[plan_.moves[m].gap];
      back_[m] = in_.issue(plan_.moves[m].path, cycle_.storages()[gap.storage].moved, now_);
    }
    for (const std::uint32_t m : uses_at_[slot])
      if (back_[m] != kNoJob) wait(in_.done(back_[m]), slot, m, result);
    now_ += cycle_.slots()[slot].time;
  }

  const StepCycle& cycle_;
  const CycleLinks& links_;
  const MovePlan& plan_;
  CopyQueue out_, in_;
  std::vector<std::vector<std::uint32_t>> copies_at_, drops_at_, fetches_at_, uses_at_;
  std::vector<std::size_t> left_, back_, by_version_;
  Time now_{};
};

}  // namespace

ReplayedCycle replay_cycle(const StepCycle& cycle, const CycleLinks& links, const MovePlan& plan) {
  return Replay(cycle, links, plan).run();
}

}  // namespace memwall
