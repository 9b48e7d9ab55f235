// Tables of columns in an HDF5 group: one dataset per column, one row per item.
// Internal to traces/run; run_layout.h says which columns there are, table_layout.h how their cells travel.
//
// Integer columns are stored in the narrowest type that holds their values, so the type of a column may differ from
// file to file; readers ask HDF5. In long columns, chunks in which every cell equals the fill value are not stored at
// all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "traces/run/file/checksummed_file.h"
#include "traces/run/file/hdf5_handle.h"
#include "traces/run/file/table_layout.h"

namespace memwall {

inline constexpr std::size_t kColumnChunk = std::size_t{1} << 16;  // rows that are stored together, in long columns
inline constexpr std::size_t kColumnBlock = 2048;                  // rows at a time: a block of ops stays in the cache

// What reading needs to know about the file: its name for sentences, its length as a bound of what it may claim.
struct ReadContext {
  std::string path;
  std::uint64_t length = 0;
  ChecksummedFile* checksummed = nullptr;    // what HDF5 reads through, if it is that
  std::function<void(std::size_t)> on_rows;  // told of rows as they are read; may throw to stop
  // Throws InputError "Run file 'path': what", or what the checksummed file found damaged, which is then the reason.
  [[noreturn]] void refuse(const std::string& what) const;
};

// Throws std::runtime_error with a short phrase if HDF5 refuses; the caller knows the path.
// `first`: `rows` rows of the type that `layout` is of.
void write_table(hid_t parent, const std::string& name, const TableLayout& layout, const void* first, std::size_t rows);
// Rows of a table, bounded by what a file of this length can hold.
std::size_t table_rows(const ReadContext& context, hid_t parent, const std::string& name);
bool has_table(hid_t parent, const std::string& name);
// The same; refuses where it cannot be told. Of a name with slashes the groups on the way are asked for first.
bool has_table(const ReadContext& context, hid_t parent, const std::string& name);
Hdf5Handle open_table(const ReadContext& context, hid_t parent, const std::string& name);
// Into `rows` rows from `first` on, of the type that `layout` is of.
void read_table(const ReadContext& context, hid_t parent, const std::string& name, const TableLayout& layout,
                void* first, std::size_t rows);

}  // namespace memwall
