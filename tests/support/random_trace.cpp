#include "tests/support/random_trace.h"

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "sim/trace/trace_builder.h"

namespace memwall {
namespace {

class Author {
 public:
  explicit Author(std::uint64_t seed) : random_(seed) {}

  Trace write(std::size_t ops) {
    describe();
    builder_.trace().steps.push_back({"step 0", 0, 0});
    Op start;
    start.kind = OpKind::mark;
    append(start, {});
    while (builder_.trace().ops.size() < ops) one();
    Trace trace = std::move(builder_).finish();
    trace.steps[0].last = static_cast<OpId>(trace.ops.size());
    return trace;
  }

 private:
  // Not std::uniform_int_distribution: its numbers differ between standard libraries.
  std::uint64_t below(std::uint64_t n) { return random_() % n; }
  bool chance(std::uint64_t percent) { return below(100) < percent; }
  Duration time(std::uint64_t nanoseconds_below) {
    return Duration(static_cast<std::int64_t>(below(nanoseconds_below * 1000)));
  }
  template <class E>
  E any(E largest) {
    return static_cast<E>(below(static_cast<std::uint64_t>(largest) + 1));
  }
  std::string word(const char* stem) { return std::string(stem) + std::to_string(below(40)); }

  void describe() {
    Trace& t = builder_.trace();
    t.name = word("trace ");
    t.machine = chance(50) ? "h100-sxm-80gb" : "";
    for (std::uint64_t i = 0; i <= below(3); ++i) builder_.add_thread("thread " + std::to_string(i));
    for (std::uint64_t i = 0; i <= below(4); ++i)
      builder_.add_stream("stream " + std::to_string(7 + i), any(StreamRole::storage),
                          static_cast<std::uint16_t>(below(3)));
    for (const char* place : {"hbm", "host", "nvme"}) t.place(place);
    for (Duration& d : t.constants.launch_latency) d = time(9000) - nanoseconds(3000);
    for (auto& row : t.constants.stream_gap)
      for (Duration& d : row) d = time(2000);
    t.constants.graph_gap = time(900);
    t.constants.event_latency = time(4000);
    t.constants.launch_queue_depth = static_cast<std::uint32_t>(below(2000));
    t.knowledge = {chance(50), true, chance(50), chance(50), chance(50)};
    t.ranks = static_cast<std::uint32_t>(1 + below(64));
    t.samples_per_step = static_cast<double>(below(1000)) / 3;
    t.tokens_per_step = static_cast<double>(below(1'000'000)) / 7;
    t.untracked_bytes = static_cast<Bytes>(below(1u << 30));
    t.reserved_at_start = static_cast<Bytes>(below(1u << 30));
    t.reuse_distance = t.reserved_at_start / 3;
    t.notes = {word("note "), "a line with \"quotes\", \t and \xc3\xa9", ""};
    for (std::uint64_t i = 0; i <= below(5); ++i) live_.push_back(storage(true));
  }

  ShapeId shape() {
    Shape extents;
    for (std::uint64_t rank = below(6); rank > 0; --rank) extents.push_back(static_cast<std::int64_t>(below(9)));
    return builder_.trace().shapes.intern(extents);
  }

  StorageId storage(bool preexisting) {
    const StorageId id =
        builder_.add_storage(static_cast<Bytes>(below(1ull << 34)), any(StorageKind::communication_buffer),
                             chance(80) ? "hbm" : "host", word("storage "), preexisting);
    Storage& s = builder_.trace().storages[id];
    s.shape = shape();
    s.stream = static_cast<std::uint16_t>(below(builder_.trace().streams.size()));
    s.pinned = chance(10);
    if (chance(20) && !builder_.trace().ops.empty())
      s.last_referenced = static_cast<OpId>(below(builder_.trace().ops.size()));
    return id;
  }

  void append(Op op, const std::vector<Use>& uses) {
    Trace& t = builder_.trace();
    op.phase = any(Phase::optimizer);
    op.origin = any(Origin::modelled);
    op.inferred = chance(10);
    op.added = chance(10);
    op.thread = static_cast<std::uint16_t>(below(t.threads.size()));
    op.name = t.strings.intern(word("void kernel<float, "));
    if (chance(70)) op.operator_name = t.strings.intern(word("aten::operator"));
    if (chance(50)) op.module = t.strings.intern(word("layers."));
    op.host_gap = time(20'000);
    op.host_cost = time(5'000);
    op.shape = shape();
    op.kernels = static_cast<std::uint16_t>(chance(80) ? 1 : 1 + below(65535));
    op.framework_calls = static_cast<std::uint16_t>(below(4));
    op.dispatch = any(Dispatch::compiled);
    op.operator_class = any(OperatorClass::memory);
    op.data_type = any(DataType::boolean);
    if (!t.ops.empty())
      op.source = chance(20) || op.phase == Phase::recompute ? static_cast<OpId>(below(t.ops.size())) : kNoOp;
    if (op.phase == Phase::recompute && op.source == kNoOp) op.phase = Phase::forward;
    builder_.append(op, uses);
  }

  void device_op(OpKind kind) {
    Op op;
    op.kind = kind;
    op.stream = static_cast<std::uint16_t>(below(builder_.trace().streams.size()));
    op.duration = time(3'000'000);
    op.bytes = static_cast<Bytes>(below(1ull << 32));
    op.flops = chance(60) ? static_cast<double>(below(1ull << 50)) * 1.1 : 0;
    op.waves = chance(60) ? static_cast<float>(below(1000)) / 7.0f : 0;
    op.graph_member = chance(5);
    op.placed = !op.graph_member && chance(2);
    if (kind == OpKind::collective) {
      op.collective = any(CollectiveKind::barrier);
      op.group = static_cast<std::uint16_t>(below(8));
    }
    if (kind == OpKind::copy || kind == OpKind::storage_io) {
      op.from = static_cast<std::uint8_t>(below(3));
      op.to = static_cast<std::uint8_t>(below(3));
      op.pageable = chance(30);
      op.wait_for = op.pageable ? WaitFor::own_op : WaitFor::nothing;
      if (op.pageable) op.return_delay = time(4000) - nanoseconds(2000);
    }
    append(op, some_uses());
  }

  std::vector<Use> some_uses() {
    std::vector<Use> uses;
    for (std::uint64_t i = below(4); i > 0 && !live_.empty(); --i) {
      const StorageId id = live_[below(live_.size())];
      const bool known = builder_.version(id) > 0 || builder_.trace().storages[id].preexisting;
      if (known && chance(60))
        uses.push_back({id, TraceBuilder::kLatest, Access::read});
      else
        uses.push_back({id, 0, Access::write});
    }
    for (Use& use : uses) {  // from what was drawn, so that traces stay what they were
      const auto same = [&](const Use& other) { return other.storage == use.storage; };
      use.saved = use.storage % 3 == 0 && std::count_if(uses.begin(), uses.end(), same) == 1;
    }
    return uses;
  }

  void one() {
    Op op;
    switch (below(12)) {
      case 0:
      case 1:
      case 2:
        return device_op(OpKind::kernel);
      case 3:
        return device_op(any(OpKind::storage_io));
      case 4:
      case 5:
        live_.push_back(storage(false));
        op.kind = OpKind::alloc;
        op.target = live_.back();
        break;
      case 6: {
        if (live_.empty()) return;
        const std::size_t i = below(live_.size());
        op.kind = OpKind::free;
        op.target = live_[i];
        live_.erase(live_.begin() + static_cast<std::ptrdiff_t>(i));
        break;
      }
      case 7:
        op.kind = OpKind::event_record;
        op.target = recorded_ = builder_.add_event();
        break;
      case 8:
        if (recorded_ == kNoOp) return;
        op.kind = chance(50) ? OpKind::event_wait : OpKind::synchronize;
        op.wait_for = op.kind == OpKind::synchronize ? WaitFor::event : WaitFor::nothing;
        op.target = recorded_;
        break;
      case 9:
        op.kind = OpKind::hand_over;
        op.target = static_cast<OpId>(below(builder_.trace().ops.size()));
        break;
      case 10:
        op.kind = OpKind::host_work;
        op.duration = time(100'000);
        break;
      default:
        op.kind = chance(50) ? OpKind::graph_launch : OpKind::mark;
    }
    append(op, {});
  }

  TraceBuilder builder_;
  std::mt19937_64 random_;
  std::vector<StorageId> live_;
  std::uint32_t recorded_ = kNoOp;
};

}  // namespace

Trace random_trace(std::uint64_t seed, std::size_t ops) { return Author(seed).write(ops); }

}  // namespace memwall
