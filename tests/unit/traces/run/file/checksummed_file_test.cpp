// Does a checksummed file hand out no byte of a piece that is damaged, however a read lies across pieces?
#include "traces/run/file/checksummed_file.h"

#include <gtest/gtest.h>

#include "sim/error.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/varied_runs.h"
#include "traces/run/file/run_file.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

TEST(ChecksummedFile, VerifiesEveryPieceThatAReadTouches) {
  const ScratchFolder folder;
  write_run(gpt_run(2500, 1), folder / "run.h5");
  const std::string bytes = content_of(folder / "run.h5");
  const std::uint64_t piece = read_user_block(folder / "run.h5").piece_bytes;
  ASSERT_GT(bytes.size(), kUserBlockBytes + 3 * piece);
  std::string damaged = bytes;
  damaged[kUserBlockBytes + piece + 7] =
      static_cast<char>(damaged[kUserBlockBytes + piece + 7] ^ 1);  // in the second piece
  write_content(folder / "damaged.h5", damaged);
  const auto reads = [&](std::uint64_t offset, std::uint64_t size) {
    ChecksummedFile file(folder / "damaged.h5");
    std::string out(size, '\0');
    const bool good = file.read(offset, out.size(), out.data());
    EXPECT_EQ(file.take_failure().has_value(), !good);
    if (good) {
      EXPECT_EQ(out, bytes.substr(offset, size));
    }
    return good;
  };
  const std::uint64_t second = kUserBlockBytes + piece, third = second + piece;
  EXPECT_TRUE(reads(0, kUserBlockBytes + piece));
  EXPECT_TRUE(reads(third, piece / 2));
  EXPECT_FALSE(reads(second, 1)) << "a sound byte of a damaged piece";
  EXPECT_FALSE(reads(second - 1, 2)) << "begins in a sound piece";
  EXPECT_FALSE(reads(kUserBlockBytes, 3 * piece)) << "lies between sound ones";
  EXPECT_FALSE(reads(0, bytes.size()));
  EXPECT_TRUE(reads(5, 0));
}

TEST(ChecksummedFile, HasNothingBeyondItsEnd) {
  const ScratchFolder folder;
  write_run(gpt_run(2, 1), folder / "run.h5");
  ChecksummedFile file(folder / "run.h5");
  char byte = 0;
  EXPECT_TRUE(file.read(file.length() - 1, 1, &byte));
  EXPECT_FALSE(file.read(file.length(), 1, &byte));
  EXPECT_NE(file.take_failure()->find("points at"), std::string::npos);
  EXPECT_FALSE(file.read(~std::uint64_t{0}, 2, &byte)) << "offset + size wraps around";
  EXPECT_FALSE(file.take_failure()->empty());
  EXPECT_FALSE(file.take_failure()) << "told once";
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
