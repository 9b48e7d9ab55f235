#include "sim/engine.h"

#include <algorithm>
#include <cassert>

#include "sim/error.h"
#include "sim/paging.h"

namespace memwall {

Engine::Engine(const Trace& trace, const Machine& machine, const SimulationOptions& options,
               const TierAllocators& allocators)
    : trace_(trace),
      machine_(machine),
      options_(options),
      activities_(machine, trace.ranks, queue_, kEnd, kSolve, options.observer),
      memory_(trace, machine, allocators, options.observer),
      records_(trace.ops.size()),
      done_(trace.ops.size(), 0),
      threads_(trace.threads.size()),
      streams_(trace.streams.size()),
      event_op_(trace.event_count, kNoOp),
      activity_of_stream_(trace.streams.size(), kNoActivity) {
  std::size_t devices = 1;
  for (const Stream& stream : trace.streams) devices = std::max<std::size_t>(devices, stream.device + 1u);
  engines_.assign(devices, std::vector<CopyEngine>(kEngines));
  hbm_links_[0] = machine.hbm_link;
  dram_links_[0] = machine.dram_link;
  fabric_ = machine.fabric(trace.ranks);
  for (OpRecord& record : records_) record.host_start = record.host_end = kNever;
  resolve_places();
  if (options.pager) {
    paging_ = std::make_unique<Paging>(*this, *options.pager);
    paging_->plan();
  }
}

Engine::~Engine() = default;

void Engine::resolve_places() {
  std::vector<std::string> tiers;
  for (const Tier& tier : machine_.tiers) tiers.push_back(tier.name);
  for (const std::string& place : trace_.places) {
    tier_of_place_.push_back(machine_.tier(place));
    if (tier_of_place_.back() >= 0) continue;
    std::string names;
    for (const std::string& tier : tiers) names += (names.empty() ? "" : ", ") + tier;
    throw UsageError("Trace '" + trace_.name + "' keeps data in a tier '" + place + "', which machine '" +
                     machine_.name + "' does not have; it has: " + names + ".");
  }
  for (const Op& op : trace_.ops) {
    if (op.kind == OpKind::host_work) resolve_work(op.from);
    if ((op.kind != OpKind::copy && op.kind != OpKind::storage_io) || route_of(op) != nullptr) continue;
    // Within one tier without a route of its own a copy simply takes its time.
    if (op.from == op.to) continue;
    throw UsageError("Trace '" + trace_.name + "' copies from '" + trace_.places[op.from] + "' to '" +
                     trace_.places[op.to] + "', for which machine '" + machine_.name + "' has no route.");
  }
}

// Work in a device's memory or the host's goes through host DRAM.
void Engine::resolve_work(std::uint8_t place) {
  if (place >= tier_of_place_.size() || work_in_.contains(place)) return;
  const int tier = tier_of_place_[place];
  const Tier& memory = machine_.tiers[static_cast<std::size_t>(tier)];
  if (memory.tier_class == TierClass::device || (memory.name == "host" && memory.compute == 0)) return;
  std::optional<Route> work = machine_.work_in(tier);
  if (!work)
    throw UsageError("Trace '" + trace_.name + "' works in tier '" + memory.name + "', which on machine '" +
                     machine_.name + "' has neither compute nor routes to the host and back.");
  work_in_.emplace(place, std::move(*work));
}

void Engine::start_program() {
  for (StorageId s = 0; s < trace_.storages.size(); ++s) {
    if (!trace_.storages[s].preexisting) continue;
    const int tier = tier_of_place_[trace_.storages[s].place];
    if (paging_ && paging_->place_at_start(s, tier)) continue;
    if (!memory_.place(now_, s, tier)) memory_.place_unlimited(now_, s, tier);
  }
  for (OpId id = 0; id < trace_.ops.size(); ++id) {
    const Op& op = trace_.ops[id];
    if (op.placed) {
      records_[id].host_start = records_[id].host_end = Time{};
      submit(id, op.host_gap);
    } else {
      threads_[op.thread].ops.push_back(id);
    }
  }
  for (Thread& thread : threads_) prepare_next(thread);
}

SimulationResult Engine::run() {
  start_program();
  loop();
  require_all_finished();
  return collect();
}

void Engine::loop() {
  for (;;) {
    const int index = next_thread();
    const Time host = index < 0 ? kNever : threads_[index].next_start;
    const Time device = queue_.next_time();
    if (host == kNever && device == kNever) return;
    // At equal times the device goes first: what ends now is seen by a call that begins now.
    if (device <= host) {
      handle(queue_.pop());
    } else {
      now_ = host;
      step_host(threads_[index], static_cast<std::uint16_t>(index));
    }
  }
}

void Engine::handle(const Event& event) {
  now_ = event.time;
  switch (event.kind) {
    case kTryStart: {
      StreamState& stream = streams_[event.subject];
      if (stream.try_at == now_) stream.try_at = kNever;
      try_start(static_cast<std::uint16_t>(event.subject));
      break;
    }
    case kEnd: {
      std::uint32_t owner = 0;
      if (!activities_.finish(now_, event.subject, owner)) break;
      if (owner >= trace_.ops.size()) {
        paging_->transfer_ended(owner - static_cast<std::uint32_t>(trace_.ops.size()));
      } else if (trace_.ops[owner].kind == OpKind::host_work) {
        Thread& thread = threads_[trace_.ops[owner].thread];
        finish_host(thread, now_ + trace_.ops[owner].host_cost, WaitReason::none);
      } else {
        end_op(owner);
      }
      break;
    }
    case kSolve:
      activities_.solve(now_);
      break;
    case kReturn: {
      Thread& thread = threads_[event.subject];
      // The copy may have been slowed since; returning by the first estimate is what a staging copy does.
      if (thread.block == Block::device_work && !thread.returned_early) {
        thread.returned_early = true;
        // It waits no longer: the next call may wait for the same copy.
        std::erase_if(waiters_,
                      [&](const Waiter& waiter) { return waiter.is_thread && waiter.index == event.subject; });
        finish_host(thread, now_, WaitReason::synchronize);
      }
      break;
    }
    default:
      assert(false);
  }
}

void Engine::require_all_finished() const {
  for (std::size_t i = 0; i < threads_.size(); ++i) {
    const Thread& thread = threads_[i];
    if (thread.block == Block::finished) continue;
    throw InputError("Trace '" + trace_.name + "': host thread '" + trace_.threads[i].name + "' waits forever at op " +
                     std::to_string(thread.ops[thread.cursor]) + "; the waits of the program form a circle.");
  }
  for (std::size_t i = 0; i < streams_.size(); ++i)
    if (!streams_[i].fifo.empty())
      throw InputError("Trace '" + trace_.name + "': stream '" + trace_.streams[i].name + "' waits forever at op " +
                       std::to_string(streams_[i].fifo.front().op) + "; the waits of the program form a circle.");
}

SimulationResult Engine::collect() {
  SimulationResult result;
  const auto span_of = [&](OpId first, OpId last) {
    Time begin = kNever, end{};
    for (OpId id = first; id < last; ++id) {
      const OpRecord& r = records_[id];
      if (r.start == kNever || trace_.streams[trace_.ops[id].stream].role == StreamRole::storage) continue;
      begin = std::min(begin, r.start);
      end = std::max(end, r.end);
    }
    return begin == kNever ? Duration{} : end - begin;
  };
  for (const OpRecord& r : records_) {
    if (r.host_end != kNever) result.end = std::max(result.end, r.host_end);
    if (r.end != kNever) result.end = std::max(result.end, r.end);
  }
  const OpId count = static_cast<OpId>(trace_.ops.size());
  result.gpu_span = span_of(0, count);
  const auto boundary = [&](OpId id) {
    return id < count && records_[id].host_start != kNever ? records_[id].host_start : result.end;
  };
  for (const Step& step : trace_.steps)
    result.steps.push_back({step.name, boundary(step.last) - boundary(step.first), span_of(step.first, step.last)});
  result.tiers = memory_.results();
  result.links = activities_.links();
  if (paging_) result.moves = paging_->moves();
  result.fits = memory_.fits();
  result.events = queue_.popped() + issued_;
  result.records = std::move(records_);
  return result;
}

}  // namespace memwall
