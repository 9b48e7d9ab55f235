// What the passes of the move scheduler share: a cycle, its links, and what lives under the moves so far. Internal to
// policies/cycle.
#pragma once

#include <bit>
#include <vector>

#include "policies/cycle/cycle_links.h"
#include "policies/cycle/excess_tree.h"
#include "policies/cycle/move_schedule.h"

namespace memwall {

// How long copies take alone, by path and storage.
struct CopyTimes {
  std::vector<std::vector<Duration>> out, in;

  CopyTimes(const StepCycle& cycle, const CycleLinks& links) {
    for (const CyclePath& path : links.paths) {
      std::vector<Duration>&to = out.emplace_back(), &from = in.emplace_back();
      for (const CycleStorage& storage : cycle.storages()) {
        const auto bytes = static_cast<double>(storage.moved);
        to.push_back(path.out_latency + from_seconds(bytes / path.out_rate));
        from.push_back(path.in_latency + from_seconds(bytes / path.in_rate));
      }
    }
  }
};

struct ScheduleTable {
  const StepCycle& cycle;
  const CycleLinks& links;
  const CopyTimes& copies;
  const MoveSettings& settings;
  const Bytes budget;
  const std::vector<Duration>& times;
  const std::vector<Duration>& waits;  // of the device right before the slot
  ExcessTree tree;
  std::int64_t turn;
  double margin;  // MoveSettings::margin, or 0 where that leaves too little

  // `all`: what lives where nothing is away.
  ScheduleTable(const StepCycle& c, const CycleLinks& l, const CopyTimes& lasting, Bytes limit, const MoveSettings& s,
                const std::vector<Duration>& lengths, const std::vector<Duration>& before, const ExcessTree& all)
      : cycle(c),
        links(l),
        copies(lasting),
        settings(s),
        budget(limit),
        times(lengths),
        waits(before),
        tree(all),
        turn(c.size()),
        margin(s.margin) {}

  const CycleGap& gap(std::uint32_t g) const { return cycle.gaps()[g]; }
  const CycleStorage& storage(std::uint32_t g) const { return cycle.storages()[gap(g).storage]; }
  Duration out(std::uint32_t g, std::uint8_t path) const { return copies.out[path][gap(g).storage]; }
  Duration in(std::uint32_t g, std::uint8_t path) const { return copies.in[path][gap(g).storage]; }
  std::size_t place(std::int64_t slot) const { return static_cast<std::size_t>((slot % turn + turn) % turn); }
  // Twice as many as slots: the wait before each, and the slot itself.
  std::vector<Duration> link_times() const {
    std::vector<Duration> all;
    all.reserve(2 * times.size());
    for (std::size_t slot = 0; slot < times.size(); ++slot) all.push_back(waits[slot]), all.push_back(times[slot]);
    return all;
  }
};

}  // namespace memwall
