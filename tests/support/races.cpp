#include "tests/support/races.h"

#include <algorithm>

namespace memwall {
namespace {

// Per stream: how many of its ops are known to be done. Lamport's happened-before as vector clocks.
using Clock = std::vector<std::uint32_t>;

void merge(Clock& into, const Clock& from) {
  for (std::size_t i = 0; i < into.size(); ++i) into[i] = std::max(into[i], from[i]);
}

bool covers(const Clock& clock, const Clock& needed) {
  for (std::size_t i = 0; i < clock.size(); ++i)
    if (clock[i] < needed[i]) return false;
  return true;
}

class Races {
 public:
  Races(const Trace& trace, std::size_t limit)
      : t_(trace),
        limit_(limit),
        none_(trace.streams.size(), 0),
        host_(none_),
        streams_(trace.streams.size(), none_),
        events_(trace.event_count, none_),
        written_(trace.storages.size(), none_),
        used_(trace.storages.size(), none_),
        sent_(trace.storages.size(), none_),
        memory_(trace.storages.size(), none_),
        pools_(trace.places.size() * trace.streams.size(), none_) {}

  // Of what is freed early alone, or of all but that.
  std::vector<std::string> run(bool early_frees) {
    early_frees_ = early_frees;
    for (OpId id = 0; id < t_.ops.size() && found_.size() < limit_; ++id) visit(id);
    return std::move(found_);
  }

 private:
  void visit(OpId id) {
    const Op& op = t_.ops[id];
    switch (op.kind) {
      // What comes next from this stream's pool may stand in memory that the freed storage's users still work on.
      case OpKind::free:
        if (early_frees_) require_done(id);
        merge(pool_of(op.target), remaining_users(op));
        break;
      case OpKind::alloc:
        memory_[op.target] = pool_of(op.target);
        break;
      case OpKind::event_record:
        events_[op.target] = streams_[op.stream];
        break;
      case OpKind::event_wait:
        merge(streams_[op.stream], events_[op.target]);
        break;
      case OpKind::synchronize:
        synchronize(op);
        break;
      default:
        if (runs_on_device(op.kind)) launch(id);
    }
  }

  Clock& pool_of(StorageId s) { return pools_[t_.storages[s].place * t_.streams.size() + t_.storages[s].stream]; }

  // Without those that the memory waits for before it is given back (record_stream).
  Clock remaining_users(const Op& free) const {
    Clock users = used_[free.target];
    if (free.wait_for != WaitFor::stream) return users;
    const Clock& awaited = streams_[free.stream];
    for (std::size_t i = 0; i < users.size(); ++i)
      if (users[i] <= awaited[i]) users[i] = 0;
    return users;
  }

  void synchronize(const Op& op) {
    if (op.wait_for == WaitFor::event) merge(host_, events_[op.target]);
    if (op.wait_for == WaitFor::stream) merge(host_, streams_[op.stream]);
    if (op.wait_for == WaitFor::device)
      for (const Clock& stream : streams_) merge(host_, stream);
  }

  void launch(OpId id) {
    const Op& op = t_.ops[id];
    Clock& now = streams_[op.stream];
    merge(now, host_);
    for (const Use& use : t_.uses_of(op)) {
      require(id, use, now, written_[use.storage], "does not wait for what wrote");
      if (use.access == Access::write) require(id, use, now, used_[use.storage], "does not wait for the users of");
      require(id, use, now, memory_[use.storage], "does not wait for the former users of the memory of");
    }
    ++now[op.stream];
    for (const Use& use : t_.uses_of(op)) {
      if (use.access == Access::write) written_[use.storage][op.stream] = now[op.stream];
      used_[use.storage][op.stream] = now[op.stream];
      if (op.kind == OpKind::collective) sent_[use.storage][op.stream] = now[op.stream];
    }
    if (op.wait_for == WaitFor::own_op) merge(host_, now);
  }

  void require_done(OpId id) {
    const Op& op = t_.ops[id];
    const Storage& storage = t_.storages[op.target];
    Clock known = streams_[storage.stream];
    merge(known, streams_.front());
    merge(known, host_);
    Clock users = remaining_users(op);
    for (std::size_t i = 0; i < users.size(); ++i) users[i] = std::min(users[i], sent_[op.target][i]);
    if (found_.size() >= limit_ || covers(known, users)) return;
    found_.push_back("Op " + std::to_string(id) + " frees storage " + std::to_string(op.target) + " '" +
                     t_.strings[storage.label] + "', which a collective still uses.");
  }

  void require(OpId id, const Use& use, const Clock& now, const Clock& needed, const char* what) {
    if (early_frees_ || found_.size() >= limit_ || covers(now, needed)) return;
    found_.push_back("Op " + std::to_string(id) + " '" + t_.strings[t_.ops[id].name] + "' " + what + " storage " +
                     std::to_string(use.storage) + " '" + t_.strings[t_.storages[use.storage].label] + "'.");
  }

  const Trace& t_;
  std::size_t limit_;
  Clock none_, host_;
  std::vector<Clock> streams_, events_;
  std::vector<Clock> written_, used_;  // by storage: its writers, and all its users
  std::vector<Clock> sent_;            // by storage: the collectives among its users
  std::vector<Clock> memory_;          // by storage: who used its memory before
  std::vector<Clock> pools_;           // by place and stream: users of everything freed into its pool
  std::vector<std::string> found_;
  bool early_frees_ = false;
};

}  // namespace

std::vector<std::string> races(const Trace& trace, std::size_t limit) { return Races(trace, limit).run(false); }

std::vector<std::string> early_frees(const Trace& trace, std::size_t limit) { return Races(trace, limit).run(true); }

}  // namespace memwall
