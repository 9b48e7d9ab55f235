#include "tests/support/turn_replay.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>

namespace memwall {
namespace {

constexpr std::size_t kNoTransfer = static_cast<std::size_t>(-1);

// One direction of all paths, in seconds.
class Carrier {
 public:
  Carrier(const CycleLinks& links, bool out) : out_(out), links_(links), waiting_(links.paths.size()) {}

  // REQUIRES: `now` does not lie before that of any call so far.
  std::size_t begin(std::uint8_t path, Bytes bytes, double now) {
    advance(now);
    const CyclePath& p = links_.paths[path];
    transfers_.push_back({to_seconds(out_ ? p.out_latency : p.in_latency), static_cast<double>(bytes), -1});
    waiting_[path].push_back(transfers_.size() - 1);
    return transfers_.size() - 1;
  }

  bool is_done(std::size_t transfer, double now) {
    advance(now);
    return transfers_[transfer].end >= 0 && transfers_[transfer].end <= now;
  }

  double end(std::size_t transfer) {
    while (transfers_[transfer].end < 0) advance_to_next(std::numeric_limits<double>::infinity());
    return transfers_[transfer].end;
  }

 private:
  struct Transfer {
    double latency = 0, bytes = 0, end = -1;
  };

  void advance(double now) {
    while (clock_ < now) advance_to_next(now);
  }

  // Each head's rate: those whose own rate is below an even share take it, the others share what is left.
  std::map<std::size_t, double> rates() const {
    std::map<std::size_t, double> rate;
    std::set<std::size_t> open;
    for (std::size_t p = 0; p < waiting_.size(); ++p)
      if (next_of(p) != kNoTransfer && transfers_[next_of(p)].latency <= 0) open.insert(p);
    double left = out_ ? links_.total_out : links_.total_in;
    for (bool changed = true; changed && !open.empty();) {
      changed = false;
      const double even = left / static_cast<double>(open.size());
      for (const std::size_t p : std::set<std::size_t>(open)) {
        const double own = out_ ? links_.paths[p].out_rate : links_.paths[p].in_rate;
        if (own > even) continue;
        rate[p] = own, left -= own, changed = true;
        open.erase(p);
      }
    }
    for (const std::size_t p : open) rate[p] = left / static_cast<double>(open.size());
    return rate;
  }

  std::size_t next_of(std::size_t path) const {
    return heads_[path] < waiting_[path].size() ? waiting_[path][heads_[path]] : kNoTransfer;
  }

  void advance_to_next(double limit) {
    const auto rate = rates();
    double step = limit - clock_;
    for (std::size_t p = 0; p < waiting_.size(); ++p)
      if (const std::size_t t = next_of(p); t != kNoTransfer)
        step = std::min(step, rate.contains(p) ? transfers_[t].bytes / rate.at(p) : transfers_[t].latency);
    for (std::size_t p = 0; p < waiting_.size(); ++p) {
      const std::size_t t = next_of(p);
      if (t == kNoTransfer) continue;
      Transfer& one = transfers_[t];
      if (!rate.contains(p)) {
        one.latency = one.latency <= step ? 0 : one.latency - step;
        if (one.latency > 0 || one.bytes > 0) continue;
      } else {
        one.bytes = one.bytes <= step * rate.at(p) * (1 + 1e-12) ? 0 : one.bytes - step * rate.at(p);
        if (one.bytes > 0) continue;
      }
      one.end = clock_ + step;
      ++heads_[p];
    }
    clock_ += step;
  }

  const bool out_;
  const CycleLinks& links_;
  std::vector<std::vector<std::size_t>> waiting_;
  std::vector<std::size_t> heads_ = std::vector<std::size_t>(waiting_.size(), 0);
  std::vector<Transfer> transfers_;
  double clock_ = 0;
};

class TurnReplay {
 public:
  TurnReplay(const Turn& turn, const CycleLinks& links)
      : turn_(turn), links_(links), out_(links, true), in_(links, false), states_(turn.storages.size()), touched_(turn.works.size()) {
    for (std::uint32_t s = 0; s < states_.size(); ++s) {
      states_[s].here = turn.storages[s].stays;
      states_[s].copies.resize(links.paths.size());
      if (states_[s].here) bytes_ += turn.storages[s].held;
    }
    find_what_stays();
  }

  ReplayedTurns run() {
    double before = 0;
    for (number_ = 0; number_ < ReplayedTurns::kTurns; ++number_) {
      if (number_ == ReplayedTurns::kTurns - ReplayedTurns::kMeanTurns) before = now_;
      for (place_ = 0; place_ < turn_.events.size(); ++place_) carry_out(turn_.events[place_]);
    }
    result_.seconds = std::max((now_ - before) / ReplayedTurns::kMeanTurns, needed_by_links());
    return std::move(result_);
  }

 private:
  struct Copy {
    std::int64_t content = 0;
    std::size_t transfer = kNoTransfer;
  };
  struct State {
    bool here = false;
    std::int64_t latest = 0, content = 0;  // that the program means; that lies on the device
    std::size_t coming = kNoTransfer;
    std::vector<Copy> copies;  // by path
  };

  double needed_by_links() const {
    std::vector<double> out(links_.paths.size(), 0), in(out);
    double all_out = 0, all_in = 0;
    for (const TurnEvent& event : turn_.events) {
      if (event.path == TurnEvent::kNoPath) continue;
      const CyclePath& path = links_.paths[event.path];
      const auto bytes = static_cast<double>(turn_.storages[event.storage].moved);
      const bool leaves = event.kind == TurnEvent::Kind::copy;
      (leaves ? out : in)[event.path] +=
          to_seconds(leaves ? path.out_latency : path.in_latency) + bytes / (leaves ? path.out_rate : path.in_rate);
      (leaves ? all_out : all_in) += bytes / (leaves ? links_.total_out : links_.total_in);
    }
    const double paths =
        std::max(*std::max_element(out.begin(), out.end()), *std::max_element(in.begin(), in.end()));
    return std::max({paths, all_out, all_in});
  }

  bool is_judged() const { return number_ >= ReplayedTurns::kFirstJudged; }

  void fault(std::uint32_t storage, const std::string& what) {
    if (is_judged() && result_.faults.size() < ReplayedTurns::kMostFaults)
      result_.faults.push_back("Turn " + std::to_string(number_) + ", event " + std::to_string(place_) + ", storage " +
                               std::to_string(storage) + ": " + what);
  }

  void take(Bytes bytes, bool counted = true) {
    bytes_ += bytes;
    if (is_judged() && counted) result_.highest = std::max(result_.highest, bytes_);
  }

  void wait(double until) { now_ = std::max(now_, until); }

  // Copies out of it that are still running.
  void wait_for_copies(std::uint32_t s) {
    for (Copy& copy : states_[s].copies)
      if (copy.transfer != kNoTransfer) wait(out_.end(copy.transfer));
  }

  void expect_no_copies(std::uint32_t s, const char* what) {
    for (Copy& copy : states_[s].copies)
      if (copy.transfer != kNoTransfer && !out_.is_done(copy.transfer, now_)) fault(s, what);
  }

  void carry_out(const TurnEvent& event) {
    const std::uint32_t s = event.storage;
    switch (event.kind) {
      case TurnEvent::Kind::appear:
        return appear(s, event.uncounted);
      case TurnEvent::Kind::give_back:
        return give_back(s);
      case TurnEvent::Kind::copy:
        return copy(s, event.path);
      case TurnEvent::Kind::drop:
        return drop(s);
      case TurnEvent::Kind::fetch:
        return fetch(s, event);
      case TurnEvent::Kind::work:
        return work(event.work);
      case TurnEvent::Kind::again:
        return again(event);
    }
  }

  void appear(std::uint32_t s, bool uncounted) {
    State& state = states_[s];
    if (state.here) return fault(s, "appears and is there already");
    state.here = true;
    state.content = state.latest = ++contents_;
    take(turn_.storages[s].held, !uncounted);
  }

  void give_back(std::uint32_t s) {
    State& state = states_[s];
    expect_no_copies(s, "is given back while it is copied out");
    if (!state.here) return;
    if (state.coming != kNoTransfer) wait(in_.end(state.coming));
    state.coming = kNoTransfer;
    state.here = false;
    bytes_ -= turn_.storages[s].held;
  }

  void copy(std::uint32_t s, std::uint8_t path) {
    State& state = states_[s];
    if (!state.here) return fault(s, "is copied and is not there");
    if (state.coming != kNoTransfer && !in_.is_done(state.coming, now_))
      return fault(s, "is copied before it has come back");
    if (state.content != state.latest) fault(s, "is copied without its content");
    state.copies[path] = {state.content, out_.begin(path, turn_.storages[s].moved, now_)};
  }

  void drop(std::uint32_t s) {
    State& state = states_[s];
    if (!state.here) return fault(s, "is dropped and is not there");
    if (state.coming != kNoTransfer && !in_.is_done(state.coming, now_)) fault(s, "is dropped while it comes back");
    wait_for_copies(s);
    state.here = false;
    state.coming = kNoTransfer;
    state.content = -1;
    bytes_ -= turn_.storages[s].held;
  }

  void fetch(std::uint32_t s, const TurnEvent& event) {
    State& state = states_[s];
    if (state.here) return fault(s, "is fetched and is there");
    state.here = true;
    take(turn_.storages[s].held, !event.uncounted);
    if (event.path == TurnEvent::kNoPath) return;
    Copy& from = state.copies[event.path];
    // What the turns before the first have left lies everywhere.
    if (!is_judged() && from.content != state.latest) from = {state.latest, kNoTransfer};
    if (from.content != state.latest) fault(s, "is fetched from a path that has other content");
    if (from.transfer != kNoTransfer && !out_.is_done(from.transfer, now_)) fault(s, "is fetched before it is out");
    state.content = from.content;
    state.coming = in_.begin(event.path, turn_.storages[s].moved, now_);
  }

  void wait_until_here(std::uint32_t s) {
    State& state = states_[s];
    if (!state.here) fault(s, "is touched and is not there");
    if (state.coming == kNoTransfer) return;
    wait(in_.end(state.coming));
    state.coming = kNoTransfer;
  }

  void work(std::uint32_t w) {
    const TurnWork& one = turn_.works[w];
    take(0);
    for (const TurnTouch& touch : one.touches) wait_until_here(touch.storage);
    touched_[w].clear();
    for (const TurnTouch& touch : one.touches) {
      State& state = states_[touch.storage];
      if (touch.reads && state.content != state.latest) fault(touch.storage, "is read without its content");
      const std::int64_t read = state.latest;
      if (touch.writes) {
        expect_no_copies(touch.storage, "is written while it is copied out");
        state.content = state.latest = ++contents_;
      }
      touched_[w].push_back({read, state.latest});
    }
    now_ += to_seconds(one.time);
  }

  // Works of this turn are done again. What they write lies beside what is there, unless it is absent and stays.
  void again(const TurnEvent& event) {
    std::map<std::uint32_t, std::int64_t> made;  // content
    Bytes beside = 0;
    double time = 0;
    for (const std::uint32_t w : event.again) {
      for (std::size_t i = 0; i < turn_.works[w].touches.size(); ++i) {
        const TurnTouch& touch = turn_.works[w].touches[i];
        const std::uint32_t s = touch.storage;
        const auto there = made.find(s);
        if (touch.reads && there == made.end()) wait_until_here(s);
        const std::int64_t found = there != made.end() ? there->second : states_[s].content;
        if (touch.reads && found != touched_[w][i].first) fault(s, "is read by a re-run without the content of then");
        if (!touch.writes) continue;
        if (there == made.end()) {
          const Bytes held = turn_.storages[s].held;
          if (states_[s].here || !stays_[place_].contains(s)) beside += held;
          take(held);
        }
        made[s] = touched_[w][i].second;
      }
      time += to_seconds(turn_.works[w].time);
    }
    now_ += time;
    bytes_ -= beside;
    for (const auto& [s, content] : made)
      if (!states_[s].here && stays_[place_].contains(s)) states_[s].here = true, states_[s].content = content;
  }

  // Of each re-run: the storages whose next event is a use.
  void find_what_stays() {
    stays_.resize(turn_.events.size());
    std::vector<bool> used_next(turn_.storages.size(), false);
    for (std::size_t i = turn_.events.size(); i-- > 0;) {
      const TurnEvent& event = turn_.events[i];
      if (event.kind == TurnEvent::Kind::work) {
        for (const TurnTouch& touch : turn_.works[event.work].touches) used_next[touch.storage] = true;
      } else if (event.kind == TurnEvent::Kind::again) {
        std::set<std::uint32_t> writes, reads;
        for (const std::uint32_t w : event.again)
          for (const TurnTouch& touch : turn_.works[w].touches) {
            if (touch.reads && !writes.contains(touch.storage)) reads.insert(touch.storage);
            if (touch.writes) writes.insert(touch.storage);
          }
        for (const std::uint32_t s : writes)
          if (used_next[s]) stays_[i].insert(s);
        for (const std::uint32_t s : writes) used_next[s] = false;
        for (const std::uint32_t s : reads) used_next[s] = true;
      } else {
        used_next[event.storage] = false;
      }
    }
  }

  const Turn& turn_;
  const CycleLinks& links_;
  Carrier out_, in_;
  std::vector<State> states_;
  std::vector<std::vector<std::pair<std::int64_t, std::int64_t>>> touched_;  // by work: what it read, what it left
  std::vector<std::set<std::uint32_t>> stays_;                               // by event
  std::int64_t contents_ = 0;
  Bytes bytes_ = 0;
  double now_ = 0;
  int number_ = 0;
  std::size_t place_ = 0;
  ReplayedTurns result_;
};

}  // namespace

ReplayedTurns replay_turns(const Turn& turn, const CycleLinks& links) { return TurnReplay(turn, links).run(); }

}  // namespace memwall
