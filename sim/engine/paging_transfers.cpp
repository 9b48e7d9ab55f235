// The transfers that a pager's moves become: one after the other on each copy engine, contending on links.
#include <algorithm>

#include "sim/engine/paging.h"
#include "sim/error.h"

namespace memwall {

void Paging::add_links(Transfer& transfer, const RankPages& rank, int from, int to) const {
  const Bytes bytes = engine_.trace_.storages[transfer.storage].bytes;
  const Machine& machine = engine_.machine_;
  const RankView& view = view_of(rank);
  const auto add = [&](const Route& route) {
    const double rate = route.bandwidth * route.efficiency.at(static_cast<double>(bytes));
    const Duration alone = route.latency + from_seconds(static_cast<double>(bytes) / rate);
    // Two hops are pipelined: the slower one decides.
    transfer.duration = std::max(transfer.duration, alone);
    transfer.weight = std::min(transfer.weight, route.weight);
    for (const std::uint16_t link : route.links) {
      const auto found = std::find(transfer.links.begin(), transfer.links.end(), link);
      if (found != transfer.links.end()) {
        double& share = transfer.link_shares[static_cast<std::size_t>(found - transfer.links.begin())];
        share = std::max(share, route.share_of(link));
        continue;
      }
      transfer.links.push_back(link);
      transfer.link_shares.push_back(route.share_of(link));
    }
  };
  const Route* direct = route_among(view.routes, from, to, false);
  if (direct != nullptr) {
    transfer.engine = direct->engine;
    return add(*direct);
  }
  for (const std::uint16_t middle : view.tier) {
    const Route* first = route_among(view.routes, from, middle, false);
    const Route* second = route_among(view.routes, middle, to, false);
    if (first == nullptr || second == nullptr) continue;
    // The GPU's own engine is the one that queues.
    transfer.engine = machine.tiers[from].tier_class == TierClass::device ? first->engine : second->engine;
    add(*first);
    return add(*second);
  }
  throw UsageError("The pager moves data from '" + machine.tiers[from].name + "' to '" + machine.tiers[to].name +
                   "', for which machine '" + machine.name + "' has no route.");
}

void Paging::start_transfer(StorageId storage, int from, int to, OpId for_op) {
  RankPages& rank = of_storage(storage);
  Transfer transfer;
  transfer.storage = storage;
  add_links(transfer, rank, from, to);
  transfer.move = moves_.size();
  moves_.push_back({kNever, kNever, storage, static_cast<std::uint16_t>(from), static_cast<std::uint16_t>(to),
                    engine_.trace_.storages[storage].bytes, for_op});
  const int engine = transfer.engine;
  rank.queued[engine].push_back(static_cast<std::uint32_t>(transfers_.size()));
  transfers_.push_back(std::move(transfer));
  start_next_transfer(rank, engine);
}

void Paging::start_next_transfer(RankPages& rank, int engine) {
  if (rank.engine_busy[engine] || rank.queued[engine].empty()) return;
  const std::uint32_t index = rank.queued[engine].front();
  rank.queued[engine].pop_front();
  rank.engine_busy[engine] = true;
  const Transfer& transfer = transfers_[index];
  MoveRecord& move = moves_[transfer.move];
  move.start = engine_.now_;
  ActivitySpec spec;
  spec.owner = static_cast<std::uint32_t>(engine_.trace_.ops.size()) + index;
  spec.rank = rank.number;
  spec.duration = transfer.duration;
  spec.bytes = move.bytes;
  // Growth of transfers_ moves its vectors, not their heap buffers: the pointers stay valid.
  spec.links = transfer.links.data();
  spec.link_shares = transfer.link_shares.data();
  spec.link_count = static_cast<std::uint32_t>(transfer.links.size());
  spec.weight = transfer.weight;
  engine_.activities_.start(engine_.now_, spec);
}

void Paging::transfer_ended(std::uint32_t index) {
  const Transfer& transfer = transfers_[index];
  MoveRecord& move = moves_[transfer.move];
  move.end = engine_.now_;
  const StorageId storage = transfer.storage;
  const int engine = transfer.engine;
  RankPages& rank = of_storage(storage);
  Page& page = pages_[storage];
  rank.engine_busy[engine] = false;
  if (page.state == State::leaving) {
    --rank.leaving;
    inbound_bytes_[move.to] -= move.bytes;
    engine_.memory_.remove(engine_.now_, storage);
    page.state = State::dead;
    if (page.freed && page.users == 0) {
      --rank.pending_frees;
    } else {
      page.state = State::elsewhere;
      page.backing = move.to;
      if (!engine_.memory_.place(engine_.now_, storage, move.to))
        engine_.memory_.place_unlimited(engine_.now_, storage, move.to);
    }
  } else {
    set_resident(storage);
    if (page.freed && page.users == 0) {
      --rank.pending_frees;
      release(storage);
    }
  }
  start_next_transfer(rank, engine);
  wake_all(rank);
}

}  // namespace memwall
