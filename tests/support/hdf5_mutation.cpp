#include "tests/support/hdf5_mutation.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <string_view>
#include <vector>

#include "tests/support/run_file_editor.h"

namespace memwall {
namespace {

constexpr std::size_t kSuperblock = 4096;

// Bob Jenkins' lookup3 ("hashlittle", public domain), with which HDF5 protects its structures.
std::uint32_t lookup3(const unsigned char* key, std::size_t length) {
  std::uint32_t a = 0xdeadbeef + static_cast<std::uint32_t>(length), b = a, c = a;
  const auto word = [&](std::size_t at, std::size_t left) {
    std::uint32_t w = 0;
    for (std::size_t i = 0; i < 4 && at + i < left; ++i) w |= std::uint32_t{key[at + i]} << (8 * i);
    return w;
  };
  for (; length > 12; length -= 12, key += 12) {
    a += word(0, 12), b += word(4, 12), c += word(8, 12);
    a -= c, a ^= std::rotl(c, 4), c += b;
    b -= a, b ^= std::rotl(a, 6), a += c;
    c -= b, c ^= std::rotl(b, 8), b += a;
    a -= c, a ^= std::rotl(c, 16), c += b;
    b -= a, b ^= std::rotl(a, 19), a += c;
    c -= b, c ^= std::rotl(b, 4), b += a;
  }
  if (length == 0) return c;
  a += word(0, length), b += word(4, length), c += word(8, length);
  c ^= b, c -= std::rotl(b, 14);
  a ^= c, a -= std::rotl(c, 11);
  b ^= a, b -= std::rotl(a, 25);
  c ^= b, c -= std::rotl(b, 16);
  a ^= c, a -= std::rotl(c, 4);
  b ^= a, b -= std::rotl(a, 14);
  c ^= b, c -= std::rotl(b, 24);
  return c;
}

// A structure that ends with a checksum of itself.
struct Structure {
  std::size_t begin = 0, size = 0;  // without the checksum
};

std::vector<Structure> structures(const std::string& bytes) {
  std::vector<Structure> found = {{kSuperblock, 44}};
  const auto* p = reinterpret_cast<const unsigned char*>(bytes.data());
  for (std::size_t at = kSuperblock; at + 64 < bytes.size(); ++at) {
    const std::string_view name(bytes.data() + at, 4);
    if (name == "FAHD") found.push_back({at, 24});
    if (name != "OHDR" || p[at + 4] != 2) continue;
    const unsigned flags = p[at + 5];
    std::size_t offset = 6 + ((flags & 0x20) != 0 ? 16 : 0) + ((flags & 0x10) != 0 ? 4 : 0), size = 0;
    const std::size_t width = std::size_t{1} << (flags & 3);
    for (std::size_t i = 0; i < width; ++i) size |= std::size_t{p[at + offset + i]} << (8 * i);
    offset += width;
    if (size < bytes.size() && at + offset + size + 4 <= bytes.size()) found.push_back({at, offset + size});
  }
  return found;
}

// Which numbers hurt depends on what reads them: ends of ranges, sizes, and anything.
void change(std::string& bytes, std::size_t at, std::size_t end, std::mt19937_64& random) {
  static constexpr std::uint64_t hurtful[] = {
      0, 1, 0xff, 0x7fff, 0xffff, 0x7fffffff, 0xffffffff, ~std::uint64_t{0} >> 1, ~std::uint64_t{0}};
  const std::size_t width = std::min<std::size_t>(std::size_t{1} << random() % 4, end - at);
  std::uint64_t value = random() % 2 == 0 ? random() : hurtful[random() % std::size(hurtful)];
  if (random() % 3 == 0) {
    std::memcpy(&value, bytes.data() + at, width);
    value ^= std::uint64_t{1} << random() % (8 * width);
  }
  std::memcpy(bytes.data() + at, &value, width);
}

}  // namespace

std::string mutated_run_file(const std::string& bytes, std::mt19937_64& random) {
  std::string out = bytes;
  const std::vector<Structure> known = structures(bytes);
  const auto changes = 1 + random() % 3;
  for (std::uint64_t i = 0; i < changes; ++i) {
    if (random() % 4 != 0) {
      const Structure& one = known[random() % known.size()];
      // Behind its name; the rest is fair game.
      change(out, one.begin + 4 + random() % (one.size - 4), one.begin + one.size, random);
    } else {
      change(out, kSuperblock + random() % (out.size() - kSuperblock), out.size(), random);
    }
  }
  for (const Structure& one : known) {
    const std::uint32_t sum = lookup3(reinterpret_cast<const unsigned char*>(out.data()) + one.begin, one.size);
    std::memcpy(out.data() + one.begin + one.size, &sum, 4);
  }
  reseal(out);
  return out;
}

}  // namespace memwall
