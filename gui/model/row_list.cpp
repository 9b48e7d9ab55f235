#include "gui/model/row_list.h"

#include <algorithm>
#include <cassert>

namespace memwall::gui {
namespace {

constexpr double kThreadHeight = 18, kStreamHeight = 26, kStallHeight = 16, kEngineHeight = 20, kLinkHeight = 34,
                 kOccupancyHeight = 120, kResidencyHeight = 34, kClassesHeight = 24, kDifferenceHeight = 80;

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool holds(std::string_view text, std::string_view part) {
  return std::search(text.begin(), text.end(), part.begin(), part.end(),
                     [](char a, char b) { return lower(a) == lower(b); }) != text.end();
}

// Makes the rows of one run.
class RowMaker {
 public:
  RowMaker(std::vector<CanvasRow>& rows, const std::vector<OpenRun>& runs, std::uint8_t run)
      : rows_(rows), outline_(runs[run].outline()), run_(run), prefix_(runs.size() > 1 ? runs[run].name + ": " : "") {}

  void add_all() {
    add_classes();
    add_lanes(RunLaneKind::thread, "Host threads", kThreadHeight);
    add_lanes(RunLaneKind::stream, "Streams", kStreamHeight);
    add_lanes(RunLaneKind::engine, "Copy engines", kEngineHeight);
    add_lanes(RunLaneKind::pager, "Pager", kEngineHeight);
    add_links();
    add_memory();
  }

 private:
  void add(RowKind kind, std::size_t index, std::string title, const char* group, double height, bool hidden = false) {
    rows_.push_back({kind, run_, static_cast<std::uint32_t>(index), std::move(title), prefix_ + group, height, hidden});
  }

  void add_classes() {
    const auto& ranks = outline_.run.trace->rank_table;
    if (ranks.empty()) return add(RowKind::classes, 0, "where the time goes", "Time", kClassesHeight);
    // One rank of a job stands for the others at first sight.
    for (std::size_t rank = 0; rank < ranks.size(); ++rank)
      add(RowKind::classes, rank, "where the time goes, rank " + std::to_string(ranks[rank].number), "Time",
          kClassesHeight, rank > 0);
  }

  void add_lanes(RunLaneKind kind, const char* group, double height) {
    for (std::size_t i = 0; i < outline_.lanes.size(); ++i) {
      const RunLane& lane = outline_.lanes[i];
      if (lane.kind != kind || lane.spans == 0) continue;
      add(RowKind::lane, i, lane.name, group, height);
      if (kind == RunLaneKind::stream) add(RowKind::stall, i, "waits of " + lane.name, group, kStallHeight);
    }
  }

  void add_links() {
    const Run& run = outline_.run;
    for (std::size_t i = 0; i < run.machine.links.size(); ++i) {
      const bool used = i < run.result.links.size() && run.result.links[i].bytes > 0;
      add(RowKind::link, i, run.machine.links[i].name, "Links", kLinkHeight, !used);
    }
  }

  void add_memory() {
    const Run& run = outline_.run;
    for (std::size_t i = 0; i < run.machine.tiers.size(); ++i) {
      const bool used = i < run.result.tiers.size() &&
                        (run.result.tiers[i].peak_allocated > 0 || run.result.tiers[i].peak_reserved > 0);
      add(RowKind::occupancy, i, run.machine.tiers[i].name, "Memory", kOccupancyHeight, !used);
    }
    add(RowKind::residency, 0, "selected storage", "Memory", kResidencyHeight);
  }

  std::vector<CanvasRow>& rows_;
  const RunOutline& outline_;
  std::uint8_t run_;
  std::string prefix_;
};

}  // namespace

std::string_view to_string(RowKind kind) {
  static constexpr std::string_view kNames[kRowKinds] = {"lane",      "stall",   "occupancy", "link",
                                                         "residency", "classes", "difference"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::string CanvasRow::key() const {
  return std::to_string(run + 1) + "/" + std::string(to_string(kind)) + "/" + title;
}

RowList RowList::of(const std::vector<OpenRun>& runs) {
  RowList list;
  for (std::size_t run = 0; run < runs.size(); ++run)
    RowMaker(list.rows_, runs, static_cast<std::uint8_t>(run)).add_all();
  if (runs.size() > 1)
    list.rows_.push_back(
        {RowKind::difference, 1, 0, "how far the second lags behind", "Difference", kDifferenceHeight, false});
  return list;
}

std::vector<std::size_t> RowList::shown() const {
  std::vector<std::size_t> indices;
  indices.reserve(rows_.size());
  for (std::size_t i = 0; i < rows_.size(); ++i)
    if (!rows_[i].hidden && holds(rows_[i].title, filter_)) indices.push_back(i);
  return indices;
}

void RowList::move(std::size_t from, std::size_t to) {
  assert(from < rows_.size() && to < rows_.size());
  const auto at = [&](std::size_t i) { return rows_.begin() + static_cast<std::ptrdiff_t>(i); };
  if (from < to) std::rotate(at(from), at(from + 1), at(to + 1));
  if (to < from) std::rotate(at(to), at(from), at(from + 1));
}

void RowList::add(CanvasRow row, std::size_t at) {
  rows_.insert(rows_.begin() + static_cast<std::ptrdiff_t>(std::min(at, rows_.size())), std::move(row));
}

void RowList::remove(std::size_t i) { rows_.erase(rows_.begin() + static_cast<std::ptrdiff_t>(i)); }

std::vector<RowList::Place> RowList::places() const {
  std::vector<Place> places;
  places.reserve(rows_.size());
  double top = 0;
  const CanvasRow* above = nullptr;
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    const CanvasRow& row = rows_[i];
    if (row.hidden || !holds(row.title, filter_)) continue;
    const bool begins = !row.group.empty() && (!above || above->group != row.group);
    if (begins) top += kGroupHeight;
    places.push_back({i, top, row.height, begins});
    top += row.height;
    above = &row;
  }
  return places;
}

double RowList::height() const {
  const std::vector<Place> all = places();
  return all.empty() ? 0 : all.back().top + all.back().height;
}

std::optional<RowList::Place> RowList::at(double y) const {
  for (const Place& place : places())
    if (place.top <= y && y < place.top + place.height) return place;
  return std::nullopt;
}

}  // namespace memwall::gui
