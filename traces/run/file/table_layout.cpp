#include "traces/run/file/table_layout.h"

namespace memwall {

void TableLayout::add(std::string_view name, CellType type, std::size_t offset, GatherCells gather,
                      ScatterCells scatter) {
  columns.push_back({std::string(name), type, offset, gather, scatter});
}

void TableLayout::add_text(std::string_view name, std::size_t offset) { texts.push_back({std::string(name), offset}); }

bool may_be_negative(std::string_view column) {
  if (column == "return_delay_ps" || column == "host.synchronize_return_ps") return true;
  for (const std::string_view constant : {"latency_ps", "stream_gap_ps", "graph_gap_ps"})
    if (column.find(constant) != std::string_view::npos) return true;
  return false;
}

}  // namespace memwall
