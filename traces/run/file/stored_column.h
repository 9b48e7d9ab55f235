// A column of a run file that is open for reading, any rows of it. Internal to traces/run.
//
// Nothing about it is taken for granted: it must be stored as column_write.cpp stores columns. HDF5 can do much more
// (links to other files, columns put together from others, conversions, filters that run code), and none of that is
// wanted of a file that may come from anywhere.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "traces/run/file/column_file.h"

namespace memwall {

class StoredColumn {
 public:
  // Column `name` of the table, with `rows` rows; `place` names it in sentences: "/ops/kind". Throws InputError.
  StoredColumn(const ReadContext& context, hid_t table, const std::string& name, std::string place, CellType type,
               std::size_t rows);

  const std::string& place() const { return place_; }
  // Reads rows [first, first + count) into memory. REQUIRES: they are within the column. Throws InputError.
  void load(std::size_t first, std::size_t count);
  // `count` cells from `at` of what was loaded, widened.
  void unpack(std::size_t at, std::size_t count, std::int64_t* cells) const;
  void unload() { buffer_ = {}; }
  // Reads what HDF5 needs to find any row: a cell in every page of the index of its chunks, and the last cell.
  void touch();
  // At most: of chunks that HDF5 has unpacked; its cache holds 1 MiB of a column.
  std::size_t cache_bytes() const { return is_packed_ ? std::min(std::size_t{1} << 20, rows_ * width_) : 0; }

 private:
  void open(const ReadContext& context, hid_t table, const std::string& name, bool with_cache);
  void require_plain_storage(const ReadContext& context);
  void find_type(const ReadContext& context, CellType type);

  const ReadContext& context_;
  std::string place_;
  std::size_t rows_ = 0, width_ = 0;
  bool is_signed_ = false, is_packed_ = false;
  Hdf5Handle dataset_, space_, type_;
  std::vector<unsigned char> buffer_;
};

// An object of a group must be there itself: no link to elsewhere, which HDF5 would follow. Throws InputError.
void require_hard_link(const ReadContext& context, hid_t parent, const std::string& name, const std::string& place);

}  // namespace memwall
