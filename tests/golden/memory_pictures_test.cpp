// Does `memwall render` draw a memory snapshot as it should, byte for byte, and refuse what makes no sense? The
// pictures of the documentation are drawn here, of a generated model.
//
// After a deliberate change: run this program with MEMWALL_UPDATE_GOLDEN=1, and look at the pictures before committing.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/support/command.h"
#include "tests/support/gpt_trace.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/synthetic_snapshot.h"
#include "tests/support/trace_snapshot.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

namespace fs = std::filesystem;

// Blocks that wait for another stream, two streams, a private pool, a second device.
Plain busy_snapshot() {
  constexpr std::uint64_t kA = 0x7f0000000000, kB = 0x7f0010000000, kC = 0x7f0020000000, kD = 0x7f0030000000;
  constexpr std::int64_t kMiB = 1 << 20;
  const Plain frames = Plain::list({snapshot_frame("forward", "model.py", 12)});
  const std::int64_t time = 1'700'000'000'000'000;
  std::vector<Plain> trace = {snapshot_entry("segment_alloc", kA, 20 * kMiB, frames, time),
                              snapshot_entry("alloc", kA, 6 * kMiB, frames, time),
                              snapshot_entry("alloc", kA + 6 * kMiB, 8 * kMiB, frames, time + 10),
                              snapshot_entry("segment_alloc", kB, 40 * kMiB, frames, time + 20, 7),
                              snapshot_entry("alloc", kB, 40 * kMiB, frames, time + 20, 7),
                              snapshot_entry("free_requested", kA, 6 * kMiB, frames, time + 30)};
  Plain graph = snapshot_segment(kC, {snapshot_block(kC, 12 * kMiB, 12 * kMiB, "active_allocated", frames)});
  graph.set("segment_pool_id", Plain::tuple({0, 1}));
  std::vector<Plain> segments = {
      snapshot_segment(kA, {snapshot_block(kA, 6 * kMiB, 6 * kMiB, "active_pending_free", frames),
                            snapshot_block(kA + 6 * kMiB, 8 * kMiB, 8 * kMiB, "active_allocated", frames),
                            snapshot_block(kA + 14 * kMiB, 6 * kMiB, 0, "inactive")}),
      snapshot_segment(kB, {snapshot_block(kB, 40 * kMiB, 40 * kMiB, "active_allocated", frames)}, 0, 7), graph,
      snapshot_segment(kD, {snapshot_block(kD, 2 * kMiB, 0, "inactive")}, 1)};
  return snapshot_of(std::move(segments), {Plain::list(std::move(trace))});
}

class MemoryPictures : public ::testing::Test {
 protected:
  void SetUp() override {
    write_content(folder_ / "small.pickle", pickled(small_snapshot()));
    write_content(folder_ / "busy.pickle", pickled(busy_snapshot()));
  }

  CommandOutcome run(const std::string& arguments) {
    return run_command("'" MEMWALL_PROGRAM "' " + arguments, folder_.path());
  }

  // What `render` writes to picture.svg.
  std::string picture(const std::string& arguments) {
    const CommandOutcome o = run("render " + arguments + " -o picture.svg");
    EXPECT_EQ(o.code, 0) << arguments << "\n" << o.err;
    EXPECT_EQ(o.err, "") << arguments;
    return content_of(folder_ / "picture.svg");
  }

  void refuses(const std::string& arguments, int code, const std::vector<std::string>& sentences) {
    const CommandOutcome o = run("render " + arguments + " -o refused.svg");
    EXPECT_EQ(o.code, code) << arguments << "\n" << o.err;
    for (const std::string& sentence : sentences)
      EXPECT_NE(o.err.find(sentence), std::string::npos) << arguments << "\nexpected: " << sentence << "\n" << o.err;
    EXPECT_FALSE(fs::exists(folder_ / "refused.svg")) << arguments;
  }

  static void equals(const fs::path& committed, const std::string& text) {
    if (std::getenv("MEMWALL_UPDATE_GOLDEN") != nullptr) write_content(committed, text);
    EXPECT_TRUE(text == content_of(committed)) << committed.filename() << " is not what is drawn today";
  }

  ScratchFolder folder_;
};

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST_F(MemoryPictures, TheDocumentationShowsWhatIsDrawnToday) {
  GptShape shape;  // four layers of GPT-2 small
  shape.layers = 4;
  shape.hidden = 768;
  shape.heads = 12;
  shape.sequence = 1024;
  shape.batch = 8;
  shape.vocabulary = 50257;
  shape.steps = 2;
  write_content(folder_ / "gpt_4_layers.pickle", pickled(snapshot_of_trace(gpt_step(shape))));
  const fs::path pictures = fs::path(MEMWALL_SOURCE) / "docs/pictures";
  const std::string memory = picture("gpt_4_layers.pickle");
  equals(pictures / "memory_by_kind.svg", memory);
  equals(pictures / "memory_segments.svg", picture("gpt_4_layers.pickle --what segments --at peak"));
  for (const char* kind : {"parameter", "optimizer_state", "gradient", "activation", "reserved", "allocated", "peak"})
    EXPECT_TRUE(contains(memory, kind)) << kind;
  EXPECT_EQ(memory, picture("gpt_4_layers.pickle --what memory"));  // the default
  const std::string blocks = picture("gpt_4_layers.pickle --what blocks");
  EXPECT_TRUE(contains(blocks, "gpt.py"));
  EXPECT_LT(blocks.size(), 2'000'000u);
}

TEST_F(MemoryPictures, OfASmallSnapshotAreExact) {
  const fs::path expected = fs::path(MEMWALL_SOURCE) / "tests/golden/expected";
  equals(expected / "small_memory.svg", picture("small.pickle --capacity 20MiB"));
  equals(expected / "small_blocks.svg", picture("small.pickle --what blocks"));
  equals(expected / "busy_segments.svg", picture("busy.pickle --what segments --at end"));
}

TEST_F(MemoryPictures, ShowTheInstantAskedFor) {
  const auto title = [&](const std::string& at) { return picture("small.pickle --what segments --at " + at); };
  EXPECT_TRUE(contains(title("start"), "before the first event"));
  EXPECT_FALSE(contains(title("start"), "in use,"));
  EXPECT_TRUE(contains(title("peak"), "after event 4 (the peak)"));
  EXPECT_TRUE(contains(title("end"), "after event 6 (the end)"));
  EXPECT_TRUE(contains(title("1"), "Large blocks, default stream") == false);  // not obtained yet
  EXPECT_TRUE(contains(title("4"), "Large blocks, default stream"));
  EXPECT_EQ(title("6"), title("end"));
  EXPECT_TRUE(contains(picture("small.pickle --axis time"), "time ("));
  EXPECT_TRUE(contains(picture("small.pickle"), "events of the allocator"));
}

TEST_F(MemoryPictures, TellPoolsStreamsPendingBlocksAndDevicesApart) {
  const std::string map = picture("busy.pickle --what segments --at end");
  for (const char* part :
       {"Large blocks, default stream", "Large blocks, stream 1", "Private pool 1, large blocks, default stream",
        "a stream may still use it 6.29 MB", "device 0"})
    EXPECT_TRUE(contains(map, part)) << part;
  EXPECT_EQ(count_of(map, "freed, a stream may still use it"), 2u);  // the legend, and the block
  EXPECT_TRUE(contains(picture("busy.pickle"), "pending: at most 6.29 MB"));
  const std::string other = picture("busy.pickle --device 1 --what segments --at end");
  EXPECT_TRUE(contains(other, "device 1, 0 events"));
  EXPECT_TRUE(contains(other, "2.10 MB free in 1 block"));
  picture("busy.pickle --device 1");
  picture("busy.pickle --device 1 --what blocks");
}

TEST_F(MemoryPictures, WrongCombinationsAreRefusedWithWhatCanBeDrawn) {
  refuses("small.pickle --what links", 2, {"--view links draws runs", "memory, blocks, segments"});
  refuses("small.pickle --what compare", 2, {"small.pickle is a memory snapshot"});
  refuses("small.pickle --what segmnts", 2, {"(nearest: \"segments\")"});
  refuses("small.pickle busy.pickle", 2, {"one memory snapshot, 2 files"});
  refuses("small.pickle --tier hbm", 2, {"--tier is for runs", "--device"});
  refuses("small.pickle --at end", 2, {"--view segments"});
  refuses("small.pickle --what segments --axis time", 2, {"--axis"});
  refuses("small.pickle --what segments --capacity 1GB", 2, {"--capacity"});
  refuses("small.pickle --what segments --at middle", 2, {"peak, start, end"});
  refuses("small.pickle --what segments --at -1", 2, {"--at"});
  refuses("small.pickle --what segments --at 7", 2, {"events 0 to 6"});
  refuses("busy.pickle --device 1 --what segments --at 0", 2, {"no events; expected start"});
  refuses("busy.pickle --device 3", 2, {"it has 0, 1"});
  refuses("busy.pickle --device 1 --axis time", 2, {"no times", "--axis events"});
  refuses("small.pickle --axis tiem", 2, {"events or time"});
  refuses("small.pickle --capacity 80", 2, {"--capacity"});
  refuses("small.pickle --capacity 0GB", 2, {"80GiB"});
  write_content(folder_ / "cut.pickle", content_of(folder_ / "small.pickle").substr(0, 900));
  refuses("cut.pickle", 6, {"cut.pickle"});
  write_content(folder_ / "text.txt", "neither");
  refuses("text.txt --what segments", 2, {"--view segments draws memory snapshots"});
  refuses("text.txt --what blocks --device 0", 2, {"memory snapshots"});
  refuses("text.txt --at end", 2, {"--at is for memory snapshots"});
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
