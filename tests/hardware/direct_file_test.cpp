// Does a direct file hold what was written, by every method, at sizes that no block divides?
#include "validate/measurement/direct_file.h"

#include <cstdlib>
#include <cstring>
#include <thread>

#include "sim/error.h"
#include "tests/support/scratch_folder.h"
#include "validate/replay/pattern.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

constexpr std::size_t kSector = 4096;

// Memory as a direct file takes it, with one sector more than asked for.
class AlignedBytes {
 public:
  explicit AlignedBytes(std::size_t bytes)
      : bytes_(bytes), data_(static_cast<unsigned char*>(std::aligned_alloc(kSector, capacity())), &std::free) {
    std::memset(data_.get(), 0xa5, capacity());
  }
  std::size_t capacity() const { return (bytes_ / kSector + 2) * kSector; }
  unsigned char* data() { return data_.get(); }
  void fill(std::uint64_t tag) {
    for (std::size_t i = 0; i < bytes_; ++i) data_.get()[i] = byte(tag, i);
  }
  // The first byte that differs from `tag`'s; `bytes` if none does.
  std::size_t first_difference(std::uint64_t tag) const {
    for (std::size_t i = 0; i < bytes_; ++i)
      if (data_.get()[i] != byte(tag, i)) return i;
    return bytes_;
  }

 private:
  static unsigned char byte(std::uint64_t tag, std::size_t i) {
    return static_cast<unsigned char>(pattern_word(tag, i / 8) >> (8 * (i % 8)));
  }
  std::size_t bytes_;
  std::unique_ptr<unsigned char, void (*)(void*)> data_;
};

struct Method {
  bool io_uring, direct;
};

class DirectFileByMethod : public testing::TestWithParam<Method> {
 protected:
  DirectFileSettings settings(std::size_t block, unsigned depth) const {
    return {block, depth, GetParam().io_uring, GetParam().direct};
  }
  const ScratchFolder scratch_;
};

TEST_P(DirectFileByMethod, HoldsWhatWasWrittenAtAwkwardSizes) {
  for (const auto& [block, depth] : std::vector<std::pair<std::size_t, unsigned>>{{4096, 1}, {8192, 3}, {1 << 20, 16}})
    for (const std::size_t bytes : {std::size_t{1}, std::size_t{4095}, std::size_t{4096}, std::size_t{4097},
                                    std::size_t{3 * 8192 + 17}, std::size_t{(1 << 20) + 1}, std::size_t{2'500'000}}) {
      const std::size_t room = (bytes / kSector + 1) * kSector;
      DirectFile file(scratch_ / "tier", 3 * room, settings(block, depth));
      AlignedBytes out(bytes), in(bytes);
      for (const std::size_t part : {2, 0, 1}) {  // not in the order in which they lie
        out.fill(bytes + part);
        file.write(out.data(), bytes, part * room);
      }
      for (const std::size_t part : {0, 1, 2}) {
        file.read(in.data(), bytes, part * room);
        EXPECT_EQ(in.first_difference(bytes + part), bytes) << file.method() << ", part " << part;
      }
    }
}

TEST_P(DirectFileByMethod, NothingBeyondTheNextSectorIsTouched) {
  DirectFile file(scratch_ / "tier", 16 * kSector, settings(4096, 4));
  AlignedBytes out(16 * kSector), in(kSector + 5);
  out.fill(7);
  file.write(out.data(), 16 * kSector, 0);
  file.read(in.data(), kSector + 5, 0);
  EXPECT_EQ(in.first_difference(7), kSector + 5);
  EXPECT_EQ(in.data()[2 * kSector], 0xa5);
  // A short write ends with its sector.
  AlignedBytes part(10), all(16 * kSector);
  part.fill(8);
  file.write(part.data(), 10, 4 * kSector);
  file.read(all.data(), 16 * kSector, 0);
  EXPECT_EQ(std::memcmp(all.data() + 4 * kSector, part.data(), 10), 0);
  EXPECT_EQ(std::memcmp(all.data() + 5 * kSector, out.data() + 5 * kSector, 11 * kSector), 0);
}

TEST_P(DirectFileByMethod, SaysWhichMethodItIs) {
  const DirectFile file(scratch_ / "tier", kSector, settings(4096, 4));
  const std::string& method = file.method();
  EXPECT_TRUE(method.starts_with("io_uring, ") || method.starts_with("pread threads, ")) << method;
  EXPECT_TRUE(method.ends_with(", O_DIRECT") || method.ends_with(", page cache")) << method;
  EXPECT_TRUE(GetParam().io_uring || method.starts_with("pread threads, ")) << method;
  EXPECT_TRUE(GetParam().direct || method.ends_with(", page cache")) << method;
}

TEST_P(DirectFileByMethod, ASecondHandleReadsWhileTheFirstWrites) {
  constexpr std::size_t kBytes = 4 << 20;
  DirectFile writer(scratch_ / "tier", 2 * kBytes, settings(64 << 10, 8));
  AlignedBytes first(kBytes), second(kBytes), in(kBytes);
  first.fill(1);
  second.fill(2);
  writer.write(first.data(), kBytes, 0);
  DirectFile reader(scratch_ / "tier", settings(64 << 10, 8));
  std::thread beside([&] {
    for (int i = 0; i < 5; ++i) writer.write(second.data(), kBytes, kBytes);
  });
  for (int i = 0; i < 5; ++i) {
    std::memset(in.data(), 0xa5, kBytes);
    reader.read(in.data(), kBytes, 0);
    EXPECT_EQ(in.first_difference(1), kBytes);
  }
  beside.join();
  reader.read(in.data(), kBytes, kBytes);
  EXPECT_EQ(in.first_difference(2), kBytes);
}

TEST_P(DirectFileByMethod, ReadingBeyondTheEndIsAnErrorAndTheFileStaysUsable) {
  DirectFile file(scratch_ / "tier", 8 * kSector, settings(4096, 4));
  AlignedBytes in(64 * kSector), out(kSector);
  try {
    file.read(in.data(), 64 * kSector, 0);
    FAIL() << "the file has 8 sectors";
  } catch (const std::runtime_error& error) {
    EXPECT_NE(std::string(error.what()).find("reading a direct file failed at byte "), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("the file ends there"), std::string::npos) << error.what();
  }
  out.fill(3);
  file.write(out.data(), kSector, 0);
  file.read(in.data(), kSector, 0);
  EXPECT_EQ(std::memcmp(in.data(), out.data(), kSector), 0);
}

INSTANTIATE_TEST_SUITE_P(, DirectFileByMethod,
                         testing::Values(Method{true, true}, Method{true, false}, Method{false, true},
                                         Method{false, false}),
                         [](const auto& test) {
                           return std::string(test.param.io_uring ? "io_uring" : "threads") +
                                  (test.param.direct ? "_direct" : "_cached");
                         });

TEST(DirectFile, TakesItsRoomAtOnceAndGivesItBack) {
  const ScratchFolder scratch;
  {
    const DirectFile file(scratch / "tier", 10'000, {});
    EXPECT_EQ(std::filesystem::file_size(scratch / "tier"), 12'288u);  // whole sectors
    { const DirectFile second(scratch / "tier", DirectFileSettings{}); }
    EXPECT_TRUE(std::filesystem::exists(scratch / "tier")) << "a second handle leaves the file in place";
  }
  EXPECT_FALSE(std::filesystem::exists(scratch / "tier"));
  const DirectFile empty(scratch / "empty", 0, {});
}

TEST(DirectFile, RefusesWhatCannotBeWritten) {
  const ScratchFolder scratch;
  try {
    const DirectFile file(scratch / "absent/tier", 4096, {});
    FAIL() << "there is no such folder";
  } catch (const UsageError& error) {
    EXPECT_NE(std::string(error.what()).find("absent/tier: the file cannot be written ("), std::string::npos);
  }
  EXPECT_THROW(DirectFile(scratch.path(), 4096, {}), UsageError);
  EXPECT_THROW(DirectFile(scratch / "absent", DirectFileSettings{}), UsageError);
}

TEST(DirectFile, RefusesMoreThanTheDiskHoldsAndLeavesNothing) {
  const ScratchFolder scratch;
  EXPECT_THROW(DirectFile(scratch / "tier", std::size_t{1} << 60, {}), UsageError);
  EXPECT_FALSE(std::filesystem::exists(scratch / "tier"));
}

TEST(DirectFile, RefusesBlocksAndDepthsThatMakeNoSense) {
  const ScratchFolder scratch;
  for (const DirectFileSettings& settings :
       {DirectFileSettings{0, 16}, DirectFileSettings{1000, 16}, DirectFileSettings{4096, 0},
        DirectFileSettings{4096, 100'000}, DirectFileSettings{std::size_t{1} << 31, 1}})
    EXPECT_THROW(DirectFile(scratch / "tier", 4096, settings), UsageError) << settings.block << " " << settings.depth;
  EXPECT_FALSE(std::filesystem::exists(scratch / "tier"));
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
