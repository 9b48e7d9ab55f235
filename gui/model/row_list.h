// The rows of the canvas from top to bottom: lanes, stalls, links, memory. Which are there, in which
// order, how high, which hidden; heights stay while panning and zooming.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
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
  // The same row of another file, for a remembered session: "1/lane/stream 7 (compute)".
  std::string key() const;
};

class RowList {
 public:
  static constexpr double kGroupHeight = 18;

  // Rows with something in them, in the order of the screen: per run host threads, each stream with its stalls below,
  // copy engines, pager, links, memory; then the difference. Rows of tiers and links that nothing used are hidden.
  static RowList of(const std::vector<OpenRun>& runs);

  const std::vector<CanvasRow>& rows() const { return rows_; }
  CanvasRow& row(std::size_t i) { return rows_[i]; }
  // What is shown: not hidden, and its title holds the filter (letters of either case).
  std::vector<std::size_t> shown() const;
  void filter(std::string text) { filter_ = std::move(text); }
  const std::string& filter() const { return filter_; }
  // The row at `from` comes to stand at `to`; those between make room. REQUIRES: both are rows.
  void move(std::size_t from, std::size_t to);
  void add(CanvasRow row, std::size_t at);
  void remove(std::size_t i);

  // The y of each shown row below the top of all rows, group lines included.
  struct Place {
    std::size_t row = 0;
    double top = 0, height = 0;
    bool begins_group = false;  // its group's line is above it: [top - kGroupHeight, top)
  };
  std::vector<Place> places() const;
  double height() const;
  std::optional<Place> at(double y) const;

 private:
  std::vector<CanvasRow> rows_;
  std::string filter_;
};

}  // namespace memwall::gui
