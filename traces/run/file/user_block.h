// The user block at the head of a run file: says what the file is and proves that it is whole.
//
// | bytes | content (little endian) |
// |---|---|
// | 0-15 | magic "memwall-run\r\n\x1a\n\0": a transfer that changes line ends or strips bits shows |
// | 16-19 | format version |
// | 20-23 | size of this block, 4096; the HDF5 part follows |
// | 24-31 | length of the HDF5 part |
// | 32-39 | bytes per checksum: a power of two, at least 1 MiB |
// | 40-47 | number of checksums |
// | 48-55 | XXH64 of this block with these eight bytes zero |
// | 56- | XXH64 of each piece of the HDF5 part, in order; then zeros |
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace memwall {

class FileWriter;

inline constexpr std::uint32_t kRunFormatVersion = 8;
inline constexpr std::uint64_t kUserBlockBytes = 4096;

// Fills the user block of a file whose HDF5 part is complete. Throws UsageError if it cannot be written.
void write_user_block(FileWriter& file);

// What the user block says of the rest.
struct UserBlock {
  std::uint64_t length = 0;       // of the file
  std::uint64_t piece_bytes = 0;  // of the HDF5 part, per checksum; the last piece may be shorter
  std::vector<std::uint64_t> sums;
};
// Verifies the user block alone, and the file's length. Throws InputError with a sentence.
UserBlock read_user_block(const std::filesystem::path& path);

// As read_user_block, and verifies every piece. Returns the file's length in bytes.
std::uint64_t verify_checksums(const std::filesystem::path& path);

// "the checksum of bytes 4096 to 1052671 does not match; it is damaged."
std::string damaged_piece(const UserBlock& user_block, std::size_t piece);

// Does the file begin with the magic? Never throws.
bool has_run_magic(const std::filesystem::path& path);

}  // namespace memwall
