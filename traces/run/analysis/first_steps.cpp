#include "traces/run/analysis/first_steps.h"

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>

#include "sim/memory/allocator.h"
#include "sim/trace/ranks.h"

namespace memwall {
namespace {

// A storage begins or ceases to be there, or is used for the first time by the optimizer, in this order.
struct StorageChange {
  Time time{};
  StorageId storage = kNoStorage;
  enum class What : std::uint8_t { begin, end, first_use } what = What::begin;
  bool before_first_step = false;  // as a model is wrapped
};

bool is_moment(const Trace& trace, const Storage& storage) {
  if (storage.kind != StorageKind::optimizer_state || !storage.preexisting) return false;
  const std::string& label = trace.strings[storage.label];
  return label.ends_with("exp_avg") || label.ends_with("exp_avg_sq") || label.ends_with("momentum_buffer");
}

// What one rank asks of its allocator.
struct RankRequests {
  std::uint8_t place = 0;           // its device memory
  std::vector<StorageId> at_start;  // without moments
  std::vector<StorageChange> changes;
  bool has_moments = false;
};

class RequestReader {
 public:
  explicit RequestReader(const Run& run)
      : run_(run),
        trace_(*run.trace),
        programs_(rank_count(trace_)),
        stream_ends_(trace_.streams.size()),
        is_unused_moment_(trace_.storages.size(), false) {}

  std::vector<RankRequests> read(std::uint8_t hbm) {
    hbm_ = hbm;
    first_.assign(programs_.size(), 0);
    for (auto step = trace_.steps.rbegin(); step != trace_.steps.rend(); ++step)
      first_[rank_of_op(trace_.ops[step->first])] = step->first;
    const std::vector<std::uint16_t> ranks = storage_ranks(trace_);
    for (StorageId s = 0; s < trace_.storages.size(); ++s) {
      const Storage& storage = trace_.storages[s];
      if (!storage.preexisting || storage.place != hbm_) continue;
      RankRequests& program = programs_[ranks[s]];
      if (is_moment(trace_, storage))
        is_unused_moment_[s] = program.has_moments = true;
      else
        program.at_start.push_back(s);
    }
    for (OpId id = 0; id < trace_.ops.size(); ++id) read_op(id);
    for (RankRequests& program : programs_) std::ranges::stable_sort(program.changes, {}, &StorageChange::time);
    return std::move(programs_);
  }

 private:
  std::size_t rank_of_op(const Op& op) const { return programs_.size() == 1 ? 0 : rank_of(trace_, op); }

  void read_op(OpId id) {
    const Op& op = trace_.ops[id];
    const OpRecord& record = run_.result.records[id];
    const std::size_t rank = rank_of_op(op);
    RankRequests& program = programs_[rank];
    if (runs_on_device(op.kind)) stream_ends_[op.stream] = std::max(stream_ends_[op.stream], record.end);
    for (const Use& use : trace_.uses_of(op)) {
      if (!is_unused_moment_[use.storage]) continue;
      is_unused_moment_[use.storage] = false;
      program.changes.push_back({record.host_start, use.storage, StorageChange::What::first_use, false});
    }
    if (op.kind != OpKind::alloc && op.kind != OpKind::free) return;
    if (trace_.storages[op.target].place != hbm_) return;
    const bool begins = op.kind == OpKind::alloc;
    // record_stream: what other streams were given comes back when they are through.
    const bool late = !begins && op.wait_for == WaitFor::stream;
    const Time time = late ? std::max(record.host_start, stream_ends_[op.stream]) : record.host_start;
    program.changes.push_back(
        {time, op.target, begins ? StorageChange::What::begin : StorageChange::What::end, id < first_[rank]});
  }

  const Run& run_;
  const Trace& trace_;
  std::vector<RankRequests> programs_;
  std::vector<OpId> first_;  // of each rank: its first step's
  std::vector<Time> stream_ends_;
  std::vector<bool> is_unused_moment_;  // moments that no op has used yet
  std::uint8_t hbm_ = 0;
};

class AllocatorReplay {
 public:
  AllocatorReplay(const Trace& trace, std::unique_ptr<Allocator> allocator)
      : trace_(trace), allocator_(std::move(allocator)) {}

  bool begin(StorageId s) {
    const auto address = allocator_->allocate(trace_.storages[s].bytes, trace_.storages[s].stream);
    if (!address) return false;
    addresses_[s] = *address;
    return true;
  }

  void end(StorageId s) {
    const auto found = addresses_.find(s);
    if (found == addresses_.end()) return;
    allocator_->free(found->second);
    addresses_.erase(found);
  }

  // What stays from the step takes the place of what was there before and is gone (gradients that live from step to
  // step); the rest of it goes.
  void carry_over(const std::vector<StorageId>& at_start) {
    std::multimap<std::pair<Bytes, StorageKind>, StorageId> gone;
    for (const StorageId s : at_start)
      if (!addresses_.contains(s)) gone.emplace(key(s), s);
    std::vector<StorageId> stayed;
    for (const auto& [s, address] : addresses_)
      if (!trace_.storages[s].preexisting) stayed.push_back(s);
    std::ranges::sort(stayed);
    for (const StorageId s : stayed) {
      const auto match = gone.find(key(s));
      if (match == gone.end()) {
        end(s);
        continue;
      }
      addresses_[match->second] = addresses_.at(s);
      addresses_.erase(s);
      gone.erase(match);
    }
  }

  Bytes reserved() const { return allocator_->usage().reserved; }

 private:
  std::pair<Bytes, StorageKind> key(StorageId s) const { return {trace_.storages[s].bytes, trace_.storages[s].kind}; }

  const Trace& trace_;
  std::unique_ptr<Allocator> allocator_;
  std::unordered_map<StorageId, Address> addresses_;
};

std::optional<Bytes> reserved_of(const Trace& trace, const RankRequests& program,
                                 std::unique_ptr<Allocator> allocator) {
  AllocatorReplay replay(trace, std::move(allocator));
  Bytes most = 0;
  for (const StorageId s : program.at_start)
    if (!replay.begin(s)) return std::nullopt;
  for (int step = 0; step < 2; ++step) {
    if (step > 0) replay.carry_over(program.at_start);
    for (const StorageChange& change : program.changes) {
      if (change.before_first_step && step > 0) continue;
      const bool makes =
          change.what == StorageChange::What::begin || (change.what == StorageChange::What::first_use && step == 0);
      if (change.what == StorageChange::What::end)
        replay.end(change.storage);
      else if (makes && !replay.begin(change.storage))
        return std::nullopt;
      most = std::max(most, replay.reserved());
    }
  }
  return most;
}

}  // namespace

std::vector<std::optional<Bytes>> reserved_from_first_step(const Run& run, const std::vector<std::size_t>& tiers) {
  const Trace& trace = *run.trace;
  std::vector<std::optional<Bytes>> reserved(rank_count(trace));
  const auto hbm = std::ranges::find(trace.places, "hbm");
  if (run.allocator != "pytorch" || !run.pager.empty() || !run.result.fits || hbm == trace.places.end() ||
      run.result.records.size() != trace.ops.size())
    return reserved;
  const auto programs = RequestReader(run).read(static_cast<std::uint8_t>(hbm - trace.places.begin()));
  for (std::size_t r = 0; r < programs.size() && r < tiers.size(); ++r) {
    if (!programs[r].has_moments || tiers[r] >= run.machine.tiers.size()) continue;
    const Tier& tier = run.machine.tiers[tiers[r]];
    reserved[r] = reserved_of(
        trace, programs[r],
        make_allocator("pytorch", tier.holds(), parse_allocator_settings(run.allocator_settings), tier.capacity));
  }
  return reserved;
}

}  // namespace memwall
