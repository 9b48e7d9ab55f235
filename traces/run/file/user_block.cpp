#include "traces/run/file/user_block.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "sim/files/file_writer.h"
#include "sim/files/input_file.h"
#include "sim/error.h"

namespace memwall {
namespace {

constexpr char kMagic[17] = "memwall-run\r\n\x1a\n";  // the 16th byte is 0
constexpr std::size_t kTableOffset = 56, kOwnChecksumOffset = 48;
constexpr std::uint64_t kMaximalPieces = (kUserBlockBytes - kTableOffset) / 8;
constexpr std::uint64_t kSmallestPiece = 1 << 20;

using Block = std::array<char, kUserBlockBytes>;

template <class Word>
Word get(const Block& block, std::size_t offset) {
  Word word;
  std::memcpy(&word, block.data() + offset, sizeof(word));
  return word;
}

template <class Word>
void put(Block& block, std::size_t offset, Word word) {
  std::memcpy(block.data() + offset, &word, sizeof(word));
}

std::uint64_t own_checksum(Block block) {
  put<std::uint64_t>(block, kOwnChecksumOffset, 0);
  return XXH64(block.data(), block.size(), 0);
}

std::uint64_t piece_bytes_for(std::uint64_t length) {
  std::uint64_t piece = kSmallestPiece;
  while ((length + piece - 1) / piece > kMaximalPieces) piece *= 2;
  return piece;
}

// Of the HDF5 part; shorter than expected if the file ends early. `read(offset, to, size)` gives how many bytes it
// read. At most 1 MiB is in memory at a time where a piece is that small; larger pieces belong to files that are
// themselves hundreds of times larger.
template <class Read>
std::vector<std::uint64_t> piece_checksums(std::uint64_t length, std::uint64_t piece, Read read) {
  std::vector<std::uint64_t> sums;
  std::vector<char> buffer(static_cast<std::size_t>(std::min(piece, length)));
  for (std::uint64_t done = 0; done < length; done += piece) {
    const auto size = static_cast<std::size_t>(std::min(piece, length - done));
    if (read(kUserBlockBytes + done, buffer.data(), size) != size) break;
    sums.push_back(XXH64(buffer.data(), size, 0));
  }
  return sums;
}

[[noreturn]] void refuse(const std::filesystem::path& path, const std::string& what) {
  throw InputError(fmt::format("Run file '{}': {}", path.string(), what));
}

Block read_block(std::istream& in, const std::filesystem::path& path, std::uint64_t length) {
  Block block{};
  in.read(block.data(), static_cast<std::streamsize>(block.size()));
  const auto found = static_cast<std::size_t>(in.gcount());
  if (found < 16 || std::memcmp(block.data(), kMagic, 16) != 0) {
    if (found >= 11 && std::memcmp(block.data(), kMagic, 11) == 0 && found >= 16)
      refuse(path,
             "its first bytes are those of a run file whose line ends a transfer has changed; copy it as binary.");
    refuse(path, found == 0 ? "it is empty; expected a run that memwall wrote."
                            : "it does not begin like a run file; expected a run that memwall wrote.");
  }
  if (found < block.size())
    refuse(path, fmt::format("it ends after {} bytes, within its first {}; it is truncated.", length, kUserBlockBytes));
  return block;
}

void check_block(const Block& block, const std::filesystem::path& path, std::uint64_t length) {
  const auto version = get<std::uint32_t>(block, 16);
  if (own_checksum(block) != get<std::uint64_t>(block, kOwnChecksumOffset))
    refuse(path, "the checksum of its first 4096 bytes does not match; it is damaged.");
  if (version != kRunFormatVersion)
    refuse(path, fmt::format("its format version is {}, expected {}; run it again with this memwall.", version,
                             kRunFormatVersion));
  const auto stated = get<std::uint64_t>(block, 24);
  const std::uint64_t found = length - kUserBlockBytes;
  if (get<std::uint32_t>(block, 20) != kUserBlockBytes || get<std::uint64_t>(block, 32) != piece_bytes_for(stated) ||
      get<std::uint64_t>(block, 40) != (stated + piece_bytes_for(stated) - 1) / piece_bytes_for(stated))
    refuse(path, "its first block contradicts itself; it was not written by memwall.");
  if (found < stated)
    refuse(path,
           fmt::format("it has {} bytes after its first block, {} are expected; it is truncated.", found, stated));
  if (found > stated)
    refuse(path, fmt::format("{} bytes follow after its end; something was appended to it.", found - stated));
}

}  // namespace

void write_user_block(FileWriter& file) {
  const std::uint64_t length = file.size() - kUserBlockBytes;
  const std::uint64_t piece = piece_bytes_for(length);
  const std::vector<std::uint64_t> sums = piece_checksums(
      length, piece, [&](std::uint64_t offset, char* to, std::size_t size) { return file.read_at(offset, to, size); });
  Block block{};
  std::memcpy(block.data(), kMagic, 16);
  put<std::uint32_t>(block, 16, kRunFormatVersion);
  put<std::uint32_t>(block, 20, static_cast<std::uint32_t>(kUserBlockBytes));
  put<std::uint64_t>(block, 24, length);
  put<std::uint64_t>(block, 32, piece);
  put<std::uint64_t>(block, 40, sums.size());
  for (std::size_t i = 0; i < sums.size(); ++i) put(block, kTableOffset + 8 * i, sums[i]);
  put(block, kOwnChecksumOffset, own_checksum(block));
  file.write_at(0, {block.data(), block.size()});
}

UserBlock read_user_block(const std::filesystem::path& path) {
  const std::filesystem::path to_open = readable_path(path, "a run that memwall wrote");
  std::ifstream in(to_open, std::ios::binary);
  if (!in) refuse(path, "it cannot be opened; expected a run that memwall wrote.");
  UserBlock user_block;
  std::error_code error;
  user_block.length = std::filesystem::file_size(to_open, error);
  if (error) refuse(path, "it is not a plain file.");
  const Block block = read_block(in, path, user_block.length);
  check_block(block, path, user_block.length);
  user_block.piece_bytes = get<std::uint64_t>(block, 32);
  user_block.sums.resize(static_cast<std::size_t>(get<std::uint64_t>(block, 40)));
  for (std::size_t i = 0; i < user_block.sums.size(); ++i)
    user_block.sums[i] = get<std::uint64_t>(block, kTableOffset + 8 * i);
  return user_block;
}

std::string damaged_piece(const UserBlock& user_block, std::size_t piece) {
  return fmt::format("the checksum of bytes {} to {} does not match; it is damaged.",
                     kUserBlockBytes + piece * user_block.piece_bytes,
                     std::min(kUserBlockBytes + (piece + 1) * user_block.piece_bytes, user_block.length) - 1);
}

std::uint64_t verify_checksums(const std::filesystem::path& path) {
  const UserBlock user_block = read_user_block(path);
  std::ifstream in(readable_path(path), std::ios::binary);
  in.seekg(static_cast<std::streamoff>(kUserBlockBytes));
  const std::vector<std::uint64_t> sums = piece_checksums(
      user_block.length - kUserBlockBytes, user_block.piece_bytes, [&](std::uint64_t, char* to, std::size_t size) {
        in.read(to, static_cast<std::streamsize>(size));  // one after the other
        return static_cast<std::size_t>(in.gcount());
      });
  if (sums.size() != user_block.sums.size()) refuse(path, "it cannot be read to its end.");
  for (std::size_t i = 0; i < sums.size(); ++i)
    if (sums[i] != user_block.sums[i]) refuse(path, damaged_piece(user_block, i));
  return user_block.length;
}

bool has_run_magic(const std::filesystem::path& path) {
  char head[16] = {};
  std::ifstream in(readable_path_or_none(path), std::ios::binary);
  return in.read(head, sizeof(head)) && std::memcmp(head, kMagic, sizeof(head)) == 0;
}

}  // namespace memwall
