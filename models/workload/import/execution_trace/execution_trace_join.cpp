#include "models/workload/import/execution_trace/execution_trace_join.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "models/workload/import/execution_trace/autograd_nodes.h"
#include "models/workload/import/execution_trace/derived_dataflow.h"
#include "models/workload/import/execution_trace/operator_cost.h"
#include "models/workload/import/execution_trace/same_run.h"
#include "models/workload/import/execution_trace/storage_kinds.h"
#include "models/workload/import/execution_trace/stream_waits.h"
#include "models/workload/import/timed/kernel_properties.h"
#include "sim/error.h"
#include "sim/human_text.h"
#include "sim/trace/trace_check.h"

namespace memwall {
namespace {

std::string describe_threads(const TimedCapture& capture, const OperatorMatch& match) {
  std::string text;
  for (const ThreadMatch& t : match.threads)
    text += fmt::format("{}thread {} of the ExecutionTrace with thread {} of the capture: {} of {} (of {} captured)",
                        text.empty() ? "" : ", ", t.node_thread, capture.threads[t.captured_thread].id, t.matched,
                        t.nodes, t.operators);
  return text.empty() ? "no two threads have an operator name in common" : text;
}

void require_match(const TimedCapture& capture, const ExecutionTrace& execution, const OperatorMatch& match) {
  if (match.nodes == 0)
    throw InputError(fmt::format("{}: lists no operators; expected those of the run in {}.", execution.path.string(),
                                 capture.path.string()));
  if (match.share() < kLeastJoined)
    throw InputError(
        fmt::format("{}: {} of {} operators ({:.1f} %) have a partner of the same name in host order in {}; "
                    "expected at least {:.0f} %, so the two files are not of the same run ({}).",
                    execution.path.string(), match.matched, match.nodes, 100 * match.share(), capture.path.string(),
                    100 * kLeastJoined, describe_threads(capture, match)));
}

constexpr bool is_product(OperatorClass of) {
  return of == OperatorClass::gemm || of == OperatorClass::convolution || of == OperatorClass::attention;
}

// FLOPs, bytes and data type of every kernel, from the operator it was run for. Of a product whose other kernels
// compute, one that changes a layout is a copy, as in RecordedShapes.
double add_costs(Trace& trace, const ExecutionTrace& execution, const std::vector<std::uint32_t>& node_of_op) {
  struct Share {
    Duration duration{}, computing{};  // of all its kernels; of those that do more than move data
    std::uint32_t kernels = 0;
    bool is_product = false;
    bool in_tf32 = false;  // as the name of one of its kernels says
  };
  std::vector<Share> shares(execution.nodes.size());
  for (OpId id = 0; id < trace.ops.size(); ++id) {
    if (trace.ops[id].kind != OpKind::kernel || node_of_op[id] == kNoIndex) continue;
    Share& all = shares[node_of_op[id]];
    const std::string& name = trace.strings[trace.ops[id].name];
    all.duration += trace.ops[id].duration;
    if (!only_moves_data(name)) all.computing += trace.ops[id].duration;
    ++all.kernels;
    all.is_product |= is_product(trace.ops[id].operator_class);
    all.in_tf32 |= is_in_tf32(name);
  }
  double flops = 0;
  for (OpId id = 0; id < trace.ops.size(); ++id) {
    Op& op = trace.ops[id];
    if (op.kind != OpKind::kernel || node_of_op[id] == kNoIndex) continue;
    const Share& all = shares[node_of_op[id]];
    const OperatorCost cost = cost_of(execution, execution.nodes[node_of_op[id]]);
    const double share =
        all.duration.count() > 0 ? to_seconds(op.duration) / to_seconds(all.duration) : 1.0 / all.kernels;
    op.bytes = static_cast<Bytes>(static_cast<double>(cost.bytes) * share);
    const bool tells_copies = all.is_product && all.computing.count() > 0;
    if (tells_copies && only_moves_data(trace.strings[op.name])) {
      op.operator_class = OperatorClass::memory;
      op.data_type = cost.data_type;
      op.flops = 0;
      continue;
    }
    op.flops = cost.flops * (tells_copies ? to_seconds(op.duration) / to_seconds(all.computing) : share);
    op.data_type = all.in_tf32 && cost.data_type == DataType::fp32 ? DataType::tf32 : cost.data_type;
    flops += op.flops;
  }
  return flops;
}

void add_notes(ImportedTrace& imported, const TimedCapture& capture, const ExecutionTrace& execution,
               const JoinReport& r) {
  Trace& trace = imported.trace;
  const auto note = [&](std::string line, NoteKind kind = NoteKind::counted) {
    if (kind != NoteKind::counted) imported.note_kinds.insert_or_assign(line, kind);
    trace.notes.push_back(std::move(line));
  };
  note(fmt::format("ExecutionTrace {}: {} of {} operators joined by name and host order; {}.",
                   execution.path.filename().string(), r.operators.matched, r.operators.nodes,
                   describe_threads(capture, r.operators)));
  if (trace.knowledge.allocations)
    note(
        fmt::format("Storages: {} of {} made in the window claim an allocation ({:.3f} % of {:.3f} GB); {} of {} "
                    "allocations are workspace; {} older ones identified ({:.3f} GB, {} of them freed in the window).",
                    r.storages.claimed, r.storages.births, 100 * r.claimed_share,
                    static_cast<double>(r.storages.birth_bytes) * 1e-9, r.storages.workspaces, r.storages.allocations,
                    r.storages.preexisting, static_cast<double>(r.storages.preexisting_bytes) * 1e-9,
                    r.storages.preexisting_matched));
  else
    note(fmt::format("Storages: {} made in the window, {} older; the capture has no memory events, so lifetimes are "
                     "not recorded.",
                     r.storages.births, r.storages.preexisting),
         NoteKind::missing);
  if (r.storages.overdrawn_bytes > 0)
    note(fmt::format("Storages older than the window are {} more than the capture says were allocated.",
                     human_bytes(r.storages.overdrawn_bytes)),
         NoteKind::missing);
  note(fmt::format(
           "Dataflow: {} of {} device ops belong to a joined operator, {} read or write a storage ({} reads, {} "
           "writes; of operators with several kernels the order is assumed).",
           r.dataflow.with_operator, r.dataflow.device_ops, r.dataflow.with_uses, r.dataflow.reads, r.dataflow.writes),
       NoteKind::assumed);
  if (r.dataflow.left_out_dead + r.dataflow.left_out_unwritten > 0)
    note(fmt::format("Left out: {} uses of storages that the capture has freed by then, {} reads of storages that no "
                     "recorded op wrote.",
                     r.dataflow.left_out_dead, r.dataflow.left_out_unwritten),
         NoteKind::missing);
}

std::string few_covered(const JoinReport& r) {
  const double times = r.covered_share > 0 ? std::round(1 / r.covered_share) : 0;
  return fmt::format("The ExecutionTrace covers {:.1f} % of the device ops; dataflow and shapes count as unknown.{}",
                     100 * r.covered_share,
                     times >= 2 ? fmt::format(" That is about one of {:.0f} iterations, if it holds whole ones.", times)
                                : std::string());
}

}  // namespace

JoinReport join_execution_trace(ImportedTrace& imported, const TimedCapture& capture, const ExecutionTrace& execution) {
  JoinReport report;
  report.captured_operators = capture.operators.size();
  report.operators = match_operators(capture, execution);
  require_match(capture, execution, report.operators);
  require_same_run(capture, execution, report.operators);
  Trace& trace = imported.trace;
  report.storages = join_storages(imported, capture, execution, report.operators);
  if (report.storages.birth_bytes > 0)
    report.claimed_share =
        static_cast<double>(report.storages.claimed_bytes) / static_cast<double>(report.storages.birth_bytes);
  std::vector<std::uint32_t> node_of_op;
  report.dataflow = join_dataflow(imported, capture, execution, report.operators, report.storages, node_of_op);
  classify_storages(imported, capture, execution, report.operators, report.storages);
  report.flops = add_costs(trace, execution, node_of_op);
  if (report.dataflow.device_ops > 0)
    report.covered_share =
        static_cast<double>(report.dataflow.with_operator) / static_cast<double>(report.dataflow.device_ops);
  add_notes(imported, capture, execution, report);
  if (report.covered_share >= kLeastJoined) {
    trace.knowledge.dataflow = trace.knowledge.shapes = true;
    report.saved = mark_saved_tensors(trace, autograd_nodes(imported, capture, &execution, &report.operators));
    if (!trace.knowledge.allocations) {
      report.lives =
          derive_lifetimes(imported, capture, execution, report.operators, report.storages, waits_of(imported.trace));
      trace.notes.push_back(lifetimes_sentence(report.lives));
      imported.note_kinds.insert_or_assign(trace.notes.back(), NoteKind::assumed);
    }
  } else {
    trace.notes.push_back(few_covered(report));
    imported.note_kinds.insert_or_assign(trace.notes.back(), NoteKind::missing);
  }
  require_sound(trace, execution.path.string() + " joined to " + capture.path.string());
  return report;
}

std::vector<Decision> join_decisions(const JoinReport& r) {
  std::vector<Decision> all{
      {"ExecutionTrace: operators joined", "By name and host order, thread by thread.", r.operators.matched,
       r.operators.nodes},
      {"ExecutionTrace: storages that claim an allocation",
       "The storage that an operator first returns is the allocation inside it, by size rounded up to 512.",
       r.storages.claimed, r.storages.births},
      {"ExecutionTrace: allocations that are workspace", "No storage claims them.", r.storages.workspaces,
       r.storages.allocations},
      {"ExecutionTrace: device ops with an operator", "Their uses are those of the operator around their launch.",
       r.dataflow.with_operator, r.dataflow.device_ops},
      {"ExecutionTrace: device ops with uses",
       fmt::format("{} reads, {} writes; of operators with several kernels the order is assumed.", r.dataflow.reads,
                   r.dataflow.writes),
       r.dataflow.with_uses, r.dataflow.device_ops}};
  if (r.saved.nodes > 0) all.push_back(saved_decision(r.saved));
  if (r.lives.made > 0)
    all.push_back({"ExecutionTrace: lifetimes derived", lifetimes_sentence(r.lives), r.lives.freed, r.lives.made});
  const std::uint64_t left_out = r.dataflow.left_out_dead + r.dataflow.left_out_unwritten;
  if (left_out > 0)
    all.push_back({"ExecutionTrace: uses left out", "Of storages that are freed by then, or that no recorded op wrote.",
                   left_out, left_out + r.dataflow.reads + r.dataflow.writes});
  return all;
}

}  // namespace memwall
