// Tables of columns in an HDF5 group: one dataset per column, one row per item.
// Internal to traces/run; run_layout.h says which columns there are.
//
// A cell travels as an int64: integers, enumerations and picoseconds as their value, floating
// point as its bits. Integer columns are stored in the narrowest type that holds their values,
// so the type of a column may differ from file to file; readers ask HDF5. In long columns,
// chunks in which every cell equals the fill value are not stored at all.
#pragma once

#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "sim/policy/pager.h"
#include "sim/engine/simulation.h"
#include "sim/trace/trace.h"
#include "traces/run/file/hdf5_handle.h"
#include "traces/run/run_index.h"
#include "traces/run/file/checksummed_file.h"

namespace memwall {

inline constexpr std::size_t kColumnChunk = std::size_t{1} << 16;  // rows that are stored together, in long columns
inline constexpr std::size_t kColumnBlock = 2048;                  // rows at a time: a block of ops stays in the cache

enum class CellType : std::uint8_t { integer, float32, float64 };

struct ColumnSource {
  std::string name;
  CellType type = CellType::integer;
  std::function<void(std::size_t first, std::size_t count, std::int64_t* out)> gather;
};

struct TextSource {
  std::string name;
  std::vector<const std::string*> texts;
};

struct ColumnTarget {
  std::string name;
  CellType type = CellType::integer;
  // Returns how many cells were taken; fewer than count: the next one has no meaning for this column.
  std::function<std::size_t(std::size_t first, std::size_t count, const std::int64_t* in)> scatter;
};

struct TextTarget {
  std::string name;
  std::vector<std::string*> texts;
};

// What reading needs to know about the file: its name for sentences, its length as a bound of what it may claim.
struct ReadContext {
  std::string path;
  std::uint64_t length = 0;
  ChecksummedFile* checksummed = nullptr;              // what HDF5 reads through, if it is that
  std::function<void(std::size_t)> on_rows;  // told of rows as they are read; may throw to stop
  // Throws InputError "Run file 'path': what", or what the checksummed file found damaged, which is then the reason.
  [[noreturn]] void refuse(const std::string& what) const;
};

// Throws std::runtime_error with a short phrase if HDF5 refuses; the caller knows the path.
void write_table(hid_t parent, const std::string& name, std::size_t rows, const std::vector<ColumnSource>& columns,
                 const std::vector<TextSource>& texts);
// Rows of a table, bounded by what a file of this length can hold.
std::size_t table_rows(const ReadContext& context, hid_t parent, const std::string& name);
bool has_table(hid_t parent, const std::string& name);
// The same; refuses where it cannot be told. Of a name with slashes the groups on the way are asked for first.
bool has_table(const ReadContext& context, hid_t parent, const std::string& name);
Hdf5Handle open_table(const ReadContext& context, hid_t parent, const std::string& name);
void read_table(const ReadContext& context, hid_t parent, const std::string& name, std::size_t rows,
                const std::vector<ColumnTarget>& columns, const std::vector<TextTarget>& texts);

// How many values an enumeration has.
template <class E>
constexpr std::int64_t enumerators() {
  if constexpr (std::is_same_v<E, OpKind>)
    return kOpKinds;
  else if constexpr (std::is_same_v<E, Phase>)
    return 5;
  else if constexpr (std::is_same_v<E, Origin>)
    return 3;
  else if constexpr (std::is_same_v<E, WaitFor>)
    return 5;
  else if constexpr (std::is_same_v<E, OperatorClass>)
    return 10;
  else if constexpr (std::is_same_v<E, DataType>)
    return 11;
  else if constexpr (std::is_same_v<E, CollectiveKind>)
    return 9;
  else if constexpr (std::is_same_v<E, StorageKind>)
    return kStorageKinds;
  else if constexpr (std::is_same_v<E, StreamRole>)
    return 4;
  else if constexpr (std::is_same_v<E, TierClass>)
    return 3;
  else if constexpr (std::is_same_v<E, WaitReason>)
    return kWaitReasons;
  else if constexpr (std::is_same_v<E, RunLaneKind>)
    return 4;
  else if constexpr (std::is_same_v<E, SpanCategory>)
    return kSpanCategories;
  else {
    static_assert(std::is_same_v<E, Access>, "say how many values the enumeration has");
    return 2;
  }
}

template <class T>
constexpr CellType cell_type() {
  if constexpr (std::is_same_v<T, double>)
    return CellType::float64;
  else if constexpr (std::is_same_v<T, float>)
    return CellType::float32;
  else
    return CellType::integer;
}

template <class T>
std::int64_t to_cell(const T& value) {
  if constexpr (std::is_same_v<T, Duration>)
    return value.count();
  else if constexpr (std::is_same_v<T, double>)
    return std::bit_cast<std::int64_t>(value);
  else if constexpr (std::is_same_v<T, float>)
    return static_cast<std::int64_t>(std::bit_cast<std::uint32_t>(value));
  else
    return static_cast<std::int64_t>(value);
}

// False if the cell is none of T's values.
template <class T>
bool from_cell(std::int64_t cell, T& value) {
  if constexpr (std::is_same_v<T, Duration>) {
    value = Duration(cell);
  } else if constexpr (std::is_same_v<T, double>) {
    value = std::bit_cast<double>(cell);
  } else if constexpr (std::is_same_v<T, float>) {
    value = std::bit_cast<float>(static_cast<std::uint32_t>(cell));
  } else if constexpr (std::is_enum_v<T>) {
    if (cell < 0 || cell >= enumerators<T>()) return false;
    value = static_cast<T>(cell);
  } else if constexpr (std::is_same_v<T, bool>) {
    if (cell < 0 || cell > 1) return false;
    value = cell == 1;
  } else {
    static_assert(std::is_integral_v<T>);
    if constexpr (sizeof(T) < 8) {
      if (cell < std::numeric_limits<T>::min() || cell > std::numeric_limits<T>::max()) return false;
    }
    value = static_cast<T>(cell);
  }
  return true;
}

// Times, sizes and rates are not negative, and numbers are numbers: a file with right checksums may still have been
// made by somebody else. But latencies and gaps, counted from the end of something, may lie before it.
inline bool may_be_negative(const std::string& column) {
  if (column == "return_delay_ps" || column == "host.synchronize_return_ps") return true;
  for (const char* constant : {"latency_ps", "stream_gap_ps", "graph_gap_ps"})
    if (column.find(constant) != std::string::npos) return true;
  return false;
}
template <class T>
bool is_negative(const T& value) {
  if constexpr (std::is_same_v<T, Duration>)
    return value < Duration{};
  else if constexpr (std::is_floating_point_v<T>)
    return !(value >= 0);
  else if constexpr (std::is_same_v<T, std::int64_t>)
    return value < 0;
  else
    return false;
}

// Called with (name, member) per column, or (name, get, set) where a cell is not a member as it stands.
template <class Row>
class ColumnsToWrite {
 public:
  ColumnsToWrite(const Row* rows, std::size_t count) : rows_(rows), count_(count) {}

  template <class Get>
  void operator()(const std::string& name, Get get) {
    using Cell = std::remove_cvref_t<std::invoke_result_t<Get, const Row&>>;
    if constexpr (std::is_same_v<Cell, std::string>) {
      TextSource source{name, {}};
      for (std::size_t i = 0; i < count_; ++i) source.texts.push_back(&std::invoke(get, rows_[i]));
      texts.push_back(std::move(source));
    } else {
      const Row* rows = rows_;
      columns.push_back({name, cell_type<Cell>(), [rows, get](std::size_t first, std::size_t n, std::int64_t* out) {
                           for (std::size_t i = 0; i < n; ++i)
                             out[i] = to_cell<Cell>(std::invoke(get, rows[first + i]));
                         }});
    }
  }
  template <class Get, class Set>
  void operator()(const std::string& name, Get get, Set) {
    const Row* rows = rows_;
    columns.push_back({name, CellType::integer, [rows, get](std::size_t first, std::size_t n, std::int64_t* out) {
                         for (std::size_t i = 0; i < n; ++i) out[i] = get(rows[first + i]);
                       }});
  }

  std::vector<ColumnSource> columns;
  std::vector<TextSource> texts;

 private:
  const Row* rows_;
  std::size_t count_;
};

// The same calls, the other way. Columns are filled in their order, block by block.
template <class Row>
class ColumnsToRead {
 public:
  ColumnsToRead(Row* rows, std::size_t count) : rows_(rows), count_(count) {}

  template <class Get>
  void operator()(const std::string& name, Get get) {
    using Cell = std::remove_cvref_t<std::invoke_result_t<Get, Row&>>;
    if constexpr (std::is_same_v<Cell, std::string>) {
      TextTarget target{name, {}};
      for (std::size_t i = 0; i < count_; ++i) target.texts.push_back(&std::invoke(get, rows_[i]));
      texts.push_back(std::move(target));
    } else {
      Row* rows = rows_;
      const bool any_sign = may_be_negative(name);
      columns.push_back(
          {name, cell_type<Cell>(), [rows, get, any_sign](std::size_t first, std::size_t n, const std::int64_t* in) {
             for (std::size_t i = 0; i < n; ++i) {
               Cell& cell = std::invoke(get, rows[first + i]);
               if (!from_cell<Cell>(in[i], cell) || (!any_sign && is_negative(cell))) return i;
             }
             return n;
           }});
    }
  }
  template <class Get, class Set>
  void operator()(const std::string& name, Get, Set set) {
    Row* rows = rows_;
    columns.push_back({name, CellType::integer, [rows, set](std::size_t first, std::size_t n, const std::int64_t* in) {
                         for (std::size_t i = 0; i < n; ++i)
                           if (!set(rows[first + i], in[i])) return i;
                         return n;
                       }});
  }

  std::vector<ColumnTarget> columns;
  std::vector<TextTarget> texts;

 private:
  Row* rows_;
  std::size_t count_;
};

}  // namespace memwall
