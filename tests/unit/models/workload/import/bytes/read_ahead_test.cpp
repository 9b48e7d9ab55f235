// Does reading one block ahead give the file's bytes, and its error where its bytes end?
#include "models/workload/import/bytes/read_ahead.h"

#include <gtest/gtest.h>

#include <random>

#include "models/workload/import/bytes/byte_source.h"
#include "sim/error.h"
#include "tests/support/gzip.h"
#include "tests/support/scratch_folder.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

std::string some_bytes(std::size_t size) {
  std::mt19937_64 random(size);
  std::string text(size, ' ');
  for (char& c : text) c = static_cast<char>('a' + random() % 16);
  return text;
}

// In pieces of odd sizes.
std::string read_all(ByteSource& source) {
  ReadAhead ahead(source);
  std::string all;
  std::vector<char> piece(777'777);
  for (std::size_t size = 1;; size = size % piece.size() * 3 % piece.size() + 1) {
    const std::size_t got = ahead.read(piece.data(), size);
    all.append(piece.data(), got);
    if (got < size) return all;
  }
}

TEST(ReadAhead, GivesTheFilesBytes) {
  const ScratchFolder folder;
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, ReadAhead::kBlock - 1, ReadAhead::kBlock,
                                 ReadAhead::kBlock + 1, 5 * ReadAhead::kBlock + 12'345}) {
    const std::string text = some_bytes(size);
    for (const bool packed : {false, true}) {
      write_content(folder / "file", packed ? gzipped(text) : text);
      ByteSource source(folder / "file");
      EXPECT_EQ(read_all(source), text) << size << (packed ? " packed" : "");
    }
  }
}

TEST(ReadAhead, ThrowsBehindTheLastWholeBlock) {
  const ScratchFolder folder;
  const std::string text = some_bytes(4 * ReadAhead::kBlock), packed = gzipped(text);
  write_content(folder / "file", packed.substr(0, packed.size() * 3 / 4));
  ByteSource source(folder / "file");
  ReadAhead ahead(source);
  std::vector<char> block(ReadAhead::kBlock);
  EXPECT_EQ(ahead.read(block.data(), block.size()), block.size());
  EXPECT_EQ(std::string(block.begin(), block.end()), text.substr(0, block.size()));
  EXPECT_THROW(
      {
        while (ahead.read(block.data(), block.size()) > 0) {
        }
      },
      InputError);
}

TEST(ReadAhead, MayBeLeftInTheMiddle) {
  const ScratchFolder folder;
  write_content(folder / "file", some_bytes(6 * ReadAhead::kBlock));
  ByteSource source(folder / "file");
  ReadAhead ahead(source);
  std::vector<char> block(ReadAhead::kBlock);
  EXPECT_EQ(ahead.read(block.data(), block.size()), block.size());
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
