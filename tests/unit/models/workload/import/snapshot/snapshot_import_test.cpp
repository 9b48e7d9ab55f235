#include "models/workload/import/snapshot/snapshot_reader.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "sim/error.h"
#include "tests/support/gzip.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/snapshot_variants.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

using Action = MemoryEvent::Action;
using State = RecordedBlock::State;

class SnapshotImport : public ::testing::Test {
 protected:
  MemoryRecording read(const Plain& snapshot, int protocol = 4) {
    write_content(folder_ / "a.pickle", pickled(snapshot, protocol));
    return read_snapshot(folder_ / "a.pickle");
  }
  void expect_refused(const Plain& snapshot, const std::string& why) {
    try {
      read(snapshot);
      ADD_FAILURE() << "not refused; should have said: " << why;
    } catch (const InputError& error) {
      const std::string message = error.what();
      EXPECT_NE(message.find(why), std::string::npos) << message;
      EXPECT_NE(message.find("a.pickle"), std::string::npos) << message;
      EXPECT_NE(message.find("; expected "), std::string::npos) << message;
    }
  }
  static bool has_note(const MemoryRecording& recording, const std::string& part) {
    return std::ranges::any_of(recording.notes,
                               [&](const std::string& note) { return note.find(part) != std::string::npos; });
  }
  static Plain& entry(Plain& snapshot, std::size_t number) {
    return snapshot["device_traces"].items()[0].items()[number];
  }
  static Plain& segment(Plain& snapshot, std::size_t number) { return snapshot["segments"].items()[number]; }
  static Plain& block(Plain& snapshot, std::size_t of, std::size_t number) {
    return segment(snapshot, of)["blocks"].items()[number];
  }
  ScratchFolder folder_;
};

std::vector<std::string> names_of(const MemoryRecording& recording, StackId stack) {
  std::vector<std::string> names;
  for (const std::uint32_t frame : recording.stacks[stack])
    names.push_back(recording.strings[recording.frames[frame].function]);
  return names;
}

TEST_F(SnapshotImport, EveryFieldArrives) {
  for (int protocol = 2; protocol <= 5; ++protocol) {
    const MemoryRecording recording = read(small_snapshot(), protocol);
    ASSERT_EQ(recording.devices.size(), 1u);
    const DeviceRecording& device = recording.devices[0];
    EXPECT_EQ(device.device, 0);
    ASSERT_EQ(device.events.size(), 7u);
    const Action actions[] = {Action::segment_alloc, Action::alloc, Action::alloc,
                              Action::segment_alloc, Action::alloc, Action::free_requested,
                              Action::free_completed};
    for (int i = 0; i < 7; ++i) EXPECT_EQ(device.events[i].action, actions[i]);
    EXPECT_EQ(device.events[2].address, 0x7f0000000400u);
    EXPECT_EQ(device.events[2].size, 4096);
    EXPECT_EQ(device.events[2].time_us, 1'700'000'000'000'002);
    EXPECT_EQ(device.events[2].stream, 0);
    EXPECT_EQ(names_of(recording, device.events[0].stack),
              (std::vector<std::string>{"at::native::empty_cuda", "forward", "_call_impl", "_call_impl", "main"}));
    EXPECT_EQ(names_of(recording, device.events[2].stack),
              (std::vector<std::string>{"at::native::empty_cuda", "main"}));
    ASSERT_EQ(device.segments.size(), 2u);
    const RecordedSegment& small = device.segments[0];
    EXPECT_TRUE(small.small_pool);
    EXPECT_FALSE(small.expandable);
    EXPECT_EQ(small.address, 0x7f0000000000u);
    EXPECT_EQ(small.size, MiB(2));
    EXPECT_EQ(small.pool, (std::array<std::int64_t, 2>{0, 0}));
    ASSERT_EQ(small.blocks.size(), 3u);
    EXPECT_EQ(small.blocks[0].state, State::inactive);
    EXPECT_EQ(small.blocks[0].requested, 1000);
    EXPECT_EQ(small.blocks[0].stack, 0u);
    EXPECT_EQ(small.blocks[1].state, State::allocated);
    EXPECT_EQ(small.blocks[1].stack, device.events[2].stack);
    EXPECT_FALSE(device.segments[1].small_pool);
    EXPECT_EQ(device.segments[1].blocks[0].requested, MiB(12) - 100);
    EXPECT_TRUE(recording.has_times);
    EXPECT_EQ(recording.settings, AllocatorSettings());
    EXPECT_TRUE(recording.notes.empty()) << recording.notes[0];
  }
}

TEST_F(SnapshotImport, FramesAndStacksAreKeptOnce) {
  Plain snapshot = small_snapshot();
  // The same frames as other objects.
  entry(snapshot, 2)
      .set("frames",
           Plain::list({snapshot_frame("at::native::empty_cuda", "??", 0), snapshot_frame("main", "train.py", 40)}));
  entry(snapshot, 4).set("frames", Plain::list({snapshot_frame("main", "train.py", 41)}));
  const MemoryRecording recording = read(snapshot);
  const auto& events = recording.devices[0].events;
  EXPECT_EQ(events[2].stack, events[5].stack);
  EXPECT_EQ(recording.frames.size(), 5u);
  EXPECT_EQ(recording.stacks.size(), 4u);
  EXPECT_TRUE(recording.stacks[0].empty());
  EXPECT_EQ(recording.strings[0], "");
  EXPECT_EQ(recording.strings.size(), 9u);  // "", four functions, four files
  const SourceFrame& line = recording.frames[recording.stacks[events[4].stack][0]];
  EXPECT_EQ(line.line, 41);
  EXPECT_EQ(recording.strings[line.file], "train.py");
}

TEST_F(SnapshotImport, StacksOfMoreThanOneBatch) {
  Plain snapshot = small_snapshot();
  const Plain frame = snapshot_frame("recursive", "deep.py", 3);
  entry(snapshot, 1).set("frames", Plain::list(std::vector<Plain>(2'500, frame)));
  const MemoryRecording recording = read(snapshot);
  EXPECT_EQ(recording.stacks[recording.devices[0].events[1].stack].size(), 2'500u);
}

TEST_F(SnapshotImport, TracesOfMoreThanOneBatch) {
  std::vector<Plain> trace;
  for (int i = 0; i < 3'001; ++i)
    trace.push_back(snapshot_entry("alloc", 512 * static_cast<std::uint64_t>(i + 1), i + 1));
  const MemoryRecording recording = read(snapshot_of({}, {Plain::list(std::move(trace))}));
  ASSERT_EQ(recording.devices[0].events.size(), 3'001u);
  for (int i = 0; i < 3'001; ++i) ASSERT_EQ(recording.devices[0].events[static_cast<std::size_t>(i)].size, i + 1);
}

TEST_F(SnapshotImport, WithoutTimes) {
  const MemoryRecording recording = read(snapshot_without_times());
  EXPECT_FALSE(recording.has_times);
  EXPECT_TRUE(has_note(recording, "no times"));
  EXPECT_EQ(recording.devices[0].events[3].time_us, 0);
  Plain mixed = small_snapshot();
  entry(mixed, 2).remove("time_us");
  const MemoryRecording second = read(mixed);
  EXPECT_FALSE(second.has_times);
  EXPECT_TRUE(has_note(second, "1 of 7 trace entries have no time"));
}

TEST_F(SnapshotImport, TimesThatRunBackwardAreNotedAndTheOrderKept) {
  Plain snapshot = small_snapshot();
  entry(snapshot, 3).set("time_us", 5);
  const MemoryRecording recording = read(snapshot);
  EXPECT_TRUE(has_note(recording, "time runs backward at 1 trace entries"));
  EXPECT_EQ(recording.devices[0].events[3].time_us, 5);
  EXPECT_EQ(recording.devices[0].events[3].action, Action::segment_alloc);
}

TEST_F(SnapshotImport, AddressesOfBlocksAreSummedWhereTheyAreAbsent) {
  const MemoryRecording recording = read(snapshot_with_history());
  const auto& blocks = recording.devices[0].segments[0].blocks;
  ASSERT_EQ(blocks.size(), 3u);
  EXPECT_EQ(blocks[1].address, 0x7f0000000400u);
  EXPECT_EQ(blocks[2].address, 0x7f0000001400u);
  EXPECT_FALSE(has_note(recording, "contradicts"));
}

TEST_F(SnapshotImport, HistoryOfBlocksGivesDemandAndStack) {
  const MemoryRecording recording = read(snapshot_with_history(), 2);
  const RecordedBlock& block = recording.devices[0].segments[1].blocks[0];
  EXPECT_EQ(block.requested, MiB(12) - 100);
  EXPECT_EQ(names_of(recording, block.stack), (std::vector<std::string>{"at::native::empty_cuda", "main"}));
  EXPECT_EQ(recording.devices[0].segments[0].blocks[0].requested, 0);
}

TEST_F(SnapshotImport, FirstVersionsHaveSizesAlone) {
  const MemoryRecording recording = read(snapshot_of_first_versions(), 3);
  const DeviceRecording& device = recording.devices[0];
  EXPECT_EQ(device.segments[1].blocks[0].requested, MiB(12));
  EXPECT_EQ(device.segments[0].stream, 0);
  EXPECT_EQ(device.events[1].stack, 0u);
  EXPECT_TRUE(has_note(recording, "no allocator settings"));
}

TEST_F(SnapshotImport, SegmentsWithoutTypeAreToldBySize) {
  Plain snapshot = small_snapshot();
  for (const std::size_t i : {0u, 1u}) segment(snapshot, i).remove("segment_type");
  const MemoryRecording recording = read(snapshot);
  EXPECT_TRUE(recording.devices[0].segments[0].small_pool);
  EXPECT_FALSE(recording.devices[0].segments[1].small_pool);
  EXPECT_TRUE(has_note(recording, "2 segments have no segment_type"));
}

TEST_F(SnapshotImport, StatesOfBlocks) {
  const MemoryRecording recording = read(snapshot_with_pending_blocks());
  const auto& blocks = recording.devices[0].segments[0].blocks;
  EXPECT_EQ(blocks[0].state, State::pending);
  EXPECT_EQ(blocks[1].state, State::pending);
  EXPECT_EQ(blocks[2].state, State::inactive);
  EXPECT_FALSE(has_note(recording, "contradicts"));
  Plain snapshot = small_snapshot();
  block(snapshot, 0, 0).set("state", "asleep");
  expect_refused(snapshot, "'asleep' as the state of a block");
}

TEST_F(SnapshotImport, ExpandableSegments) {
  const MemoryRecording recording = read(snapshot_of_expandable_segments());
  const DeviceRecording& device = recording.devices[0];
  EXPECT_TRUE(device.segments[0].expandable);
  EXPECT_EQ(device.events[0].action, Action::segment_map);
  EXPECT_EQ(device.events[6].action, Action::segment_unmap);
  EXPECT_TRUE(recording.settings.expandable_segments);
  EXPECT_EQ(recording.settings_text, "expandable_segments:True");
  Plain turned_off = snapshot_of_expandable_segments();  // the text says one thing, the field another
  turned_off["allocator_settings"].set("expandable_segments", false);
  EXPECT_FALSE(read(turned_off).settings.expandable_segments);
}

TEST_F(SnapshotImport, FailedRequestsHaveTheFreeBytes) {
  const MemoryRecording recording = read(snapshot_of_failed_request());
  const MemoryEvent& event = recording.devices[0].events.back();
  EXPECT_EQ(event.action, Action::oom);
  EXPECT_EQ(event.size, MiB(64));
  EXPECT_EQ(event.address, static_cast<Address>(MiB(3)));
}

TEST_F(SnapshotImport, MarkersAndUnknownThings) {
  const MemoryRecording recording = read(snapshot_with_unknown_things());
  const auto& events = recording.devices[0].events;
  ASSERT_EQ(events.size(), 10u);
  EXPECT_EQ(events[7].action, Action::snapshot);
  EXPECT_EQ(events[8].action, Action::other);
  EXPECT_EQ(events[9].action, Action::other);
  EXPECT_TRUE(has_note(recording, "'user_defined'"));
  EXPECT_TRUE(has_note(recording, "'teleport'"));
  EXPECT_TRUE(has_note(recording, "'destination'"));
  EXPECT_TRUE(has_note(recording, "'statistics', 'version'"));
  EXPECT_TRUE(has_note(recording, "'owner'"));
  EXPECT_TRUE(has_note(recording, "1 trace entries name a private pool"));
}

TEST_F(SnapshotImport, RecordsWithinUnknownFieldsAreDropped) {
  // Each waits where a record of its kind waits, and must not take its place.
  Plain snapshot = small_snapshot();
  entry(snapshot, 1).set("cause", Plain::list({snapshot_entry("alloc", 64, 64), snapshot_entry("alloc", 65, 64)}));
  entry(snapshot, 2).set("cause", snapshot_entry("alloc", 64, 64));
  entry(snapshot, 3).set("cause", snapshot_block(64, 64, 64));
  entry(snapshot, 4).set("cause", snapshot_segment(64, {snapshot_block(64, 64, 64)}));
  entry(snapshot, 5)
      .set("cause", Plain::tuple({snapshot_settings(), snapshot_annotation("a", "b", 3), Plain::list({})}));
  block(snapshot, 0, 1).set("cause", snapshot_block(64, 64, 64));
  segment(snapshot, 1).set("cause", snapshot_segment(64, {snapshot_block(64, 64, 64)}));
  const MemoryRecording recording = read(snapshot), plain = read(small_snapshot());
  ASSERT_EQ(recording.devices.size(), 1u);
  ASSERT_EQ(recording.devices[0].events.size(), plain.devices[0].events.size());
  for (std::size_t i = 0; i < plain.devices[0].events.size(); ++i) {
    EXPECT_EQ(recording.devices[0].events[i].address, plain.devices[0].events[i].address);
    EXPECT_EQ(recording.devices[0].events[i].action, plain.devices[0].events[i].action);
  }
  ASSERT_EQ(recording.devices[0].segments.size(), 2u);
  for (std::size_t i = 0; i < 2; ++i)
    EXPECT_EQ(recording.devices[0].segments[i].blocks.size(), plain.devices[0].segments[i].blocks.size());
}

TEST_F(SnapshotImport, DevicesAndStreamsAreNumbered) {
  const MemoryRecording recording = read(snapshot_of_two_devices());
  ASSERT_EQ(recording.devices.size(), 2u);
  EXPECT_EQ(recording.devices[0].device, 0);
  EXPECT_EQ(recording.devices[1].device, 2);
  ASSERT_EQ(recording.devices[1].segments.size(), 2u);
  // Segments by address, streams by pointer, though the file has both the other way round.
  EXPECT_EQ(recording.devices[1].segments[0].stream, 1);
  EXPECT_EQ(recording.devices[1].segments[1].stream, 2);
  EXPECT_EQ(recording.devices[0].segments[0].stream, 1);
  EXPECT_EQ(recording.devices[0].events[1].stream, 1);
  EXPECT_EQ(recording.devices[1].events[1].stream, 2);
  EXPECT_EQ(recording.devices[1].segments[0].pool, (std::array<std::int64_t, 2>{0, 3}));
}

TEST_F(SnapshotImport, FieldsOfSettingsWinOverTheText) {
  const MemoryRecording recording = read(snapshot_with_settings());
  AllocatorSettings expected;
  expected.max_split_size = MiB(128);
  expected.garbage_collection_threshold = 0.75;
  expected.roundup_power2_divisions[0] = 2;
  expected.roundup_power2_divisions[8] = 8;
  EXPECT_EQ(recording.settings, expected);
  ASSERT_EQ(recording.annotations.size(), 2u);
  EXPECT_EQ(recording.annotations[1].stage, "END");
  EXPECT_EQ(recording.annotations[1].name, "ProfilerStep#3");
  EXPECT_EQ(recording.annotations[1].time_us, 1'700'000'000'000'004);
}

TEST_F(SnapshotImport, TextOfSettingsCountsWhereFieldsAreAbsent) {
  Plain snapshot = small_snapshot();
  snapshot.set("allocator_settings",
               Plain::dict({{"PYTORCH_ALLOC_CONF", "max_split_size_mb:64,large_segment_size_mb:40"}}));
  const MemoryRecording recording = read(snapshot);
  EXPECT_EQ(recording.settings.max_split_size, MiB(64));
  EXPECT_EQ(recording.settings_text, "max_split_size_mb:64,large_segment_size_mb:40");
  snapshot["allocator_settings"].set("max_split_size", -1);
  EXPECT_EQ(read(snapshot).settings.max_split_size, AllocatorSettings::kNoLimit);
}

TEST_F(SnapshotImport, SettingsThatMakeNoSenseAreNoted) {
  Plain snapshot = small_snapshot();
  Plain settings = snapshot_settings("max_split_sizes:1");
  settings.set("max_split_size", 4096);
  settings.set("garbage_collection_threshold", 3.5);
  settings["roundup_power2_divisions"].set("8", 5);
  settings["roundup_power2_divisions"].set("3", 2);
  snapshot.set("allocator_settings", settings);
  const MemoryRecording recording = read(snapshot);
  EXPECT_EQ(recording.settings, AllocatorSettings());
  EXPECT_EQ(recording.notes.size(), 5u);
  EXPECT_TRUE(has_note(recording, "'max_split_sizes:1' is not understood"));
}

TEST_F(SnapshotImport, BareSegmentsAndDictsWithOneHalf) {
  const MemoryRecording bare = read(small_snapshot()["segments"]);
  EXPECT_EQ(bare.devices[0].segments.size(), 2u);
  EXPECT_TRUE(bare.devices[0].events.empty());
  EXPECT_TRUE(has_note(bare, "list of segments"));
  Plain half = small_snapshot();
  half.remove("segments");
  const MemoryRecording traces = read(half);
  EXPECT_EQ(traces.devices[0].events.size(), 7u);
  EXPECT_TRUE(has_note(traces, "no segments"));
  EXPECT_TRUE(has_note(read(snapshot_of({}, {})), "neither"));
}

TEST_F(SnapshotImport, ContradictionsAreNoted) {
  const MemoryRecording recording = read(snapshot_that_contradicts_itself());
  EXPECT_TRUE(has_note(recording, "contradicts itself: segments overlap (1 times, first 0x7f0000f00000)"));
  EXPECT_TRUE(has_note(recording, "contradicts itself: blocks do not cover their segment exactly (2 times"));
  EXPECT_TRUE(has_note(recording, "active_size of segment 0x7f0000000000 is 77, its blocks make 4096"));
  EXPECT_TRUE(has_note(recording, "more was requested than a block holds"));
  Plain turned = small_snapshot();
  std::ranges::reverse(segment(turned, 0)["blocks"].items());
  const MemoryRecording sorted = read(turned);
  EXPECT_TRUE(has_note(sorted, "not in the order of their addresses"));
  EXPECT_EQ(sorted.devices[0].segments[0].blocks[0].address, 0x7f0000000000u);
}

TEST_F(SnapshotImport, RefusesWhatIsNoSnapshot) {
  expect_refused(Plain(5), "an integer");
  expect_refused(Plain::list({}), "an empty list");
  expect_refused(Plain::dict({{"model", 1}}), "a list, dict or tuple of other things");
  expect_refused(Plain::dict({{"rank0", small_snapshot()}}), "a snapshot within another value");
  expect_refused(Plain::list({1, 2}), "found");
}

TEST_F(SnapshotImport, RefusesFieldsOfTheWrongType) {
  struct Case {
    std::size_t entry;
    const char* key;
    Plain value;
    const char* why;
  };
  const Case cases[] = {{1, "size", "big", "a text as 'size' of a trace entry"},
                        {1, "size", 0, "0 as 'size' of a trace entry"},
                        {1, "size", -512, "-512 as 'size' of a trace entry"},
                        {1, "size", INT64_C(1) << 51, "as 'size' of a trace entry"},
                        {1, "size", INT64_MAX, "an integer beyond 2^55 as 'size'"},
                        {1, "addr", -1, "-1 as 'addr'"},
                        {1, "addr", 1.5, "a float as 'addr'"},
                        {1, "time_us", -5, "-5 as 'time_us'"},
                        {1, "stream", "main", "a text as 'stream'"},
                        {1, "action", 3, "3 as 'action'"},
                        {1, "frames", 7, "7 as 'frames'"},
                        {1, "frames", Plain::list({1}), "as 'frames'"},
                        {1, "frames", Plain::list({snapshot_frame("a", "b", 1), 1}), "as 'frames'"}};
  for (const Case& one : cases) {
    Plain snapshot = small_snapshot();
    entry(snapshot, one.entry).set(one.key, one.value);
    expect_refused(snapshot, one.why);
  }
  for (const char* key : {"addr", "size"}) {
    Plain snapshot = small_snapshot();
    entry(snapshot, 1).remove(key);
    expect_refused(snapshot, std::string("a trace entry without '") + key + "'");
  }
}

TEST_F(SnapshotImport, RefusesListsOfTheWrongThings) {
  Plain snapshot = small_snapshot();
  snapshot.set("segments", snapshot["device_traces"].items()[0]);
  snapshot.remove("device_traces");
  expect_refused(snapshot, "a list of records as 'segments'");
  snapshot = small_snapshot();
  snapshot.set("device_traces", snapshot["device_traces"].items()[0]);
  expect_refused(snapshot, "as 'device_traces'");
  snapshot = small_snapshot();
  snapshot["device_traces"].items()[0].items().push_back(snapshot_block(64, 64, 64));
  expect_refused(snapshot, "as 'device_traces'");
  snapshot = small_snapshot();
  segment(snapshot, 0).set("blocks", "none");
  expect_refused(snapshot, "a text as 'blocks' of a segment");
  snapshot = small_snapshot();
  segment(snapshot, 0).set("segment_type", "medium");
  expect_refused(snapshot, "as 'segment_type'");
  snapshot = small_snapshot();
  segment(snapshot, 0).set("device", 5'000);
  expect_refused(snapshot, "5000 as 'device'");
}

TEST_F(SnapshotImport, OneRecordHasOnePlace) {
  Plain snapshot = small_snapshot();
  auto& trace = snapshot["device_traces"].items()[0].items();
  trace.push_back(trace[0]);
  expect_refused(snapshot, "a second reference to a trace entry");
  snapshot = small_snapshot();
  segment(snapshot, 1).set("blocks", segment(snapshot, 0)["blocks"]);
  expect_refused(snapshot, "a second reference to a list of records");
}

TEST_F(SnapshotImport, RefusesKeysTwice) {
  Plain snapshot = small_snapshot();
  entry(snapshot, 1).pairs().emplace_back("addr", 7);
  expect_refused(snapshot, "'addr' twice in one dict");
}

TEST_F(SnapshotImport, RefusesSizesThatCannotBeSummed) {
  std::vector<Plain> trace;
  for (int i = 0; i < 2'049; ++i) trace.push_back(snapshot_entry("alloc", 512, INT64_C(1) << 50));
  expect_refused(snapshot_of({}, {Plain::list(std::move(trace))}), "more than 2^61 bytes");
}

TEST_F(SnapshotImport, IsPickleLooksAtTheContent) {
  write_content(folder_ / "a.json", pickled(small_snapshot()));
  EXPECT_TRUE(is_pickle(folder_ / "a.json"));
  write_content(folder_ / "a.gz", gzipped(pickled(small_snapshot(), 2)));
  EXPECT_TRUE(is_pickle(folder_ / "a.gz"));
  EXPECT_EQ(read_snapshot(folder_ / "a.gz").devices[0].events.size(), 7u);
  for (const char* text : {"", "\x80", "{\"a\": 1}"}) {
    write_content(folder_ / "b.pickle", text);
    EXPECT_FALSE(is_pickle(folder_ / "b.pickle"));
  }
  EXPECT_THROW(is_pickle(folder_ / "absent.pickle"), InputError);
  write_content(folder_ / "cut.zip", "PK\x03\x04");
  EXPECT_THROW(is_pickle(folder_ / "cut.zip"), InputError) << "an archive is opened, and this one ends at once";
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
