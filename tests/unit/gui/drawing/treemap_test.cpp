// Are areas proportional to bytes, do tiles fill the picture without covering each other, and is nothing left out?
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "gui/drawing/treemap_drawing.h"

namespace memwall::gui {
namespace MEMWALL_TEST_FILE {

TierLiveSet random_set(std::uint64_t seed, std::size_t rows, Bytes untracked) {
  std::mt19937_64 random(seed);
  TierLiveSet set;
  set.untracked = set.requested = untracked;
  set.by_kind[0] = untracked;
  for (std::size_t i = 0; i < rows; ++i) {
    // From some bytes to gigabytes, many of one size.
    const auto bytes = static_cast<Bytes>(std::uint64_t{1} << (random() % 32)) + static_cast<Bytes>(random() % 3);
    const auto kind = static_cast<StorageKind>(random() % kStorageKinds);
    set.rows.push_back({static_cast<StorageId>(i), bytes, kind, {}, {}});
    set.requested += bytes;
    set.by_kind[static_cast<std::size_t>(kind)] += bytes;
  }
  std::sort(set.rows.begin(), set.rows.end(), [](const LiveRow& a, const LiveRow& b) {
    return a.bytes != b.bytes ? a.bytes > b.bytes : a.storage < b.storage;
  });
  return set;
}

double area(const Rectangle& r) { return r.width * r.height; }
double overlap(const Rectangle& a, const Rectangle& b) {
  const double width = std::min(a.x + a.width, b.x + b.width) - std::max(a.x, b.x);
  const double height = std::min(a.y + a.height, b.y + b.height) - std::max(a.y, b.y);
  return std::max(0.0, width) * std::max(0.0, height);
}

TEST(Treemap, TilesAreProportionalWithinAndApart) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    const double width = 40 + 17 * static_cast<double>(seed), height = 700 - 15 * static_cast<double>(seed);
    const TierLiveSet set = random_set(seed, seed * 23, seed % 3 == 0 ? 5'000'000 : 0);
    const std::vector<TreemapTile> tiles = treemap(set, width, height);
    const double per_byte = width * height / static_cast<double>(set.requested);
    double sum = 0;
    std::map<std::uint32_t, int> seen;
    for (const TreemapTile& tile : tiles) {
      sum += area(tile.place);
      EXPECT_GE(tile.place.x, -1e-6);
      EXPECT_GE(tile.place.y, -1e-6);
      EXPECT_LE(tile.place.x + tile.place.width, width + 1e-6);
      EXPECT_LE(tile.place.y + tile.place.height, height + 1e-6);
      const Bytes bytes = tile.row == kRest ? rest_of(set, tiles, tile.kind).bytes : set.rows[tile.row].bytes;
      EXPECT_NEAR(area(tile.place), static_cast<double>(bytes) * per_byte, 1e-6 * width * height) << "seed " << seed;
      if (tile.row != kRest) {
        EXPECT_EQ(++seen[tile.row], 1);
        EXPECT_EQ(tile.kind, set.rows[tile.row].kind);
        EXPECT_GE(area(tile.place), 0.999);
      }
    }
    EXPECT_NEAR(sum, width * height, 1e-6 * width * height);
    for (std::size_t i = 0; i < tiles.size(); ++i)
      for (std::size_t k = i + 1; k < tiles.size(); ++k) ASSERT_LT(overlap(tiles[i].place, tiles[k].place), 1e-6);
    // What has no tile is counted.
    std::size_t left_out = 0;
    for (int kind = 0; kind < kStorageKinds; ++kind)
      left_out += rest_of(set, tiles, static_cast<StorageKind>(kind)).storages;
    EXPECT_EQ(seen.size() + left_out, set.rows.size());
  }
}

// Six equal ones in a picture of 3 to 2: squares.
TEST(Treemap, EqualOnesBecomeSquares) {
  TierLiveSet set;
  for (StorageId i = 0; i < 6; ++i) set.rows.push_back({i, 100, StorageKind::activation, {}, {}});
  set.requested = 600;
  set.by_kind[static_cast<std::size_t>(StorageKind::activation)] = 600;
  for (const TreemapTile& tile : treemap(set, 300, 200)) {
    EXPECT_NEAR(tile.place.width, 100, 1e-9);
    EXPECT_NEAR(tile.place.height, 100, 1e-9);
  }
}

// The example of the paper: 6, 6, 4, 3, 2, 2, 1 in 6 x 4. No tile is longer than 25/9 times its width.
TEST(Treemap, TheExampleOfThePaper) {
  TierLiveSet set;
  const std::vector<Bytes> sizes{6, 6, 4, 3, 2, 2, 1};
  for (StorageId i = 0; i < sizes.size(); ++i) set.rows.push_back({i, sizes[i], StorageKind::input, {}, {}});
  set.requested = 24;
  set.by_kind[static_cast<std::size_t>(StorageKind::input)] = 24;
  const std::vector<TreemapTile> tiles = treemap(set, 600, 400);
  ASSERT_EQ(tiles.size(), 7u);
  EXPECT_NEAR(tiles[0].place.width, 300, 1e-9);
  EXPECT_NEAR(tiles[0].place.height, 200, 1e-9);
  EXPECT_NEAR(tiles[1].place.y, 200, 1e-9);
  EXPECT_NEAR(tiles[2].place.width, 171.43, 0.01);  // 4 and 3 side by side
  EXPECT_NEAR(tiles[2].place.height, 233.33, 0.01);
  for (const TreemapTile& tile : tiles)
    EXPECT_LE(std::max(tile.place.width, tile.place.height) / std::min(tile.place.width, tile.place.height),
              25.0 / 9 + 1e-9);
}

TEST(Treemap, SaysWhatIsTooSmallAndWhatIsInNoStorage) {
  TierLiveSet set;
  set.rows.push_back({7, 1'000'000'000, StorageKind::unknown, {}, {}});
  for (StorageId i = 0; i < 1234; ++i) set.rows.push_back({i + 10, 10, StorageKind::unknown, {}, {}});
  set.untracked = 500'000'000;
  set.requested = set.by_kind[0] = 1'000'000'000 + 12'340 + set.untracked;
  const std::vector<TreemapTile> tiles = treemap(set, 100, 100);
  ASSERT_EQ(tiles.size(), 2u);
  EXPECT_EQ(tiles[0].row, 0u);
  EXPECT_EQ(tiles[1].row, kRest);
  const TreemapRest rest = rest_of(set, tiles, StorageKind::unknown);
  EXPECT_EQ(rest.storages, 1234u);
  EXPECT_EQ(to_string(rest), "and 1234 smaller: 12.3 kB; 500 MB in no storage");
  bool said = false;
  const Figure figure = draw_treemap(set, tiles, std::nullopt, light_theme(), 100, 100);
  for (const Item& item : figure.items)
    if (const auto* group = std::get_if<GroupBegin>(&item)) said |= group->title == "unknown " + to_string(rest);
  EXPECT_TRUE(said);
}

TEST(Treemap, NothingIsNoTile) {
  EXPECT_TRUE(treemap({}, 100, 100).empty());
  EXPECT_TRUE(treemap(random_set(1, 5, 0), 0, 100).empty());
  EXPECT_FALSE(draw_treemap({}, {}, std::nullopt, dark_theme(), 100, 50).items.empty());
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall::gui
