#include "sim/engine/engine.h"

#include <algorithm>
#include <cassert>

#include "sim/engine/paging.h"
#include "sim/error.h"
#include "sim/large_pages.h"
#include "sim/trace/ranks.h"
#include "sim/trace/time_check.h"

namespace memwall {

Engine::Engine(const Trace& trace, const RankMachine& machine, const SimulationOptions& options,
               const TierAllocators& allocators)
    : trace_(trace),
      machine_(machine),
      options_(options),
      activities_(machine, trace.rank_table.empty() ? trace.ranks : 1, rank_count(trace), options.cached, queue_,
                  {kEnd, kSolve, kCacheFull}, options.observer),
      memory_(trace, machine, allocators, options.observer),
      device_calls_(trace, machine.one.host, options.first_step, allocators.pinned_pool),
      is_allocated_(trace.storages.size(), 0),
      threads_(trace.threads.size()),
      thread_clock_(trace.threads.size()),
      streams_(trace.streams.size()),
      event_op_(trace.event_count, kNoOp),
      ranks_(machine.views.size()),
      rendezvous_(trace),
      activity_of_stream_(trace.streams.size(), kNoActivity) {
  std::size_t devices = 1;
  for (const Stream& stream : trace.streams) devices = std::max<std::size_t>(devices, stream.device + 1u);
  engines_.assign(devices, std::vector<CopyEngine>(kEngines));
  multi_wave_.resize(devices);
  records_.reserve(trace.ops.size());
  advise_large_pages(records_.data(), records_.capacity() * sizeof(OpRecord));
  describe_ranks(machine);
  resolve_places(machine);
  list_program();
  expect_rendezvous();
  if (options.pager) {
    paging_ = std::make_unique<Paging>(*this, *options.pager);
    paging_->plan();
  }
}

Engine::~Engine() = default;

void Engine::describe_ranks(const RankMachine& machine) {
  for (std::size_t r = 0; r < ranks_.size(); ++r) {
    const RankView& view = machine.views[r];
    RankState& rank = ranks_[r];
    rank.constants = trace_.rank_table.empty() ? &trace_.constants : &trace_.rank_table[r].constants;
    rank.routes = &view.routes;
    if (view.link.empty()) continue;
    rank.hbm_link = view.link[machine.one.hbm_link];
    rank.dram_link = view.link[machine.one.dram_link];
    rank.dram_times = view.times(machine.one.dram_link);
    rank.core_times = view.core_times;
    if (!machine.core_pools.empty()) rank.core_pool = static_cast<std::uint16_t>(machine.links.size() + view.core_pool);
  }
  for (std::size_t s = 0; s < streams_.size(); ++s) {
    streams_[s].rank = &ranks_[trace_.streams[s].rank];
    streams_[s].is_storage = trace_.streams[s].role == StreamRole::storage;
  }
  for (std::size_t t = 0; t < threads_.size(); ++t) threads_[t].rank = &ranks_[trace_.threads[t].rank];
}

void Engine::resolve_places(const RankMachine& machine) {
  for (const std::string& place : trace_.places) {
    const int tier = machine.one.tier(place);
    if (tier < 0) {
      std::string names;
      for (const Tier& known : machine.one.tiers) names += (names.empty() ? "" : ", ") + known.name;
      throw UsageError("Trace '" + trace_.name + "' keeps data in a tier '" + place + "', which machine '" +
                       machine_.name + "' does not have; it has: " + names + ".");
    }
    for (std::size_t r = 0; r < ranks_.size(); ++r)
      ranks_[r].tier_of_place.push_back(machine.views[r].tier[static_cast<std::size_t>(tier)]);
  }
  const std::vector<std::uint16_t> rank_of_storage = storage_ranks(trace_);
  tier_of_storage_.reserve(trace_.storages.size());
  for (StorageId s = 0; s < trace_.storages.size(); ++s)
    tier_of_storage_.push_back(ranks_[rank_of_storage[s]].tier_of_place[trace_.storages[s].place]);
}

// The one look at all ops before the simulation: whose they are, whether their times can be counted, and whether the
// machine can do them.
void Engine::list_program() {
  TimeSum times;
  for (OpId id = 0; id < trace_.ops.size(); ++id) {
    const Op& op = trace_.ops[id];
    times.add(op);
    if (op.placed)
      placed_.push_back(id);
    else if (threads_.size() > 1)
      threads_[op.thread].ops.push_back(id);
    if (op.kind == OpKind::host_work || op.kind == OpKind::copy || op.kind == OpKind::storage_io) resolve_op(op);
    if (op.kind == OpKind::collective && op.added) resolve_collective(op);
  }
  times.require_countable(trace_);
  for (Thread& thread : threads_) {
    const bool starts_placed = threads_.size() == 1 && !trace_.ops.empty() && trace_.ops.front().placed;
    if (threads_.size() > 1)
      thread.current = thread.ops.empty() ? static_cast<OpId>(trace_.ops.size()) : thread.ops.front();
    else if (starts_placed)
      advance(thread);
  }
}

void Engine::resolve_op(const Op& op) {
  if (op.kind == OpKind::host_work) return resolve_work(op);
  // Within one tier without a route of its own a copy simply takes its time.
  if (route_of(op) != nullptr || op.from == op.to) return;
  throw UsageError("Trace '" + trace_.name + "' copies from '" + trace_.places[op.from] + "' to '" +
                   trace_.places[op.to] + "', for which machine '" + machine_.name + "' has no route.");
}

// Work in a device's memory or the host's goes through host DRAM.
void Engine::resolve_work(const Op& op) {
  const std::uint16_t r = rank_of(trace_, op);
  RankState& rank = ranks_[r];
  if (op.from >= rank.tier_of_place.size() || rank.work_in.contains(op.from)) return;
  const int tier = machine_.one.tier(trace_.places[op.from]);
  const Tier& memory = machine_.one.tiers[static_cast<std::size_t>(tier)];
  if (memory.tier_class == TierClass::device || (memory.name == "host" && memory.compute == 0)) return;
  std::optional<Route> work = machine_.one.work_in(tier);
  if (!work)
    throw UsageError("Trace '" + trace_.name + "' works in tier '" + memory.name + "', which on machine '" +
                     machine_.name + "' has neither compute nor routes to the host and back.");
  const RankView& view = machine_.views[r];
  for (std::size_t i = 0; i < work->links.size(); ++i) {
    work->link_shares[i] *= view.times(work->links[i]);
    work->links[i] = view.link[work->links[i]];
  }
  rank.work_in.emplace(op.from, std::move(*work));
}

// Captured collectives took what they took; those that a policy adds load the links between the members of their group.
void Engine::resolve_collective(const Op& op) {
  const std::uint16_t r = rank_of(trace_, op);
  const RankView& view = machine_.views[r];
  const auto key = std::pair(op.group, op.collective);
  if (view.link.empty() || ranks_[r].group_routes.contains(key)) return;
  const ProcessGroup group = process_group_of(trace_, op);
  std::uint32_t number = trace_.rank_table.empty() ? 0 : trace_.rank_table[r].number;
  const std::vector<std::uint32_t>& members = group.members;
  if (!members.empty() && !std::binary_search(members.begin(), members.end(), number)) number = members.front();
  GroupRoute route = memwall::route_of(machine_.one, group, number, op.collective);
  for (std::size_t i = 0; i < route.links.size(); ++i) {
    route.shares[i] *= view.times(route.links[i]);
    route.links[i] = view.link[route.links[i]];
  }
  ranks_[r].group_routes.emplace(key, std::move(route));
}

void Engine::expect_rendezvous() {
  rendezvous_states_.resize(rendezvous_.size());
  for (std::size_t m = 0; m < rendezvous_.size(); ++m)
    rendezvous_states_[m].missing = static_cast<std::uint32_t>(rendezvous_.members(m).size());
}

void Engine::start_program() {
  for (StorageId s = 0; s < trace_.storages.size(); ++s) {
    if (!trace_.storages[s].preexisting) continue;
    is_allocated_[s] = 1;
    const int tier = tier_of_storage_[s];
    if (paging_ && paging_->place_at_start(s, tier)) continue;
    if (!memory_.place(now_, s, tier)) memory_.place_unlimited(now_, s, tier);
  }
  for (const OpId id : placed_) {
    OpRecord& record = new_record(id);
    record.host_start = record.host_end = Time{};
    submit(id, trace_.ops[id].host_gap);
  }
  for (Thread& thread : threads_) prepare_next(thread);
}

SimulationResult Engine::run() {
  start_program();
  loop();
  require_all_finished();
  return collect();
}

// flatten: what a loop step calls is spread over several files that compile together, is called from here alone, and
// takes a third less time in one piece.
[[gnu::flatten]] void Engine::loop() {
  for (;;) {
    const Time host = thread_clock_.next_time();
    const Time device = queue_.next_time();
    if (host == kNever && device == kNever) return;
    // At equal times the device goes first: what ends now is seen by a call that begins now.
    if (device <= host) {
      handle(queue_.pop());
    } else {
      now_ = host;
      const std::size_t index = thread_clock_.next();
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
        end_work(owner);
      }
      break;
    }
    case kSolve:
      activities_.solve(now_);
      break;
    case kCacheFull:
      activities_.fill_cache(now_, event.subject);
      break;
    case kReturn: {
      Thread& thread = threads_[event.subject];
      // The copy may have been slowed since; returning by the first estimate is what a staging copy does.
      if (thread.block == Block::device_work && !thread.returned_early) {
        thread.returned_early = true;
        // It waits no longer: the next call may wait for the same copy.
        waiters_.remove_thread(static_cast<std::uint16_t>(event.subject));
        finish_host(thread, now_, WaitReason::synchronize);
      }
      break;
    }
    default:
      assert(false);
  }
}

// Named first: what waits forever besides mostly waits for these.
void Engine::require_complete_rendezvous() const {
  const auto describe = [&](OpId id) {
    const Rank& rank = trace_.rank_table[rank_of(trace_, trace_.ops[id])];
    return "op " + std::to_string(id) + " of rank " + std::to_string(rank.number);
  };
  for (std::size_t m = 0; m < rendezvous_.size(); ++m) {
    OpId began = kNoOp, missing = kNoOp;
    for (const OpId id : rendezvous_.members(m)) (records_[id].start == kNever ? missing : began) = id;
    if (began == kNoOp || missing == kNoOp) continue;
    throw InputError("Trace '" + trace_.name + "': the collective '" + trace_.strings[trace_.ops[began].name] + "' (" +
                     describe(began) + ") waits forever for " + describe(missing) +
                     ", which never begins; the waits of the program form a circle.");
  }
}

void Engine::require_all_finished() {
  records_.resize(trace_.ops.size(), kNotBegun);
  require_complete_rendezvous();
  for (std::size_t i = 0; i < threads_.size(); ++i) {
    const Thread& thread = threads_[i];
    if (thread.block == Block::finished) continue;
    throw InputError("Trace '" + trace_.name + "': host thread '" + trace_.threads[i].name + "' waits forever at op " +
                     std::to_string(thread.current) + "; the waits of the program form a circle.");
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
  for (const RankState& rank : ranks_) result.end = std::max(result.end, rank.end);
  const OpId count = static_cast<OpId>(trace_.ops.size());
  if (first_device_start_ != kNever) result.gpu_span = last_device_end_ - first_device_start_;
  const auto boundary = [&](OpId id, Time end) {
    return id < count && records_[id].host_start != kNever ? records_[id].host_start : end;
  };
  for (const Step& step : trace_.steps) {
    const Time end = ranks_[step.first < count ? rank_of(trace_, trace_.ops[step.first]) : 0].end;
    result.steps.push_back({step.name, boundary(end_of_step(trace_, step), end) - boundary(step.first, end),
                            span_of(step.first, step.last)});
  }
  result.tiers = memory_.results();
  result.links = activities_.results(result.end);
  if (paging_) {
    result.moves = paging_->moves();
    result.paging_steps = paging_->steps();
  }
  result.fits = memory_.fits();
  result.events = queue_.popped() + issued_;
  result.records = std::move(records_);
  return result;
}

}  // namespace memwall
