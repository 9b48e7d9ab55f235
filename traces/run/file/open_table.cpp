#include "traces/run/file/open_table.h"

#include <fmt/format.h>

#include <utility>

namespace memwall {

OpenTable::OpenTable(const ReadContext& context, hid_t file, std::string name)
    : context_(context),
      name_(std::move(name)),
      rows_(table_rows(context, file, name_)),
      group_(open_table(context, file, name_)) {}

StoredColumn& OpenTable::column(std::string_view name, CellType type) {
  const auto found = columns_.find(name);
  if (found != columns_.end()) return found->second;
  std::string key(name);
  StoredColumn opened(context_, group_.get(), key, "/" + name_ + "/" + key, type, rows_);
  return columns_.emplace(std::move(key), std::move(opened)).first->second;
}

void OpenTable::require_rows(std::size_t first, std::size_t count) const {
  if (first > rows_ || count > rows_ - first)
    context_.refuse(
        fmt::format("table '/{}' has {} rows; rows {} to {} are asked for.", name_, rows_, first, first + count));
}

void OpenTable::read_rows(std::size_t first, std::size_t count, const TableLayout& layout, std::byte* out,
                          const std::vector<std::string_view>& wanted) {
  require_rows(first, count);
  const Hdf5Section section;
  std::int64_t cells[kColumnBlock];
  for (const ColumnLayout& each : layout.columns) {
    if (!wanted.empty() && std::find(wanted.begin(), wanted.end(), each.name) == wanted.end()) continue;
    StoredColumn& stored = column(each.name, each.type);
    stored.load(first, count);
    for (std::size_t at = 0; at < count; at += kColumnBlock) {
      const std::size_t n = std::min(kColumnBlock, count - at);
      stored.unpack(at, n, cells);
      if (const std::size_t taken = scatter(each, layout, out, at, n, cells); taken < n)
        context_.refuse(fmt::format("column '{}', row {}: found {}, which is no valid value there.", stored.place(),
                                    first + at + taken, cells[taken]));
    }
    stored.unload();
  }
}

std::size_t OpenTable::resident_bytes() const {
  std::size_t bytes = 0;
  for (const auto& [name, stored] : columns_) bytes += sizeof(stored) + name.size() + stored.cache_bytes();
  return bytes;
}

void OpenTable::scan(const std::vector<std::string_view>& columns,
                     const std::function<bool(std::size_t, const std::vector<std::vector<std::int64_t>>&)>& take) {
  std::vector<std::vector<std::int64_t>> cells(columns.size());
  for (std::size_t first = 0; first < rows_; first += kColumnChunk) {
    const std::size_t count = std::min(kColumnChunk, rows_ - first);
    for (std::size_t c = 0; c < columns.size(); ++c) {
      const Hdf5Section section;
      StoredColumn& stored = column(columns[c], CellType::integer);
      stored.load(first, count);
      cells[c].resize(count);
      stored.unpack(0, count, cells[c].data());
      stored.unload();
    }
    if (!take(first, cells)) return;
  }
}

}  // namespace memwall
