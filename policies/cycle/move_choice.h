// The first pass of the move scheduler: what leaves, by which path, and from which slot on it is away. Internal to
// policies/cycle.
//
// The gap is taken first that covers most of the time over the budget, with a copy out as early as its content and the
// links allow, and a copy back as late as can be. Where more has to be away than the first path's tier has room for,
// what stays away longest takes the next.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "policies/cycle/link_time.h"
#include "policies/cycle/schedule_table.h"
#include "policies/cycle/slot_bytes.h"

namespace memwall {

class MoveChoice {
 public:
  MoveChoice(ScheduleTable& table, std::vector<PlannedMove>& moves);

  // Of storages of at least so many bytes.
  void run(Bytes least);
  // Of storages of at least so many bytes, whatever time the links have: slot by slot what is used last of what could
  // be away, from there on. Slots stay over the budget only where nothing more can be away, or tiers have no room.
  void run_farthest(Bytes least);
  // Links have so much more time right before each slot.
  void give(const std::vector<Duration>& more);
  // Of what could be away in the slot and is not: is more of it not away yet than back again?
  bool leaves_too_late(std::int64_t slot) const;
  // Bytes per second at which more could be away in the slot: of all links, or of the next path where the first one's
  // tier is full.
  double rate(std::int64_t slot, bool out) const;
  // For how many candidates time was looked for on the links, so far.
  std::uint64_t looked_at() const { return looked_at_; }
  // By gap: the last slot in which a copy back can be issued, in the gap's count; of what is chosen.
  const std::vector<std::int64_t>& latest() const { return latest_; }

 private:
  static constexpr std::int64_t kNot = INT64_MIN;

  struct Away {
    std::int64_t first = 0, end = 0;
    std::uint8_t path = 0;
  };
  // One path's links, and what copies take of its tier.
  struct Path {
    LinkTime out, in;
    SlotBytes held;
    Bytes all_held = 0;  // of all that was ever taken in the turn: no slot holds more
  };

  // Neither leaves nor comes back by a copy.
  static bool is_free(const CycleGap& gap) { return !gap.needs_content || !gap.returns; }
  bool has_copy(const CycleGap& gap) const { return !gap.needs_copy || copied_[gap.version] != kNot; }
  double score(std::uint32_t g, std::int64_t from, std::int64_t end) const;
  std::optional<Away> away_in(std::uint32_t g) const;
  std::optional<Away> away_in(std::uint32_t g, std::uint8_t path) const;
  void choose_next_path();
  bool has_room(std::uint32_t g, std::uint8_t path) const;
  std::optional<std::int64_t> away_after(std::uint32_t g, std::uint8_t path) const;
  std::optional<std::int64_t> back_before(std::uint32_t g, std::int64_t first, std::uint8_t path) const;
  Bytes taken(std::uint32_t g, std::uint8_t path) const;
  std::pair<std::int64_t, std::int64_t> held_in(std::uint32_t g) const;
  void take(std::uint32_t g, const Away& away);
  void take_links(std::uint32_t g, const Away& away);
  void take_room(std::uint32_t g, const Away& away);
  std::optional<std::uint8_t> path_with_room(std::uint32_t g) const;

  std::uint64_t looked_at_ = 0;
  ScheduleTable& t_;
  std::vector<PlannedMove>& moves_;
  std::vector<Path> paths_;
  std::vector<std::int64_t> copied_;    // by version: slots from its write until its copy is out
  std::vector<std::uint8_t> path_of_;   // by storage, of what is chosen
  std::vector<bool> held_always_;       // by storage: a tier keeps a copy through the whole turn
  std::vector<std::int64_t> latest_;
  std::vector<bool> is_taken_;          // by gap
  std::vector<bool> takes_next_;        // by gap: the second path rather than the first
};

}  // namespace memwall
