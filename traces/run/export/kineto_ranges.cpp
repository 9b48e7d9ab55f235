#include "traces/run/export/kineto_ranges.h"

#include <optional>
#include <set>

#include "sim/trace/ranks.h"
#include "traces/run/lane_names.h"

namespace memwall {
namespace {

class RangeFinder {
 public:
  RangeFinder(const Run& run, std::uint16_t rank) : run_(run), rank_(rank), threads_(run.trace->threads.size()) {}

  std::vector<HostRange> run() {
    const Trace& trace = run_.trace;
    for (OpId id = 0; id < trace.ops.size(); ++id) {
      const Op& op = trace.ops[id];
      if (has_call(op, run_.result.records[id]) && rank_of(trace, op) == rank_) see(op, run_.result.records[id]);
    }
    for (Thread& thread : threads_) close_all(thread);
    return std::move(ranges_);
  }

 private:
  struct Open {
    HostRange range;
    bool launches = false;  // work: it is shown though its calls cost nothing
  };
  struct Thread {
    std::optional<Open> phase, module, operation;
    std::set<StringId> kernels;  // launched in the operator
  };

  static std::optional<HostRange::Kind> kind_of(Phase phase) {
    switch (phase) {
      case Phase::backward:
      case Phase::recompute:
        return HostRange::Kind::backward;
      case Phase::optimizer:
        return HostRange::Kind::optimizer;
      default:
        return std::nullopt;
    }
  }

  void see(const Op& op, const OpRecord& record) {
    Thread& thread = threads_[op.thread];
    if (op.kind == OpKind::mark || op.kind == OpKind::hand_over) return close_all(thread);
    const std::optional<HostRange::Kind> phase = kind_of(op.phase);
    if (thread.phase.has_value() != phase.has_value() || (phase && thread.phase->range.kind != *phase))
      close_all(thread);
    if (thread.module && thread.module->range.name != op.module) close_module(thread);
    const bool comes_again = runs_on_device(op.kind) && thread.kernels.contains(op.name);
    if (thread.operation && (thread.operation->range.name != op.operator_name || comes_again)) close_operation(thread);
    const auto begin = [&](std::optional<Open>& open, HostRange::Kind kind, StringId name) {
      if (!open) open = Open{.range = {kind, name, op.thread, record.host_start, record.host_end}};
      open->range.end = record.host_end;
      open->launches = open->launches || runs_on_device(op.kind);
    };
    if (phase) begin(thread.phase, *phase, 0);
    if (op.module != 0) begin(thread.module, HostRange::Kind::module, op.module);
    if (op.operator_name != 0) begin(thread.operation, HostRange::Kind::operation, op.operator_name);
    if (runs_on_device(op.kind)) thread.kernels.insert(op.name);
  }

  void close(std::optional<Open>& open) {
    if (open && (open->launches || open->range.end > open->range.begin)) ranges_.push_back(open->range);
    open.reset();
  }
  void close_operation(Thread& thread) {
    close(thread.operation);
    thread.kernels.clear();
  }
  void close_module(Thread& thread) {
    close_operation(thread);
    close(thread.module);
  }
  void close_all(Thread& thread) {
    close_module(thread);
    close(thread.phase);
  }

  const Run& run_;
  std::uint16_t rank_;
  std::vector<Thread> threads_;
  std::vector<HostRange> ranges_;
};

}  // namespace

std::vector<HostRange> host_ranges(const Run& run, std::uint16_t rank) { return RangeFinder(run, rank).run(); }

}  // namespace memwall
