#include "gui/model/row_list.h"

namespace memwall::gui {
std::string_view to_string(RowKind) { return ""; }
std::string CanvasRow::key() const { return title; }
RowList RowList::of(const std::vector<OpenRun>&) { return {}; }
std::vector<std::size_t> RowList::shown() const { return {}; }
void RowList::move(std::size_t, std::size_t) {}
void RowList::add(CanvasRow, std::size_t) {}
void RowList::remove(std::size_t) {}
std::vector<RowList::Place> RowList::places() const { return {}; }
double RowList::height() const { return 0; }
std::optional<RowList::Place> RowList::at(double) const { return std::nullopt; }
}  // namespace memwall::gui
