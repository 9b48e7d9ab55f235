#include "sim/trace/repeat.h"

#include <algorithm>
#include <cassert>
#include <map>

#include "sim/human_text.h"

namespace memwall {
namespace {

// Which storages the program leaves behind, and which of them takes the place of a
// preexisting storage that it frees.
struct Succession {
  std::vector<StorageId> successor;          // of a freed preexisting storage, or kNoStorage
  std::vector<bool> orphan;                  // freed and preexisting, without a successor
  std::vector<std::uint32_t> final_version;  // of every storage after one round
  std::size_t orphans = 0;
};

Succession find_succession(const Trace& trace) {
  Succession result;
  const std::size_t n = trace.storages.size();
  std::vector<bool> allocated(n, false), freed(n, false);
  result.final_version.assign(n, 0);
  for (const Op& op : trace.ops) {
    if (op.kind == OpKind::alloc) allocated[op.target] = true;
    if (op.kind == OpKind::free) freed[op.target] = true;
    for (const Use& use : trace.uses_of(op))
      if (use.access == Access::write) result.final_version[use.storage] = use.version;
  }
  std::multimap<std::pair<Bytes, int>, StorageId> left;  // (size, kind): a gradient succeeds a gradient
  for (StorageId s = 0; s < n; ++s)
    if (allocated[s] && !freed[s])
      left.emplace(std::pair(trace.storages[s].bytes, static_cast<int>(trace.storages[s].kind)), s);
  result.successor.assign(n, kNoStorage);
  result.orphan.assign(n, false);
  const auto take = [&](auto found, StorageId s) {
    result.successor[s] = found->second;
    left.erase(found);
  };
  for (const bool same_kind : {true, false}) {
    for (StorageId s = 0; s < n; ++s) {
      if (!trace.storages[s].preexisting || !freed[s] || result.successor[s] != kNoStorage) continue;
      const std::pair key(trace.storages[s].bytes, static_cast<int>(trace.storages[s].kind));
      const auto found = same_kind ? left.find(key) : left.lower_bound({key.first, -1});
      if (found != left.end() && found->first.first == key.first) take(found, s);
    }
  }
  for (StorageId s = 0; s < n; ++s) {
    result.orphan[s] = trace.storages[s].preexisting && freed[s] && result.successor[s] == kNoStorage;
    result.orphans += result.orphan[s];
  }
  return result;
}

// Numbers of one round: where each storage of the original program stands.
struct Round {
  std::vector<StorageId> storage;
  std::vector<std::uint32_t> version_offset;
};

Round first_round(const Trace& trace) {
  Round round;
  round.storage.resize(trace.storages.size());
  for (StorageId s = 0; s < round.storage.size(); ++s) round.storage[s] = s;
  round.version_offset.assign(round.storage.size(), 0);
  return round;
}

Round next_round(const Trace& trace, const Succession& succession, const Round& before, Trace& out) {
  Round round = before;
  for (StorageId s = 0; s < round.storage.size(); ++s) {
    if (const StorageId successor = succession.successor[s]; successor != kNoStorage) {
      round.storage[s] = before.storage[successor];
      round.version_offset[s] = before.version_offset[successor] + succession.final_version[successor];
    } else if (trace.storages[s].preexisting) {
      round.version_offset[s] = before.version_offset[s] + succession.final_version[s];
    } else {
      round.storage[s] = static_cast<StorageId>(out.storages.size());
      round.version_offset[s] = 0;
      out.storages.push_back(trace.storages[s]);
    }
  }
  return round;
}

class Appender {
 public:
  Appender(const Trace& trace, const Succession& succession, Trace& out)
      : trace_(trace), succession_(succession), out_(out), new_id_(trace.ops.size()) {}

  void append(const Round& round, std::uint32_t number, bool last) {
    number_ = number;
    last_ = last;
    for (OpId id = 0; id < trace_.ops.size(); ++id) append_op(id, round);
    const auto position = [&](OpId id) {
      return id < new_id_.size() ? new_id_[id] : static_cast<OpId>(out_.ops.size());
    };
    for (const Step& step : trace_.steps)
      out_.steps.push_back({number == 0 ? step.name : step.name + " round " + std::to_string(number + 1),
                            position(step.first), position(step.last)});
    for (StorageId s = 0; s < trace_.storages.size(); ++s)
      if (const OpId end = trace_.storages[s].last_referenced; end != kNoOp && !trace_.storages[s].preexisting)
        out_.storages[round.storage[s]].last_referenced = new_id_[end];
  }

 private:
  void append_op(OpId id, const Round& round) {
    Op op = trace_.ops[id];
    new_id_[id] = static_cast<OpId>(out_.ops.size());
    if (op.placed && number_ > 0) return;  // the state before the window, only once
    if (op.kind == OpKind::free && succession_.orphan[op.target] && !last_) return;
    if (op.source != kNoOp) op.source = new_id_[op.source];
    switch (op.kind) {
      case OpKind::alloc:
      case OpKind::free:
        op.target = round.storage[op.target];
        break;
      case OpKind::hand_over:
        op.target = new_id_[op.target];
        break;
      case OpKind::collective:
        if (op.target != kNoRendezvous) op.target = rendezvous_of_round(op.target);
        break;
      case OpKind::event_record:
      case OpKind::event_wait:
        op.target += number_ * trace_.event_count;
        break;
      default:
        if (op.wait_for == WaitFor::event) op.target += number_ * trace_.event_count;
    }
    const auto uses = trace_.uses_of(trace_.ops[id]);
    op.first_use = static_cast<std::uint32_t>(out_.uses.size());
    for (Use use : uses) {
      use.version += round.version_offset[use.storage];
      use.storage = round.storage[use.storage];
      out_.uses.push_back(use);
    }
    out_.ops.push_back(op);
  }

  // Ranks meet in each round anew.
  std::uint32_t rendezvous_of_round(std::uint32_t rendezvous) {
    const auto [entry, added] = rendezvous_.try_emplace({number_, rendezvous}, static_cast<std::uint32_t>(rendezvous_.size()));
    return entry->second;
  }

  const Trace& trace_;
  const Succession& succession_;
  Trace& out_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> rendezvous_;  // (round, rendezvous) of the original
  std::vector<OpId> new_id_;
  std::uint32_t number_ = 0;
  bool last_ = false;
};

}  // namespace

Trace repeated(const Trace& trace, std::uint32_t times) {
  assert(times >= 1);
  if (times <= 1) return trace;
  const Succession succession = find_succession(trace);
  Trace out = trace;
  out.ops.clear();
  out.uses.clear();
  out.steps.clear();
  out.ops.reserve(trace.ops.size() * times);
  out.uses.reserve(trace.uses.size() * times);
  out.event_count = trace.event_count * times;
  Appender appender(trace, succession, out);
  Round round = first_round(trace);
  for (std::uint32_t number = 0; number < times; ++number) {
    if (number > 0) round = next_round(trace, succession, round, out);
    appender.append(round, number, number + 1 == times);
  }
  if (succession.orphans > 0)
    out.notes.push_back("Kept until the last of the repeated rounds: " + counted_text(succession.orphans, "storage") +
                        " from before the window, freed in it without a successor of the same size.");
  return out;
}

}  // namespace memwall
