// Do the exports say what the run says, in files that other tools accept?
#include <gtest/gtest.h>
#include <simdjson.h>

#include <bit>
#include <map>
#include <set>
#include <sstream>

#include "tests/support/handmade_run.h"
#include "tests/support/step_program.h"
#include "tests/support/test_machine.h"
#include "traces/run/export/export_chrome.h"
#include "traces/run/export/export_csv.h"
#include "traces/run/export/export_lanes.h"
#include "traces/run/export/export_perfetto.h"
#include "traces/run/run_recorder.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

template <class Export>
std::string text_of(const Run& run, Export export_to) {
  std::ostringstream out;
  export_to(run, out);
  return out.str();
}

// A call, a kernel, a copy, an event of another stream, a blocking call, memory, a link, two moves at once.
Run small_run() {
  HandmadeRun hand;
  Trace& trace = hand.run.trace.edit();
  hand.host(OpKind::mark, "step", 0, 0);
  const OpId copy = hand.device(OpKind::copy, "to \"device\"\n\x01", 1, 1, 2, 5, 25.5);
  hand.op(copy).from = 1;
  hand.op(copy).to = 0;
  hand.op(copy).bytes = 205'000;
  const OpId kernel = hand.device(OpKind::kernel, "gemm<float, 128>", 0, 2, 3.25, 27, 40, WaitReason::event, copy);
  hand.op(kernel).operator_name = trace.strings.intern("aten::mm");
  hand.op(kernel).module = trace.strings.intern("layers.0\xff");
  const OpId wait = hand.host(OpKind::synchronize, "cudaDeviceSynchronize", 3.25, 42);
  hand.waited(wait, WaitReason::synchronize, kernel);
  trace.storages.resize(2);
  hand.run.result.moves = {{microseconds(10), microseconds(30), 0, 0, 1, 4096, kernel},
                           {microseconds(20), microseconds(35), 1, 0, 1, 8192, kNoOp}};
  hand.run.memory[0] = {{Time{}, 1000, 900, 2'000'000}, {microseconds(7), 512'000, 511'000, 2'000'000}};
  hand.run.link_rates[0] = {{microseconds(5), 1e10}, {Time(25'500'001), 0}};
  return hand.finish();
}

Run simulated_run() {
  StepProgram program;
  const StorageId weight = program.preexisting(4096, StorageKind::parameter, "weight");
  std::vector<StorageId> activations;
  for (int i = 0; i < 20; ++i) {
    activations.push_back(program.make(1 << 20, "activation"));
    program.op("mm", {weight}, {activations.back()});
  }
  program.backward();
  for (const StorageId id : activations) {
    program.op("mm_backward", {id, weight}, {weight});
    program.drop(id);
  }
  return simulate_and_record(std::move(program).finish(), test_machine(), {});
}

// --- lanes

TEST(ExportLanes, SlicesOfOneLaneNeverOverlap) {
  for (const memwall::Run& run : {small_run(), simulated_run()}) {
    const ExportLanes lanes(run);
    std::map<std::uint32_t, Time> end;
    std::size_t slices = 0;
    lanes.for_each([&](const ExportSlice& slice) {
      ASSERT_LT(slice.lane, lanes.lanes().size());
      EXPECT_GE(slice.begin, end[slice.lane]);
      end[slice.lane] = slice.end;
      ++slices;
    });
    EXPECT_GE(slices, run.trace->ops.size());
  }
}

TEST(ExportLanes, MovesAtTheSameTimeGetLanesOfTheirOwn) {
  const memwall::Run run = small_run();
  const ExportLanes lanes(run);
  std::vector<std::string> names;
  for (const ExportLane& lane : lanes.lanes())
    if (lane.group == LaneGroup::pager) names.push_back(lane.name);
  EXPECT_EQ(names, (std::vector<std::string>{"hbm to host", "hbm to host (2)"}));
}

TEST(ExportLanes, EdgesAreEventsAndBlockingCalls) {
  const memwall::Run run = small_run();
  const std::vector<ExportEdge> edges = ExportLanes(run).edges();
  ASSERT_EQ(edges.size(), 2u);
  EXPECT_EQ(edges[0].from, 1u);
  EXPECT_EQ(edges[0].to, 2u);
  EXPECT_FALSE(edges[0].on_host);
  EXPECT_EQ(edges[1].from, 2u);
  EXPECT_EQ(edges[1].to, 3u);
  EXPECT_TRUE(edges[1].on_host);
}

TEST(ExactMicroseconds, LosesNoPicosecond) {
  EXPECT_EQ(exact_microseconds(Time(0)), "0");
  EXPECT_EQ(exact_microseconds(Time(1'234'500)), "1.2345");
  EXPECT_EQ(exact_microseconds(Time(9'000'000'000'000'000'001)), "9000000000000.000001");
  EXPECT_EQ(exact_microseconds(Time(-1)), "-0.000001");
}

// --- Chrome

struct ChromeEvents {
  std::map<std::string, int> by_phase;
  std::vector<simdjson::dom::element> complete;
  std::set<std::pair<std::int64_t, std::int64_t>> named, used;  // process and thread
};

class ChromeFile {
 public:
  explicit ChromeFile(const Run& run) : text_(text_of(run, export_chrome)) {
    for (const simdjson::dom::element event : parser_.parse(text_)["traceEvents"]) {
      const std::string phase{std::string_view(event["ph"])};
      ++events.by_phase[phase];
      if (phase == "X") {
        events.complete.push_back(event);
        events.used.insert({std::int64_t(event["pid"]), std::int64_t(event["tid"])});
      }
      if (phase == "M" && std::string_view(event["name"]) == "thread_name")
        events.named.insert({std::int64_t(event["pid"]), std::int64_t(event["tid"])});
    }
  }
  ChromeEvents events;

 private:
  std::string text_;
  simdjson::dom::parser parser_;
};

TEST(ExportChrome, EveryCallAndEveryWorkIsAnEvent) {
  const ChromeFile file(small_run());
  // 4 calls, a copy and a kernel on streams, the copy on its engine, 2 moves.
  EXPECT_EQ(file.events.complete.size(), 9u);
  for (const auto& lane : file.events.used) EXPECT_TRUE(file.events.named.count(lane));
  EXPECT_EQ(file.events.by_phase.at("C"), 4);
  EXPECT_EQ(file.events.by_phase.at("s"), 2);
  EXPECT_EQ(file.events.by_phase.at("f"), 2);
}

TEST(ExportChrome, AnEventSaysWhenWhatAndWhy) {
  const ChromeFile file(small_run());
  bool found = false;
  for (const simdjson::dom::element event : file.events.complete) {
    if (std::string_view(event["cat"]) != "kernel" || std::int64_t(event["pid"]) != 3) continue;
    found = true;
    EXPECT_EQ(std::string_view(event["name"]), "gemm<float, 128>");
    EXPECT_DOUBLE_EQ(event["ts"].get_double(), 27);
    EXPECT_DOUBLE_EQ(event["dur"].get_double(), 13);
    EXPECT_EQ(std::string_view(event["args"]["waited for"]), "event");
    EXPECT_EQ(std::int64_t(event["args"]["cause"]), 1);
    EXPECT_EQ(std::string_view(event["args"]["operator"]), "aten::mm");
    EXPECT_EQ(std::string_view(event["args"]["module"]), "layers.0\xef\xbf\xbd");
  }
  EXPECT_TRUE(found);
}

TEST(ExportChrome, TextThatNeedsEscapesComesThrough) {
  const ChromeFile file(small_run());
  bool found = false;
  for (const simdjson::dom::element event : file.events.complete)
    found |= std::string_view(event["name"]) == "to \"device\"\n\x01";
  EXPECT_TRUE(found);
}

TEST(ExportChrome, ASimulatedRunParses) {
  const memwall::Run run = simulated_run();
  const ChromeFile file(run);
  std::size_t expected = run.trace->ops.size();
  for (const Op& op : run.trace->ops) expected += runs_on_device(op.kind);
  EXPECT_EQ(file.events.complete.size(), expected);
}

// --- CSV

std::vector<std::vector<std::string>> parse_csv(const std::string& text) {
  std::vector<std::vector<std::string>> rows(1, std::vector<std::string>(1));
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted && c == '"' && i + 1 < text.size() && text[i + 1] == '"')
      rows.back().back() += text[++i];
    else if (c == '"')
      quoted = !quoted;
    else if (c == ',' && !quoted)
      rows.back().emplace_back();
    else if (c == '\n' && !quoted)
      rows.emplace_back(1);
    else
      rows.back().back() += c;
  }
  rows.pop_back();  // what follows the last line end
  return rows;
}

TEST(ExportCsv, OneLinePerOpWithAllColumns) {
  const memwall::Run run = small_run();
  const auto rows = parse_csv(text_of(run, export_csv));
  ASSERT_EQ(rows.size(), run.trace->ops.size() + 1);
  std::map<std::string, std::size_t> column;
  for (std::size_t i = 0; i < rows[0].size(); ++i) column[rows[0][i]] = i;
  for (const auto& row : rows) ASSERT_EQ(row.size(), rows[0].size());
  const auto at = [&](std::size_t op, const char* name) { return rows.at(op + 1).at(column.at(name)); };
  EXPECT_EQ(at(1, "name"), "to \"device\"\n\\x01");  // what could command a terminal is shown
  EXPECT_EQ(at(1, "from"), "host");
  EXPECT_EQ(at(1, "device_end_us"), "25.5");
  EXPECT_EQ(at(2, "host_end_us"), "3.25");
  EXPECT_EQ(at(2, "device_reason"), "event");
  EXPECT_EQ(at(2, "device_cause"), "1");
  EXPECT_EQ(at(2, "name"), "gemm<float, 128>");
  EXPECT_EQ(at(3, "device_start_us"), "");
  EXPECT_EQ(at(3, "return_reason"), "synchronize");
  EXPECT_EQ(at(3, "return_cause"), "2");
  EXPECT_EQ(at(1, "bytes"), "205000");
}

// --- Perfetto: a reader of the wire format that knows nothing of the writer

struct Field {
  std::uint64_t number = 0;
  std::string_view bytes;
};
using Message = std::multimap<std::uint32_t, Field>;

std::uint64_t take_varint(std::string_view& text) {
  std::uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    if (text.empty()) throw std::runtime_error("a varint ends early");
    const auto byte = static_cast<unsigned char>(text.front());
    text.remove_prefix(1);
    value |= std::uint64_t(byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
  throw std::runtime_error("a varint is too long");
}

Message decode(std::string_view text) {
  Message message;
  while (!text.empty()) {
    const std::uint64_t tag = take_varint(text);
    Field field;
    std::size_t length = 0;
    switch (tag & 7) {
      case 0:
        field.number = take_varint(text);
        break;
      case 1:
        length = 8;
        break;
      case 2:
        length = take_varint(text);
        break;
      default:
        throw std::runtime_error("an unknown wire type");
    }
    if (length > text.size()) throw std::runtime_error("a field ends early");
    field.bytes = text.substr(0, length);
    text.remove_prefix(length);
    if ((tag & 7) == 1)
      for (int i = 7; i >= 0; --i)
        field.number = field.number << 8 | static_cast<unsigned char>(field.bytes[static_cast<std::size_t>(i)]);
    message.emplace(static_cast<std::uint32_t>(tag >> 3), field);
  }
  return message;
}

std::uint64_t number_of(const Message& message, std::uint32_t field) {
  const auto found = message.find(field);
  return found == message.end() ? 0 : found->second.number;
}

struct PerfettoFile {
  explicit PerfettoFile(const Run& run) : text(text_of(run, export_perfetto)) {
    for (const auto& [field, packet_bytes] : decode(text)) {
      EXPECT_EQ(field, 1u);
      const Message packet = decode(packet_bytes.bytes);
      EXPECT_EQ(number_of(packet, 10), 1u);  // trusted_packet_sequence_id
      if (packet.count(60)) read_descriptor(decode(packet.find(60)->second.bytes));
      if (packet.count(12)) read_names(decode(packet.find(12)->second.bytes));
      if (packet.count(11)) read_event(number_of(packet, 8), decode(packet.find(11)->second.bytes));
    }
  }

  void read_descriptor(const Message& descriptor) { EXPECT_TRUE(tracks.insert(number_of(descriptor, 1)).second); }

  void read_names(const Message& data) {
    for (auto [at, end] = data.equal_range(2); at != end; ++at) {
      const Message name = decode(at->second.bytes);
      names[number_of(name, 1)] = std::string(name.find(2)->second.bytes);
    }
  }

  void read_event(std::uint64_t time, const Message& event) {
    const std::uint64_t track = number_of(event, 11), type = number_of(event, 9);
    EXPECT_TRUE(tracks.count(track)) << "track " << track << " is not described before its first event";
    EXPECT_GE(time, last_time[track]);
    last_time[track] = time;
    if (type == 1) {
      EXPECT_EQ(open[track]++, 0) << "slices of a lane overlap";
      ++slices;
    }
    if (type == 2) {
      EXPECT_EQ(--open[track], 0);
    }
    if (type == 1 || type == 3) {
      EXPECT_TRUE(names.count(number_of(event, 10))) << "a name is used before it is told";
    }
    if (type == 4)
      counters[track].push_back(event.count(44) ? std::bit_cast<double>(number_of(event, 44))
                                                : static_cast<double>(number_of(event, 30)));
    for (auto [at, end] = event.equal_range(47); at != end; ++at) leaves[at->second.number] = time;
    for (auto [at, end] = event.equal_range(48); at != end; ++at) arrives[at->second.number] = time;
  }

  std::string text;
  std::set<std::uint64_t> tracks;
  std::map<std::uint64_t, std::string> names;
  std::map<std::uint64_t, std::uint64_t> last_time;
  std::map<std::uint64_t, int> open;
  std::map<std::uint64_t, std::vector<double>> counters;
  std::map<std::uint64_t, std::uint64_t> leaves, arrives;
  int slices = 0;
};

TEST(ExportPerfetto, SlicesAreBalancedNamedAndOnKnownTracks) {
  for (const memwall::Run& run : {small_run(), simulated_run()}) {
    const PerfettoFile file(run);
    for (const auto& [track, depth] : file.open) EXPECT_EQ(depth, 0);
    int expected = 0;
    ExportLanes(run).for_each([&](const ExportSlice&) { ++expected; });
    EXPECT_EQ(file.slices, expected);
  }
}

TEST(ExportPerfetto, FlowsRunForwardInTime) {
  const PerfettoFile file(small_run());
  EXPECT_EQ(file.leaves.size(), 2u);
  ASSERT_EQ(file.leaves.size(), file.arrives.size());
  for (const auto& [flow, time] : file.leaves) {
    ASSERT_TRUE(file.arrives.count(flow));
    EXPECT_LE(time, file.arrives.at(flow));
  }
}

TEST(ExportPerfetto, CountersCarryMemoryAndLinks) {
  const PerfettoFile file(small_run());
  std::set<std::vector<double>> values;
  for (const auto& [track, counter] : file.counters) values.insert(counter);
  EXPECT_EQ(values, (std::set<std::vector<double>>{{1000, 512'000}, {2'000'000, 2'000'000}, {1e10, 0}}));
}

TEST(ExportPerfetto, NamesAreUtf8) {
  const PerfettoFile file(small_run());
  EXPECT_NE(file.text.find("layers.0?"), std::string::npos);
  EXPECT_EQ(file.text.find("layers.0\xff"), std::string::npos);
}

TEST(Exports, SameRunSameBytes) {
  EXPECT_EQ(text_of(simulated_run(), export_chrome), text_of(simulated_run(), export_chrome));
  EXPECT_EQ(text_of(simulated_run(), export_perfetto), text_of(simulated_run(), export_perfetto));
  EXPECT_EQ(text_of(simulated_run(), export_csv), text_of(simulated_run(), export_csv));
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
