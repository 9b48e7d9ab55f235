// The rows of the canvas from top to bottom: lanes, stalls, links, memory. Which are there, in which
// order, how high, which hidden; heights stay while panning and zooming.
//
// Of a run that holds several ranks each rank is a group, which can be folded into one row.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gui/model/open_run.h"

namespace memwall::gui {

enum class RowKind : std::uint8_t {
  lane,        // spans of a lane: `index` into RunOutline::lanes
  stall,       // why a stream stood still: likewise, a stream's
  occupancy,   // memory of a tier by kind: `index` into Machine::tiers
  link,        // flow over a link: `index` into Machine::links
  residency,   // the life of the selected storage, tier by tier
  classes,     // what every instant goes to, with the critical path: `index` is the rank
  difference,  // how far the second run lags behind the first
};
inline constexpr int kRowKinds = 7;
std::string_view to_string(RowKind kind);  // "lane", ...

struct CanvasRow {
  RowKind kind = RowKind::lane;
  std::uint8_t run = 0;
  std::uint32_t index = 0;
  std::string title;   // "stream 7 (compute)"
  std::string group;   // "Streams", "Memory": a line above the first of a group; with the run's name where two are open
  double height = 22;  // logical pixels
  bool hidden = false;
  // Whose row it is where the run holds several ranks: an index into Trace::rank_table. Nothing: of all of them.
  std::optional<std::uint16_t> rank{};
  // The same row of another file, for a remembered session: "1/lane/stream 7 (compute)".
  std::string key() const;
};

class RowList {
 public:
  static constexpr double kGroupHeight = 18;
  static constexpr double kFoldedHeight = 30;  // of a rank's one row

  // Rows with something in them, in the order of the screen: where the time goes and memory, of each run; per run host
  // threads, each stream with its stalls below, copy engines, pager, links; then the difference. Of several ranks each
  // has all of these below its line, all but the first are folded, and what they share follows. Rows of tiers and links
  // that nothing used are hidden.
  static RowList of(const std::vector<OpenRun>& runs);

  const std::vector<CanvasRow>& rows() const { return rows_; }
  CanvasRow& row(std::size_t i) { return rows_[i]; }
  // What is shown: not hidden, not in a folded rank, and its title holds the filter (letters of either case). A filter
  // looks into folded ranks too.
  std::vector<std::size_t> shown() const;
  void filter(std::string text) { filter_ = std::move(text); }
  const std::string& filter() const { return filter_; }
  // The row at `from` comes to stand at `to`; those between make room. REQUIRES: both are rows.
  void move(std::size_t from, std::size_t to);
  void add(CanvasRow row, std::size_t at);
  void remove(std::size_t i);

  // A rank of a run.
  using RankRef = std::pair<std::uint8_t, std::uint16_t>;
  std::set<RankRef> ranks() const;  // that have rows; none where each run holds one
  const std::set<RankRef>& folded() const { return folded_; }
  void fold(RankRef rank, bool folded);
  void fold_all(bool folded);
  // Is the row shown in place of its folded rank? The row that says where the rank's time goes.
  bool stands_for_rank(std::size_t row) const;

  // The y of each shown row below the top of all rows, group lines included.
  struct Place {
    std::size_t row = 0;
    double top = 0, height = 0;
    bool begins_group = false;  // its group's line is above it: [top - kGroupHeight, top)
    bool stands_for_rank = false;
  };
  std::vector<Place> places() const;
  double height() const;
  std::optional<Place> at(double y) const;
  // The rank whose group's line is at y; nothing on other lines.
  std::optional<RankRef> rank_line_at(double y) const;

 private:
  bool shows(std::size_t row) const;

  std::vector<CanvasRow> rows_;
  std::string filter_;
  std::set<RankRef> folded_;
};

}  // namespace memwall::gui
