// A table of a run file that is open for reading, any rows of any of its columns. Internal to traces/run.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "traces/run/file/run_layout.h"
#include "traces/run/file/stored_column.h"

namespace memwall {

// Columns are opened when they are first asked for. Safe to use from several threads; what they do in parallel is no
// more than HDF5 allows.
class OpenTable {
 public:
  OpenTable(const ReadContext& context, hid_t file, std::string name);
  std::size_t rows() const { return rows_; }
  const std::string& name() const { return name_; }

  // Rows [first, first + count) into `out`; only the columns `wanted`, all if it is empty. Throws InputError where a
  // cell has no meaning or the rows are not there.
  template <class T>
  void read(std::size_t first, std::size_t count, T* out, const std::vector<std::string_view>& wanted = {}) {
    read_rows(first, count, layout_of<T>(), reinterpret_cast<std::byte*>(out), wanted);
  }
  template <class T>
  std::vector<T> read(std::size_t first, std::size_t count, const std::vector<std::string_view>& wanted = {}) {
    require_rows(first, count);
    std::vector<T> out(count);
    read(first, count, out.data(), wanted);
    return out;
  }
  // Cells of one column of integers, widened, in pieces; `take` says whether to go on.
  void scan(const std::vector<std::string_view>& columns,
            const std::function<bool(std::size_t first, const std::vector<std::vector<std::int64_t>>&)>& take);
  // See StoredColumn::touch; of all columns that rows of T have.
  template <class T>
  void touch() {
    const Hdf5Section section;
    for (const ColumnLayout& each : layout_of<T>().columns) column(each.name, each.type).touch();
  }
  std::size_t resident_bytes() const;  // caches of packed columns

 private:
  void require_rows(std::size_t first, std::size_t count) const;
  void read_rows(std::size_t first, std::size_t count, const TableLayout& layout, std::byte* out,
                 const std::vector<std::string_view>& wanted);
  StoredColumn& column(std::string_view name, CellType type);

  const ReadContext& context_;
  std::string name_;
  std::size_t rows_ = 0;
  Hdf5Handle group_;
  std::map<std::string, StoredColumn, std::less<>> columns_;
};

}  // namespace memwall
