#include "gui/model/row_list.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace memwall::gui {
namespace {

constexpr double kThreadHeight = 18, kStreamHeight = 26, kStallHeight = 16, kEngineHeight = 20, kLinkHeight = 34,
                 kOccupancyHeight = 120, kFurtherOccupancyHeight = 64, kResidencyHeight = 34, kClassesHeight = 34,
                 kDifferenceHeight = 80;

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool holds(std::string_view text, std::string_view part) {
  return std::search(text.begin(), text.end(), part.begin(), part.end(),
                     [](char a, char b) { return lower(a) == lower(b); }) != text.end();
}

// Whose a tier or link is: the only rank that reaches it, an index; nothing of what several share, or where there is
// one rank.
using Owner = std::optional<std::uint16_t>;
template <class ReachedBy>
Owner owner_of(const RankMachine& machine, std::size_t ranks, std::size_t index, ReachedBy reached_by) {
  if (ranks < 2) return std::nullopt;
  Owner owner;
  for (std::size_t rank = 0; rank < machine.views.size(); ++rank) {
    const auto& reached = reached_by(machine.views[rank]);
    if (std::find(reached.begin(), reached.end(), index) == reached.end()) continue;
    if (owner) return std::nullopt;
    owner = static_cast<std::uint16_t>(rank);
  }
  return owner;
}

// Makes the rows of one run.
class RowMaker {
 public:
  RowMaker(std::vector<CanvasRow>& rows, const std::vector<OpenRun>& runs, std::uint8_t run)
      : rows_(rows),
        outline_(runs[run].outline()),
        ranks_(outline_.run.trace->rank_table.size()),
        run_(run),
        prefix_(runs.size() > 1 ? runs[run].title() + ": " : "") {}

  bool has_ranks() const { return ranks_ > 1; }

  // Of one rank, part by part: what a person looks at first, of two runs below each other, and the rest.
  void add_time() { add_classes("where the time goes", 0); }
  void add_memory_rows() {
    add_memory({});
    add_selected_storage();
  }
  void add_lanes_and_links(Owner owner = {}) {
    add_lanes(RunLaneKind::thread, "Host threads", kThreadHeight, owner);
    add_lanes(RunLaneKind::stream, "Streams", kStreamHeight, owner);
    add_lanes(RunLaneKind::engine, "Copy engines", kEngineHeight, owner);
    add_lanes(RunLaneKind::pager, "Pager", kEngineHeight, owner);
    add_links(owner);
  }

  // Of several: each rank whole, then what they share.
  void add_ranks() {
    for (std::size_t rank = 0; rank < ranks_; ++rank) {
      const std::string number = std::to_string(outline_.run.trace->rank_table[rank].number);
      group_ = "Rank " + number;
      owner_ = static_cast<std::uint16_t>(rank);
      add_classes("where the time goes, rank " + number, rank);
      add_memory(owner_);
      add_lanes_and_links(owner_);
    }
    group_.clear();
    owner_.reset();
    add_memory_rows();
    add_links({});
  }

 private:
  // Into the group of the rank, where there are several.
  void add(RowKind kind, std::size_t index, std::string title, const char* group, double height, bool hidden = false) {
    rows_.push_back({kind, run_, static_cast<std::uint32_t>(index), std::move(title),
                     prefix_ + (group_.empty() ? group : group_), height, hidden, owner_});
  }

  void add_classes(std::string title, std::size_t rank) {
    add(RowKind::classes, rank, std::move(title), "Time", kClassesHeight);
  }

  void add_lanes(RunLaneKind kind, const char* group, double height, Owner owner) {
    for (std::size_t i = 0; i < outline_.lanes.size(); ++i) {
      const RunLane& lane = outline_.lanes[i];
      if (lane.kind != kind || lane.spans == 0 || (owner && lane.rank != *owner)) continue;
      add(RowKind::lane, i, lane.name, group, height);
      if (kind == RunLaneKind::stream) add(RowKind::stall, i, "waits of " + lane.name, group, kStallHeight);
    }
  }

  void add_links(Owner owner) {
    const Run& run = outline_.run;
    for (std::size_t i = 0; i < run.machine.links.size(); ++i) {
      if (owner_of(run.machine, ranks_, i, [](const RankView& view) -> auto& { return view.link; }) != owner) continue;
      const bool used = i < run.result.links.size() && run.result.links[i].bytes > 0;
      add(RowKind::link, i, run.machine.links[i].name, "Links", kLinkHeight, !used);
    }
  }

  // The first tier that is used is the highest: what a step has to fit into.
  void add_memory(Owner owner) {
    const Run& run = outline_.run;
    bool first = true;
    for (std::size_t i = 0; i < run.machine.tiers.size(); ++i) {
      if (owner_of(run.machine, ranks_, i, [](const RankView& view) -> auto& { return view.tier; }) != owner) continue;
      const bool used = i < run.result.tiers.size() &&
                        (run.result.tiers[i].peak_allocated > 0 || run.result.tiers[i].peak_reserved > 0);
      const double height = used && std::exchange(first, false) ? kOccupancyHeight : kFurtherOccupancyHeight;
      add(RowKind::occupancy, i, run.machine.tiers[i].name, "Memory", height, !used);
    }
  }

  void add_selected_storage() { add(RowKind::residency, 0, "selected storage", "Memory", kResidencyHeight); }

  std::vector<CanvasRow>& rows_;
  const RunOutline& outline_;
  std::size_t ranks_;
  std::uint8_t run_;
  std::string prefix_;
  std::string group_;  // of the rank whose rows are added
  Owner owner_;
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
  std::vector<RowMaker> makers;
  for (std::size_t run = 0; run < runs.size(); ++run)
    makers.emplace_back(list.rows_, runs, static_cast<std::uint8_t>(run));
  const auto each = [&](void (*add)(RowMaker&)) {
    for (RowMaker& maker : makers)
      if (!maker.has_ranks()) add(maker);
  };
  each([](RowMaker& maker) { maker.add_time(); });
  each([](RowMaker& maker) { maker.add_memory_rows(); });
  each([](RowMaker& maker) { maker.add_lanes_and_links(); });
  for (RowMaker& maker : makers)
    if (maker.has_ranks()) maker.add_ranks();
  if (runs.size() > 1)
    list.rows_.push_back(
        {RowKind::difference, 1, 0, "how far the second lags behind", "Difference", kDifferenceHeight, false, {}});
  // One rank of a job stands for the others at first sight.
  for (const RankRef& rank : list.ranks()) list.fold(rank, rank.second > 0);
  return list;
}

std::vector<std::size_t> RowList::shown() const {
  std::vector<std::size_t> indices;
  indices.reserve(rows_.size());
  for (std::size_t i = 0; i < rows_.size(); ++i)
    if (shows(i)) indices.push_back(i);
  return indices;
}

bool RowList::stands_for_rank(std::size_t row) const {
  const CanvasRow& r = rows_[row];
  return r.kind == RowKind::classes && r.rank && filter_.empty() && folded_.contains({r.run, *r.rank});
}

bool RowList::shows(std::size_t row) const {
  const CanvasRow& r = rows_[row];
  if (stands_for_rank(row)) return true;
  if (r.hidden || !holds(r.title, filter_)) return false;
  return !filter_.empty() || !r.rank || !folded_.contains({r.run, *r.rank});
}

std::set<RowList::RankRef> RowList::ranks() const {
  std::set<RankRef> ranks;
  for (const CanvasRow& row : rows_)
    if (row.rank) ranks.insert({row.run, *row.rank});
  return ranks;
}

void RowList::fold(RankRef rank, bool folded) {
  if (folded)
    folded_.insert(rank);
  else
    folded_.erase(rank);
}

void RowList::fold_all(bool folded) {
  folded_.clear();
  if (folded) folded_ = ranks();
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
    if (!shows(i)) continue;
    const bool stands = stands_for_rank(i);
    const bool begins = !stands && !row.group.empty() && (!above || above->group != row.group);
    const double height = stands ? kFoldedHeight : row.height;
    if (begins) top += kGroupHeight;
    places.push_back({i, top, height, begins, stands});
    top += height;
    above = &row;
  }
  return places;
}

double RowList::height() const {
  const std::vector<Place> all = places();
  return all.empty() ? 0 : all.back().top + all.back().height;
}

std::optional<RowList::RankRef> RowList::rank_line_at(double y) const {
  for (const Place& place : places()) {
    const CanvasRow& row = rows_[place.row];
    if (place.begins_group && row.rank && place.top - kGroupHeight <= y && y < place.top)
      return RankRef{row.run, *row.rank};
  }
  return std::nullopt;
}

std::optional<RowList::Place> RowList::at(double y) const {
  for (const Place& place : places())
    if (place.top <= y && y < place.top + place.height) return place;
  return std::nullopt;
}

}  // namespace memwall::gui
