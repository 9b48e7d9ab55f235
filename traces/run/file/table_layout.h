// What a table's rows are made of: which columns there are, where their cells lie in a row, and how they travel.
// Internal to traces/run; run_layout.h lists the columns.
//
// A cell travels as an int64: integers, enumerations and picoseconds as their value, floating point as its bits. The code
// that moves cells depends on the type of a cell, not on the row's: a hundred and fifty columns, a dozen types.
#pragma once

#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "sim/engine/simulation.h"
#include "sim/policy/pager.h"
#include "sim/trace/trace.h"
#include "traces/run/run_index.h"

namespace memwall {

enum class CellType : std::uint8_t { integer, float32, float64 };

// `cell`: the first, or where it is computed its row; `stride`: bytes from a row to the next.
using GatherCells = void (*)(const std::byte* cell, std::size_t stride, std::size_t count, std::int64_t* out);
// Returns how many cells were taken; fewer than count: the next one has no meaning for this column.
using ScatterCells = std::size_t (*)(std::byte* cell, std::size_t stride, std::size_t count, const std::int64_t* in);

struct ColumnLayout {
  std::string name;
  CellType type = CellType::integer;
  std::size_t offset = 0;  // of what gather and scatter see, within a row
  GatherCells gather = nullptr;
  ScatterCells scatter = nullptr;
};

// A column of std::string.
struct TextLayout {
  std::string name;
  std::size_t offset = 0;
};

struct TableLayout {
  explicit TableLayout(std::size_t row_bytes) : stride(row_bytes) {}
  void add(std::string_view name, CellType type, std::size_t offset, GatherCells gather, ScatterCells scatter);
  void add_text(std::string_view name, std::size_t offset);

  std::size_t stride;  // bytes of a row
  std::vector<ColumnLayout> columns;
  std::vector<TextLayout> texts;
};

// Of a number in the column of that name.
bool may_be_negative(std::string_view column);

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
  else if constexpr (std::is_same_v<E, Completeness>)
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

// Cells of rows [first, first + count) of those at `rows`; see GatherCells and ScatterCells.
inline void gather(const ColumnLayout& column, const TableLayout& table, const void* rows, std::size_t first,
                   std::size_t count, std::int64_t* out) {
  column.gather(static_cast<const std::byte*>(rows) + first * table.stride + column.offset, table.stride, count, out);
}
inline std::size_t scatter(const ColumnLayout& column, const TableLayout& table, void* rows, std::size_t first,
                           std::size_t count, const std::int64_t* in) {
  return column.scatter(static_cast<std::byte*>(rows) + first * table.stride + column.offset, table.stride, count, in);
}

inline const std::string& text_in(const std::byte* row, const TextLayout& text) {
  return *reinterpret_cast<const std::string*>(row + text.offset);
}
inline std::string& text_in(std::byte* row, const TextLayout& text) {
  return *reinterpret_cast<std::string*>(row + text.offset);
}

template <class Cell>
void gather_cells(const std::byte* cell, std::size_t stride, std::size_t count, std::int64_t* out) {
  for (std::size_t i = 0; i < count; ++i) out[i] = to_cell(*reinterpret_cast<const Cell*>(cell + i * stride));
}
template <class Cell, bool any_sign>
std::size_t scatter_cells(std::byte* cell, std::size_t stride, std::size_t count, const std::int64_t* in) {
  for (std::size_t i = 0; i < count; ++i) {
    Cell& taken = *reinterpret_cast<Cell*>(cell + i * stride);
    if (!from_cell<Cell>(in[i], taken) || (!any_sign && is_negative(taken))) return i;
  }
  return count;
}

// Cells that are computed from a row, and set in it.
template <class T, class Get>
void gather_computed(const std::byte* row, std::size_t stride, std::size_t count, std::int64_t* out) {
  for (std::size_t i = 0; i < count; ++i) out[i] = Get{}(*reinterpret_cast<const T*>(row + i * stride));
}
template <class T, class Set>
std::size_t scatter_computed(std::byte* row, std::size_t stride, std::size_t count, const std::int64_t* in) {
  for (std::size_t i = 0; i < count; ++i)
    if (!Set{}(*reinterpret_cast<T*>(row + i * stride), in[i])) return i;
  return count;
}

// Called with (name, member) per column, or (name, get, set) where a cell is not a member as it stands; `get` and `set`
// capture nothing.
template <class T>
class LayoutMaker {
 public:
  template <class Get>
  void operator()(std::string_view name, Get get) {
    using Cell = std::remove_cvref_t<std::invoke_result_t<Get, const T&>>;
    // Of any row: a member lies at the same place in all.
    const auto offset = static_cast<std::size_t>(reinterpret_cast<const std::byte*>(&std::invoke(get, row_)) -
                                                 reinterpret_cast<const std::byte*>(&row_));
    if constexpr (std::is_same_v<Cell, std::string>)
      layout_.add_text(name, offset);
    else
      layout_.add(name, cell_type<Cell>(), offset, &gather_cells<Cell>,
                  may_be_negative(name) ? &scatter_cells<Cell, true> : &scatter_cells<Cell, false>);
  }
  template <class Get, class Set>
  void operator()(std::string_view name, Get, Set) {
    static_assert(std::is_empty_v<Get> && std::is_empty_v<Set>);
    layout_.add(name, CellType::integer, 0, &gather_computed<T, Get>, &scatter_computed<T, Set>);
  }
  TableLayout take() && { return std::move(layout_); }

 private:
  const T row_{};
  TableLayout layout_{sizeof(T)};
};

template <class T>
struct Row {};  // names a row type in a call of fields()

// Made when it is first asked for. REQUIRES: fields() of the row is declared where this is called.
template <class T>
const TableLayout& layout_of() {
  static const TableLayout layout = [] {
    LayoutMaker<T> maker;
    fields(maker, Row<T>{});
    return std::move(maker).take();
  }();
  return layout;
}

}  // namespace memwall
