#include "policies/profile/ledger.h"

#include <algorithm>
#include <bit>
#include <cassert>

#include "sim/machine/group_place.h"
#include "sim/machine/rank_machine.h"

namespace memwall {
namespace {

constexpr std::size_t kSlotsOfWord = 64;

}  // namespace

Ledger::Ledger(const StepProfile& profile, std::size_t slots)
    : profile_(profile),
      machine_(profile.machine()),
      slot_(std::max<std::int64_t>(1, profile.step_time().count() / static_cast<std::int64_t>(slots) + 1)),
      slots_(slots),
      held_(machine_.tiers.size(), std::vector<Bytes>(slots, 0)) {
  const std::uint32_t ranks = std::max(1u, profile.trace().ranks);
  for (const Link& link : machine_.links) {
    const auto sharers = static_cast<double>(std::min(std::max(1u, link.sharers), ranks));
    capacity_.push_back(link.bandwidth / sharers * to_seconds(slot_));
    left_.emplace_back(slots_, capacity_.back());
    std::vector<std::uint64_t> open(slots_ / kSlotsOfWord + 1, 0);
    for (std::size_t i = 0; i < slots_ && capacity_.back() > 0; ++i)
      open[i / kSlotsOfWord] |= std::uint64_t{1} << i % kSlotsOfWord;
    open_.push_back(std::move(open));
  }
  // Ranks of one host have a part of its memory each.
  const RankMachine of_ranks = machine_of_ranks(machine_, profile.trace());
  for (std::size_t t = 0; t < machine_.tiers.size(); ++t) room_.push_back(of_ranks.tiers[t].holds());
  for (const Storage& storage : profile.trace().storages)
    if (const int tier = machine_.tier(profile.trace().places[storage.place]); tier >= 0)
      room_[static_cast<std::size_t>(tier)] -= storage.bytes;
  take_own_traffic();
}

const Route& Ledger::route(int from, int to) const {
  const Route* found = machine_.route(from, to, false);
  assert(found != nullptr);
  return *found;
}

std::size_t Ledger::slot_of(Time time) const {
  return std::min(slots_ - 1, static_cast<std::size_t>(std::max(Time{}, time) / slot_));
}

void Ledger::take_evenly(std::uint16_t link, double bytes, Time begin, Time end) {
  const std::size_t first = slot_of(begin), last = std::max(first, slot_of(end - Time(1)));
  const double each = bytes / static_cast<double>(last - first + 1);
  for (std::size_t i = first; i <= last; ++i) set_left(link, i, left_[link][i] - each);
}

void Ledger::set_left(std::uint16_t link, std::size_t slot, double bytes) {
  left_[link][slot] = std::max(0.0, bytes);
  if (bytes <= 0) open_[link][slot / kSlotsOfWord] &= ~(std::uint64_t{1} << slot % kSlotsOfWord);
}

void Ledger::take_own_traffic() {
  const Trace& t = profile_.trace();
  for (OpId id = 0; id < t.ops.size(); ++id) {
    const Op& op = t.ops[id];
    if (op.bytes == 0) continue;
    const auto take = [&](std::uint16_t link, double share) {
      take_evenly(link, static_cast<double>(op.bytes) * share, profile_.start(id), profile_.end(id));
    };
    if (op.kind == OpKind::copy || op.kind == OpKind::storage_io) {
      const int from = machine_.tier(t.places[op.from]), to = machine_.tier(t.places[op.to]);
      const Route* crossed = from < 0 || to < 0 ? nullptr : machine_.route(from, to, op.pageable);
      if (crossed == nullptr) continue;
      for (const std::uint16_t link : crossed->links) take(link, 1);
    } else if (op.kind == OpKind::collective) {
      const ProcessGroup group = process_group_of(t, op);
      const GroupRoute crossed =
          route_of(machine_, group, group.members.empty() ? 0 : group.members.front(), op.collective);
      for (std::size_t l = 0; l < crossed.links.size(); ++l) take(crossed.links[l], crossed.shares[l]);
    } else if (op.kind == OpKind::host_work) {
      take(machine_.dram_link, 1);
    }
  }
}

// Bytes of one copy that the slot still carries.
double Ledger::left(const Route& route, double whole, std::size_t slot) const {
  double least = whole;
  for (std::size_t i = 0; i < route.links.size(); ++i) {
    const double there = left_[route.links[i]][slot];
    if (route.link_shares.empty())
      least = std::min(least, there);
    else if (route.link_shares[i] > 0)
      least = std::min(least, there / route.link_shares[i]);
  }
  return least;
}

std::uint64_t Ledger::open_slots(const Route& route, std::size_t word) const {
  std::uint64_t open = ~std::uint64_t{0};
  for (std::size_t i = 0; i < route.links.size(); ++i)
    if (route.link_shares.empty() || route.link_shares[i] > 0) open &= open_[route.links[i]][word];
  return open;
}

std::size_t Ledger::next_open(const Route& route, std::size_t slot) const {
  std::uint64_t from = ~std::uint64_t{0} << slot % kSlotsOfWord;
  for (std::size_t word = slot / kSlotsOfWord; word * kSlotsOfWord < slots_; ++word, from = ~std::uint64_t{0})
    if (const std::uint64_t open = open_slots(route, word) & from; open != 0)
      return std::min(slots_, word * kSlotsOfWord + static_cast<std::size_t>(std::countr_zero(open)));
  return slots_;
}

std::size_t Ledger::last_open(const Route& route, std::size_t slot) const {
  std::uint64_t to = ~std::uint64_t{0} >> (kSlotsOfWord - 1 - slot % kSlotsOfWord);
  for (std::size_t word = slot / kSlotsOfWord + 1; word-- > 0; to = ~std::uint64_t{0})
    if (const std::uint64_t open = open_slots(route, word) & to; open != 0)
      return word * kSlotsOfWord + kSlotsOfWord - 1 - static_cast<std::size_t>(std::countl_zero(open));
  return slots_;
}

Duration Ledger::alone(int from, int to, Bytes bytes) const {
  const Route& crossed = route(from, to);
  const double rate = crossed.bandwidth * crossed.efficiency.at(static_cast<double>(bytes));
  return crossed.latency + from_seconds(static_cast<double>(bytes) / rate);
}

std::optional<Ledger::Span> Ledger::earliest(int from, int to, Bytes bytes, Time ready) const {
  const Route& crossed = route(from, to);
  auto open = static_cast<double>(bytes);
  const double whole = crossed.bandwidth * to_seconds(slot_);
  std::optional<Time> begin;
  for (std::size_t i = next_open(crossed, slot_of(ready)); i < slots_; i = next_open(crossed, i + 1)) {
    const Time slot_begin = slot_ * static_cast<std::int64_t>(i), from_time = std::max(slot_begin, ready);
    const double share = to_seconds(slot_begin + slot_ - from_time) / to_seconds(slot_);
    const double carried = std::min(left(crossed, whole, i), whole * share);
    if (carried <= 0) continue;
    if (!begin) begin = from_time;
    if (carried >= open) return Span{*begin, from_time + from_seconds(open / crossed.bandwidth) + crossed.latency};
    open -= carried;
  }
  return std::nullopt;
}

std::optional<Ledger::Span> Ledger::latest(int from, int to, Bytes bytes, Time deadline) const {
  const Route& crossed = route(from, to);
  deadline -= crossed.latency;
  if (deadline <= Time{}) return std::nullopt;
  auto open = static_cast<double>(bytes);
  const double whole = crossed.bandwidth * to_seconds(slot_);
  std::optional<Time> end;
  for (std::size_t i = last_open(crossed, slot_of(deadline - Time(1))); i < slots_;
       i = i == 0 ? slots_ : last_open(crossed, i - 1)) {
    const Time slot_begin = slot_ * static_cast<std::int64_t>(i), to_time = std::min(slot_begin + slot_, deadline);
    const double share = to_seconds(to_time - slot_begin) / to_seconds(slot_);
    const double carried = std::min(left(crossed, whole, i), whole * share);
    if (carried <= 0) continue;
    if (!end) end = to_time;
    if (carried >= open) return Span{to_time - from_seconds(open / crossed.bandwidth), *end + crossed.latency};
    open -= carried;
  }
  return std::nullopt;
}

void Ledger::reserve(int from, int to, Bytes bytes, const Span& span) {
  const Route& crossed = route(from, to);
  const Time end = span.end - crossed.latency;
  const double whole = crossed.bandwidth * to_seconds(slot_);
  auto open = static_cast<double>(bytes);
  for (std::size_t i = slot_of(span.begin); i <= slot_of(end) && open > 0; ++i) {
    const Time slot_begin = slot_ * static_cast<std::int64_t>(i);
    const Time first = std::max(slot_begin, span.begin), last = std::min(slot_begin + slot_, end);
    const double share = std::max(0.0, to_seconds(last - first) / to_seconds(slot_));
    const double carried = std::min({left(crossed, whole, i), whole * share, open});
    for (const std::uint16_t link : crossed.links) set_left(link, i, left_[link][i] - carried * crossed.share_of(link));
    open -= carried;
  }
}

// As PyTorch's pinned host allocator rounds (sim/memory/pinned_allocator.cpp).
Bytes Ledger::rounded(int tier, Bytes bytes) const {
  if (machine_.tiers[static_cast<std::size_t>(tier)].tier_class != TierClass::host || bytes <= 0) return bytes;
  return static_cast<Bytes>(std::bit_ceil(static_cast<std::uint64_t>(bytes)));
}

bool Ledger::has_room(int tier, Bytes bytes, Time begin, Time end) const {
  const auto t = static_cast<std::size_t>(tier);
  Bytes most = 0;
  for (std::size_t i = slot_of(begin); i <= slot_of(end); ++i) most = std::max(most, held_[t][i]);
  return most + rounded(tier, bytes) <= room_[t];
}

void Ledger::hold(int tier, Bytes bytes, Time begin, Time end) {
  for (std::size_t i = slot_of(begin); i <= slot_of(end); ++i)
    held_[static_cast<std::size_t>(tier)][i] += rounded(tier, bytes);
}

double Ledger::load(std::size_t link) const {
  double taken = 0;
  for (const double bytes : left_[link]) taken += capacity_[link] - bytes;
  return taken / (capacity_[link] * static_cast<double>(slots_));
}

}  // namespace memwall
