#include "traces/run/export/export_chrome.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <ostream>
#include <string>

#include "sim/json_text.h"
#include "traces/run/export/export_lanes.h"

namespace memwall {
namespace {

// One process per group of lanes; counters are a process of their own.
int process_of(LaneGroup group) { return static_cast<int>(group) + 2; }
constexpr int kCounterProcess = 1;

Time just_before(Time begin, Time end) { return std::max(begin, end - nanoseconds(1)); }

class ChromeWriter {
 public:
  ChromeWriter(const Run& run, std::ostream& out) : run_(run), lanes_(run), stream_(out) {}

  void write() {
    text_ = "{\"displayTimeUnit\":\"ns\",\"traceName\":" + json_quoted(run_.trace->name) + ",\"traceEvents\":[";
    describe_lanes();
    lanes_.for_each([this](const ExportSlice& slice) { write_slice(slice); });
    write_edges();
    write_memory();
    write_links();
    text_ += "\n]}\n";
    flush();
  }

 private:
  template <class... Arguments>
  void print(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<Arguments>(arguments)...);
  }

  void begin_event() {
    if (text_.size() > kFlushBytes) flush();
    text_ += first_ ? "\n" : ",\n";
    first_ = false;
  }

  void flush() {
    stream_.write(text_.data(), static_cast<std::streamsize>(text_.size()));
    text_.clear();
  }

  void name_process(int process, std::string_view name) {
    begin_event();
    print("{{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":{},\"args\":{{\"name\":{}}}}}", process, json_quoted(name));
    begin_event();
    print("{{\"ph\":\"M\",\"name\":\"process_sort_index\",\"pid\":{0},\"args\":{{\"sort_index\":{0}}}}}", process);
  }

  void describe_lanes() {
    name_process(kCounterProcess, "Memory and links");
    bool named[kLaneGroups] = {};
    for (std::size_t i = 0; i < lanes_.lanes().size(); ++i) {
      const ExportLane& lane = lanes_.lanes()[i];
      bool& done = named[static_cast<std::size_t>(lane.group)];
      if (!done) name_process(process_of(lane.group), to_string(lane.group));
      done = true;
      begin_event();
      print("{{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":{},\"tid\":{},\"args\":{{\"name\":{}}}}}",
            process_of(lane.group), i, json_quoted(lane.name));
      begin_event();
      print("{{\"ph\":\"M\",\"name\":\"thread_sort_index\",\"pid\":{},\"tid\":{},\"args\":{{\"sort_index\":{}}}}}",
            process_of(lane.group), i, i);
    }
  }

  void write_slice(const ExportSlice& slice) {
    const LaneGroup group = lanes_.lanes()[slice.lane].group;
    begin_event();
    print("{{\"ph\":\"X\",\"pid\":{},\"tid\":{},\"ts\":{},\"dur\":{}", process_of(group), slice.lane,
          exact_microseconds(slice.begin), exact_microseconds(slice.end - slice.begin));
    if (slice.op == kNoOp)
      write_move(run_.result.moves[slice.move]);
    else
      write_op(slice.op, group);
    text_ += '}';
  }

  void write_move(const MoveRecord& move) {
    const Storage& storage = run_.trace->storages[move.storage];
    const std::string& label = run_.trace->strings[storage.label];
    print(",\"name\":{},\"cat\":\"move\",\"args\":{{\"storage\":{},\"bytes\":{}",
          json_quoted(label.empty() ? fmt::format("storage {}", move.storage) : label), move.storage, move.bytes);
    if (move.for_op != kNoOp) print(",\"for op\":{}", move.for_op);
    text_ += '}';
  }

  void write_op(OpId id, LaneGroup group) {
    const Op& op = run_.trace->ops[id];
    const OpRecord& record = run_.result.records[id];
    const bool host = group == LaneGroup::host;
    print(",\"name\":{},\"cat\":\"{}\",\"args\":{{\"op\":{},\"phase\":\"{}\",\"origin\":\"{}\",\"waited for\":\"{}\"",
          json_quoted(display_name(run_.trace, op)), to_string(op.kind), id, to_string(op.phase), to_string(op.origin),
          to_string(host ? record.host_reason : record.device_reason));
    if (const OpId cause = host ? record.host_cause : record.device_cause; cause != kNoOp)
      print(",\"cause\":{}", cause);
    if (op.operator_name != 0) print(",\"operator\":{}", json_quoted(run_.trace->strings[op.operator_name]));
    if (op.module != 0) print(",\"module\":{}", json_quoted(run_.trace->strings[op.module]));
    if (op.bytes != 0) print(",\"bytes\":{}", op.bytes);
    text_ += '}';
  }

  // An arrow ties to the slice that encloses its point: the last nanosecond of the cause, the start of
  // the effect. A call that waited is met in its last nanosecond.
  void write_edges() {
    std::uint64_t number = 0;
    for (const ExportEdge& edge : lanes_.edges()) {
      const Op &from = run_.trace->ops[edge.from], &to = run_.trace->ops[edge.to];
      const OpRecord &cause = run_.result.records[edge.from], &effect = run_.result.records[edge.to];
      const char* const name = edge.from_host ? "hand-over" : edge.on_host ? "wait" : "event";
      const Time leaves =
          edge.from_host ? just_before(cause.host_start, cause.host_end) : just_before(cause.start, cause.end);
      const Time arrives = !edge.on_host    ? effect.start
                           : edge.from_host ? effect.host_start
                                            : just_before(effect.host_start, effect.host_end);
      begin_event();
      print("{{\"ph\":\"s\",\"id\":{},\"name\":\"{}\",\"cat\":\"edge\",\"pid\":{},\"tid\":{},\"ts\":{}}}", number, name,
            process_of(edge.from_host ? LaneGroup::host : LaneGroup::stream),
            edge.from_host ? lanes_.host_lane(from) : lanes_.stream_lane(from), exact_microseconds(leaves));
      begin_event();
      print("{{\"ph\":\"f\",\"bp\":\"e\",\"id\":{},\"name\":\"{}\",\"cat\":\"edge\",\"pid\":{},\"tid\":{},\"ts\":{}}}",
            number, name, process_of(edge.on_host ? LaneGroup::host : LaneGroup::stream),
            edge.on_host ? lanes_.host_lane(to) : lanes_.stream_lane(to), exact_microseconds(arrives));
      ++number;
    }
  }

  void write_memory() {
    for (std::size_t tier = 0; tier < run_.memory.size(); ++tier) {
      const std::string name = json_quoted("memory of " + run_.machine.tiers[tier].name);
      for (const MemoryPoint& point : run_.memory[tier]) {
        begin_event();
        print("{{\"ph\":\"C\",\"pid\":{},\"name\":{},\"ts\":{},\"args\":{{\"allocated\":{},\"cached\":{}}}}}",
              kCounterProcess, name, exact_microseconds(point.time), point.allocated,
              std::max<Bytes>(0, point.reserved - point.allocated));
      }
    }
  }

  void write_links() {
    for (std::size_t link = 0; link < run_.link_rates.size(); ++link) {
      const std::string name = json_quoted("link " + run_.machine.links[link].name);
      for (const RatePoint& point : run_.link_rates[link]) {
        begin_event();
        print("{{\"ph\":\"C\",\"pid\":{},\"name\":{},\"ts\":{},\"args\":{{\"GB/s\":{}}}}}", kCounterProcess, name,
              exact_microseconds(point.time), point.bytes_per_second / 1e9);
      }
    }
  }

  const Run& run_;
  ExportLanes lanes_;
  std::ostream& stream_;
  std::string text_;
  bool first_ = true;
};

}  // namespace

void export_chrome(const Run& run, std::ostream& out) { ChromeWriter(run, out).write(); }

}  // namespace memwall
