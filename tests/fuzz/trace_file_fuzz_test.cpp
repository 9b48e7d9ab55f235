// Does any damage to a trace file end in a sentence, without a crash and without eating memory?
//
// Two depths: bytes of the file (the checksums must catch every one), and bytes
// inside the frames with checksums made good again, as a hostile author would.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <random>
#include <utility>

#include "sim/engine/simulation.h"
#include "sim/error.h"
#include "sim/trace/trace_check.h"
#include "tests/support/random_trace.h"
#include "tests/support/rank_program.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/test_machine.h"
#include "traces/trace/frame_file.h"
#include "traces/trace/trace_file.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

// True if the file was refused with a sentence; anything but InputError escapes and fails the test.
bool refused(const std::filesystem::path& path) {
  try {
    const Trace trace = read_trace(path);
    EXPECT_TRUE(check(trace).empty());
    return false;
  } catch (const InputError& error) {
    const std::string sentence = error.what();
    EXPECT_NE(sentence.find(path.filename().string()), std::string::npos) << sentence;
    EXPECT_EQ(sentence.back(), '.') << sentence;
    return true;
  }
}

std::vector<std::string> frames_of(const std::filesystem::path& path) {
  FrameReader reader(path, kTraceFileVersion);
  std::vector<std::string> frames;
  for (std::uint32_t i = 0; i < reader.frames(); ++i) frames.emplace_back(reader.next());
  return frames;
}

void write_frames(const std::vector<std::string>& frames, const std::filesystem::path& path) {
  FrameWriter writer(path, kTraceFileVersion);
  for (const std::string& frame : frames) writer.append(frame);
  writer.finish();
}

long resident_kilobytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

std::vector<std::string> altered_at_random(std::vector<std::string> frames, std::mt19937_64& random) {
  for (std::uint64_t edits = 1 + random() % 3; edits > 0; --edits) {
    std::string& frame = frames[random() % frames.size()];
    if (frame.empty()) continue;
    const std::size_t at = random() % frame.size();
    switch (random() % 4) {
      case 0:
        frame.resize(at);
        break;
      case 1:
        frame[at] = static_cast<char>(random());
        break;
      case 2:
        frame.insert(at, 1 + random() % 9, static_cast<char>(random()));
        break;
      default:
        frame[at] = static_cast<char>(0xff);
        break;
    }
  }
  return frames;
}

// One or two numbers of ranks and of what ops name, changed for small ones.
Trace with_hostile_numbers(Trace trace, std::mt19937_64& random) {
  for (std::uint64_t edits = 1 + random() % 2; edits > 0; --edits) {
    const auto number = static_cast<std::uint16_t>(random() % 5);
    Op& op = trace.ops[random() % trace.ops.size()];
    switch (random() % 8) {
      case 0:
        trace.threads[random() % trace.threads.size()].rank = number;
        break;
      case 1:
        trace.streams[random() % trace.streams.size()].rank = number;
        break;
      case 2:
        trace.rank_table[random() % trace.rank_table.size()].number = number;
        break;
      case 3:
        op.thread = number;
        break;
      case 4:
        op.stream = number;
        break;
      case 5: {  // a rank that goes to its rendezvous in another order
        const auto swapped = std::find_if(trace.ops.begin(), trace.ops.end(), [&](const Op& other) {
          return other.kind == OpKind::collective && other.thread == op.thread && other.target == number % 4;
        });
        if (op.kind == OpKind::collective && swapped != trace.ops.end()) std::swap(op.target, swapped->target);
        break;
      }
      default:
        op.target = number;
    }
  }
  return trace;
}

class TraceFileFuzz : public testing::Test {
 protected:
  TraceFileFuzz() {
    write_trace(random_trace(11, 60), good_);
    content_ = content_of(good_);
  }

  ScratchFolder folder_;
  std::filesystem::path good_ = folder_ / "good.mwt", bad_ = folder_ / "bad.mwt";
  std::string content_;
};

TEST_F(TraceFileFuzz, EveryPrefixIsRefused) {
  for (std::size_t length = 0; length < content_.size(); ++length) {
    write_content(bad_, content_.substr(0, length));
    ASSERT_TRUE(refused(bad_)) << "of " << length << " bytes";
  }
  EXPECT_FALSE(refused(good_));
}

TEST_F(TraceFileFuzz, EveryAlteredByteIsRefused) {
  std::mt19937_64 random(7);
  for (std::size_t at = 0; at < content_.size(); ++at) {
    std::string altered = content_;
    altered[at] = static_cast<char>(altered[at] ^ static_cast<char>(1 + random() % 255));
    write_content(bad_, altered);
    ASSERT_TRUE(refused(bad_)) << "at byte " << at;
  }
}

TEST_F(TraceFileFuzz, AlteredContentBehindGoodChecksumsNeverCrashes) {
  const std::vector<std::string> frames = frames_of(good_);
  std::mt19937_64 random(8);
  int refusals = 0;
  constexpr int kTries = 4000;
  for (int i = 0; i < kTries; ++i) {
    const std::vector<std::string> altered = altered_at_random(frames, random);
    write_frames(altered, bad_);
    refusals += refused(bad_);
  }
  EXPECT_GT(refusals, kTries / 3);  // some changes only rename or retime something
}

// Indices of ranks and numbers of rendezvous come from the file: what is accepted must run, or say why it cannot.
TEST_F(TraceFileFuzz, AlteredRanksAndMeetingsEndInSentences) {
  RankAuthor a(0), b(1), c(6);
  for (RankAuthor* author : {&a, &b, &c})
    for (std::uint32_t rendezvous = 0; rendezvous < 4; ++rendezvous) {
      author->kernel(microseconds(3 + rendezvous));
      author->order(0, 1);
      author->meet(rendezvous, microseconds(10), 1, 0);
    }
  const Trace sound = joined(std::move(a), std::move(b), std::move(c));
  write_trace(sound, good_);
  const std::vector<std::string> frames = frames_of(good_);
  std::mt19937_64 random(9);
  int accepted = 0, ran = 0;
  for (int i = 0; i < 3000; ++i) {
    if (i % 2 == 0)
      write_frames(altered_at_random(frames, random), bad_);
    else
      write_trace(with_hostile_numbers(sound, random), bad_);
    if (refused(bad_)) continue;
    ++accepted;
    try {
      simulate(read_trace(bad_), test_machine(), {});
      ++ran;
    } catch (const InputError& error) {
      EXPECT_NE(std::string(error.what()).find("waits forever"), std::string::npos) << error.what();
    } catch (const UsageError&) {  // a tier of another name
    }
  }
  EXPECT_GT(ran, 100);
  EXPECT_GT(accepted, ran) << "no damage made a circle: the rendezvous are not reached";
}

TEST_F(TraceFileFuzz, PartsInAnotherOrderOrNumberAreRefused) {
  const std::vector<std::string> frames = frames_of(good_);
  ASSERT_GE(frames.size(), 4u);
  for (std::size_t i = 0; i < frames.size(); ++i) {
    std::vector<std::string> missing = frames, twice = frames;
    missing.erase(missing.begin() + static_cast<std::ptrdiff_t>(i));
    twice.push_back(frames[i]);
    write_frames(missing, bad_);
    EXPECT_TRUE(refused(bad_)) << "without part " << i;
    write_frames(twice, bad_);
    EXPECT_TRUE(refused(bad_)) << "with part " << i << " twice";
  }
  write_frames({}, bad_);
  EXPECT_TRUE(refused(bad_));
}

TEST_F(TraceFileFuzz, PromisesOfBillionsAllocateNothing) {
  // Field 22 of the header (tag 0xb0 0x01), ops: four billion; then a chunk of as many rows without columns.
  const std::string many("\x80\x80\x80\x80\x0e", 5);
  std::vector<std::string> frames = frames_of(good_);
  const std::string header = frames[0].substr(0, 1);  // field 1 of the chunk
  const std::string body = std::string("\xb0\x01", 2) + many;
  frames[0] = header + static_cast<char>(body.size()) + body;
  const long before = resident_kilobytes();
  write_frames(frames, bad_);
  EXPECT_TRUE(refused(bad_));
  const std::string rows = std::string("\x08", 1) + many;
  frames.assign({frames[0], std::string("\x22", 1) + static_cast<char>(rows.size()) + rows});
  write_frames(frames, bad_);
  EXPECT_TRUE(refused(bad_));
  EXPECT_LT(resident_kilobytes() - before, 100'000);
}

TEST_F(TraceFileFuzz, AFrameThatUnpacksToGigabytesIsRefusedUnseen) {
  FrameWriter writer(bad_, kTraceFileVersion);
  EXPECT_THROW(writer.append(std::string(kLargestFrame + 1, '\0')), UsageError);
  writer.append(std::string(kLargestFrame, '\0'));  // a thousandth of it on disk
  writer.finish();
  const long before = resident_kilobytes();
  EXPECT_TRUE(refused(bad_));
  EXPECT_LT(resident_kilobytes() - before, 200'000);
}

TEST_F(TraceFileFuzz, NoiseIsRefused) {
  std::mt19937_64 random(9);
  for (int i = 0; i < 300; ++i) {
    std::string noise = i % 2 ? std::string(kTraceMagic) : "";
    for (std::uint64_t n = random() % 300; n > 0; --n) noise.push_back(static_cast<char>(random()));
    write_content(bad_, noise);
    ASSERT_TRUE(refused(bad_));
  }
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
