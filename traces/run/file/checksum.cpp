#include "traces/run/file/checksum.h"

#include <bit>
#include <cstring>

namespace memwall {
namespace {

static_assert(std::endian::native == std::endian::little, "words are read as they lie in memory");

constexpr std::uint64_t kPrime1 = 0x9E3779B185EBCA87ULL, kPrime2 = 0xC2B2AE3D27D4EB4FULL,
                        kPrime3 = 0x165667B19E3779F9ULL, kPrime4 = 0x85EBCA77C2B2AE63ULL,
                        kPrime5 = 0x27D4EB2F165667C5ULL;

template <class Word>
Word word_at(const unsigned char* p) {
  Word word;
  std::memcpy(&word, p, sizeof(word));
  return word;
}

std::uint64_t round(std::uint64_t lane, std::uint64_t input) { return std::rotl(lane + input * kPrime2, 31) * kPrime1; }

std::uint64_t merged(std::uint64_t hash, std::uint64_t lane) { return (hash ^ round(0, lane)) * kPrime1 + kPrime4; }

// Whole stripes of 32 bytes, in four lanes; `p` moves behind the last.
std::uint64_t stripes(const unsigned char*& p, const unsigned char* end) {
  std::uint64_t lane[4] = {kPrime1 + kPrime2, kPrime2, 0, 0 - kPrime1};
  for (; end - p >= 32; p += 32)
    for (int i = 0; i < 4; ++i) lane[i] = round(lane[i], word_at<std::uint64_t>(p + 8 * i));
  std::uint64_t hash = std::rotl(lane[0], 1) + std::rotl(lane[1], 7) + std::rotl(lane[2], 12) + std::rotl(lane[3], 18);
  for (const std::uint64_t l : lane) hash = merged(hash, l);
  return hash;
}

}  // namespace

std::uint64_t xxh64(const void* data, std::size_t size) {
  const auto* p = static_cast<const unsigned char*>(data);
  const unsigned char* const end = p + size;
  std::uint64_t hash = size >= 32 ? stripes(p, end) : kPrime5;
  hash += size;
  for (; end - p >= 8; p += 8) hash = std::rotl(hash ^ round(0, word_at<std::uint64_t>(p)), 27) * kPrime1 + kPrime4;
  if (end - p >= 4) {
    hash = std::rotl(hash ^ (word_at<std::uint32_t>(p) * kPrime1), 23) * kPrime2 + kPrime3;
    p += 4;
  }
  for (; p < end; ++p) hash = std::rotl(hash ^ (*p * kPrime5), 11) * kPrime1;
  hash = (hash ^ (hash >> 33)) * kPrime2;
  hash = (hash ^ (hash >> 29)) * kPrime3;
  return hash ^ (hash >> 32);
}

}  // namespace memwall
