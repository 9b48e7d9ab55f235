#include "study/python/binding/run_tables.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/error.h"
#include "study/python/binding/step_tables.h"
#include "traces/run/lane_names.h"

namespace memwall {
namespace {

void require_series(const Run& run) {
  if (run.memory.empty())
    throw UsageError(
        "This run keeps nothing over time; expected one that was made with quick=False, or that was read from a file.");
}

// By name; of several ranks each further one has tiers and links of its own, "hbm rank 3".
template <class Parts>
std::size_t part_named(const Parts& parts, const std::string& name, const char* what) {
  std::vector<std::string> known;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].name == name) return i;
    known.push_back(parts[i].name);
  }
  throw UsageError(fmt::format("The {} \"{}\" is unknown; expected one of {}.{}", what, name, listed(known),
                               did_you_mean(name, known)));
}

void add_time(ArrowColumn& column, bool is_known, Time time) {
  is_known&& time != kNever ? column.add(to_microseconds(time)) : column.add_unknown();
}
void add_word(ArrowColumn& column, bool is_known, std::string_view word) {
  is_known ? column.add(word) : column.add_unknown();
}
void add_op(ArrowColumn& column, OpId op) {
  op != kNoOp ? column.add(static_cast<std::int64_t>(op)) : column.add_unknown();
}

// The columns of one op, in the order of kOpColumns.
class OpRows {
 public:
  explicit OpRows(const Run& run) : run_(run), trace_(run.trace) {
    columns_ = {integers("op"),
                texts("kind"),
                texts("name"),
                texts("operator"),
                texts("module"),
                texts("phase"),
                texts("origin"),
                texts("thread"),
                texts("stream"),
                numbers("host_start_us"),
                numbers("host_end_us"),
                numbers("device_start_us"),
                numbers("device_end_us"),
                texts("host_reason"),
                integers("host_cause"),
                texts("device_reason"),
                integers("device_cause"),
                texts("return_reason"),
                integers("return_cause"),
                integers("bytes"),
                numbers("flops"),
                texts("from"),
                texts("to"),
                integers("storage")};
  }

  void add(OpId id) {
    const Op& op = trace_.ops[id];
    const OpRecord& r = run_.result.records[id];
    ArrowColumn* column = columns_.data();
    const bool calls = !op.placed && !op.graph_member;
    const bool works = runs_on_device(op.kind);
    column++->add(static_cast<std::int64_t>(id));
    column++->add(to_string(op.kind));
    for (const StringId text : {op.name, op.operator_name, op.module}) column++->add(trace_.strings[text]);
    column++->add(to_string(op.phase));
    column++->add(to_string(op.origin));
    const bool has_thread = calls && op.thread < trace_.threads.size();
    add_word(*column++, has_thread, has_thread ? std::string_view(trace_.threads[op.thread].name) : "");
    const bool has_stream = works && op.stream < trace_.streams.size();
    add_word(*column++, has_stream, has_stream ? std::string_view(trace_.streams[op.stream].name) : "");
    add_time(*column++, calls, r.host_start);
    add_time(*column++, calls, r.host_end);
    add_time(*column++, works, r.start);
    add_time(*column++, works, r.end);
    add_word(*column++, calls, to_string(r.host_reason));
    add_op(*column++, r.host_cause);
    add_word(*column++, works, to_string(r.device_reason));
    add_op(*column++, r.device_cause);
    add_word(*column++, r.host_end_waited, to_string(r.host_end_reason));
    add_op(*column++, r.host_end_cause);
    add_size(column, op);
  }

  ColumnTable finish() { return {std::move(columns_)}; }

 private:
  void add_size(ArrowColumn* column, const Op& op) const {
    const bool copies = op.kind == OpKind::copy || op.kind == OpKind::storage_io;
    const bool lives = op.kind == OpKind::alloc || op.kind == OpKind::free;
    column++->add(static_cast<std::int64_t>(op.bytes));
    column++->add(op.flops);
    add_word(*column++, copies, copies ? std::string_view(trace_.places[op.from]) : "");
    add_word(*column++, copies, copies ? std::string_view(trace_.places[op.to]) : "");
    lives ? column->add(static_cast<std::int64_t>(op.target)) : column->add_unknown();
  }

  const Run& run_;
  const Trace& trace_;
  std::vector<ArrowColumn> columns_;
};

// What a storage is, in three columns.
void add_storage(const Trace& trace, StorageId id, ArrowColumn& bytes, ArrowColumn& kind, ArrowColumn& label) {
  const Storage& storage = trace.storages[id];
  bytes.add(static_cast<std::int64_t>(storage.bytes));
  kind.add(to_string(storage.kind));
  label.add(trace.strings[storage.label]);
}

}  // namespace

ColumnTable op_table(const Run& run) {
  OpRows rows(run);
  for (OpId id = 0; id < run.trace->ops.size(); ++id) rows.add(id);
  return rows.finish();
}

ColumnTable timeline_table(const Run& run) {
  const Trace& trace = run.trace;
  ArrowColumn lane = texts("lane"), kind = texts("kind"), op = integers("op"), name = texts("name"),
              phase = texts("phase"), begin = numbers("begin_s"), end = numbers("end_s");
  std::vector<std::string> threads, streams;
  for (const HostThread& thread : trace.threads) threads.push_back(thread_lane_name(trace, thread));
  const bool several = has_several_devices(trace);
  for (const Stream& stream : trace.streams) streams.push_back(stream_lane_name(trace, stream, several));
  for (OpId id = 0; id < trace.ops.size(); ++id) {
    const Op& o = trace.ops[id];
    const OpRecord& r = run.result.records[id];
    const auto add = [&](const std::string& in, const char* what, Time from, Time to) {
      lane.add(std::string_view(in));
      kind.add(std::string_view(what));
      op.add(static_cast<std::int64_t>(id));
      name.add(trace.strings[o.name != 0 ? o.name : o.operator_name]);
      phase.add(to_string(o.phase));
      begin.add(to_seconds(from));
      end.add(to_seconds(to));
    };
    if (has_call(o, r) && o.thread < threads.size()) add(threads[o.thread], "call", r.host_start, r.host_end);
    if (has_work(o, r) && o.stream < streams.size()) add(streams[o.stream], "work", r.start, r.end);
  }
  return {{std::move(lane), std::move(kind), std::move(op), std::move(name), std::move(phase), std::move(begin),
           std::move(end)}};
}

ColumnTable storage_table(const Run& run) { return step_storage_table(run.trace); }

ColumnTable residency_table(const Run& run) {
  require_series(run);
  ArrowColumn storage = integers("storage"), tier = texts("tier"), begin = numbers("begin_s"), end = numbers("end_s"),
              bytes = integers("bytes"), kind = texts("kind"), label = texts("label");
  for (const Residency& stay : run.residency) {
    storage.add(static_cast<std::int64_t>(stay.storage));
    tier.add(std::string_view(run.machine.tiers[stay.tier].name));
    begin.add(to_seconds(stay.begin));
    end.add(to_seconds(stay.end));
    add_storage(run.trace, stay.storage, bytes, kind, label);
  }
  return {{std::move(storage), std::move(tier), std::move(begin), std::move(end), std::move(bytes), std::move(kind),
           std::move(label)}};
}

ColumnTable memory_table(const Run& run, const std::string& tier) {
  require_series(run);
  ArrowColumn time = numbers("time_s"), allocated = integers("allocated_bytes"),
              requested = integers("requested_bytes"), reserved = integers("reserved_bytes");
  for (const MemoryPoint& point : run.memory[part_named(run.machine.tiers, tier, "tier")]) {
    time.add(to_seconds(point.time));
    allocated.add(static_cast<std::int64_t>(point.allocated));
    requested.add(static_cast<std::int64_t>(point.requested));
    reserved.add(static_cast<std::int64_t>(point.reserved));
  }
  return {{std::move(time), std::move(allocated), std::move(requested), std::move(reserved)}};
}

ColumnTable link_table(const Run& run, const std::string& link) {
  require_series(run);
  ArrowColumn time = numbers("time_s"), rate = numbers("bytes_per_s");
  for (const RatePoint& point : run.link_rates[part_named(run.machine.links, link, "link")]) {
    time.add(to_seconds(point.time));
    rate.add(point.bytes_per_second);
  }
  return {{std::move(time), std::move(rate)}};
}

ColumnTable live_table(const Run& run, const std::string& tier, const std::optional<double>& seconds) {
  require_series(run);
  const std::size_t wanted = part_named(run.machine.tiers, tier, "tier");
  std::vector<const Residency*> live;
  if (!seconds) {
    for (const std::uint32_t i : run.at_peak[wanted]) live.push_back(&run.residency[i]);
  } else {
    const Time at = from_seconds(*seconds);
    for (const Residency& stay : run.residency)
      if (stay.tier == wanted && stay.begin <= at && at < stay.end) live.push_back(&stay);
  }
  const auto bytes_of = [&](const Residency* stay) { return run.trace->storages[stay->storage].bytes; };
  std::ranges::stable_sort(live, [&](const Residency* a, const Residency* b) {
    return bytes_of(a) != bytes_of(b) ? bytes_of(a) > bytes_of(b) : a->storage < b->storage;
  });
  ArrowColumn storage = integers("storage"), bytes = integers("bytes"), kind = texts("kind"), label = texts("label"),
              begin = numbers("begin_s"), end = numbers("end_s");
  for (const Residency* stay : live) {
    storage.add(static_cast<std::int64_t>(stay->storage));
    add_storage(run.trace, stay->storage, bytes, kind, label);
    begin.add(to_seconds(stay->begin));
    end.add(to_seconds(stay->end));
  }
  return {{std::move(storage), std::move(bytes), std::move(kind), std::move(label), std::move(begin), std::move(end)}};
}

}  // namespace memwall
