// The fastest persistent schedule of a small chain by looking at all of them: a reference for RotorTable that shares
// nothing with it but the meaning of a stage.
//
// A state is what is kept: outputs with their parts for backward and for the next forward, what stages have saved, the
// newest output, which may still be kept or be let go, and how far backward has come. Dijkstra's search over states.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <queue>
#include <tuple>
#include <vector>

#include "policies/planners/rotor_chain.h"

namespace memwall {

class PersistentSchedules {
 public:
  // `in_turn`: of those that run a stage's forward only once backward of all that is saved behind it has run.
  PersistentSchedules(const RotorChain& chain, Bytes limit, bool in_turn)
      : chain_(chain), limit_(limit), in_turn_(in_turn) {}

  std::optional<std::int64_t> fastest() {
    State start;
    start.next = static_cast<int>(chain_.stages.size()) - 1;
    start.newest = 0;
    offer(start, 0);
    while (!queue_.empty()) {
      const auto [time, state] = queue_.top();
      queue_.pop();
      if (time > best_.at(state)) continue;
      if (state.next < 0) return time;
      for (int k = 0; k <= state.next; ++k) {
        if (in_turn_ && state.saved >> k >> 1 != 0) continue;
        pass(state, time, k);
        save(state, time, k);
      }
      backward(state, time);
    }
    return std::nullopt;
  }

 private:
  // Boundary k is what stage k reads; bit k of `kept` its part for backward, of `passed` its part for forward alone.
  struct State {
    std::uint32_t kept = 0, passed = 0, saved = 0;
    int newest = -1;  // boundary
    int next = 0;     // stage whose backward is next
    auto operator<=>(const State&) const = default;
  };
  static bool has(std::uint32_t set, int k) { return k >= 0 && (set >> k & 1) != 0; }
  const RotorStage& stage(int k) const { return chain_.stages[static_cast<std::size_t>(k)]; }
  Bytes kept_bytes(int boundary) const { return boundary == 0 ? 0 : stage(boundary - 1).output_saved; }
  Bytes passed_bytes(int boundary) const {
    return boundary == 0 ? chain_.input_passed : stage(boundary - 1).output_passed;
  }

  static bool is_kept(const State& s, int boundary) {
    return boundary == 0 || has(s.kept, boundary) || has(s.saved, boundary - 1);
  }
  static bool is_there(const State& s, int boundary) {
    return s.newest == boundary || (is_kept(s, boundary) && has(s.passed, boundary));
  }

  Bytes memory(const State& s) const {
    Bytes bytes = 0;
    const int stages = static_cast<int>(chain_.stages.size());
    for (int k = 0; k < stages; ++k) {
      if (has(s.saved, k)) bytes += stage(k).saved;
      if (has(s.kept, k) || (s.newest == k && !is_kept(s, k))) bytes += kept_bytes(k);
      if (has(s.passed, k) || s.newest == k) bytes += passed_bytes(k);
    }
    return bytes;
  }

  // Is what runs now the program's own forward? Backward of nothing has run.
  bool is_first(const State& s) const { return s.next + 1 == static_cast<int>(chain_.stages.size()); }

  // While stage k runs on what is kept in `s` before it. In the program's own forward the input's passed part is among
  // the stage's numbers, unless it is kept.
  Bytes while_passing(const State& s, int k, bool keep) const {
    if (!is_first(s) || stage(k).first_passing == RotorStage::kAsAgain)
      return memory(s) + stage(k).while_passing + stage(s.next).gradient;
    const bool kept = keep || has(s.passed, k);
    return memory(s) + (kept ? stage(k).first_passing_alone : stage(k).first_passing - passed_bytes(k));
  }
  Bytes while_saving(const State& s, int k) const {
    if (!is_first(s) || stage(k).first_saving == RotorStage::kAsAgain)
      return memory(s) + stage(s.next).gradient +
             (k == s.next && stage(k).while_last != RotorStage::kAsAgain ? stage(k).while_last : stage(k).while_saving);
    return memory(s) + stage(k).first_saving - passed_bytes(k);
  }

  void offer(const State& s, std::int64_t time) {
    const auto [known, is_new] = best_.try_emplace(s, time);
    if (!is_new && known->second <= time) return;
    known->second = time;
    queue_.push({time, s});
  }

  // What nobody starts from is let go.
  static State from(State s, int k) {
    if (s.newest != k) s.newest = -1;
    return s;
  }

  void pass(const State& before, std::int64_t time, int k) {
    if (k >= before.next || !is_there(before, k)) return;
    State s = from(before, k);
    for (const bool keep : {false, true}) {
      State after = s;
      if (keep && s.newest != k) continue;
      if (keep) after.passed |= 1u << k;
      if (keep && !is_kept(s, k)) after.kept |= 1u << k;
      if (while_passing(s, k, keep) > limit_) continue;
      after.newest = k + 1;
      offer(after, time + stage(k).forward.count());
    }
  }

  void save(const State& before, std::int64_t time, int k) {
    if (has(before.saved, k) || !is_there(before, k)) return;
    State s = from(before, k);
    if (while_saving(s, k) > limit_) return;
    if (!is_kept(s, k)) s.kept |= 1u << k;
    s.passed &= ~(1u << k);
    s.saved |= 1u << k;
    s.newest = k < before.next ? k + 1 : -1;
    offer(s, time + (k < before.next ? stage(k).forward : stage(k).forward_last).count());
  }

  void backward(const State& before, std::int64_t time) {
    State s = from(before, -1);
    const int k = s.next;
    if (!has(s.saved, k) || !is_kept(s, k) || memory(s) - stage(k).saved + stage(k).while_backward > limit_) return;
    s.saved &= ~(1u << k);
    s.kept &= ~(1u << k);
    --s.next;
    offer(s, time + stage(k).backward.count());
  }

  struct Later {
    bool operator()(const std::pair<std::int64_t, State>& a, const std::pair<std::int64_t, State>& b) const {
      return a.first > b.first;
    }
  };
  const RotorChain& chain_;
  const Bytes limit_;
  const bool in_turn_;
  std::map<State, std::int64_t> best_;
  std::priority_queue<std::pair<std::int64_t, State>, std::vector<std::pair<std::int64_t, State>>, Later> queue_;
};

}  // namespace memwall
