#include "policies/cycle/move_choice.h"

#include <algorithm>
#include <queue>

#include "policies/cycle/candidate_heap.h"

namespace memwall {
namespace {

// What costs no copy at all, and what costs none out, is taken before what does.
constexpr double kFree = 1e3, kCopied = 2;
// More than what the first tier has no room for goes to the next: room is not used up to the last byte.
constexpr double kReserve = 1.1;

constexpr double kFull = 0.95;
constexpr std::uint8_t kNoPath = 0xff;

std::int64_t half(std::int64_t time) { return time >= 0 ? time / 2 : -((1 - time) / 2); }

}  // namespace

MoveChoice::MoveChoice(ScheduleTable& table, std::vector<PlannedMove>& moves)
    : t_(table),
      moves_(moves),
      copied_(t_.cycle.versions(), kNot),
      path_of_(t_.cycle.storages().size(), kNoPath),
      held_always_(t_.cycle.storages().size(), false) {
  const LinkTime free(t_.link_times());
  paths_.assign(t_.links.paths.size(), {free, free, SlotBytes(std::vector<Bytes>(t_.times.size(), 0)), 0});
  takes_next_.assign(t_.cycle.gaps().size(), false);
  is_taken_.assign(t_.cycle.gaps().size(), false);
  latest_.assign(t_.cycle.gaps().size(), 0);
  if (paths_.size() > 1) choose_next_path();
}

// Where more has to be away than the first path's tier has room for, that much takes the next path: what has most time
// to leave before the highest excess and to come back behind it, as that path is slower, and rather what the first tier
// would round up.
void MoveChoice::choose_next_path() {
  const auto& live = t_.cycle.live();
  const std::int64_t highest = std::max_element(live.begin(), live.end()) - live.begin();
  const CyclePath& path = t_.links.paths.front();
  const auto excess = static_cast<double>(live[static_cast<std::size_t>(highest)] - t_.budget);
  double beyond = kReserve * (excess - static_cast<double>(path.room) / path.rounding());
  if (beyond <= 0) return;
  std::vector<Candidate> slack;
  for (std::uint32_t g = 0; g < takes_next_.size(); ++g) {
    const CycleGap& gap = t_.gap(g);
    const std::int64_t here = highest < gap.begin ? highest + t_.turn : highest;
    if (is_free(gap) || here >= gap.end || t_.storage(g).moved > t_.links.paths[1].largest) continue;
    const Duration before = t_.cycle.start(here) - t_.cycle.start(gap.written + 1);
    const Duration behind = t_.cycle.start(gap.end) - t_.cycle.start(here + 1);
    const double rounded = static_cast<double>(taken(g, 0)) / static_cast<double>(t_.storage(g).moved);
    slack.push_back({to_seconds(std::min(before, behind)) * rounded, g});
  }
  std::sort(slack.begin(), slack.end(), [](const Candidate& a, const Candidate& b) { return b < a; });
  for (const Candidate& entry : slack) {
    if (beyond <= 0) break;
    beyond -= static_cast<double>(t_.storage(entry.gap).held);
    takes_next_[entry.gap] = true;
  }
}

void MoveChoice::run(Bytes least) {
  for (const std::uint32_t g : t_.settings.first) {
    if (is_taken_[g]) continue;
    ++looked_at_;
    const auto away = away_in(g);
    if (away && score(g, away->first, away->end) > 0) take(g, *away);
  }
  std::vector<Candidate> open;
  for (std::uint32_t g = 0; g < t_.cycle.gaps().size(); ++g)
    if (t_.storage(g).held >= least)
      if (const double score = this->score(g, t_.gap(g).begin, t_.gap(g).end); score > 0) open.push_back({score, g});
  CandidateHeap heap(open);
  while (t_.tree.is_over() && !heap.empty()) {
    const std::uint32_t g = heap.top();
    // No more than without its copies: most are out of the question by that.
    double score = is_taken_[g] ? 0 : this->score(g, t_.gap(g).begin, t_.gap(g).end);
    if (score <= 0) {
      heap.pop();
      continue;
    }
    const double near = t_.settings.nearness * heap.next_score();
    if (score < near) {
      heap.rescore_top(score);
      continue;
    }
    ++looked_at_;
    const auto away = away_in(g);
    if (away) score = this->score(g, away->first, away->end);
    if (!away || score <= 0) {
      heap.pop();
    } else if (score >= near) {
      heap.pop();
      take(g, *away);
    } else {
      heap.rescore_top(score);
    }
  }
}

void MoveChoice::give(const std::vector<Duration>& more) {
  std::vector<Duration> times;
  for (const Duration before : more) times.push_back(before), times.push_back(Duration{});
  for (Path& path : paths_) path.out.give(times), path.in.give(times);
}

bool MoveChoice::leaves_too_late(std::int64_t slot) const {
  Bytes late = 0, early = 0;
  for (std::uint32_t g = 0; g < t_.cycle.gaps().size(); ++g) {
    const CycleGap& gap = t_.gap(g);
    const std::int64_t here = slot < gap.begin ? slot + t_.turn : slot;
    if (is_free(gap) || here >= gap.end) continue;
    const auto done = has_copy(gap) ? std::optional<std::int64_t>(gap.begin) : away_after(g, 0);
    const auto back = back_before(g, gap.begin, 0);
    if (!done || *done > here) late += t_.storage(g).held;
    if (!back || *back <= here) early += t_.storage(g).held;
  }
  return late >= early;
}

double MoveChoice::rate(std::int64_t slot, bool out) const {
  if (paths_.size() > 1 &&
      static_cast<double>(paths_[0].held.at(slot)) > kFull * static_cast<double>(t_.links.paths[0].room))
    return out ? t_.links.paths[1].out_rate : t_.links.paths[1].in_rate;
  return out ? t_.links.total_out : t_.links.total_in;
}

double MoveChoice::score(std::uint32_t g, std::int64_t from, std::int64_t end) const {
  const CycleGap& gap = t_.gap(g);
  double weight = t_.settings.weights.empty() ? 1 : t_.settings.weights[g];
  if (from >= end || weight <= 0) return 0;
  if (t_.settings.by_area) weight *= static_cast<double>(t_.storage(g).held);
  weight *= is_free(gap) ? kFree : has_copy(gap) ? kCopied : 1;
  return weight * to_seconds(t_.tree.time_over(from, end));
}

std::optional<MoveChoice::Away> MoveChoice::away_in(std::uint32_t g) const {
  const CycleGap& gap = t_.gap(g);
  if (is_free(gap)) return Away{gap.begin, gap.end, 0};
  // A storage has one place beside the device: a plan says where it lives between two turns.
  if (path_of_[gap.storage] != kNoPath) return away_in(g, path_of_[gap.storage]);
  for (std::size_t i = 0; i < paths_.size(); ++i) {
    const std::size_t path = takes_next_[g] && i < 2 ? 1 - i : i;
    if (auto away = away_in(g, static_cast<std::uint8_t>(path))) return away;
  }
  return std::nullopt;
}

std::optional<MoveChoice::Away> MoveChoice::away_in(std::uint32_t g, std::uint8_t path) const {
  const CycleGap& gap = t_.gap(g);
  if (!has_room(g, path)) return std::nullopt;
  std::int64_t first = gap.begin;
  if (gap.needs_copy && copied_[gap.version] != kNot) {
    first = std::max(first, gap.written + copied_[gap.version]);
  } else if (gap.needs_copy) {
    const auto done = away_after(g, path);
    if (!done) return std::nullopt;
    first = std::max(first, *done);
  }
  const Duration length = t_.cycle.start(gap.end) - t_.cycle.start(first);
  if (to_seconds(length) < t_.margin * to_seconds(t_.in(g, path))) return std::nullopt;
  const auto back = back_before(g, first, path);
  if (!back || *back <= first) return std::nullopt;
  return Away{first, *back, path};
}

// The first slot before whose work a copy out can be done. What all paths share is the first path's links.
std::optional<std::int64_t> MoveChoice::away_after(std::uint32_t g, std::uint8_t path) const {
  const CycleGap& gap = t_.gap(g);
  const auto done = paths_[path].out.earliest(t_.out(g, path), 2 * (gap.written + 1), 2 * gap.end);
  if (!done || path == 0) return done ? std::optional(half(*done)) : std::nullopt;
  const auto shared = paths_[0].out.earliest(t_.out(g, 0), 2 * (gap.written + 1), 2 * gap.end);
  return shared ? std::optional(half(std::max(*done, *shared))) : std::nullopt;
}

// The last slot in which a copy back can be issued and still be done before the work of the gap's end.
std::optional<std::int64_t> MoveChoice::back_before(std::uint32_t g, std::int64_t first, std::uint8_t path) const {
  const std::int64_t end = 2 * t_.gap(g).end + 1;
  const auto begun = paths_[path].in.latest(t_.in(g, path), 2 * first, end);
  if (!begun || path == 0) return begun ? std::optional(half(*begun)) : std::nullopt;
  const auto shared = paths_[0].in.latest(t_.in(g, 0), 2 * first, end);
  return shared ? std::optional(half(std::min(*begun, *shared))) : std::nullopt;
}

Bytes MoveChoice::taken(std::uint32_t g, std::uint8_t path) const {
  return t_.links.paths[path].held(t_.storage(g).moved);
}

// What lives across turns keeps its place in the tier; other copies are given up when they are back.
std::pair<std::int64_t, std::int64_t> MoveChoice::held_in(std::uint32_t g) const {
  const CycleGap& gap = t_.gap(g);
  if (t_.storage(g).across) return {0, t_.turn};
  return {std::max<std::int64_t>(gap.written, gap.begin - t_.turn), gap.end};
}

bool MoveChoice::has_room(std::uint32_t g, std::uint8_t path) const {
  if (t_.storage(g).moved > t_.links.paths[path].largest) return false;
  if (t_.storage(g).across && held_always_[t_.gap(g).storage]) return true;
  if (paths_[path].all_held + taken(g, path) <= t_.links.paths[path].room) return true;
  const auto [first, end] = held_in(g);
  return paths_[path].held.highest(first, end) + taken(g, path) <= t_.links.paths[path].room;
}

void MoveChoice::take_room(std::uint32_t g, const Away& away) {
  const CycleGap& gap = t_.gap(g);
  Path& path = paths_[away.path];
  path_of_[gap.storage] = away.path;
  if (t_.storage(g).across && held_always_[gap.storage]) return;
  const auto [first, end] = held_in(g);
  path.held.add(first, end, taken(g, away.path));
  path.all_held += taken(g, away.path);
  held_always_[gap.storage] = t_.storage(g).across;
}

void MoveChoice::take_links(std::uint32_t g, const Away& away) {
  const CycleGap& gap = t_.gap(g);
  paths_[away.path].in.take_latest(t_.in(g, away.path), 2 * gap.end + 1);
  if (away.path != 0) paths_[0].in.take_latest(t_.in(g, 0), 2 * gap.end + 1);
  if (has_copy(gap)) return;
  // When it is done, counted from the slot that wrote it: for other gaps of the same content.
  copied_[gap.version] = *away_after(g, away.path) - gap.written;
  paths_[away.path].out.take_earliest(t_.out(g, away.path), 2 * (gap.written + 1));
  if (away.path != 0) paths_[0].out.take_earliest(t_.out(g, 0), 2 * (gap.written + 1));
}

void MoveChoice::take(std::uint32_t g, const Away& away) {
  const CycleGap& gap = t_.gap(g);
  PlannedMove move{g, away.path, PlannedMove::kNoCopy, static_cast<std::int32_t>(away.first), gap.end};
  if (!is_free(gap)) {
    if (!has_copy(gap)) move.copy = gap.written + 1;
    take_room(g, away);
    take_links(g, away);
  }
  latest_[g] = away.end;
  t_.tree.add(away.first, away.end, -t_.storage(g).held);
  is_taken_[g] = true;
  moves_.push_back(move);
}

std::optional<std::uint8_t> MoveChoice::path_with_room(std::uint32_t g) const {
  const std::uint8_t fixed = path_of_[t_.gap(g).storage];
  for (std::size_t i = 0; i < paths_.size(); ++i) {
    const auto path = static_cast<std::uint8_t>(takes_next_[g] && i < 2 ? 1 - i : i);
    if ((fixed == kNoPath || fixed == path) && has_room(g, path)) return path;
  }
  return std::nullopt;
}

void MoveChoice::run_farthest(Bytes least) {
  struct Open {
    std::int64_t end = 0;  // in the sweep's count; the latest possible of what costs no copy
    std::uint32_t gap = 0;
    std::int64_t shift = 0;  // of the gap's count
    bool operator<(const Open& other) const { return end != other.end ? end < other.end : gap > other.gap; }
  };
  const auto& live = t_.cycle.live();
  const std::int64_t first = std::min_element(live.begin(), live.end()) - live.begin();
  std::vector<std::vector<Open>> opens(live.size());  // by slot behind the first
  for (std::uint32_t g = 0; g < t_.cycle.gaps().size(); ++g) {
    const CycleGap& gap = t_.gap(g);
    if (t_.storage(g).held < least || (!t_.settings.weights.empty() && t_.settings.weights[g] <= 0)) continue;
    for (const std::int64_t shift : {-t_.turn, std::int64_t{0}, t_.turn}) {
      const std::int64_t begin = std::max(first, gap.begin + shift), end = gap.end + shift;
      if (begin < std::min(end, first + t_.turn))
        opens[static_cast<std::size_t>(begin - first)].push_back({is_free(gap) ? INT64_MAX : end, g, shift});
    }
  }
  constexpr std::size_t kNone = SIZE_MAX;
  std::vector<std::size_t> move_of(t_.cycle.gaps().size(), kNone);
  std::priority_queue<Open> heap;
  for (std::int64_t slot = first; slot < first + t_.turn; ++slot) {
    for (const Open& open : opens[static_cast<std::size_t>(slot - first)]) heap.push(open);
    while (t_.tree.is_over(slot) && !heap.empty()) {
      const Open next = heap.top();
      heap.pop();
      const CycleGap& gap = t_.gap(next.gap);
      if (gap.end + next.shift <= slot) continue;
      ++looked_at_;
      const std::int64_t from = is_free(gap) ? gap.begin : slot - next.shift;
      if (move_of[next.gap] != kNone) {
        // It wraps, and the sweep began within it: it leaves earlier.
        PlannedMove& move = moves_[move_of[next.gap]];
        if (from >= move.drop) continue;
        t_.tree.add(from, move.drop, -t_.storage(next.gap).held);
        move.drop = static_cast<std::int32_t>(from);
        continue;
      }
      const auto path = is_free(gap) ? std::optional<std::uint8_t>(0) : path_with_room(next.gap);
      if (!path) continue;
      move_of[next.gap] = moves_.size();
      PlannedMove move{next.gap, *path, PlannedMove::kNoCopy, static_cast<std::int32_t>(from), gap.end};
      if (!is_free(gap)) {
        if (!has_copy(gap)) move.copy = gap.written + 1, copied_[gap.version] = 0;
        take_room(next.gap, {from, gap.end, *path});
      }
      latest_[next.gap] = gap.end;
      t_.tree.add(from, gap.end, -t_.storage(next.gap).held);
      moves_.push_back(move);
    }
  }
}

}  // namespace memwall
