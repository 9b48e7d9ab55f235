#include "traces/run/file/run_check.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/error.h"
#include "sim/machine/rank_machine.h"
#include "sim/trace/ranks.h"

namespace memwall {
namespace {

constexpr std::size_t kMostRanks = 65536;  // as many as a thread's and a stream's number can name

std::uint64_t target_bound(const RunCounts& counts, std::uint32_t events, OpKind kind) {
  switch (kind) {
    case OpKind::alloc:
    case OpKind::free:
      return counts.storages;
    case OpKind::event_record:
    case OpKind::event_wait:
      return events;
    case OpKind::hand_over:
      return counts.ops;
    default:
      return 0;
  }
}

}  // namespace

void RunCheck::below(std::uint64_t value, std::uint64_t bound, const char* place, std::uint64_t row) const {
  if (value >= bound)
    context_.refuse(fmt::format("'{}', row {}: found {}, expected a number below {}.", place, row, value, bound));
}

void RunCheck::below_or_none(std::uint32_t value, std::uint64_t bound, const char* place, std::uint64_t row) const {
  if (value != kNoOp) below(value, bound, place, row);
}

void RunCheck::within_run(Time begin, Time end, const char* place, std::uint64_t row) const {
  if (begin < Time{} || end < begin || end > run_.result.end)
    context_.refuse(fmt::format("'{}', row {}: {} to {} ps is not within the run, which ends at {} ps.", place, row,
                                begin.count(), end.count(), run_.result.end.count()));
}

void RunCheck::same(std::uint64_t found, std::uint64_t expected, const char* place) const {
  if (found != expected) context_.refuse(fmt::format("'{}' has {} rows, expected {}.", place, found, expected));
}

void RunCheck::small_parts() const {
  same(run_.result.tiers.size(), run_.machine.tiers.size(), "/tier_results");
  same(run_.result.links.size(), run_.machine.links.size(), "/link_results");
  same(run_.result.steps.size(), run_.trace->steps.size(), "/step_results");
  if (run_.result.end < Time{} || run_.result.end == kNever)
    context_.refuse(fmt::format("'/run/end_ps' is {}, which is no time.", run_.result.end.count()));
  machine();
  for (std::size_t i = 0; i < run_.trace->steps.size(); ++i) {
    below(run_.trace->steps[i].first, counts_.ops + 1, "/steps/first", i);
    below(run_.trace->steps[i].last, counts_.ops + 1, "/steps/last", i);
  }
  ranks();
  for (std::size_t t = 0; t < run_.result.tiers.size(); ++t)
    for (const StorageId s : run_.result.tiers[t].largest_at_peak) below(s, counts_.storages, "/largest_at_peak", t);
}

void RunCheck::machine() const {
  const RankMachine& m = run_.machine;
  const std::size_t links = m.links.size();
  if (links > 0) {
    below(m.hbm_link, links, "/machine/hbm_link", 0);
    below(m.dram_link, links, "/machine/dram_link", 0);
  }
  if (!m.one.links.empty()) {
    below(m.one.hbm_link, m.one.links.size(), "/machine_of_one/links", 0);
    below(m.one.dram_link, m.one.links.size(), "/machine_of_one/links", 0);
  }
  for (std::size_t i = 0; i < m.routes.size(); ++i) {
    below(m.routes[i].from, m.tiers.size(), "/machine/routes/from", i);
    below(m.routes[i].to, m.tiers.size(), "/machine/routes/to", i);
    below(m.routes[i].engine, kEngines, "/machine/routes/engine", i);
    for (const std::uint16_t link : m.routes[i].links) below(link, links, "/machine/route_links/link", i);
    if (!m.routes[i].link_shares.empty())
      same(m.routes[i].link_shares.size(), m.routes[i].links.size(), "/machine/route_link_shares");
  }
  // -1 says that no link is crossed.
  for (const Machine* machine : {static_cast<const Machine*>(&m), &m.one})
    for (std::size_t i = 0; i < machine->tiers.size(); ++i) {
      const auto link = [&](std::int32_t index, const char* place) {
        below(static_cast<std::uint64_t>(std::int64_t{index} + 1), machine->links.size() + 1, place, i);
      };
      link(machine->tiers[i].memory_link, "/machine/tiers/memory_link");
      link(machine->tiers[i].write_link, "/machine/tiers/write_link");
    }
  for (std::size_t i = 0; i < m.fabrics.size(); ++i)
    for (const std::uint16_t link : m.fabrics[i].links) below(link, links, "/machine/fabric_links/link", i);
}

void RunCheck::ranks() const {
  const auto listed = [&](const auto& rows, const char* place) {
    for (std::size_t i = 0; i < rows.size(); ++i) below(rows[i].rank, rank_count(run_.trace), place, i);
  };
  listed(run_.trace->threads, "/threads/rank");
  listed(run_.trace->streams, "/streams/rank");
  for (std::size_t i = 1; i < run_.trace->rank_table.size(); ++i)
    if (run_.trace->rank_table[i].number <= run_.trace->rank_table[i - 1].number)
      context_.refuse(fmt::format("'/ranks/number', row {}: found {}, expected ascending numbers.", i,
                                  run_.trace->rank_table[i].number));
  if (run_.trace->rank_table.size() > kMostRanks)
    context_.refuse(fmt::format("it has {} ranks; expected at most {}.", run_.trace->rank_table.size(), kMostRanks));
}

void RunCheck::storage(const Storage& s, std::uint64_t row) const {
  below(s.place, run_.trace->places.size(), "/storages/place", row);
  below(s.label, counts_.strings, "/storages/label", row);
  if (s.bytes < 0) context_.refuse(fmt::format("'/storages/bytes', row {}: found {}, a negative size.", row, s.bytes));
}

void RunCheck::use(const Use& use, std::uint64_t row) const {
  below(use.storage, counts_.storages, "/uses/storage", row);
}

void RunCheck::drawn(const Op& op, std::uint64_t row) const {
  const Trace& trace = run_.trace;
  below(op.thread, trace.threads.size(), "/ops/thread", row);
  if (runs_on_device(op.kind) || op.placed) below(op.stream, trace.streams.size(), "/ops/stream", row);
  below(op.name, counts_.strings, "/ops/name", row);
  below(op.operator_name, counts_.strings, "/ops/operator", row);
  below(op.module, counts_.strings, "/ops/module", row);
  if (op.kind != OpKind::copy && op.kind != OpKind::storage_io) return;
  below(op.from, trace.places.size(), "/ops/from", row);
  below(op.to, trace.places.size(), "/ops/to", row);
}

void RunCheck::op(const Op& op, std::uint64_t row) const {
  drawn(op, row);
  if (op.kind == OpKind::event_record || op.kind == OpKind::event_wait || op.wait_for == WaitFor::stream)
    below(op.stream, run_.trace->streams.size(), "/ops/stream", row);
  below_or_none(op.source, counts_.ops, "/ops/source", row);
  below(std::uint64_t{op.first_use} + op.use_count, counts_.uses + 1, "/ops/first_use", row);
  if (const std::uint64_t bound = target_bound(counts_, run_.trace->event_count, op.kind);
      bound > 0 || op.kind == OpKind::alloc || op.kind == OpKind::free)
    below(op.target, bound, "/ops/target", row);
  else if (op.wait_for == WaitFor::event || op.kind == OpKind::event_record || op.kind == OpKind::event_wait)
    below(op.target, run_.trace->event_count, "/ops/target", row);
}

void RunCheck::drawn(const Op& op, const OpRecord& r, std::uint64_t row) const {
  if (r.host_start == kNever) context_.refuse(fmt::format("'/spans/call_begin_ps', row {}: the op never began.", row));
  within_run(r.host_start, r.host_end, "/spans/call_begin_ps", row);
  if (r.start == kNever) return;
  within_run(r.start, r.end, "/spans/begin_ps", row);
  below(op.stream, run_.trace->streams.size(), "/ops/stream", row);
}

void RunCheck::record(const Op& op, const OpRecord& r, std::uint64_t row) const {
  drawn(op, r, row);
  below_or_none(r.host_cause, counts_.ops, "/spans/call_cause", row);
  below_or_none(r.device_cause, counts_.ops, "/spans/cause", row);
  below_or_none(r.host_end_cause, counts_.ops, "/spans/return_cause", row);
}

void RunCheck::peer(const OpRecord& record, const OpRecord& peer, std::uint64_t row) const {
  if (record.start == kNever || peer.start == kNever || peer.start < record.start || peer.start > record.end)
    context_.refuse(fmt::format("'/peers': op {} did not wait for op {}.", row, record.peer));
}

void RunCheck::move(const MoveRecord& move, std::uint64_t row) const {
  below(move.storage, counts_.storages, "/moves/storage", row);
  below(move.from, run_.machine.tiers.size(), "/moves/from", row);
  below(move.to, run_.machine.tiers.size(), "/moves/to", row);
  below_or_none(move.for_op, counts_.ops, "/moves/for_op", row);
  within_run(move.start, move.end, "/moves/begin_ps", row);
}

void RunCheck::residency(const Residency& residency, std::uint64_t row) const {
  below(residency.storage, counts_.storages, "/residency/storage", row);
  below(residency.tier, run_.machine.tiers.size(), "/residency/tier", row);
  within_run(residency.begin, residency.end, "/residency/begin_ps", row);
}

void find_rank_views(Run& run, const ReadContext& context) {
  const auto named_alike = [](const auto& a, const auto& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [](const auto& x, const auto& y) { return x.name == y.name; });
  };
  try {
    RankMachine expected = machine_of_ranks(run.machine.one, run.trace);
    if (!named_alike(expected.tiers, run.machine.tiers) || !named_alike(expected.links, run.machine.links))
      context.refuse("the tiers and links of its machine are not those of its ranks.");
    run.machine.views = std::move(expected.views);
    run.machine.core_pools = std::move(expected.core_pools);
  } catch (const UsageError& error) {
    context.refuse(error.what());
  }
}

namespace {

template <class Rows, class Look>
void every(const Rows& rows, Look look) {
  for (std::size_t i = 0; i < rows.size(); ++i) look(rows[i], i);
}

void require_consistent_records(const Run& run, const RunCheck& check) {
  every(run.trace->ops, [&](const Op& op, std::size_t i) { check.op(op, i); });
  every(run.result.records, [&](const OpRecord& r, std::size_t i) {
    check.record(run.trace->ops[i], r, i);
    if (r.peer != kNoOp) check.peer(r, run.result.records[r.peer], i);
  });
  every(run.result.moves, [&](const MoveRecord& move, std::size_t i) { check.move(move, i); });
}

}  // namespace

void require_consistent_ops(const Run& run, const RunCounts& counts, const ReadContext& context) {
  const RunCheck check(run, counts, context);
  check.same(run.result.records.size(), run.trace->ops.size(), "/spans");
  check.small_parts();
  every(run.trace->storages, [&](const Storage& s, std::size_t i) { check.storage(s, i); });
  require_consistent_records(run, check);
}

void require_consistent(const Run& run, const ReadContext& context) {
  const Trace& trace = run.trace;
  const RunCheck check(
      run, {trace.ops.size(), trace.storages.size(), trace.uses.size(), trace.strings.size(), run.residency.size()},
      context);
  check.same(run.result.records.size(), trace.ops.size(), "/spans");
  check.small_parts();
  every(trace.storages, [&](const Storage& s, std::size_t i) { check.storage(s, i); });
  every(trace.uses, [&](const Use& use, std::size_t i) { check.use(use, i); });
  require_consistent_records(run, check);
  every(run.residency, [&](const Residency& residency, std::size_t i) { check.residency(residency, i); });
  for (std::size_t t = 0; t < run.at_peak.size(); ++t)
    for (const std::uint32_t r : run.at_peak[t]) check.below(r, run.residency.size(), "/at_peak", t);
  for (const auto& points : run.memory)
    every(points, [&](const MemoryPoint& p, std::size_t i) { check.within_run(p.time, p.time, "/memory/time_ps", i); });
  for (const auto& points : run.link_rates)
    every(points,
          [&](const RatePoint& p, std::size_t i) { check.within_run(p.time, p.time, "/link_rates/time_ps", i); });
}

}  // namespace memwall
