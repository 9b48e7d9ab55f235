#include "tests/support/best_moves.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

namespace memwall {
namespace {

constexpr int kMostTurns = 60, kMean = 12;
constexpr double kSame = 1e-13;  // seconds

// A way to carry out moves: the order of copies out and back within slots; each a list by slot.
struct Orders {
  std::vector<std::vector<int>> copies, fetches;  // by slot: versions; moves
};

class Exhaustion {
 public:
  Exhaustion(const StepCycle& cycle, const CycleLinks& links, Bytes budget, long most_replays)
      : c_(cycle), slots_(static_cast<int>(cycle.size())), most_(most_replays) {
    for (const CycleSlot& slot : cycle.slots()) time_.push_back(to_seconds(slot.time));
    ideal_ = std::accumulate(time_.begin(), time_.end(), 0.0);
    room_.assign(time_.size(), budget);
    for (std::size_t k = 0; k < time_.size(); ++k) room_[k] -= cycle.live()[k];
    could_leave_.assign(time_.size(), 0);
    for (std::uint32_t g = 0; g < cycle.gaps().size(); ++g) {
      const CycleGap& gap = cycle.gaps()[g];
      const CycleStorage& storage = cycle.storages()[gap.storage];
      out_.push_back(static_cast<double>(storage.moved) / links.paths[0].out_rate);
      in_.push_back(static_cast<double>(storage.moved) / links.paths[0].in_rate);
      if (gap.needs_content && gap.returns) {
        open_.push_back(g);
        spread(could_leave_, gap.begin, gap.end, storage.held);
      } else {
        // Costs nothing: away as long as can be.
        moves_.push_back({g, 0, PlannedMove::kNoCopy, gap.begin, gap.end});
        spread(room_, gap.begin, gap.end, storage.held);
      }
    }
    // The largest first: they decide most.
    std::sort(open_.begin(), open_.end(), [&](std::uint32_t a, std::uint32_t b) { return held(a) > held(b); });
  }

  std::optional<BestMoves> run() {
    free_ = moves_.size();
    choose(0);
    if (best_.seconds <= 0) return std::nullopt;
    return best_;
  }

 private:
  Bytes held(std::uint32_t g) const { return c_.storages()[c_.gaps()[g].storage].held; }
  std::size_t at(int slot) const { return static_cast<std::size_t>(((slot % slots_) + slots_) % slots_); }
  void spread(std::vector<Bytes>& by_slot, int begin, int end, Bytes bytes) {
    for (int k = begin; k < end; ++k) by_slot[at(k)] += bytes;
  }
  bool is_done() const { return best_.given_up || (best_.seconds > 0 && best_.seconds <= ideal_ * (1 + 1e-9)); }

  // Gap by gap: there, or away in any of its slots.
  void choose(std::size_t next) {
    if (is_done()) return;
    for (std::size_t k = 0; k < room_.size(); ++k)
      if (room_[k] + could_leave_[k] < 0) return;
    if (next == open_.size()) return judge();
    const std::uint32_t g = open_[next];
    const CycleGap& gap = c_.gaps()[g];
    spread(could_leave_, gap.begin, gap.end, -held(g));
    choose(next + 1);
    for (int drop = gap.begin; drop < gap.end; ++drop)
      for (int fetch = drop + 1; fetch <= gap.end; ++fetch) {
        spread(room_, drop, fetch, held(g));
        moves_.push_back({g, 0, PlannedMove::kNoCopy, drop, fetch});
        choose(next + 1);
        moves_.pop_back();
        spread(room_, drop, fetch, -held(g));
      }
    spread(could_leave_, gap.begin, gap.end, held(g));
  }

  // All gaps are decided: could one be there longer?
  void judge() {
    std::vector<std::vector<int>> fetches(time_.size());
    std::vector<bool> bound(moves_.size(), false);
    for (std::size_t m = free_; m < moves_.size(); ++m) {
      const PlannedMove& move = moves_[m];
      if (held(move.gap) <= room_[at(move.drop)]) return;
      bound[m] = held(move.gap) > room_[at(move.fetch - 1)];
      fetches[at(move.fetch)].push_back(static_cast<int>(m));
    }
    for (const auto& of_slot : fetches)
      if (!of_slot.empty() && std::none_of(of_slot.begin(), of_slot.end(), [&](int m) { return bound[static_cast<std::size_t>(m)]; }))
        return;
    gather_versions();
    Orders orders{std::vector<std::vector<int>>(time_.size()), fetches};
    if (is_worse(orders, true, true)) return;
    order_fetches(orders, bound, 0);
  }

  // By version moved: when it was written, and how many slots later it is first dropped.
  void gather_versions() {
    written_.clear(), due_.clear(), owner_.clear();
    for (std::size_t m = free_; m < moves_.size(); ++m) {
      const CycleGap& gap = c_.gaps()[moves_[m].gap];
      if (!gap.needs_copy) continue;
      const int version = static_cast<int>(gap.version), due = moves_[m].drop - gap.written;
      if (!due_.contains(version)) due_[version] = std::numeric_limits<int>::max();
      if (due >= due_[version]) continue;
      due_[version] = due, written_[version] = gap.written, owner_[version] = m;
    }
  }

  void order_fetches(Orders& orders, const std::vector<bool>& bound, std::size_t slot) {
    if (is_done()) return;
    if (slot == time_.size()) {
      if (is_worse(orders, true, false)) return;
      return place_copies(orders, due_.begin());
    }
    auto& list = orders.fetches[slot];
    std::sort(list.begin(), list.end());
    if (list.empty()) return order_fetches(orders, bound, slot + 1);
    do
      if (bound[static_cast<std::size_t>(list.front())]) order_fetches(orders, bound, slot + 1);
    while (std::next_permutation(list.begin(), list.end()));
  }

  // Issued when its own content or that of another that goes before it is there.
  void place_copies(Orders& orders, std::map<int, int>::const_iterator version) {
    if (is_done()) return;
    if (version == due_.end()) return order_copies(orders, 0);
    const int v = version->first, written = written_[v];
    for (int after = 1; after <= version->second; ++after) {
      const bool sensible = std::any_of(written_.begin(), written_.end(),
                                        [&](const auto& other) { return at(other.second + 1) == at(written + after); });
      if (!sensible) continue;
      orders.copies[at(written + after)].push_back(v);
      offset_[v] = after;
      place_copies(orders, std::next(version));
      std::erase(orders.copies[at(written + after)], v);
    }
  }

  void order_copies(Orders& orders, std::size_t slot) {
    if (is_done()) return;
    if (slot == time_.size()) return compare(orders);
    std::vector<int> list = orders.copies[slot];
    if (list.empty()) return order_copies(orders, slot + 1);
    std::sort(list.begin(), list.end());
    const std::vector<int> before = orders.copies[slot];
    do {
      if (offset_[list.front()] != 1) continue;
      orders.copies[slot] = list;
      order_copies(orders, slot + 1);
    } while (std::next_permutation(list.begin(), list.end()));
    orders.copies[slot] = before;
  }

  bool is_worse(const Orders& orders, bool own_link_out, bool own_link_in) {
    if (best_.seconds <= 0) return false;
    return seconds_of(orders, own_link_out, own_link_in) >= best_.seconds * (1 - 1e-9);
  }

  void compare(const Orders& orders) {
    const double seconds = seconds_of(orders, false, false);
    if (best_.seconds > 0 && seconds >= best_.seconds * (1 - 1e-9)) return;
    best_.seconds = seconds;
    best_.plan.moves.clear(), best_.plan.fetch_order.clear();
    // Copies in their order, then what needs none.
    std::vector<std::size_t> sequence;
    for (const auto& of_slot : orders.copies)
      for (const int v : of_slot) sequence.push_back(owner_[v]);
    std::map<std::size_t, std::uint32_t> place;
    for (std::size_t m = 0; m < moves_.size(); ++m)
      if (std::find(sequence.begin(), sequence.end(), m) == sequence.end()) sequence.push_back(m);
    for (const std::size_t m : sequence) {
      place[m] = static_cast<std::uint32_t>(best_.plan.moves.size());
      PlannedMove move = moves_[m];
      const int version = static_cast<int>(c_.gaps()[move.gap].version);
      if (m >= free_ && owner_.contains(version) && owner_[version] == m) move.copy = written_[version] + offset_[version];
      best_.plan.moves.push_back(move);
    }
    for (const auto& of_slot : orders.fetches)
      for (const int m : of_slot) best_.plan.fetch_order.push_back(place[static_cast<std::size_t>(m)]);
    for (std::size_t m = 0; m < free_; ++m) best_.plan.fetch_order.push_back(place[m]);
  }

  // Of a turn. With a link of its own a copy out runs as soon as its content is there.
  double seconds_of(const Orders& orders, bool own_link_out, bool own_link_in) {
    if (++best_.replays > most_) {
      best_.given_up = true;
      return std::numeric_limits<double>::infinity();
    }
    const std::size_t versions = c_.versions();
    std::vector<double> done(versions, 0), back(moves_.size(), 0);
    double now = 0, out_free = 0, in_free = 0, sum_out = 0, sum_in = 0, mean_from = 0;
    double last = -1, last_out = -1, last_in = -1;
    for (const auto& [v, due] : due_) sum_out += out_[moves_[owner_[v]].gap];
    for (std::size_t m = free_; m < moves_.size(); ++m) sum_in += in_[moves_[m].gap];
    const double links = std::max(sum_out, sum_in);
    for (int turn = 0; turn < kMostTurns; ++turn) {
      const double begun = now;
      if (turn == kMostTurns - kMean) mean_from = now;
      for (std::size_t k = 0; k < time_.size(); ++k) {
        if (own_link_out) {
          for (const auto& [v, written] : written_)
            if (at(written + 1) == k) done[static_cast<std::size_t>(v)] = now + out_[moves_[owner_[v]].gap];
        } else {
          for (const int v : orders.copies[k])
            done[static_cast<std::size_t>(v)] = out_free = std::max(out_free, now) + out_[moves_[owner_[v]].gap];
        }
        for (std::size_t m = free_; m < moves_.size(); ++m)
          if (at(moves_[m].drop) == k && c_.gaps()[moves_[m].gap].needs_copy)
            now = std::max(now, done[c_.gaps()[moves_[m].gap].version]);
        for (const int m : orders.fetches[k]) {
          const std::size_t i = static_cast<std::size_t>(m);
          back[i] = (own_link_in ? now : std::max(in_free, now)) + in_[moves_[i].gap];
          if (!own_link_in) in_free = back[i];
        }
        for (std::size_t m = free_; m < moves_.size(); ++m)
          if (at(c_.gaps()[moves_[m].gap].end) == k) now = std::max(now, back[m]);
        now += time_[k];
      }
      const double length = now - begun, behind_out = std::max(0.0, out_free - now), behind_in = std::max(0.0, in_free - now);
      if (turn > 1 && std::abs(length - last) < kSame && std::abs(behind_out - last_out) < kSame &&
          std::abs(behind_in - last_in) < kSame)
        return std::max(length, links);
      last = length, last_out = behind_out, last_in = behind_in;
    }
    return std::max((now - mean_from) / kMean, links);
  }

  const StepCycle& c_;
  const int slots_;
  const long most_;
  std::vector<double> time_, out_, in_;  // by slot; by gap, of a copy
  double ideal_ = 0;
  std::vector<Bytes> room_, could_leave_;  // by slot: left of the budget; that undecided gaps could give
  std::vector<std::uint32_t> open_;
  std::vector<PlannedMove> moves_;
  std::size_t free_ = 0;  // moves that cost nothing come first
  std::map<int, int> written_, due_, offset_;
  std::map<int, std::size_t> owner_;  // the move that makes the copy
  BestMoves best_;
};

}  // namespace

std::optional<BestMoves> best_moves(const StepCycle& cycle, const CycleLinks& links, Bytes budget, long most_replays) {
  return Exhaustion(cycle, links, budget, most_replays).run();
}

}  // namespace memwall
