#include "policies/plan/hook_moves.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace memwall {

DevicePlaces::DevicePlaces(const Trace& trace) : before_(trace.ops.size() + 1) {
  for (OpId id = 0; id < trace.ops.size(); ++id)
    before_[id + 1] = before_[id] + (runs_on_device(trace.ops[id].kind) ? 1 : 0);
}

bool goes_to_host(const StorageDecision& d, const std::vector<TransferStyle>& tiers) {
  return std::ranges::all_of(d.copies, [&](const PlannedCopy& copy) {
    return tiers[copy.tier].tier == "host" && tiers[copy.tier].through.empty();
  });
}

HookMoves::HookMoves(const Trace& trace, const SavedStorages& saved, const HookedStorages& hooked,
                     const std::vector<TransferStyle>& tiers)
    : t_(trace), saved_(saved), hooked_(hooked), tiers_(tiers), places_(trace), index_of_(trace.storages.size(), kEnd) {
  for (std::size_t i = 0; i < hooked.all().size(); ++i) index_of_[hooked.all()[i].storage] = i;
}

// --- is a decision what hooks do?

std::string HookMoves::refusal(const StorageDecision& d) const {
  const std::size_t index = index_of_[d.storage];
  if (index == kEnd) return "Hooks around forward are not shown it: it is saved inside of a unit that is run again.";
  if (d.home != StorageDecision::kDevice || d.held != StorageDecision::kDevice || d.taken_away)
    return "It is not made in this step alone.";
  if (hooked(index).asked == kNoOp) return "Backward does not ask for it.";
  if (places_.of(hooked(index).last_write, true) > shown(index)) return "It is written after autograd has saved it.";
  const bool comes_back = d.fetches.size() == 1 && d.fetches.front().tier != PlannedFetch::kNoTier;
  if (d.copies.size() != 1 || !comes_back || d.drops.empty() || d.drops.size() > 2 || hooked_.first_node() == kNoOp)
    return "It travels more than once.";
  if (!goes_to_host(d, tiers_)) return "It does not go to the host's memory, the only tier that hooks send to.";
  const bool in_order =
      d.drops.front().at < d.fetches.front().at && (d.drops.size() == 1 || d.fetches.front().at < d.drops.back().at);
  return in_order ? "" : "It travels more than once.";
}

// The largest storage shown there: so that as few as possible must be counted.
std::optional<std::size_t> HookMoves::give_back(std::size_t index, const PlanPoint& drop) const {
  const std::uint32_t place = places_.of(drop), used = last_use(index);
  if (place < used || place > end_of_forward()) return std::nullopt;
  std::optional<std::size_t> best;
  for (std::size_t i = index; i < hooked_.all().size() && shown(i) <= place; ++i)
    if (shown(i) == place && (!best || bytes(i) >= bytes(*best))) best = i;
  if (best) return best;
  if (place == end_of_forward()) return kEnd;
  if (place != used && place != held(index)) return std::nullopt;
  // Given up before its last use, it goes with that; held by others, when they let go of it.
  for (std::size_t i = index; i < hooked_.all().size() && shown(i) <= place; ++i)
    if (bytes(i) >= bytes(index)) best = i;
  return best;
}

std::optional<std::size_t> HookMoves::fetch(std::size_t index, const PlanPoint& at) const {
  const std::uint32_t place = places_.of(at);
  if (place == asked(index)) return index;
  if (place > asked(index)) return std::nullopt;
  if (place == begin_of_backward()) return kEnd;
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < hooked_.all().size(); ++i)
    if (hooked(i).asked != kNoOp && asked(i) == place && (!best || bytes(i) > bytes(*best))) best = i;
  return best;
}

// Behind its fetch it stays until the program frees it, or goes when its node has run.
bool HookMoves::is_handed_over(const StorageDecision& d) const {
  if (d.drops.size() < 2) return true;
  const auto until = saved_.handed_until(d.storage);
  return until && places_.of(d.drops.back().at) == places_.of(*until, true);
}

std::optional<HookMoves::Places> HookMoves::places(const StorageDecision& d) const {
  const std::size_t index = index_of_[d.storage];
  if (d.fetches.front().latest_safe || places_.of(d.copies.front().at) != shown(index) || !is_handed_over(d))
    return std::nullopt;
  const auto back = give_back(index, d.drops.front().at), from = fetch(index, d.fetches.front().at);
  if (!back || !from) return std::nullopt;
  return Places{index, *back, *from};
}

std::string HookMoves::why_not(const StorageDecision& d) const {
  if (std::string reason = refusal(d); !reason.empty()) return reason;
  return places(d) ? ""
                   : "It is copied, given up or fetched where no hook runs; memwall run --executable=torch moves that.";
}

// --- the nearest decision that is

PlanPoint HookMoves::drop_behind(std::size_t index, const PlanPoint& drop, Bytes min_bytes) const {
  if (places_.of(drop) <= held(index)) return {hooked(index).held, true};
  for (std::size_t i = index; i < hooked_.all().size(); ++i)
    if (bytes(i) >= min_bytes && shown(i) >= places_.of(drop)) return {hooked(i).saved.at.op, hooked(i).saved.at.after};
  OpId last = hooked_.backward() - 1;
  while (last > hooked(index).held && !runs_on_device(t_.ops[last].kind)) --last;
  return {last, true};
}

PlanPoint HookMoves::fetch_before(std::size_t index, const PlanPoint& fetch, Bytes min_bytes) const {
  const std::uint32_t place = places_.of(fetch);
  OpId node = hooked_.first_node();
  for (std::size_t i = 0; i < hooked_.all().size(); ++i) {
    const OpId asks = hooked(i).asked;
    if (asks != kNoOp && bytes(i) >= min_bytes && places_.of(asks, false) <= std::min(place, asked(index)))
      node = std::max(node, asks);
  }
  const OpId begin = hooked_.begin_of(node);
  return {places_.of(node, false) == asked(index) ? std::min(begin, hooked(index).back_by) : begin, false};
}

std::optional<StorageDecision> HookMoves::moved(const StorageDecision& d, Bytes min_bytes) const {
  if (!refusal(d).empty()) return std::nullopt;
  const std::size_t index = index_of_[d.storage];
  const bool is_held = places_.of(d.drops.front().at) < held(index);
  const PlanPoint& back = d.fetches.front().at;
  const bool is_first = back.op <= hooked_.begin_of(back.op);  // before what runs again for the node
  if (!is_held && is_first && places(d) && (d.drops.size() == 2) == saved_.handed_until(d.storage).has_value())
    return d;
  if (places_.of(d.drops.front().at) > end_of_forward()) return std::nullopt;
  StorageDecision moved = d;
  const InsertionPoint shown_at = hooked(index).saved.at;
  moved.copies = {{{shown_at.op, shown_at.after}, d.copies.front().tier}};
  moved.drops = {{drop_behind(index, d.drops.front().at, min_bytes)}};
  moved.fetches = {{fetch_before(index, d.fetches.front().at, min_bytes), d.fetches.front().tier}};
  if (const auto until = saved_.handed_until(d.storage)) moved.drops.push_back({{*until, true}});
  return moved;
}

// --- names

void HookMoves::name(const std::vector<const StorageDecision*>& decisions, const ForwardNames& forward,
                     NamedOffload& offload, std::vector<UnnamedDecisions>& unnamed) const {
  std::vector<std::pair<Places, const StorageDecision*>> carried_out;
  std::map<std::string, UnnamedDecisions> left;
  for (const StorageDecision* d : decisions) {
    if (const std::string reason = why_not(*d); !reason.empty()) {
      UnnamedDecisions& row = left.try_emplace(reason, UnnamedDecisions{"offload", reason}).first->second;
      ++row.storages;
      row.bytes += t_.storages[d->storage].bytes;
      continue;
    }
    carried_out.emplace_back(*places(*d), d);
  }
  for (auto& [reason, row] : left) unnamed.push_back(std::move(row));
  if (carried_out.empty()) return;
  Bytes least = bytes(carried_out.front().first.shown);
  for (const auto& [places, d] : carried_out)
    for (const std::size_t i : {places.shown, places.give_back, places.fetch})
      if (i != kEnd) least = std::min(least, bytes(i));
  std::vector<std::int64_t> number(hooked_.all().size());
  std::int64_t next = 0;
  for (std::size_t i = 0; i < number.size(); ++i) number[i] = bytes(i) >= least ? next++ : HookMove::kEnd;
  const auto number_of = [&](std::size_t i) { return i == kEnd ? HookMove::kEnd : number[i]; };
  offload.count_min_bytes = least;
  std::stable_sort(carried_out.begin(), carried_out.end(), [](const auto& a, const auto& b) {
    return a.second->fetches.front().at < b.second->fetches.front().at;
  });
  for (const auto& [places, d] : carried_out)
    offload.fetch_order.push_back(static_cast<std::uint64_t>(number[places.shown]));
  std::sort(carried_out.begin(), carried_out.end(),
            [](const auto& a, const auto& b) { return a.first.shown < b.first.shown; });
  for (const auto& [places, d] : carried_out)
    offload.moves.push_back({static_cast<std::uint64_t>(number[places.shown]), t_.storages[d->storage].bytes,
                             forward.maker_of(d->storage), number_of(places.give_back), number_of(places.fetch)});
}

}  // namespace memwall
