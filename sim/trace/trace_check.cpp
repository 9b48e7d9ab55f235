#include "sim/trace/trace_check.h"

#include <algorithm>
#include <cstddef>
#include <map>

#include "sim/error.h"
#include "sim/trace/rank_check.h"
#include "sim/trace/rendezvous.h"

namespace memwall {
namespace {

std::uint64_t mix(std::uint64_t h, std::uint64_t value) {
  // Sebastiano Vigna's splitmix64 finalizer over the running value.
  h ^= value + 0x9e3779b97f4a7c15ULL + (h << 6) + (h >> 2);
  h = (h ^ (h >> 30)) * 0xbf58476d1ce4e5b9ULL;
  h = (h ^ (h >> 27)) * 0x94d049bb133111ebULL;
  return h ^ (h >> 31);
}

std::uint64_t mix(std::uint64_t h, const std::string& text) {
  for (const char c : text) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return mix(h, text.size());
}

// No memory of today holds a pebibyte; sums of many sizes must not overflow.
constexpr Bytes kLargestStorage = Bytes{1} << 50;

// Event numbers index tables, so a small trace may not claim billions of them.
std::size_t most_events(const Trace& trace) { return 16 * trace.ops.size() + (1u << 20); }

// Walks a trace once and keeps what is alive; collects sentences.
class Checker {
 public:
  Checker(const Trace& trace, std::size_t limit)
      : t_(trace),
        limit_(limit),
        state_(trace.storages.size()),
        version_(trace.storages.size(), 0),
        recorded_(std::min<std::size_t>(trace.event_count, most_events(trace)), false) {}

  std::vector<std::string> run() {
    check_tables();
    for (OpId id = 0; id < t_.ops.size() && sentences_.size() < limit_; ++id) check_op(id);
    if (!sentences_.empty()) return std::move(sentences_);
    return check_ranks(t_, limit_, has_rendezvous_ || !t_.rank_table.empty());
  }

  std::vector<std::string> run_costs() {
    for (OpId id = 0; id < t_.ops.size() && sentences_.size() < limit_; ++id) check_costs(id);
    return std::move(sentences_);
  }

 private:
  enum class State : std::uint8_t { unallocated, live, dead };

  void fault(const std::string& sentence) {
    if (sentences_.size() < limit_) sentences_.push_back(sentence);
  }

  std::string describe(OpId id) const {
    const Op& op = t_.ops[id];
    std::string text = "Op " + std::to_string(id) + " (" + std::string(to_string(op.kind));
    if (op.name != 0 && op.name < t_.strings.size()) text += " '" + t_.strings[op.name] + "'";
    return text + ")";
  }

  std::string describe_storage(StorageId id) const {
    const Storage& s = t_.storages[id];
    std::string text = "storage " + std::to_string(id);
    if (s.label != 0 && s.label < t_.strings.size()) text += " '" + t_.strings[s.label] + "'";
    return text;
  }

  void check_tables() {
    for (std::size_t i = 0; i < t_.storages.size(); ++i) {
      const Storage& s = t_.storages[i];
      if (s.bytes < 0 || s.bytes > kLargestStorage)
        fault("Storage " + std::to_string(i) + " has " + std::to_string(s.bytes) + " bytes; expected 0 to 2^50.");
      if (s.place >= t_.places.size()) fault("Storage " + std::to_string(i) + " is at a place that is not listed.");
      if (s.label >= t_.strings.size()) fault("Storage " + std::to_string(i) + " has a label that is not listed.");
      if (s.shape >= t_.shapes.size()) fault("Storage " + std::to_string(i) + " has a shape that is not listed.");
      if (s.last_referenced != kNoOp && s.last_referenced >= t_.ops.size())
        fault("Storage " + std::to_string(i) + " is referred to until op " + std::to_string(s.last_referenced) +
              ", of " + std::to_string(t_.ops.size()) + ".");
      state_[i] = s.preexisting ? State::live : State::unallocated;
    }
    for (const Step& s : t_.steps)
      if (s.first > s.last || s.last > t_.ops.size())
        fault("Step '" + s.name + "' spans ops " + std::to_string(s.first) + " to " + std::to_string(s.last) + ", of " +
              std::to_string(t_.ops.size()) + ".");
    if (t_.event_count > most_events(t_))
      fault("The trace counts " + std::to_string(t_.event_count) + " events for " + std::to_string(t_.ops.size()) +
            " ops.");
    if (t_.untracked_bytes < 0 || t_.untracked_bytes > kLargestStorage)
      fault("The bytes held before the window are " + std::to_string(t_.untracked_bytes) + "; expected 0 to 2^50.");
    if (t_.reuse_distance < 0)
      fault("The reuse distance is " + std::to_string(t_.reuse_distance) + " bytes; expected 0 or more.");
    for (const HeldCopy& held : t_.held_copies)
      if (!is_there_at_the_start(held.copy) || !is_there_at_the_start(held.of))
        fault("Storage " + std::to_string(held.copy) + " is said to begin as a copy of storage " +
              std::to_string(held.of) + "; expected both to be there from the start.");
    if (t_.ranks == 0) fault("The trace has 0 ranks; expected 1 or more.");
  }

  bool is_there_at_the_start(StorageId id) const { return id < t_.storages.size() && t_.storages[id].preexisting; }

  bool check_indices(OpId id) {
    const Op& op = t_.ops[id];
    const std::size_t before = sentences_.size();
    if (op.kind > OpKind::mark) fault(describe(id) + " is of an unknown kind.");
    if (op.thread >= t_.threads.size() && (!op.placed || op.wait_for != WaitFor::nothing))
      fault(describe(id) + " is on a host thread that is not listed.");
    if (op.placed && !runs_on_device(op.kind)) fault(describe(id) + " is placed, which only work on a device can be.");
    if (op.graph_member && id == 0) fault(describe(id) + " is a node of a graph, and nothing before it launches one.");
    const bool needs_stream = runs_on_device(op.kind) || op.kind == OpKind::graph_launch ||
                              op.kind == OpKind::event_record || op.kind == OpKind::event_wait ||
                              op.wait_for == WaitFor::stream;
    if (needs_stream && op.stream >= t_.streams.size()) fault(describe(id) + " is on a stream that is not listed.");
    if (op.name >= t_.strings.size() || op.operator_name >= t_.strings.size() || op.module >= t_.strings.size())
      fault(describe(id) + " has a name that is not listed.");
    if (op.shape >= t_.shapes.size()) fault(describe(id) + " has a shape that is not listed.");
    if (op.kernels == 0) fault(describe(id) + " stands for 0 kernels; expected 1 or more.");
    if (op.first_use > t_.uses.size() || op.use_count > t_.uses.size() - op.first_use)
      fault(describe(id) + " has uses beyond the end of the list.");
    if ((op.kind == OpKind::copy || op.kind == OpKind::storage_io) &&
        (op.from >= t_.places.size() || op.to >= t_.places.size()))
      fault(describe(id) + " copies from or to a place that is not listed.");
    if (op.kind == OpKind::host_work && op.from > 0 && op.from >= t_.places.size())
      fault(describe(id) + " works in a place that is not listed.");
    return sentences_.size() == before;
  }

  void check_costs(OpId id) {
    const Op& op = t_.ops[id];
    if (op.bytes < 0) fault(describe(id) + " has " + std::to_string(op.bytes) + " bytes; expected 0 or more.");
    if (op.duration.count() < 0 || op.host_cost.count() < 0 || op.host_gap.count() < 0)
      fault(describe(id) + " has a negative duration, host cost or host gap.");
    if (!(op.flops >= 0) || !(op.waves >= 0)) fault(describe(id) + " has negative FLOPs or waves.");
  }

  void check_target(OpId id) {
    const Op& op = t_.ops[id];
    switch (op.kind) {
      case OpKind::alloc:
      case OpKind::free:
        check_lifetime(id);
        break;
      case OpKind::event_record:
        if (op.target >= recorded_.size()) return fault(describe(id) + " records an event that is not counted.");
        recorded_[op.target] = true;
        break;
      case OpKind::event_wait:
        check_wait(id);
        break;
      case OpKind::synchronize:
        if (op.wait_for == WaitFor::event) check_wait(id);
        break;
      case OpKind::hand_over:
        if (op.target >= id)
          fault(describe(id) + " continues op " + std::to_string(op.target) + ", which is not before it.");
        break;
      default:
        break;
    }
    if (op.source != kNoOp && op.source >= id)
      fault(describe(id) + (repeats(op) ? " repeats op " : " is the backward of op ") + std::to_string(op.source) +
            ", which is not before it.");
    if (op.phase == Phase::recompute && op.source == kNoOp && runs_on_device(op.kind) && op.kind != OpKind::collective)
      fault(describe(id) + " is recompute but names no original.");
  }

  void check_wait(OpId id) {
    const Op& op = t_.ops[id];
    if (op.target >= recorded_.size() || !recorded_[op.target])
      fault(describe(id) + " waits for event " + std::to_string(op.target) + ", which nothing has recorded before.");
  }

  void check_lifetime(OpId id) {
    const Op& op = t_.ops[id];
    if (op.target >= t_.storages.size()) return fault(describe(id) + " names a storage that is not listed.");
    State& state = state_[op.target];
    if (op.kind == OpKind::alloc) {
      if (state != State::unallocated)
        fault(describe(id) + " allocates " + describe_storage(op.target) + ", which already " +
              (state == State::live ? "lives." : "lived."));
      state = State::live;
    } else {
      if (state != State::live)
        fault(describe(id) + " frees " + describe_storage(op.target) + ", which " +
              (state == State::dead ? "was freed before." : "was never allocated."));
      state = State::dead;
    }
  }

  void check_uses(OpId id) {
    for (const Use& use : t_.uses_of(t_.ops[id])) {
      if (use.storage >= t_.storages.size()) {
        fault(describe(id) + " uses a storage that is not listed.");
        continue;
      }
      std::uint32_t& newest = version_[use.storage];
      const State state = state_[use.storage];
      if (t_.knowledge.allocations && state != State::live)
        fault(describe(id) + (use.access == Access::read ? " reads " : " writes ") + describe_storage(use.storage) +
              (state == State::dead ? ", which was freed before." : ", which nobody has allocated."));
      if (use.access == Access::write) {
        if (use.version != newest + 1)
          fault(describe(id) + " makes version " + std::to_string(use.version) + " of " +
                describe_storage(use.storage) + "; expected " + std::to_string(newest + 1) + ".");
        newest = use.version;
      } else if (use.version != newest) {
        fault(describe(id) + " reads version " + std::to_string(use.version) + " of " + describe_storage(use.storage) +
              ", whose newest is " + std::to_string(newest) + ".");
      } else if (newest == 0 && !t_.storages[use.storage].preexisting) {
        fault(describe(id) + " reads " + describe_storage(use.storage) + ", which nobody has written.");
      }
    }
  }

  void check_op(OpId id) {
    if (!check_indices(id)) return;
    check_costs(id);
    check_uses(id);
    check_target(id);
    has_rendezvous_ |= has_rendezvous(t_.ops[id]);
  }

  const Trace& t_;
  std::size_t limit_;
  std::vector<State> state_;
  std::vector<std::uint32_t> version_;
  std::vector<bool> recorded_;
  bool has_rendezvous_ = false;
  std::vector<std::string> sentences_;
};

}  // namespace

std::vector<std::string> check(const Trace& trace, std::size_t limit) { return Checker(trace, limit).run(); }

namespace {

constexpr std::size_t kFaultsTold = 3;

std::string joined_faults(const std::vector<std::string>& faults) {
  std::string text;
  for (const std::string& fault : faults) text += " " + fault;
  return text;
}

void require_none(const std::vector<std::string>& faults, const std::string& what) {
  if (!faults.empty()) throw InputError("The trace is not sound (" + what + "):" + joined_faults(faults));
}

}  // namespace

void require_sound(const Trace& trace, const std::string& what) { require_none(check(trace, kFaultsTold), what); }

void require_made_sound(const Trace& trace, const std::string& maker) {
  const std::vector<std::string> faults = check(trace, kFaultsTold);
  if (!faults.empty())
    throw std::logic_error(
        "an error of memwall itself, which your input did not cause; please report it with the "
        "command line: " +
        maker + " made a trace that is not sound:" + joined_faults(faults));
}

void require_sound_costs(const Trace& trace, const std::string& what) {
  require_none(Checker(trace, kFaultsTold).run_costs(), what);
}

std::vector<std::uint64_t> producer_hashes(const Trace& trace) {
  std::vector<std::uint64_t> hashes(trace.ops.size(), 0);
  std::map<std::pair<StorageId, std::uint32_t>, std::uint64_t> content;
  for (const HeldCopy& held : trace.held_copies) content[{held.copy, 0}] = mix(mix(1, held.of), 0);
  const auto read = [&](const Use& use) {
    const auto found = content.find({use.storage, use.version});
    return found != content.end() ? found->second : mix(mix(1, use.storage), use.version);
  };
  for (OpId id = 0; id < trace.ops.size(); ++id) {
    const Op& op = trace.ops[id];
    std::uint64_t hash =
        mix(mix(mix(7, static_cast<std::uint64_t>(op.kind)), trace.strings[op.name]), trace.strings[op.operator_name]);
    std::uint64_t reads = 0, writes = 0, last_read = 0;
    for (const Use& use : trace.uses_of(op)) {
      if (use.access == Access::write) {
        ++writes;
      } else {
        ++reads;
        hash = mix(hash, last_read = read(use));
      }
    }
    if (writes == 0) continue;
    hashes[id] = hash;
    // A copy changes where content is, not what it is.
    const bool moves = (op.kind == OpKind::copy || op.kind == OpKind::storage_io) && reads == 1 && writes == 1;
    // A collective over several buffers treats each for itself: what travels together may differ from time to time.
    const bool one_by_one = op.kind == OpKind::collective && reads == writes;
    std::vector<std::uint64_t> parts;
    if (one_by_one)
      for (const Use& use : trace.uses_of(op))
        if (use.access == Access::read) parts.push_back(mix(static_cast<std::uint64_t>(op.collective), read(use)));
    std::uint64_t ordinal = 0;
    for (const Use& use : trace.uses_of(op)) {
      if (use.access == Access::read) continue;
      std::uint64_t& made = content[{use.storage, use.version}];
      made = moves ? last_read : one_by_one ? parts[ordinal] : mix(hash, ordinal + 1);
      ++ordinal;
    }
  }
  return hashes;
}

}  // namespace memwall
