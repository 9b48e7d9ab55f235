#include "validate/replay/schedule.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/error.h"
#include "sim/trace/derived_lives.h"
#include "sim/trace/trace_builder.h"
#include "sim/trace/trace_check.h"
#include "validate/replay/dataflow_waits.h"
#include "validate/replay/memset_targets.h"
#include "validate/replay/schedule_lines.h"

namespace memwall {
namespace {

constexpr Bytes kLargest = Bytes{1} << 50;

// What stands for a duration becomes zero; what describes the kernel that was captured, and not its work, is
// forgotten: another kernel will do that work.
Op without_times(Op op) {
  op.host_gap = op.host_cost = op.return_delay = op.duration = Duration{};
  op.waves = 0;
  op.origin = Origin::measured;
  op.inferred = false;
  return op;
}

std::string percent(double share) { return std::to_string(std::llround(share * 100)) + " %"; }

class Scheduler {
 public:
  Scheduler(const Trace& base, const ScheduleScale& scale, double collective_share)
      : base_(base),
        scale_(scale),
        collective_share_(collective_share),
        builder_(TraceBuilder::like(base)),
        t_(builder_.trace()),
        memset_targets_(base) {}

  Trace run() {
    for (const double factor : {scale_.bytes, scale_.flops})
      if (!(factor > 0) || !std::isfinite(factor))
        throw UsageError("A schedule cannot be scaled by " + std::to_string(factor) + "; expected a number above 0.");
    settle_constants();
    settle_storages();
    for (OpId id = 0; id < base_.ops.size(); ++id) {
      first_.push_back(static_cast<OpId>(t_.ops.size()));
      convert(id);
      last_.push_back(static_cast<OpId>(t_.ops.size() - 1));
    }
    renumber();
    add_notes();
    const std::vector<std::string> faults = check(t_, 1);
    const std::string fault = faults.empty() ? not_executable(t_) : faults.front();
    if (!fault.empty()) throw UsageError("Trace '" + base_.name + "' cannot be executed: " + fault);
    Trace schedule = std::move(builder_).finish();
    const auto is_inferred_edge = [](const Op& op) { return op.inferred && !is_derived_life(op); };
    if (std::any_of(base_.ops.begin(), base_.ops.end(), is_inferred_edge)) add_dataflow_waits(schedule);
    return schedule;
  }

 private:
  [[noreturn]] void refuse(OpId id, const std::string& why) const {
    const Op& op = base_.ops[id];
    throw UsageError("Trace '" + base_.name + "' cannot be executed: Op " + std::to_string(id) + " (" +
                     std::string(to_string(op.kind)) +
                     (op.name == 0 ? "" : " '" + excerpt(base_.strings[op.name]) + "'") + ") " + why);
  }

  Bytes scaled(Bytes bytes) const {
    if (bytes <= 0 || scale_.bytes == 1) return bytes;
    const double value = static_cast<double>(bytes) * scale_.bytes;
    if (value > static_cast<double>(kLargest))
      throw UsageError("Scaled by " + std::to_string(scale_.bytes) + ", a size of " + std::to_string(bytes) +
                       " bytes exceeds 2^50.");
    return std::max<Bytes>(1, std::llround(value));
  }

  bool is_host(std::uint8_t place) const { return t_.places[place] == "host"; }

  void settle_constants() {
    const std::uint32_t depth = t_.constants.launch_queue_depth;
    t_.constants = ReplayConstants{};
    t_.constants.event_latency = Duration{};
    t_.constants.launch_queue_depth = depth;
    t_.machine.clear();
    t_.knowledge.timing = false;
    t_.knowledge.allocations = true;  // nothing can be executed without; check() then asks for it
    t_.groups.clear();                // those of collectives come with them
    t_.reserved_at_start = scaled(t_.reserved_at_start);
    if (t_.ranks > 1) t_.notes.push_back("schedule: one of " + std::to_string(t_.ranks) + " folded ranks.");
  }

  void settle_storages() {
    for (Storage& s : t_.storages) s.bytes = scaled(s.bytes);
    if (base_.untracked_bytes > 0) {
      builder_.add_storage(scaled(base_.untracked_bytes), StorageKind::unknown, "hbm", "held before the window", true);
      t_.untracked_bytes = 0;
      t_.notes.push_back("schedule: the bytes held before the window are one storage.");
    }
    if (!base_.knowledge.allocations) live_throughout();
    // A capture says of copies, not of storages, whether host memory was page-locked.
    std::vector<bool> pageable(t_.storages.size(), false), copied(t_.storages.size(), false);
    for (const Op& op : base_.ops) {
      if (op.kind != OpKind::copy) continue;
      for (const Use& use : base_.uses_of(op)) {
        copied[use.storage] = true;
        if (op.pageable) pageable[use.storage] = true;
      }
    }
    for (StorageId id = 0; id < copied.size(); ++id)
      if (is_host(t_.storages[id].place) && copied[id] && !pageable[id]) t_.storages[id].pinned = true;
  }

  // Where a trace does not know when its storages are allocated.
  void live_throughout() {
    std::vector<bool> allocated(t_.storages.size(), false);
    for (const Op& op : base_.ops)
      if (op.kind == OpKind::alloc && op.target < allocated.size()) allocated[op.target] = true;
    for (StorageId id = 0; id < allocated.size(); ++id) {
      if (allocated[id] || t_.storages[id].preexisting) continue;
      t_.storages[id].preexisting = true;
      ++throughout_;
    }
  }

  std::uint16_t thread_of(const Op& op) {
    if (op.graph_member) return graph_thread_;
    return op.thread < t_.threads.size() ? op.thread : std::uint16_t{0};
  }

  void append(Op op, std::vector<Use> uses) {
    for (Use& use : uses) use.version = use.access == Access::read ? TraceBuilder::kLatest : 0;
    builder_.append(op, uses);
  }

  void convert(OpId id) {
    const Op& old = base_.ops[id];
    if (t_.threads.empty()) builder_.add_thread("host");
    Op op = without_times(old);
    op.thread = thread_of(old);
    if (old.graph_member) ++unrolled_;
    if (old.placed) ++placed_;
    op.graph_member = op.placed = false;
    const auto span = base_.uses_of(old);
    std::vector<Use> uses(span.begin(), span.end());
    switch (old.kind) {
      case OpKind::kernel:
        return kernel(id, op, uses);
      case OpKind::collective:
        return collective(id, op, uses);
      case OpKind::memset:
        return memset(id, op);
      case OpKind::copy:
      case OpKind::storage_io:
        return transfer(id, op, uses);
      case OpKind::host_work:
        return host_work(op, uses);
      case OpKind::graph_launch:
        graph_thread_ = op.thread;
        op.kind = OpKind::mark;
        break;
      default:
        break;
    }
    append(op, uses);
  }

  Bytes bytes_of(const std::vector<Use>& uses) const {
    Bytes sum = 0;
    for (const Use& use : uses) sum += t_.storages[use.storage].bytes;
    return sum;
  }

  void kernel(OpId id, Op op, const std::vector<Use>& uses) {
    op.bytes = scaled(op.bytes);
    op.flops *= scale_.flops;
    if (op.bytes == 0 && op.flops == 0) {
      op.bytes = bytes_of(uses);
      ++sized_by_storages_;
    }
    if (op.bytes == 0 && op.flops == 0)
      refuse(id,
             "has neither FLOPs nor bytes nor storages: there is nothing to execute; expected a trace that knows "
             "shapes or dataflow.");
    append(op, uses);
  }

  // Of how many ranks a collective is; 0 = nobody says.
  std::uint32_t ranks_of(const Op& op) const {
    const std::uint32_t known = op.group < base_.groups.size() ? base_.groups[op.group].ranks : 0;
    if (known > 0) return known;
    return base_.ranks > 1 ? base_.ranks : base_.job_ranks;
  }

  // How long other GPUs take cannot be found out on one: the time of the trace is given, alone of all times.
  void collective(OpId id, Op op, const std::vector<Use>& uses) {
    const std::uint32_t ranks = ranks_of(op);
    const double given = std::round(to_seconds(base_.ops[id].duration) * 1e9 * scale_.bytes);
    op.group = 0;
    if (ranks == 1 || (ranks == 0 && given < 1)) {
      op.kind = OpKind::kernel;  // over one rank it reads its input and writes its output
      op.bytes *= 2;
      op.operator_class = OperatorClass::memory;
      op.collective = CollectiveKind::none;
      op.target = kNoRendezvous;
      return kernel(id, op, uses);
    }
    if (given < 1)
      refuse(id, "is a collective of " + std::to_string(ranks) +
                     " ranks of which the trace does not know how long it takes; one GPU cannot find that out. "
                     "Expected a trace with times.");
    op.bytes = scaled(op.bytes);
    op.flops = 0;
    op.duration = nanoseconds(static_cast<std::int64_t>(given));
    op.waves = static_cast<float>(collective_share_);
    op.target = kNoRendezvous;
    const auto known = std::find_if(t_.groups.begin(), t_.groups.end(),
                                    [&](const ProcessGroup& group) { return group.ranks == ranks; });
    op.group = static_cast<std::uint16_t>(known - t_.groups.begin());
    if (known == t_.groups.end()) {
      t_.groups.push_back({"", ranks, {}});
      stood_in_.push_back(0);
    }
    ++stood_in_[op.group];
    append(op, uses);
  }

  // A storage for the side of an op that the trace does not name. What is read there is never written and what
  // is written never read, so one per place does.
  StorageId unnamed(std::uint8_t place, Access access, bool pinned, Bytes bytes) {
    const auto [entry, is_new] = unnamed_.try_emplace({place, access == Access::read, pinned}, kNoStorage);
    if (is_new) {
      entry->second =
          builder_.add_storage(bytes, StorageKind::unknown, t_.places[place],
                               access == Access::read ? "source of copies" : "target of copies and memsets", true);
      t_.storages[entry->second].pinned = pinned && is_host(place);
    }
    Storage& storage = t_.storages[entry->second];
    storage.bytes = std::max(storage.bytes, bytes);
    return entry->second;
  }

  void memset(OpId id, Op op) {
    MemsetTarget target = memset_targets_.of(id);
    if (base_.ops[id].use_count > 1) ++narrowed_;
    op.bytes = scaled(op.bytes);
    if (op.bytes == 0 && target.storage != kNoStorage) op.bytes = t_.storages[target.storage].bytes;
    if (op.bytes > 0 && target.storage == kNoStorage) {
      ++completed_;
      target.storage = unnamed(t_.place("hbm"), Access::write, false, op.bytes);
    }
    leave_out_if_empty(op);
    if (op.kind == OpKind::mark)
      append(op, {});
    else
      append(op, {{target.storage, 0, Access::write}});
    if (target.unknown.empty()) return;
    op.kind = OpKind::mark;
    op.wait_for = WaitFor::nothing;
    op.bytes = 0;
    std::vector<Use> unknown;
    for (const StorageId storage : target.unknown) unknown.push_back({storage, 0, Access::write});
    append(op, unknown);
  }

  // An op of 0 bytes moves nothing.
  static void leave_out_if_empty(Op& op) {
    if (op.bytes > 0) return;
    op.kind = OpKind::mark;
    op.wait_for = WaitFor::nothing;
  }

  void transfer(OpId id, Op op, std::vector<Use> uses) {
    const Bytes bytes = op.bytes;
    op.bytes = scaled(op.bytes);
    leave_out_if_empty(op);
    if (op.kind == OpKind::mark) return append(op, uses);
    std::vector<Use> reads, writes;
    for (const Use& use : uses) (use.access == Access::read ? reads : writes).push_back(use);
    if (reads.empty() || writes.empty()) ++completed_;
    if (reads.empty()) reads.push_back({unnamed(op.from, Access::read, !op.pageable, op.bytes), 0, Access::read});
    if (writes.empty()) writes.push_back({unnamed(op.to, Access::write, !op.pageable, op.bytes), 0, Access::write});
    if (reads.size() > 1 && writes.size() > 1)
      refuse(id, "moves " + std::to_string(reads.size()) + " storages into " + std::to_string(writes.size()) +
                     "; expected one of them on one side.");
    const std::vector<Use>& many = reads.size() > 1 ? reads : writes;
    if (many.size() > 1) {
      Bytes sum = 0;
      for (const Use& use : many) sum += base_.storages[use.storage].bytes;
      if (sum != bytes)
        refuse(id, "moves " + std::to_string(bytes) + " bytes of storages that have " + std::to_string(sum) + ".");
      ++split_;
    }
    const WaitFor wait_for = op.wait_for;
    for (std::size_t i = 0; i < many.size(); ++i) {
      const Use read = reads[reads.size() > 1 ? i : 0], write = writes[writes.size() > 1 ? i : 0];
      if (many.size() > 1) op.bytes = t_.storages[many[i].storage].bytes;
      op.wait_for = i + 1 == many.size() ? wait_for : WaitFor::nothing;
      op.pageable = false;
      for (const Use& use : {read, write})
        if (op.kind == OpKind::copy && is_host(t_.storages[use.storage].place))
          op.pageable = !t_.storages[use.storage].pinned;
      append(op, {read, write});
    }
  }

  // A capture's calls to the driver are host work of no bytes: time, of which a schedule has none.
  void host_work(Op op, const std::vector<Use>& uses) {
    op.bytes = scaled(op.bytes);
    if (op.bytes == 0) op.bytes = bytes_of(uses);
    if (op.bytes == 0) {
      op.kind = op.wait_for == WaitFor::nothing ? OpKind::mark : OpKind::synchronize;
      ++left_out_;
    }
    append(op, uses);
  }

  void renumber() {
    for (Op& op : t_.ops) {
      if (op.kind == OpKind::hand_over && op.target < last_.size()) op.target = last_[op.target];
      if (op.source != kNoOp && op.source < first_.size()) op.source = first_[op.source];
    }
    const auto moved = [&](OpId id) { return id < first_.size() ? first_[id] : static_cast<OpId>(t_.ops.size()); };
    t_.steps = base_.steps;
    for (Step& step : t_.steps) {
      step.first = moved(step.first);
      step.last = moved(step.last);
    }
    t_.ranks = 1;
  }

  void add_notes() {
    const auto note = [&](std::size_t count, const std::string& what) {
      if (count > 0) t_.notes.push_back("schedule: " + std::to_string(count) + " " + what);
    };
    note(unrolled_, "nodes of CUDA graphs are launched one by one.");
    note(placed_, "ops that ran when the window began are launched where they stand.");
    note(sized_by_storages_, "kernels of unknown FLOPs and bytes touch each of their storages once.");
    note(narrowed_,
         "memsets carry the storages of their operator: each writes the one of its size, or memory that the trace does "
         "not name.");
    note(throughout_, "storages live throughout, as the trace does not know when they are allocated.");
    note(completed_, "copies or memsets whose storages the trace does not name got one.");
    note(split_, "transfers of several storages are one op for each.");
    note(left_out_, "pieces of host work of unknown bytes are left out.");
    for (std::size_t i = 0; i < stood_in_.size(); ++i)
      note(stood_in_[i], stand_in_sentence(t_.groups[i].ranks, collective_share_));
    if (scale_.bytes != 1 || scale_.flops != 1)
      t_.notes.push_back("schedule: bytes scaled by " + std::to_string(scale_.bytes) + ", FLOPs by " +
                         std::to_string(scale_.flops) + ".");
  }

  static std::string stand_in_sentence(std::uint32_t ranks, double share) {
    return "collectives of " + (ranks == 0 ? "an unknown number of" : std::to_string(ranks)) +
           " ranks are stood in for: on one GPU each is a kernel that lasts as long as in the trace" +
           (share > 0 ? ", on " + percent(share) + " of the multiprocessors" : "") +
           "; nothing crosses a link between GPUs.";
  }

  const Trace& base_;
  const ScheduleScale scale_;
  const double collective_share_;
  TraceBuilder builder_;
  Trace& t_;
  MemsetTargets memset_targets_;
  std::vector<OpId> first_, last_;  // of an op of the base: where it stands now
  std::map<std::tuple<std::uint8_t, bool, bool>, StorageId> unnamed_;
  std::uint16_t graph_thread_ = 0;
  std::size_t unrolled_ = 0, placed_ = 0, sized_by_storages_ = 0, completed_ = 0, split_ = 0, left_out_ = 0,
              narrowed_ = 0, throughout_ = 0;
  std::vector<std::size_t> stood_in_;  // collectives, by group
};

}  // namespace

Trace schedule_of(const Trace& trace, const ScheduleScale& scale, double collective_share) {
  return Scheduler(trace, scale, collective_share).run();
}

bool is_timeless(const Trace& trace) {
  const ReplayConstants& c = trace.constants;
  bool timeless = c.graph_gap == Duration{} && c.event_latency == Duration{};
  for (int i = 0; i < kLaunchKinds; ++i) {
    timeless = timeless && c.launch_latency[i] == Duration{};
    for (const Duration gap : c.stream_gap[i]) timeless = timeless && gap == Duration{};
  }
  return timeless && std::all_of(trace.ops.begin(), trace.ops.end(), [](const Op& op) {
           return op.host_gap == Duration{} && op.host_cost == Duration{} && op.return_delay == Duration{} &&
                  (op.duration == Duration{} || op.kind == OpKind::collective);
         });
}

}  // namespace memwall
