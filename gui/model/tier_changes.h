// The changes of one tier in the order in which they happened, with what is needed to answer for an instant or a range
// without walking through them: totals at every kCheckpoint-th change, the highest of every block of changes, and of
// blocks of blocks. Internal to ResidencyHistory.
#pragma once

#include <cstdint>
#include <vector>

#include "gui/model/residency_history.h"

namespace memwall::gui {

// What the residencies are made of; all outlive the changes.
struct ResidencyColumns {
  const StorageColumns& storages;
  const std::vector<Residency>& residencies;
  Time end{};  // of the run: what ends then never does
  Bytes bytes(std::uint32_t row) const { return storages.bytes[residencies[row].storage]; }
  std::size_t kind(std::uint32_t row) const { return static_cast<std::size_t>(storages.kind[residencies[row].storage]); }
};

// A residency that begins or ends.
struct TierChange {
  std::uint32_t code = 0;
  static TierChange begin_of(std::uint32_t row) { return {row << 1}; }
  static TierChange end_of(std::uint32_t row) { return {row << 1 | 1}; }
  std::uint32_t row() const { return code >> 1; }
  bool ends() const { return (code & 1) != 0; }
};

class TierChanges {
 public:
  static constexpr std::size_t kCheckpoint = 32;  // changes
  static constexpr std::size_t kCoarse = 8;       // blocks of a piece from which on whole blocks are enough
  static constexpr std::size_t kFanOut = 8;       // blocks that one of the next level covers

  // `changes` in the order in which they happened; `untracked` is there before the first.
  TierChanges(const ResidencyColumns& columns, std::vector<TierChange> changes, Bytes untracked);

  KindBytes by_kind(const ResidencyColumns& columns, Time time) const;
  std::vector<KindHigh> highs(const ResidencyColumns& columns, TimeRange range, std::size_t pieces) const;
  KindHigh highest(const ResidencyColumns& columns) const;
  std::vector<std::uint32_t> alive(const ResidencyColumns& columns, Time time) const;
  std::size_t resident_bytes() const;

 private:
  // The state after `count` changes, and its sum.
  struct High {
    Bytes sum = 0;
    std::uint32_t count = 0;
    void take(const High& other) {
      if (other.sum > sum) *this = other;
    }
  };
  // The latest end of residencies in a row, for alive().
  using Ends = std::vector<Time>;

  Time time_of(const ResidencyColumns& columns, std::size_t change) const;
  void apply(const ResidencyColumns& columns, std::size_t change, KindBytes& bytes) const;
  // How many changes come before `time` (with it: `including`). `from`: a number that is known to be no larger.
  std::size_t count_before(const ResidencyColumns& columns, Time time, bool including, std::size_t from = 0) const;
  KindBytes after(const ResidencyColumns& columns, std::size_t count) const;
  // The highest of the states after `first` ... `last` changes.
  High highest_between(const ResidencyColumns& columns, std::size_t first, std::size_t last) const;
  void take_blocks(std::size_t from, std::size_t to, High& high) const;
  std::size_t checkpoints_before(Time time, std::size_t from) const;
  // `first`, `last`: how many checkpoints come before the piece's begin and end.
  KindHigh coarse_high(const ResidencyColumns& columns, std::size_t first, std::size_t last, TimeRange piece) const;
  KindHigh exact_high(const ResidencyColumns& columns, TimeRange piece, bool closed, std::size_t checkpoint) const;
  High highest_of_block(const ResidencyColumns& columns, std::size_t first, std::size_t last) const;
  void build_levels();
  void build_ends(const ResidencyColumns& columns);
  void collect(const ResidencyColumns& columns, Time time, std::size_t level, std::size_t node, std::size_t count,
               std::vector<std::uint32_t>& found) const;

  std::vector<TierChange> changes_;
  std::vector<KindBytes> totals_;          // before change i * kCheckpoint; one more at the end of full blocks
  std::vector<KindBytes> block_highs_;     // the highest state of every block
  std::vector<Time> times_;                // of change i * kCheckpoint
  std::vector<std::vector<High>> levels_;  // [0][i]: of the states after each change of block i
  std::vector<std::uint32_t> rows_;        // of residencies, ascending in begin
  std::vector<Ends> ends_;                 // [0][i]: of rows i * kFanOut ...
};

}  // namespace memwall::gui
