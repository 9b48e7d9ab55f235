#include "traces/figure/block_stack.h"

#include <algorithm>
#include <cassert>
#include <numeric>

namespace memwall {
namespace {

constexpr double kWidestColumn = 2;  // points

// All bytes from each instant at which anything changes.
struct Totals {
  std::vector<Time> times;
  std::vector<Bytes> bytes;
};

Totals totals_of(const std::vector<BlockLife>& blocks, Time begin, Time end) {
  std::vector<std::pair<Time, Bytes>> changes;
  for (const BlockLife& block : blocks) {
    if (block.end <= begin || block.begin > end || block.end <= block.begin) continue;
    changes.emplace_back(std::max(block.begin, begin), block.bytes);
    if (block.end <= end) changes.emplace_back(block.end, -block.bytes);
  }
  std::sort(changes.begin(), changes.end());
  Totals totals;
  Bytes sum = 0;
  for (std::size_t i = 0; i < changes.size(); ++i) {
    sum += changes[i].second;
    if (i + 1 < changes.size() && changes[i + 1].first == changes[i].first) continue;
    totals.times.push_back(changes[i].first);
    totals.bytes.push_back(sum);
  }
  return totals;
}

// The columns [first, last) in which a block lives.
struct Columns {
  std::size_t first = 0, last = 0;
  bool empty() const { return first >= last; }
};

class Stacking {
 public:
  Stacking(const std::vector<BlockLife>& blocks, Time begin, Time end, const BlockStackLimits& limits)
      : blocks_(blocks), limits_(limits), begin_(begin), end_(end), all_(totals_of(blocks, begin, end)) {
    assert(begin <= end);
    for (std::size_t i = 0; i < all_.times.size(); ++i)
      if (all_.bytes[i] > stack_.peak) stack_.peak = all_.bytes[i], stack_.peak_at = all_.times[i];
    order_.resize(blocks.size());
    std::iota(order_.begin(), order_.end(), std::size_t{0});
    std::stable_sort(order_.begin(), order_.end(), [&](std::size_t a, std::size_t b) {
      const Time from_a = std::max(blocks[a].begin, begin), from_b = std::max(blocks[b].begin, begin);
      return from_a != from_b ? from_a < from_b : blocks[a].end > blocks[b].end;
    });
  }

  BlockStack stack() {
    Bytes least = std::max<Bytes>(limits_.least, 1);
    // A drawing that is too large first loses sharpness in time. Then fewer and fewer blocks have a band: at 2^62 bytes
    // none is left.
    for (double column = plot::kColumn;; column *= 2) {
      choose_columns(column);
      find_lives();
      if (try_with(least)) break;
      if (column < kWidestColumn) continue;
      while (!try_with(least)) least += least / 4 + 1;
      break;
    }
    sum_the_rest();
    return std::move(stack_);
  }

 private:
  // One instant per column, the one with most bytes.
  void choose_columns(double column) {
    const Scale scale{to_seconds(begin_), to_seconds(end_), 0, limits_.width};
    const auto bytes = [&](std::size_t i) { return all_.bytes[i]; };
    stack_.columns = plot::thin_instants(all_.times, scale, 0, limits_.width, bytes, column);
    stack_.totals.clear();
    for (const plot::DrawnInstant& drawn : stack_.columns) stack_.totals.push_back(all_.bytes[drawn.index]);
  }

  void find_lives() {
    const auto first_from = [&](Time at) {
      const auto found = std::lower_bound(
          stack_.columns.begin(), stack_.columns.end(), at,
          [&](const plot::DrawnInstant& column, Time time) { return all_.times[column.index] < time; });
      return static_cast<std::size_t>(found - stack_.columns.begin());
    };
    lives_.clear();
    for (const BlockLife& block : blocks_) lives_.push_back({first_from(block.begin), first_from(block.end)});
  }

  // False where that makes too large a drawing.
  bool try_with(Bytes least) {
    stack_.least = least;
    stack_.bands.clear();
    std::vector<std::vector<std::size_t>> begin_in(stack_.columns.size());  // bands, in the order of stacking
    for (const std::size_t block : order_) {
      if (blocks_[block].bytes < least || lives_[block].empty()) continue;
      if (stack_.bands.size() == limits_.most_bands) return false;
      begin_in[lives_[block].first].push_back(stack_.bands.size());
      stack_.bands.push_back({block, {}, lives_[block].last});
    }
    return place_bands(begin_in);
  }

  bool place_bands(const std::vector<std::vector<std::size_t>>& begin_in) {
    std::vector<std::size_t> living;  // bands, from the bottom up
    std::size_t steps = 0;
    for (std::size_t column = 0; column < begin_in.size(); ++column) {
      std::erase_if(living, [&](std::size_t band) { return stack_.bands[band].end_column <= column; });
      living.insert(living.end(), begin_in[column].begin(), begin_in[column].end());
      Bytes floor = 0;
      for (const std::size_t number : living) {
        BlockBand& band = stack_.bands[number];
        if (band.steps.empty() || band.steps.back().floor != floor) {
          band.steps.push_back({column, floor});
          if (++steps > limits_.most_steps) return false;
        }
        floor += blocks_[band.block].bytes;
      }
    }
    return true;
  }

  void sum_the_rest() {
    stack_.summed = stack_.totals;
    std::vector<Bytes> change(stack_.columns.size() + 1, 0);
    for (const BlockBand& band : stack_.bands) {
      change[lives_[band.block].first] -= blocks_[band.block].bytes;
      change[band.end_column] += blocks_[band.block].bytes;
    }
    Bytes sum = 0;
    for (std::size_t column = 0; column < stack_.columns.size(); ++column)
      stack_.summed[column] += sum += change[column];
    for (const Columns& life : lives_) stack_.unseen_blocks += life.empty();
    stack_.summed_blocks = blocks_.size() - stack_.bands.size() - stack_.unseen_blocks;
  }

  const std::vector<BlockLife>& blocks_;
  BlockStackLimits limits_;
  BlockStack stack_;
  Time begin_, end_;
  Totals all_;
  std::vector<Columns> lives_;
  std::vector<std::size_t> order_;
};

}  // namespace

Bytes most_at_once(const std::vector<BlockLife>& blocks, Time begin, Time end) {
  const Totals totals = totals_of(blocks, begin, end);
  return totals.bytes.empty() ? 0 : *std::max_element(totals.bytes.begin(), totals.bytes.end());
}

BlockStack stack_blocks(const std::vector<BlockLife>& blocks, Time begin, Time end, const BlockStackLimits& limits) {
  return Stacking(blocks, begin, end, limits).stack();
}

}  // namespace memwall
