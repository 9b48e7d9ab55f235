// Logs of samples and recordings become series of bytes.
#include "models/workload/forecast/memory_samples.h"

#include <gtest/gtest.h>

#include "models/workload/forecast/recorded_series.h"
#include "sim/error.h"
#include "tests/support/scratch_folder.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

using Action = MemoryEvent::Action;

TEST(MemorySamples, ColumnsMayStandInAnyOrderAmongOthers) {
  MemorySampleReader reader("log");
  EXPECT_FALSE(reader.read("memory.total [MiB], memory.used [MiB], timestamp, name\r"));
  EXPECT_FALSE(reader.read(""));
  const auto sample = reader.read("81559 MiB, 17 MiB, 2026/11/21 10:00:01.500, NVIDIA H100\r");
  ASSERT_TRUE(sample);
  EXPECT_EQ(sample->used, MiB(17));
  // 20,778 days after 1970-01-01.
  EXPECT_DOUBLE_EQ(sample->seconds, 20778.0 * 86400 + 10 * 3600 + 1.5);
  EXPECT_EQ(reader.read("81559, 18, 2026/11/21 10:00:02.500, NVIDIA H100")->used, MiB(18)) << "nounits";
}

TEST(MemorySamples, DamageIsToldByLine) {
  for (const char* line : {"1,", "1,1e400", "1,nan", "1,-5", "1,5 GiB", ",5", "x,5", "nan,5", "1e300,5", "1,5,"}) {
    MemorySampleReader reader("log.csv");
    reader.read("seconds,bytes");
    if (std::string_view(line) == "1,5,") {  // one cell more is no damage
      EXPECT_TRUE(reader.read(line));
      continue;
    }
    try {
      reader.read(line);
      ADD_FAILURE() << line;
    } catch (const InputError& error) {
      EXPECT_TRUE(std::string_view(error.what()).starts_with("log.csv:2: ")) << error.what();
    }
  }
}

TEST(MemorySamples, DatesThatAreNoneAreRefused) {
  for (const char* date :
       {"2026/13/01 00:00:00", "2026/02/29 00:00:00", "2026/01/01 24:00:00", "2026/01/01 00:60:00",
        "2026/01/01 00:00:61", "2026/01/01", "1960/01/01 00:00:00", "2026/-1/01 00:00:00", "2026/01/01 00:00:00 UTC"}) {
    MemorySampleReader reader("log.csv");
    reader.read("timestamp, memory.used [MiB]");
    EXPECT_THROW(reader.read(std::string(date) + ", 5 MiB"), InputError) << date;
  }
}

TEST(MemorySamples, UnevenDistancesAreSampledAnew) {
  std::vector<std::string> notes;
  // Every second, but 3 s of silence after the third sample; the fifth is a little late.
  const std::vector<MemorySample> samples{{0, 1}, {1, 2}, {2, 3}, {5, 4}, {6.2, 5}, {7, 6}};
  const MemorySeries series = series_of_samples(samples, notes);
  EXPECT_EQ(series.bytes, (std::vector<double>{1, 2, 3, 3, 3, 4, 5, 6}));
  EXPECT_DOUBLE_EQ(series.seconds_per_sample, 1);
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_NE(notes[0].find("1 of 5 distances"), std::string::npos) << notes[0];
  notes.clear();
  EXPECT_EQ(series_of_samples({{0, 1}, {1.1, 2}, {2, 3}}, notes).bytes, (std::vector<double>{1, 2, 3}));
  EXPECT_TRUE(notes.empty());
  // A year between two samples must not become a year of samples.
  std::vector<MemorySample> gap;
  for (int i = 0; i < 10; ++i) gap.push_back({i * 1e-6, 1});
  gap.push_back({3e7, 2});
  EXPECT_EQ(series_of_samples(gap, notes).bytes.size(), gap.size());
}

TEST(MemorySamples, AFileMayLackItsLastNewline) {
  const ScratchFolder folder;
  write_content(folder / "log.csv", "seconds,bytes\n0,5\n1,7");
  EXPECT_EQ(read_memory_samples(folder / "log.csv").samples.size(), 2u);
  write_content(folder / "log.csv", "");
  EXPECT_THROW(read_memory_samples(folder / "log.csv"), InputError);
}

MemoryEvent event(Action action, Address address, Bytes size) {
  return {.address = address, .size = size, .action = action};
}

TEST(RecordedSeries, RunsFromWhatTheSegmentsHoldAtTheEnd) {
  DeviceRecording device;
  device.events = {event(Action::alloc, 10, 100),          event(Action::segment_alloc, 0, 4096),
                   event(Action::free_requested, 10, 100), event(Action::free_completed, 10, 100),
                   event(Action::alloc, 20, 30),           event(Action::free_completed, 40, 7)};
  // Without segments: from 0. The last free is of something from before: nothing may fall below 0.
  EXPECT_EQ(live_bytes_of(device), (std::vector<double>{100, 100, 0, 0, 30, 23}));
  device.events.push_back(event(Action::free_requested, 50, 60));
  EXPECT_EQ(live_bytes_of(device), (std::vector<double>{137, 137, 37, 37, 67, 60, 0}));
  // With segments: 30 live at the end and 1000 that lived all the time.
  RecordedSegment segment;
  segment.blocks = {{.address = 0, .size = 512, .requested = 30, .state = RecordedBlock::State::allocated},
                    {.address = 512, .size = 1024, .requested = 1000, .state = RecordedBlock::State::allocated},
                    {.address = 1536, .size = 512, .requested = 77, .state = RecordedBlock::State::inactive}};
  device.segments = {segment};
  EXPECT_EQ(live_bytes_of(device).back(), 1030);
  EXPECT_EQ(live_bytes_of(device).front(), 1030 + 37 + 100);
  EXPECT_TRUE(live_bytes_of({}).empty());
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
