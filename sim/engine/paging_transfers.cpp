// The transfers that a pager's moves become: one after the other on each copy engine, contending on links.
#include <algorithm>

#include "sim/engine/paging.h"
#include "sim/error.h"

namespace memwall {

void Paging::add_links(Transfer& transfer, int from, int to) const {
  const Bytes bytes = engine_.trace_.storages[transfer.storage].bytes;
  const Machine& machine = engine_.machine_;
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
  const Route* direct = machine.route(from, to, false);
  if (direct != nullptr) {
    transfer.engine = direct->engine;
    return add(*direct);
  }
  for (std::size_t middle = 0; middle < machine.tiers.size(); ++middle) {
    const Route* first = machine.route(from, static_cast<int>(middle), false);
    const Route* second = machine.route(static_cast<int>(middle), to, false);
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
  Transfer transfer;
  transfer.storage = storage;
  add_links(transfer, from, to);
  transfer.move = moves_.size();
  moves_.push_back({kNever, kNever, storage, static_cast<std::uint16_t>(from), static_cast<std::uint16_t>(to),
                    engine_.trace_.storages[storage].bytes, for_op});
  const int engine = transfer.engine;
  queued_[engine].push_back(static_cast<std::uint32_t>(transfers_.size()));
  transfers_.push_back(std::move(transfer));
  start_next_transfer(engine);
}

void Paging::start_next_transfer(int engine) {
  if (engine_busy_[engine] || queued_[engine].empty()) return;
  const std::uint32_t index = queued_[engine].front();
  queued_[engine].pop_front();
  engine_busy_[engine] = true;
  const Transfer& transfer = transfers_[index];
  MoveRecord& move = moves_[transfer.move];
  move.start = engine_.now_;
  ActivitySpec spec;
  spec.owner = static_cast<std::uint32_t>(engine_.trace_.ops.size()) + index;
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
  Page& page = pages_[storage];
  engine_busy_[engine] = false;
  if (page.state == State::leaving) {
    --leaving_;
    inbound_bytes_[move.to] -= move.bytes;
    engine_.memory_.remove(engine_.now_, storage);
    page.state = State::dead;
    if (page.freed && page.users == 0) {
      --pending_frees_;
    } else {
      page.state = State::elsewhere;
      page.backing = move.to;
      if (!engine_.memory_.place(engine_.now_, storage, move.to))
        engine_.memory_.place_unlimited(engine_.now_, storage, move.to);
    }
  } else {
    set_resident(storage);
    if (page.freed && page.users == 0) {
      --pending_frees_;
      release(storage);
    }
  }
  start_next_transfer(engine);
  wake_all();
}

}  // namespace memwall
