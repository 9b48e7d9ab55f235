// Random cycles, links and sound plans of moves for tests of policies/cycle, from a generator of random numbers.
#pragma once

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <vector>

#include "policies/cycle/cycle_links.h"
#include "policies/cycle/move_plan.h"

namespace memwall {

struct RandomNumbers {
  std::mt19937_64 engine;
  explicit RandomNumbers(std::uint64_t seed) : engine(seed) {}
  std::size_t below(std::size_t n) { return static_cast<std::size_t>(engine() % n); }
  std::size_t between(std::size_t least, std::size_t most) { return least + below(most - least + 1); }
  bool one_in(std::size_t n) { return below(n) == 0; }
  double part() { return static_cast<double>(engine() >> 11) * 0x1p-53; }
  double log_uniform(double least, double most) { return least * std::pow(most / least, part()); }
};

// Every kind of storage: across turns (read, updated, never touched), within a turn, of one side of it, unmovable; its
// block larger than what moves, touches that overwrite, host time between slots.
inline CycleProgram random_cycle_program(RandomNumbers& r, std::size_t most_slots = 40,
                                         std::size_t most_storages = 30) {
  CycleProgram program;
  const std::size_t slots = r.between(2, most_slots), storages = r.between(1, most_storages);
  for (std::size_t k = 0; k < slots; ++k) {
    const Duration work = nanoseconds(static_cast<std::int64_t>(r.log_uniform(5e3, 1e6)));
    program.slots.push_back(
        {work + (r.one_in(6) ? nanoseconds(static_cast<std::int64_t>(r.below(100'000))) : Duration{}), work});
  }
  for (std::size_t i = 0; i < storages; ++i) {
    CycleStorage s;
    s.moved = static_cast<Bytes>(r.log_uniform(1e5, 1e8));
    s.held = r.one_in(3) ? s.moved + static_cast<Bytes>(r.below(100'000)) : s.moved;
    s.first = static_cast<std::uint32_t>(r.below(slots));
    s.last = static_cast<std::uint32_t>(r.between(s.first, slots - 1));
    const std::size_t kind = r.below(10);
    s.from_before = kind < 4 || kind == 8;
    s.to_next = kind < 4 || kind == 9;
    s.across = kind < 4;
    if (s.from_before) s.first = 0;
    if (s.to_next) s.last = static_cast<std::uint32_t>(slots - 1);
    s.fixed = r.one_in(12);
    const bool read_only = s.across && r.one_in(3);
    const std::size_t one_in = 1 + r.below(slots / 2 + 1);
    for (std::uint32_t k = s.first; k <= s.last; ++k) {
      if (!r.one_in(one_in)) continue;
      const bool writes = !read_only && r.one_in(3);
      s.touches.push_back({k, !writes || r.one_in(2), writes});
    }
    program.storages.push_back(std::move(s));
  }
  return program;
}

// One path with latencies, or two without, which share less than they carry alone.
inline CycleLinks random_links(RandomNumbers& r, double slowest = 1e9, double fastest = 1e12) {
  CycleLinks links;
  for (std::size_t p = 0, paths = r.one_in(3) ? 2 : 1; p < paths; ++p) {
    CyclePath path;
    path.out_rate = r.log_uniform(slowest, fastest);
    path.in_rate = r.log_uniform(slowest, fastest);
    if (paths == 1 && r.one_in(2))
      path.out_latency = path.in_latency = nanoseconds(static_cast<std::int64_t>(r.below(20'000)));
    path.room = Bytes{1} << 60;
    links.paths.push_back(path);
  }
  double most_out = 0, most_in = 0;
  for (const CyclePath& path : links.paths) {
    links.total_out += path.out_rate, links.total_in += path.in_rate;
    most_out = std::max(most_out, path.out_rate), most_in = std::max(most_in, path.in_rate);
  }
  links.total_out = most_out + r.part() * (links.total_out - most_out);
  links.total_in = most_in + r.part() * (links.total_in - most_in);
  return links;
}

// Any gaps, away for any part of them, copied at any time at which the content is there, in any order.
inline MovePlan random_sound_plan(RandomNumbers& r, const StepCycle& cycle, std::size_t paths) {
  MovePlan plan;
  std::vector<std::uint8_t> path_of(cycle.versions(), 0);
  for (std::uint8_t& path : path_of) path = static_cast<std::uint8_t>(r.below(paths));
  const std::size_t one_in = r.between(1, 4);
  std::vector<std::int32_t> first_drop(cycle.versions(), INT32_MAX);  // behind the write
  std::vector<std::vector<std::uint32_t>> moves_of(cycle.versions());
  for (std::uint32_t g = 0; g < cycle.gaps().size(); ++g) {
    const CycleGap& gap = cycle.gaps()[g];
    if (!r.one_in(one_in)) continue;
    PlannedMove move;
    move.gap = g;
    move.path = path_of[gap.version];
    move.drop = gap.begin + static_cast<std::int32_t>(r.below(static_cast<std::size_t>(gap.end - gap.begin)));
    const auto longest = static_cast<std::size_t>(gap.end - move.drop);
    move.fetch =
        gap.needs_content && gap.returns ? move.drop + static_cast<std::int32_t>(r.between(1, longest)) : gap.end;
    if (gap.needs_copy) {
      first_drop[gap.version] = std::min(first_drop[gap.version], move.drop - gap.written);
      moves_of[gap.version].push_back(static_cast<std::uint32_t>(plan.moves.size()));
    }
    plan.moves.push_back(move);
  }
  for (std::size_t v = 0; v < moves_of.size(); ++v) {
    if (moves_of[v].empty()) continue;
    PlannedMove& owner = plan.moves[moves_of[v][r.below(moves_of[v].size())]];
    const auto latest = static_cast<std::size_t>(first_drop[v]);
    owner.copy = cycle.gaps()[owner.gap].written + static_cast<std::int32_t>(r.between(1, latest));
  }
  std::shuffle(plan.moves.begin(), plan.moves.end(), r.engine);
  plan.fetch_order.resize(plan.moves.size());
  std::iota(plan.fetch_order.begin(), plan.fetch_order.end(), 0u);
  std::shuffle(plan.fetch_order.begin(), plan.fetch_order.end(), r.engine);
  return plan;
}

}  // namespace memwall
