#include "traces/run/run_check.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/rank_machine.h"

namespace memwall {
namespace {

constexpr std::size_t kMostRanks = 65536;  // as many as a thread's and a stream's number can name

class Check {
 public:
  Check(const Run& run, const ReadContext& context) : run_(run), trace_(run.trace), context_(context) {}

  void all() {
    lengths();
    machine();
    storages_and_uses();
    ops();
    spans();
    rest_of_trace();
    ranks();
    results();
    series();
  }

 private:
  // `value` is below `bound`, or it is the number that means "none".
  void below(std::uint64_t value, std::uint64_t bound, const char* place, std::size_t row) {
    if (value >= bound)
      context_.refuse(fmt::format("'{}', row {}: found {}, expected a number below {}.", place, row, value, bound));
  }
  void below_or_none(std::uint32_t value, std::uint64_t bound, const char* place, std::size_t row) {
    if (value != kNoOp) below(value, bound, place, row);
  }
  void within_run(Time begin, Time end, const char* place, std::size_t row) {
    if (begin < Time{} || end < begin || end > run_.result.end)
      context_.refuse(fmt::format("'{}', row {}: {} to {} ps is not within the run, which ends at {} ps.", place, row,
                                  begin.count(), end.count(), run_.result.end.count()));
  }
  void same(std::size_t found, std::size_t expected, const char* place) {
    if (found != expected) context_.refuse(fmt::format("'{}' has {} rows, expected {}.", place, found, expected));
  }

  void lengths() {
    same(run_.result.records.size(), trace_.ops.size(), "/spans");
    same(run_.result.tiers.size(), run_.machine.tiers.size(), "/tier_results");
    same(run_.result.links.size(), run_.machine.links.size(), "/link_results");
    same(run_.result.steps.size(), trace_.steps.size(), "/step_results");
    if (run_.result.end < Time{} || run_.result.end == kNever)
      context_.refuse(fmt::format("'/run/end_ps' is {}, which is no time.", run_.result.end.count()));
  }

  void machine() {
    const Machine& m = run_.machine;
    const std::size_t links = m.links.size();
    if (links > 0) {
      below(m.hbm_link, links, "/machine/hbm_link", 0);
      below(m.dram_link, links, "/machine/dram_link", 0);
    }
    for (std::size_t i = 0; i < m.routes.size(); ++i) {
      below(m.routes[i].from, m.tiers.size(), "/machine/routes/from", i);
      below(m.routes[i].to, m.tiers.size(), "/machine/routes/to", i);
      below(m.routes[i].engine, kEngines, "/machine/routes/engine", i);
      for (const std::uint16_t link : m.routes[i].links) below(link, links, "/machine/route_links/link", i);
    }
    for (std::size_t i = 0; i < m.fabrics.size(); ++i)
      for (const std::uint16_t link : m.fabrics[i].links) below(link, links, "/machine/fabric_links/link", i);
  }

  void storages_and_uses() {
    for (std::size_t i = 0; i < trace_.storages.size(); ++i) {
      const Storage& s = trace_.storages[i];
      below(s.place, trace_.places.size(), "/storages/place", i);
      below(s.label, trace_.strings.size(), "/storages/label", i);
      if (s.bytes < 0)
        context_.refuse(fmt::format("'/storages/bytes', row {}: found {}, a negative size.", i, s.bytes));
    }
    for (std::size_t i = 0; i < trace_.uses.size(); ++i)
      below(trace_.uses[i].storage, trace_.storages.size(), "/uses/storage", i);
  }

  std::uint64_t target_bound(OpKind kind) const {
    switch (kind) {
      case OpKind::alloc:
      case OpKind::free:
        return trace_.storages.size();
      case OpKind::event_record:
      case OpKind::event_wait:
        return trace_.event_count;
      case OpKind::hand_over:
        return trace_.ops.size();
      default:
        return 0;
    }
  }

  void ops() {
    for (std::size_t i = 0; i < trace_.ops.size(); ++i) {
      const Op& op = trace_.ops[i];
      below(op.thread, trace_.threads.size(), "/ops/thread", i);
      const bool uses_stream = runs_on_device(op.kind) || op.kind == OpKind::event_record ||
                               op.kind == OpKind::event_wait || op.wait_for == WaitFor::stream;
      if (uses_stream || op.placed) below(op.stream, trace_.streams.size(), "/ops/stream", i);
      below(op.name, trace_.strings.size(), "/ops/name", i);
      below(op.operator_name, trace_.strings.size(), "/ops/operator", i);
      below(op.module, trace_.strings.size(), "/ops/module", i);
      below_or_none(op.source, trace_.ops.size(), "/ops/source", i);
      below(std::uint64_t{op.first_use} + op.use_count, trace_.uses.size() + 1, "/ops/first_use", i);
      if (const std::uint64_t bound = target_bound(op.kind);
          bound > 0 || op.kind == OpKind::alloc || op.kind == OpKind::free)
        below(op.target, bound, "/ops/target", i);
      else if (op.wait_for == WaitFor::event || op.kind == OpKind::event_record || op.kind == OpKind::event_wait)
        below(op.target, trace_.event_count, "/ops/target", i);
      if (op.kind != OpKind::copy && op.kind != OpKind::storage_io) continue;
      below(op.from, trace_.places.size(), "/ops/from", i);
      below(op.to, trace_.places.size(), "/ops/to", i);
    }
  }

  void spans() {
    for (std::size_t i = 0; i < run_.result.records.size(); ++i) {
      const OpRecord& r = run_.result.records[i];
      if (r.host_start == kNever)
        context_.refuse(fmt::format("'/spans/call_begin_ps', row {}: the op never began.", i));
      within_run(r.host_start, r.host_end, "/spans/call_begin_ps", i);
      if (r.start != kNever) {
        within_run(r.start, r.end, "/spans/begin_ps", i);
        below(trace_.ops[i].stream, trace_.streams.size(), "/ops/stream", i);
      }
      below_or_none(r.host_cause, trace_.ops.size(), "/spans/call_cause", i);
      below_or_none(r.device_cause, trace_.ops.size(), "/spans/cause", i);
      below_or_none(r.host_end_cause, trace_.ops.size(), "/spans/return_cause", i);
    }
  }

  void rest_of_trace() {
    for (std::size_t i = 0; i < trace_.steps.size(); ++i) {
      below(trace_.steps[i].first, trace_.ops.size() + 1, "/steps/first", i);
      below(trace_.steps[i].last, trace_.ops.size() + 1, "/steps/last", i);
    }
  }

  // The machine is the one that the ranks' table makes of the first rank's.
  void ranks() {
    if (trace_.rank_table.empty()) return;
    for (std::size_t i = 1; i < trace_.rank_table.size(); ++i)
      if (trace_.rank_table[i].number <= trace_.rank_table[i - 1].number)
        context_.refuse(fmt::format("'/ranks/number', row {}: found {}, expected ascending numbers.", i,
                                    trace_.rank_table[i].number));
    if (trace_.rank_table.size() > kMostRanks)
      context_.refuse(fmt::format("it has {} ranks; expected at most {}.", trace_.rank_table.size(), kMostRanks));
    const auto named_alike = [](const auto& a, const auto& b) {
      return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                        [](const auto& x, const auto& y) { return x.name == y.name; });
    };
    const Machine expected = machine_of_ranks(run_.machine, trace_).machine;
    if (!named_alike(expected.tiers, run_.machine.tiers) || !named_alike(expected.links, run_.machine.links))
      context_.refuse("the tiers and links of its machine are not those of its ranks.");
    for (std::size_t i = 0; i < run_.result.records.size(); ++i) {
      const OpRecord& record = run_.result.records[i];
      if (record.peer == kNoOp) continue;
      const OpRecord& peer = run_.result.records[record.peer];
      if (record.start == kNever || peer.start == kNever || peer.start < record.start || peer.start > record.end)
        context_.refuse(fmt::format("'/peers': op {} did not wait for op {}.", i, record.peer));
    }
  }

  void results() {
    const std::size_t tiers = run_.machine.tiers.size();
    for (std::size_t i = 0; i < run_.result.moves.size(); ++i) {
      const MoveRecord& move = run_.result.moves[i];
      below(move.storage, trace_.storages.size(), "/moves/storage", i);
      below(move.from, tiers, "/moves/from", i);
      below(move.to, tiers, "/moves/to", i);
      below_or_none(move.for_op, trace_.ops.size(), "/moves/for_op", i);
    }
    for (std::size_t t = 0; t < tiers; ++t)
      for (const StorageId s : run_.result.tiers[t].largest_at_peak)
        below(s, trace_.storages.size(), "/largest_at_peak", t);
  }

  void series() {
    for (std::size_t i = 0; i < run_.residency.size(); ++i) {
      const Residency& stay = run_.residency[i];
      below(stay.storage, trace_.storages.size(), "/residency/storage", i);
      below(stay.tier, run_.machine.tiers.size(), "/residency/tier", i);
      within_run(stay.begin, stay.end, "/residency/begin_ps", i);
    }
    for (std::size_t t = 0; t < run_.at_peak.size(); ++t)
      for (const std::uint32_t r : run_.at_peak[t]) below(r, run_.residency.size(), "/at_peak", t);
    for (const auto& points : run_.memory)
      for (std::size_t i = 0; i < points.size(); ++i) within_run(points[i].time, points[i].time, "/memory/time_ps", i);
    for (const auto& points : run_.link_rates)
      for (std::size_t i = 0; i < points.size(); ++i)
        within_run(points[i].time, points[i].time, "/link_rates/time_ps", i);
  }

  const Run& run_;
  const Trace& trace_;
  const ReadContext& context_;
};

}  // namespace

void require_consistent(const Run& run, const ReadContext& context) { Check(run, context).all(); }

}  // namespace memwall
