#include "traces/run/export/export_perfetto.h"

#include <fmt/format.h>

#include <map>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "sim/utf8.h"
#include "traces/run/export/export_lanes.h"
#include "traces/run/export/protobuf_text.h"

namespace memwall {
namespace {

// Field numbers, by message, as in the files that the header names.
namespace trace {
constexpr std::uint32_t kPacket = 1;
}
namespace packet {
constexpr std::uint32_t kTimestamp = 8, kSequence = 10, kTrackEvent = 11, kInternedData = 12, kSequenceFlags = 13,
                        kTrackDescriptor = 60;
constexpr std::uint64_t kStateCleared = 1, kNeedsState = 2;
}  // namespace packet
namespace track {
constexpr std::uint32_t kUuid = 1, kName = 2, kProcess = 3, kThread = 4, kParent = 5, kCounter = 8;
}
namespace process {
constexpr std::uint32_t kPid = 1, kName = 6;
}
namespace thread {
constexpr std::uint32_t kPid = 1, kTid = 2, kName = 5;
}
namespace counter {
constexpr std::uint32_t kUnit = 3, kUnitName = 6;
constexpr std::uint64_t kBytes = 3;
}  // namespace counter
namespace event {
constexpr std::uint32_t kAnnotation = 4, kType = 9, kNameId = 10, kTrack = 11, kCategory = 22, kCount = 30, kReal = 44,
                        kFlow = 47, kLastFlow = 48;
constexpr std::uint64_t kBegin = 1, kEnd = 2, kInstant = 3, kCounterValue = 4;
}  // namespace event
namespace annotation {
constexpr std::uint32_t kInteger = 4, kText = 6, kName = 10;
}
namespace interned {
constexpr std::uint32_t kEventName = 2, kId = 1, kName = 2;
}

std::uint64_t nanoseconds_of(Time time) { return static_cast<std::uint64_t>(time.count() / 1000); }

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

// Protobuf's strings must be UTF-8. Names are, as a rule; where not, the foreign bytes show as "?".
std::string printable(const std::string& text) {
  if (is_utf8(text)) return text;
  std::string out;
  for (const char c : text) out += static_cast<unsigned char>(c) < 0x80 ? c : '?';
  return out;
}

class PerfettoWriter {
 public:
  PerfettoWriter(const Run& run, std::ostream& out) : run_(run), lanes_(run), stream_(out) {}

  void write() {
    begin_sequence();
    describe_lanes();
    collect_flows();
    lanes_.for_each([this](const ExportSlice& slice) { write_slice(slice); });
    write_memory();
    write_links();
    flush();
  }

 private:
  // Which flows leave or reach an op's call or work.
  struct Flows {
    std::vector<std::uint64_t> leaving, arriving;
    std::vector<std::uint64_t> arriving_at_end;  // of a call that waited
  };

  void add_packet(ProtobufText& content) {
    content.number(packet::kSequence, 1);
    out_.message(trace::kPacket, content);
    if (out_.bytes().size() > kFlushBytes) flush();
  }

  void flush() {
    stream_.write(out_.bytes().data(), static_cast<std::streamsize>(out_.bytes().size()));
    out_.clear();
  }

  void begin_sequence() {
    ProtobufText first;
    first.number(packet::kSequenceFlags, packet::kStateCleared);
    add_packet(first);
  }

  // Uuids: 1 to 99 for processes, then lanes, then counters.
  std::uint64_t group_uuid(LaneGroup group) const { return static_cast<std::uint64_t>(group) + 2; }
  std::uint64_t lane_uuid(std::uint32_t lane) const { return 100 + lane; }
  static constexpr std::uint64_t kCounterGroup = 1;
  std::uint64_t next_counter() { return 100 + lanes_.lanes().size() + counters_++; }

  void describe_process(std::uint64_t uuid, const std::string& name) {
    ProtobufText descriptor, content, whole;
    descriptor.number(process::kPid, uuid);
    descriptor.text(process::kName, name);
    content.number(track::kUuid, uuid);
    content.message(track::kProcess, descriptor);
    whole.message(packet::kTrackDescriptor, content);
    add_packet(whole);
  }

  void describe_lanes() {
    describe_process(kCounterGroup, "Memory and links");
    bool described[kLaneGroups] = {};
    for (std::uint32_t i = 0; i < lanes_.lanes().size(); ++i) {
      const ExportLane& lane = lanes_.lanes()[i];
      bool& done = described[static_cast<std::size_t>(lane.group)];
      if (!done) describe_process(group_uuid(lane.group), std::string(to_string(lane.group)));
      done = true;
      ProtobufText descriptor, content, whole;
      descriptor.number(thread::kPid, group_uuid(lane.group));
      descriptor.number(thread::kTid, 100 + i);
      descriptor.text(thread::kName, printable(lane.name));
      content.number(track::kUuid, lane_uuid(i));
      content.message(track::kThread, descriptor);
      whole.message(packet::kTrackDescriptor, content);
      add_packet(whole);
    }
  }

  void collect_flows() {
    std::uint64_t id = 0;
    for (const ExportEdge& edge : lanes_.edges()) {
      ++id;
      flows_[{edge.from, edge.from_host}].leaving.push_back(id);
      Flows& effect = flows_[{edge.to, edge.on_host}];
      (edge.on_host && !edge.from_host ? effect.arriving_at_end : effect.arriving).push_back(id);
    }
  }

  // The number of a name, told to the reader before its first use.
  std::uint64_t intern(const std::string& name, ProtobufText& content) {
    const auto [entry, is_new] = names_.try_emplace(name, names_.size() + 1);
    if (is_new) {
      ProtobufText event_name, data;
      event_name.number(interned::kId, entry->second);
      event_name.text(interned::kName, printable(name));
      data.message(interned::kEventName, event_name);
      content.message(packet::kInternedData, data);
    }
    return entry->second;
  }

  static void annotate(ProtobufText& out, std::string_view name, std::string_view value) {
    ProtobufText content;
    content.text(annotation::kName, name);
    content.text(annotation::kText, value);
    out.message(event::kAnnotation, content);
  }

  static void annotate(ProtobufText& out, std::string_view name, std::int64_t value) {
    ProtobufText content;
    content.text(annotation::kName, name);
    content.number(annotation::kInteger, static_cast<std::uint64_t>(value));
    out.message(event::kAnnotation, content);
  }

  void write_slice(const ExportSlice& slice) {
    const LaneGroup group = lanes_.lanes()[slice.lane].group;
    ProtobufText begin, content;
    begin.number(event::kType, event::kBegin);
    begin.number(event::kTrack, lane_uuid(slice.lane));
    if (slice.op == kNoOp)
      describe_move(run_.result.moves[slice.move], begin, content);
    else
      describe_op(slice.op, group, begin, content);
    if (slice.op != kNoOp && group != LaneGroup::engine) add_flows(slice.op, group == LaneGroup::host, begin);
    content.number(packet::kTimestamp, nanoseconds_of(slice.begin));
    content.number(packet::kSequenceFlags, packet::kNeedsState);
    content.message(packet::kTrackEvent, begin);
    add_packet(content);
    ProtobufText end, last;
    end.number(event::kType, event::kEnd);
    end.number(event::kTrack, lane_uuid(slice.lane));
    last.number(packet::kTimestamp, nanoseconds_of(slice.end));
    last.message(packet::kTrackEvent, end);
    add_packet(last);
    if (slice.op != kNoOp && group == LaneGroup::host) write_return(slice);
  }

  // A flow meets the beginning of an event, and runs forward in time. A call that waits begins
  // before what it waits for: its return is therefore an event of its own.
  void write_return(const ExportSlice& slice) {
    const auto found = flows_.find({slice.op, true});
    if (found == flows_.end() || found->second.arriving_at_end.empty()) return;
    ProtobufText instant, content;
    instant.number(event::kType, event::kInstant);
    instant.number(event::kTrack, lane_uuid(slice.lane));
    instant.number(event::kNameId, intern("returned", content));
    for (const std::uint64_t flow : found->second.arriving_at_end) instant.fixed(event::kLastFlow, flow);
    content.number(packet::kTimestamp, nanoseconds_of(slice.end));
    content.number(packet::kSequenceFlags, packet::kNeedsState);
    content.message(packet::kTrackEvent, instant);
    add_packet(content);
  }

  void describe_op(OpId id, LaneGroup group, ProtobufText& out, ProtobufText& content) {
    const Op& op = run_.trace->ops[id];
    const OpRecord& record = run_.result.records[id];
    const bool host = group == LaneGroup::host;
    out.number(event::kNameId, intern(display_name(run_.trace, op), content));
    out.text(event::kCategory, to_string(op.kind));
    annotate(out, "op", std::int64_t{id});
    annotate(out, "phase", to_string(op.phase));
    annotate(out, "origin", to_string(op.origin));
    annotate(out, "waited for", to_string(host ? record.host_reason : record.device_reason));
    if (const OpId cause = host ? record.host_cause : record.device_cause; cause != kNoOp)
      annotate(out, "cause", std::int64_t{cause});
    if (op.operator_name != 0) annotate(out, "operator", printable(run_.trace->strings[op.operator_name]));
    if (op.module != 0) annotate(out, "module", printable(run_.trace->strings[op.module]));
    if (op.bytes != 0) annotate(out, "bytes", op.bytes);
  }

  void describe_move(const MoveRecord& move, ProtobufText& out, ProtobufText& content) {
    const std::string& label = run_.trace->strings[run_.trace->storages[move.storage].label];
    out.number(event::kNameId, intern(label.empty() ? fmt::format("storage {}", move.storage) : label, content));
    out.text(event::kCategory, "move");
    annotate(out, "storage", std::int64_t{move.storage});
    annotate(out, "bytes", move.bytes);
    if (move.for_op != kNoOp) annotate(out, "for op", std::int64_t{move.for_op});
  }

  void add_flows(OpId id, bool host, ProtobufText& out) const {
    const auto found = flows_.find({id, host});
    if (found == flows_.end()) return;
    for (const std::uint64_t flow : found->second.leaving) out.fixed(event::kFlow, flow);
    for (const std::uint64_t flow : found->second.arriving) out.fixed(event::kLastFlow, flow);
  }

  std::uint64_t describe_counter(const std::string& name, bool bytes) {
    const std::uint64_t uuid = next_counter();
    ProtobufText unit, content, whole;
    if (bytes)
      unit.number(counter::kUnit, counter::kBytes);
    else
      unit.text(counter::kUnitName, "B/s");
    content.number(track::kUuid, uuid);
    content.text(track::kName, name);
    content.number(track::kParent, kCounterGroup);
    content.message(track::kCounter, unit);
    whole.message(packet::kTrackDescriptor, content);
    add_packet(whole);
    return uuid;
  }

  void add_counter_value(Time time, const ProtobufText& value) {
    ProtobufText content;
    content.number(packet::kTimestamp, nanoseconds_of(time));
    content.message(packet::kTrackEvent, value);
    add_packet(content);
  }

  void write_memory() {
    for (std::size_t tier = 0; tier < run_.memory.size(); ++tier) {
      if (run_.memory[tier].empty()) continue;
      const std::string& name = run_.machine.tiers[tier].name;
      for (const auto& [what, member] :
           {std::pair{" allocated", &MemoryPoint::allocated}, {" reserved", &MemoryPoint::reserved}}) {
        const std::uint64_t uuid = describe_counter(name + what, true);
        for (const MemoryPoint& point : run_.memory[tier]) {
          ProtobufText value;
          value.number(event::kType, event::kCounterValue);
          value.number(event::kTrack, uuid);
          value.number(event::kCount, static_cast<std::uint64_t>(point.*member));
          add_counter_value(point.time, value);
        }
      }
    }
  }

  void write_links() {
    for (std::size_t link = 0; link < run_.link_rates.size(); ++link) {
      if (run_.link_rates[link].empty()) continue;
      const std::uint64_t uuid = describe_counter("link " + run_.machine.links[link].name, false);
      for (const RatePoint& point : run_.link_rates[link]) {
        ProtobufText value;
        value.number(event::kType, event::kCounterValue);
        value.number(event::kTrack, uuid);
        value.real(event::kReal, point.bytes_per_second);
        add_counter_value(point.time, value);
      }
    }
  }

  const Run& run_;
  ExportLanes lanes_;
  std::ostream& stream_;
  ProtobufText out_;
  std::uint64_t counters_ = 0;
  std::map<std::string, std::uint64_t> names_;
  std::map<std::pair<OpId, bool>, Flows> flows_;  // by op and whether its call is meant
};

}  // namespace

void export_perfetto(const Run& run, std::ostream& out) { PerfettoWriter(run, out).write(); }

}  // namespace memwall
