// Does any damaged or hostile memory snapshot crash the reader, hang it, eat memory, or become a recording that is not
// sound?
//
// The mutants are made of the files in corpus/snapshot: bytes damaged, opcodes damaged, values exchanged. In the
// ordinary run their number is fixed. For a long run, with other mutants each time:
//   MEMWALL_FUZZ_SECONDS=3600 build/dev/tests/fuzz_snapshot_fuzz_test --gtest_filter='*Long*'
// A mutant that fails is left as memwall-snapshot-fuzz-failure.pickle in the folder for temporary files.
// The corpus is written anew, from tests/support/snapshot_variants.h, by
//   ... --gtest_also_run_disabled_tests --gtest_filter='*WriteCorpus'
// Files whose names begin with "found_" are former failures and stay.
#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <new>
#include <random>

#include "models/workload/import/snapshot/snapshot_reader.h"
#include "sim/error.h"
#include "tests/support/damage.h"
#include "tests/support/gzip.h"
#include "tests/support/pickle_damage.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/snapshot_variants.h"

namespace {

// Bytes that new has given and delete has not taken back.
std::size_t live_bytes = 0, most_live_bytes = 0;

void* counted_new(std::size_t size) {
  void* memory = std::malloc(size);
  if (memory == nullptr) throw std::bad_alloc();
  live_bytes += malloc_usable_size(memory);
  most_live_bytes = std::max(most_live_bytes, live_bytes);
  return memory;
}

void counted_delete(void* memory) {
  if (memory != nullptr) live_bytes -= malloc_usable_size(memory);
  std::free(memory);
}

}  // namespace

void* operator new(std::size_t size) { return counted_new(size); }
void* operator new[](std::size_t size) { return counted_new(size); }
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  try {
    return counted_new(size);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
void operator delete(void* memory) noexcept { counted_delete(memory); }
void operator delete[](void* memory) noexcept { counted_delete(memory); }
void operator delete(void* memory, std::size_t) noexcept { counted_delete(memory); }
void operator delete[](void* memory, std::size_t) noexcept { counted_delete(memory); }

namespace memwall {
namespace {

using Random = std::mt19937_64;

std::filesystem::path corpus_folder() { return std::filesystem::path(MEMWALL_SOURCE) / "tests/fuzz/corpus/snapshot"; }

std::vector<std::string> corpus() {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(corpus_folder()))
    if (entry.path().extension() == ".pickle") paths.push_back(entry.path());
  std::ranges::sort(paths);
  std::vector<std::string> files;
  for (const auto& path : paths) files.push_back(content_of(path));
  return files;
}

// A value of a snapshot, and one put in its place.
void exchange_value(Plain& value, Random& random, int depth = 0) {
  // Made anew each time, for their content may be exchanged too.
  const std::vector<Plain> odd = {Plain(),
                                  true,
                                  0,
                                  -1,
                                  1,
                                  512,
                                  1 << 20,
                                  std::int64_t{1} << 50,
                                  INT64_MAX,
                                  INT64_MIN,
                                  0.5,
                                  "",
                                  "alloc",
                                  "small",
                                  Plain::list({}),
                                  Plain::dict({}),
                                  Plain::tuple({1, 2}),
                                  Plain::list({1}),
                                  Plain::dict({{"action", "oom"}})};
  const bool stop = depth > 6 || random() % 8 == 0;
  if (!stop && value.kind() == Plain::Kind::dict && !value.pairs().empty()) {
    auto& pairs = value.pairs();
    const std::size_t at = random() % pairs.size();
    if (random() % 16 == 0) {
      pairs.erase(pairs.begin() + static_cast<std::ptrdiff_t>(at));
      return;
    }
    return exchange_value(random() % 32 == 0 ? pairs[at].first : pairs[at].second, random, depth + 1);
  }
  if (!stop && (value.kind() == Plain::Kind::list || value.kind() == Plain::Kind::tuple) && !value.items().empty()) {
    auto& items = value.items();
    const std::size_t at = random() % items.size();
    if (random() % 8 == 0) items.push_back(items[at]);
    return exchange_value(items[at], random, depth + 1);
  }
  value = odd[random() % odd.size()];
}

std::string mutant(const std::vector<std::string>& files, Random& random) {
  const std::string& file = files[random() % files.size()];
  switch (random() % 4) {
    case 0:
      return damaged(file, random);
    case 1:
    case 2:
      return with_damaged_opcodes(file, files[random() % files.size()], random);
    default: {
      auto variants = snapshot_variants();
      SnapshotVariant& variant = variants[random() % variants.size()];
      for (std::size_t changes = 1 + random() % 3; changes > 0; --changes) exchange_value(variant.value, random);
      return pickled(variant.value, variant.protocol);
    }
  }
}

void expect_sound_tables(const MemoryRecording& recording) {
  ASSERT_FALSE(recording.strings.empty());
  EXPECT_EQ(recording.strings[0], "");
  for (const SourceFrame& frame : recording.frames) {
    ASSERT_LT(frame.function, recording.strings.size());
    ASSERT_LT(frame.file, recording.strings.size());
  }
  ASSERT_FALSE(recording.stacks.empty());
  EXPECT_TRUE(recording.stacks[0].empty());
  for (const auto& stack : recording.stacks)
    for (const std::uint32_t frame : stack) ASSERT_LT(frame, recording.frames.size());
}

// What whoever uses a recording may rely on.
void expect_sound(const MemoryRecording& recording) {
  expect_sound_tables(recording);
  int last = -1;
  Bytes sum = 0;
  const auto add = [&](Bytes size) {
    ASSERT_GE(size, 0);
    ASSERT_LE(size, Bytes{1} << 50);
    ASSERT_FALSE(__builtin_add_overflow(sum, 2 * size, &sum));
  };
  for (const DeviceRecording& device : recording.devices) {
    EXPECT_GT(device.device, last);
    last = device.device;
    EXPECT_FALSE(device.events.empty() && device.segments.empty());
    for (const MemoryEvent& event : device.events) {
      ASSERT_LT(event.stack, recording.stacks.size());
      ASSERT_LE(event.address, Address{1} << 54);
      if (event.action == MemoryEvent::Action::alloc) {
        ASSERT_GT(event.size, 0);
      }
      if (event.action < MemoryEvent::Action::snapshot) add(event.size);
    }
    EXPECT_TRUE(std::ranges::is_sorted(device.segments, {}, &RecordedSegment::address));
    for (const RecordedSegment& segment : device.segments) {
      add(segment.size);
      ASSERT_LT(segment.stack, recording.stacks.size());
      EXPECT_TRUE(std::ranges::is_sorted(segment.blocks, {}, &RecordedBlock::address));
      for (const RecordedBlock& block : segment.blocks) {
        add(block.size);
        ASSERT_LT(block.stack, recording.stacks.size());
      }
    }
  }
}

// What becomes of a file: 0 refused, 1 a sound recording.
int outcome(const std::filesystem::path& path, std::size_t size) {
  const std::size_t before = live_bytes;
  most_live_bytes = before;
  int result = 1;
  try {
    expect_sound(read_snapshot(path));
  } catch (const InputError& error) {
    const std::string what = error.what();
    EXPECT_NE(what.find(path.string()), std::string::npos) << what;
    EXPECT_NE(what.find("expected"), std::string::npos) << what;
    result = 0;
  }
  // Two buffers of 256 KiB, the tables of 64 entries and more; the rest is a multiple of what was read.
  EXPECT_LT(most_live_bytes - before, (std::size_t{1} << 20) + 64 * size);
  return result;
}

// Reads mutants until `enough`; returns how many were refused and how many were not.
template <class Enough>
std::array<std::uint64_t, 2> read_mutants(std::uint64_t seed, Enough enough) {
  const ScratchFolder folder;
  const std::vector<std::string> files = corpus();
  Random random(seed);
  std::array<std::uint64_t, 2> counts{};
  while (!enough(counts[0] + counts[1])) {
    const std::string text = mutant(files, random);
    write_content(folder / "mutant.pickle", text);
    ++counts[outcome(folder / "mutant.pickle", text.size())];
    if (::testing::Test::HasFailure()) {
      write_content(std::filesystem::temp_directory_path() / "memwall-snapshot-fuzz-failure.pickle", text);
      ADD_FAILURE() << "seed " << seed << ", mutant " << counts[0] + counts[1];
      break;
    }
  }
  return counts;
}

TEST(SnapshotFuzz, CorpusIsReadOrRefused) {
  int sound = 0;
  const std::vector<std::string> files = corpus();
  ASSERT_GE(files.size(), snapshot_variants().size());
  const ScratchFolder folder;
  for (const std::string& file : files) {
    write_content(folder / "file.pickle", file);
    sound += outcome(folder / "file.pickle", file.size());
  }
  EXPECT_GE(sound, static_cast<int>(snapshot_variants().size()));
}

TEST(SnapshotFuzz, CorpusHasTheVariants) {
  for (const SnapshotVariant& variant : snapshot_variants())
    EXPECT_EQ(content_of(corpus_folder() / (variant.name + ".pickle")), pickled(variant.value, variant.protocol))
        << variant.name;
}

TEST(SnapshotFuzz, MutantsAreRefusedOrSound) {
  const auto counts = read_mutants(20261121, [](std::uint64_t done) { return done >= 30'000; });
  // Both ends were reached often, so that the test has looked at both.
  EXPECT_GT(counts[0], 8'000u);
  EXPECT_GT(counts[1], 2'000u);
}

TEST(SnapshotFuzz, DamagedGzipIsRefusedOrSound) {
  const ScratchFolder folder;
  Random random(7);
  const std::string packed = gzipped(pickled(small_snapshot()));
  int refused = 0;
  for (int i = 0; i < 500; ++i) {
    std::string text = packed;
    if (random() % 2 != 0)
      text.resize(2 + random() % (text.size() - 2));
    else
      text[2 + random() % (text.size() - 2)] = static_cast<char>(random());
    write_content(folder / "mutant.pickle.gz", text);
    try {
      expect_sound(read_snapshot(folder / "mutant.pickle.gz"));
    } catch (const InputError&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 400);
}

TEST(SnapshotFuzz, LongRun) {
  const char* text = std::getenv("MEMWALL_FUZZ_SECONDS");
  if (text == nullptr) GTEST_SKIP() << "MEMWALL_FUZZ_SECONDS is not set";
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(std::atoll(text));
  std::uint64_t seed = std::random_device{}();
  std::array<std::uint64_t, 2> sum{};
  while (std::chrono::steady_clock::now() < end && !HasFailure()) {
    const auto counts = read_mutants(
        ++seed, [&](std::uint64_t done) { return done >= 10'000 || std::chrono::steady_clock::now() >= end; });
    for (int i = 0; i < 2; ++i) sum[i] += counts[i];
    std::cout << sum[0] << " refused, " << sum[1] << " read; next seed " << seed + 1 << std::endl;
  }
}

TEST(SnapshotFuzz, DISABLED_WriteCorpus) {
  std::filesystem::create_directories(corpus_folder());
  for (const SnapshotVariant& variant : snapshot_variants())
    write_content(corpus_folder() / (variant.name + ".pickle"), pickled(variant.value, variant.protocol));
}

}  // namespace
}  // namespace memwall
