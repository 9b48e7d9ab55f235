#include "gui/model/tier_changes.h"

#include <algorithm>
#include <numeric>

namespace memwall::gui {
namespace {

Bytes sum_of(const KindBytes& bytes) { return std::accumulate(bytes.begin(), bytes.end(), Bytes{0}); }

// Never given back: later than every instant.
Time end_of(const ResidencyColumns& columns, std::uint32_t row) {
  const Time end = columns.residencies[row].end;
  return end < columns.end ? end : kNever;
}

}  // namespace

TierChanges::TierChanges(const ResidencyColumns& columns, std::vector<TierChange> changes, Bytes untracked)
    : changes_(std::move(changes)) {
  const std::size_t blocks = (changes_.size() + kCheckpoint - 1) / kCheckpoint;
  totals_.reserve(blocks + 1);
  times_.reserve(blocks);
  block_highs_.reserve(blocks);
  levels_.emplace_back().reserve(blocks);
  KindBytes bytes{};
  bytes[static_cast<std::size_t>(StorageKind::unknown)] = untracked;
  Bytes sum = untracked;
  totals_.push_back(bytes);
  for (std::size_t i = 0; i < changes_.size(); ++i) {
    const std::uint32_t row = changes_[i].row();
    const Bytes change = changes_[i].ends() ? -columns.bytes(row) : columns.bytes(row);
    bytes[columns.kind(row)] += change;
    sum += change;
    const High high{sum, static_cast<std::uint32_t>(i + 1)};
    if (i % kCheckpoint == 0) {
      times_.push_back(time_of(columns, i));
      levels_[0].push_back(high);
      block_highs_.push_back(bytes);
    } else if (sum > levels_[0].back().sum) {
      levels_[0].back() = high;
      block_highs_.back() = bytes;
    }
    if ((i + 1) % kCheckpoint == 0) totals_.push_back(bytes);
  }
  build_levels();
  build_ends(columns);
}

void TierChanges::build_levels() {
  while (levels_.back().size() > 1) {
    const std::vector<High>& below = levels_.back();
    std::vector<High> level;
    level.reserve(below.size() / kFanOut + 1);
    for (std::size_t i = 0; i < below.size(); ++i)
      if (i % kFanOut == 0)
        level.push_back(below[i]);
      else
        level.back().take(below[i]);
    levels_.push_back(std::move(level));
  }
}

void TierChanges::build_ends(const ResidencyColumns& columns) {
  rows_.reserve(changes_.size() / 2 + 1);
  for (const TierChange& change : changes_)
    if (!change.ends()) rows_.push_back(change.row());
  rows_.shrink_to_fit();
  const auto add = [](Ends& level, std::size_t i, Time end) {
    if (i % kFanOut == 0)
      level.push_back(end);
    else
      level.back() = std::max(level.back(), end);
  };
  Ends& first = ends_.emplace_back();
  first.reserve(rows_.size() / kFanOut + 1);
  for (std::size_t i = 0; i < rows_.size(); ++i) add(first, i, end_of(columns, rows_[i]));
  while (ends_.back().size() > 1) {
    Ends level;
    level.reserve(ends_.back().size() / kFanOut + 1);
    for (std::size_t i = 0; i < ends_.back().size(); ++i) add(level, i, ends_.back()[i]);
    ends_.push_back(std::move(level));
  }
}

Time TierChanges::time_of(const ResidencyColumns& columns, std::size_t change) const {
  const Residency& residency = columns.residencies[changes_[change].row()];
  return changes_[change].ends() ? residency.end : residency.begin;
}

void TierChanges::apply(const ResidencyColumns& columns, std::size_t change, KindBytes& bytes) const {
  const std::uint32_t row = changes_[change].row();
  bytes[columns.kind(row)] += changes_[change].ends() ? -columns.bytes(row) : columns.bytes(row);
}

std::size_t TierChanges::count_before(const ResidencyColumns& columns, Time time, bool including, std::size_t from) const {
  const auto is_before = [&](Time a) { return including ? a <= time : a < time; };
  // The last checkpoint before `time`: those after it stand at later changes.
  const auto block =
      std::partition_point(times_.begin() + static_cast<std::ptrdiff_t>(from / kCheckpoint), times_.end(), is_before);
  const auto last = static_cast<std::size_t>(block - times_.begin());
  const std::size_t end = std::min(changes_.size(), last * kCheckpoint);
  std::size_t i = std::max(from, last == 0 ? 0 : (last - 1) * kCheckpoint);
  while (i < end && is_before(time_of(columns, i))) ++i;
  return i;
}

KindBytes TierChanges::after(const ResidencyColumns& columns, std::size_t count) const {
  KindBytes bytes = totals_[count / kCheckpoint];
  for (std::size_t i = count / kCheckpoint * kCheckpoint; i < count; ++i) apply(columns, i, bytes);
  return bytes;
}

KindBytes TierChanges::by_kind(const ResidencyColumns& columns, Time time) const {
  return after(columns, count_before(columns, time, true));
}

// Of the states after `first` ... `last` changes, all within one block: (last - 1) / kCheckpoint is that of `first`.
TierChanges::High TierChanges::highest_of_block(const ResidencyColumns& columns, std::size_t first, std::size_t last) const {
  const std::size_t block = first / kCheckpoint;
  Bytes sum = sum_of(totals_[block]);
  High high{std::numeric_limits<Bytes>::min(), 0};
  for (std::size_t count = block * kCheckpoint;; ++count) {
    if (count >= first) high.take({sum, static_cast<std::uint32_t>(count)});
    if (count == last) return high;
    const std::uint32_t row = changes_[count].row();
    sum += changes_[count].ends() ? -columns.bytes(row) : columns.bytes(row);
  }
}

// Blocks, then blocks of blocks, as far as they lie within; then down again to the last ones.
void TierChanges::take_blocks(std::size_t from, std::size_t to, High& high) const {
  std::size_t level = 0, width = 1;
  while (from < to) {
    while (level + 1 < levels_.size() && from % (width * kFanOut) == 0 && from + width * kFanOut <= to) {
      ++level;
      width *= kFanOut;
    }
    while (from + width > to) {
      --level;
      width /= kFanOut;
    }
    high.take(levels_[level][from / width]);
    from += width;
  }
}

TierChanges::High TierChanges::highest_between(const ResidencyColumns& columns, std::size_t first, std::size_t last) const {
  const std::size_t first_end = (first / kCheckpoint + 1) * kCheckpoint;
  if (last <= first_end) return highest_of_block(columns, first, last);
  High high = highest_of_block(columns, first, first_end);
  const std::size_t to = last / kCheckpoint;
  take_blocks(first_end / kCheckpoint, to, high);
  if (last > to * kCheckpoint) high.take(highest_of_block(columns, to * kCheckpoint, last));
  return high;
}

std::size_t TierChanges::checkpoints_before(Time time, std::size_t from) const {
  const auto at = std::partition_point(times_.begin() + static_cast<std::ptrdiff_t>(from), times_.end(),
                                       [time](Time a) { return a < time; });
  return static_cast<std::size_t>(at - times_.begin());
}

// Whole blocks, with the one in which the piece begins and the one in which it ends.
KindHigh TierChanges::coarse_high(const ResidencyColumns& columns, std::size_t first, std::size_t last,
                                  TimeRange piece) const {
  High high = first == 0 ? High{sum_of(totals_[0]), 0} : High{std::numeric_limits<Bytes>::min(), 0};
  take_blocks(first == 0 ? 0 : first - 1, last, high);
  if (high.count == 0) return {piece.begin, totals_[0]};
  const Time time = time_of(columns, high.count - 1);
  return {std::clamp(time, piece.begin, piece.end), block_highs_[(high.count - 1) / kCheckpoint]};
}

KindHigh TierChanges::exact_high(const ResidencyColumns& columns, TimeRange piece, bool closed,
                                 std::size_t checkpoint) const {
  const std::size_t known = checkpoint == 0 ? 0 : (checkpoint - 1) * kCheckpoint;
  const std::size_t first = count_before(columns, piece.begin, false, known);
  const std::size_t last = count_before(columns, piece.end, closed, first);
  const High high = highest_between(columns, first, last);
  return {high.count == first ? piece.begin : time_of(columns, high.count - 1), after(columns, high.count)};
}

std::vector<KindHigh> TierChanges::highs(const ResidencyColumns& columns, TimeRange range, std::size_t pieces) const {
  std::vector<KindHigh> found;
  found.reserve(pieces);
  const double step = static_cast<double>(range.length().count()) / static_cast<double>(pieces);
  const auto begin_of = [&](std::size_t piece) {
    return range.begin + Duration(static_cast<std::int64_t>(step * static_cast<double>(piece)));
  };
  std::size_t first = checkpoints_before(range.begin, 0);
  for (std::size_t i = 0; i < pieces; ++i) {
    const bool is_last = i + 1 == pieces;
    const TimeRange piece{begin_of(i), is_last ? range.end : begin_of(i + 1)};
    const std::size_t last = checkpoints_before(piece.end, first);
    found.push_back(last - first >= kCoarse && !is_last ? coarse_high(columns, first, last, piece)
                                                        : exact_high(columns, piece, is_last, first));
    first = last;
  }
  return found;
}

KindHigh TierChanges::highest(const ResidencyColumns& columns) const {
  const High high = highest_between(columns, 0, changes_.size());
  return {high.count == 0 ? Time{} : time_of(columns, high.count - 1), after(columns, high.count)};
}

void TierChanges::collect(const ResidencyColumns& columns, Time time, std::size_t level, std::size_t node, std::size_t count,
                          std::vector<std::uint32_t>& found) const {
  if (ends_[level][node] <= time) return;
  std::size_t width = kFanOut;  // rows under a child
  for (std::size_t i = 0; i < level; ++i) width *= kFanOut;
  width /= kFanOut;
  for (std::size_t child = node * kFanOut; child < (node + 1) * kFanOut && child * width < count; ++child)
    if (level > 0)
      collect(columns, time, level - 1, child, count, found);
    else if (end_of(columns, rows_[child]) > time)
      found.push_back(rows_[child]);
}

std::vector<std::uint32_t> TierChanges::alive(const ResidencyColumns& columns, Time time) const {
  const auto begun = std::partition_point(rows_.begin(), rows_.end(),
                                          [&](std::uint32_t row) { return columns.residencies[row].begin <= time; });
  const auto count = static_cast<std::size_t>(begun - rows_.begin());
  std::vector<std::uint32_t> found;
  if (count > 0) collect(columns, time, ends_.size() - 1, 0, count, found);
  return found;
}

std::size_t TierChanges::resident_bytes() const {
  std::size_t bytes = changes_.capacity() * sizeof(TierChange) +
                      (totals_.capacity() + block_highs_.capacity()) * sizeof(KindBytes) +
                      times_.capacity() * sizeof(Time) + rows_.capacity() * sizeof(std::uint32_t);
  for (const auto& level : levels_) bytes += level.capacity() * sizeof(High);
  for (const Ends& level : ends_) bytes += level.capacity() * sizeof(Time);
  return bytes;
}

}  // namespace memwall::gui
