// Does the list of free blocks find what an ordered set finds?
#include "sim/memory/free_blocks.h"

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <random>
#include <set>

namespace memwall {
namespace MEMWALL_TEST_FILE {

using Key = std::pair<Bytes, Address>;

std::optional<Key> key_of(const FreeBlocks::Entry* entry) {
  if (entry == nullptr) return std::nullopt;
  return Key{entry->size, entry->address};
}

TEST(FreeBlocks, AgreesWithAnOrderedSet) {
  std::mt19937_64 random(1);
  FreeBlocks blocks;
  std::set<Key> reference;
  std::map<Key, std::uint32_t> block_of;
  // Few sizes and addresses, so that equals and gaps both occur; some beyond all bins in use.
  const auto key = [&] {
    return Key{Bytes{512} << (random() % 40) | static_cast<Bytes>(random() % 4 * 512), (random() % 8 + 1) * 512};
  };
  for (int i = 0; i < 20000; ++i) {
    const Key k = key();
    if (reference.erase(k) > 0) {
      blocks.erase(k.first, k.second, block_of[k]);
    } else if (reference.size() < 60) {
      reference.insert(k);
      block_of[k] = static_cast<std::uint32_t>(i);
      blocks.insert(k.first, k.second, static_cast<std::uint32_t>(i));
    }
    const Key asked = key();
    const auto from = reference.lower_bound(asked);
    EXPECT_EQ(key_of(blocks.find_from(asked.first, asked.second)),
              from == reference.end() ? std::nullopt : std::optional<Key>(*from));
    EXPECT_EQ(key_of(blocks.find_before(asked.first, asked.second)),
              from == reference.begin() ? std::nullopt : std::optional<Key>(*std::prev(from)));
  }
  std::vector<Key> entries;
  for (const auto& entry : blocks.entries()) entries.emplace_back(entry.size, entry.address);
  EXPECT_EQ(entries, (std::vector<Key>(reference.begin(), reference.end())));
}

// A damaged recording puts two segments at one address.
TEST(FreeBlocks, OfTwoAtOnePlaceTheNamedOneGoes) {
  for (const std::uint32_t gone : {1u, 2u}) {
    FreeBlocks blocks;
    blocks.insert(1024, 4096, 1);
    blocks.insert(1024, 4096, 2);
    blocks.erase(1024, 4096, gone);
    ASSERT_EQ(blocks.entries().size(), 1u);
    EXPECT_EQ(blocks.entries()[0].block, 3 - gone);
  }
}

TEST(FreeBlocks, NothingInAnEmptyList) {
  const FreeBlocks blocks;
  EXPECT_EQ(blocks.find_from(512), nullptr);
  EXPECT_EQ(blocks.find_before(FreeBlocks::kLargest), nullptr);
  EXPECT_EQ(blocks.find_before(0), nullptr);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
