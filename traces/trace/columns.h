// Columns of a trace file: one field of all rows of a chunk. As many values as
// rows, or one that all share, or none where all rows hold the default.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>

namespace memwall {

// A column that breaks the format; the reader of the file adds the file's name.
class ColumnError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

namespace column {

// Bits, not values: -0.0 and NaN survive.
template <class T>
bool same(const T& a, const T& b) {
  return std::memcmp(&a, &b, sizeof(T)) == 0;
}

// Fills `out` (a packed field, or bytes) with get(row) of every row.
template <class T, class Row, class Get, class Append>
void fill(std::span<const Row> rows, Get get, Append append) {
  if (rows.empty()) return;
  const T first = get(rows[0]);
  bool shared = true;
  for (std::size_t i = 1; i < rows.size() && shared; ++i) shared = same(static_cast<T>(get(rows[i])), first);
  if (shared) {
    if (!same(first, T{})) append(first);
    return;
  }
  for (const Row& row : rows) append(static_cast<T>(get(row)));
}

// A packed field of T.
template <class T, class Row, class Field, class Get>
void put(Field* out, std::span<const Row> rows, Get get) {
  fill<T>(rows, get, [out, &rows](T value) {
    if (out->empty()) out->Reserve(static_cast<int>(rows.size()));
    out->AddAlreadyReserved(value);
  });
}

// A column of bytes.
template <class Row, class Get>
void put_bytes(std::string* out, std::span<const Row> rows, Get get) {
  fill<unsigned char>(rows, get, [out](unsigned char value) { out->push_back(static_cast<char>(value)); });
}

// Calls set(row, value) for every row that does not hold the default.
template <class Row, class Field, class Set>
void take(const Field& in, std::span<Row> rows, const char* name, Set set) {
  const auto size = static_cast<std::size_t>(in.size());
  if (size == 0) return;
  if (size == rows.size()) {
    std::size_t i = 0;
    for (const auto& value : in) set(rows[i++], value);
  } else if (size == 1) {
    for (Row& row : rows) set(row, in[0]);
  } else {
    throw ColumnError("holds " + std::to_string(size) + " values in the column '" + name + "' of " +
                      std::to_string(rows.size()) + " rows");
  }
}

// Likewise, where a value above `largest` has no meaning.
template <class Row, class Field, class Set>
void take_up_to(std::uint64_t largest, const Field& in, std::span<Row> rows, const char* name, Set set) {
  for (const auto& value : in) {
    using Value = std::decay_t<decltype(value)>;
    const auto number = static_cast<std::uint64_t>(static_cast<std::make_unsigned_t<Value>>(value));
    if (number > largest)
      throw ColumnError("holds " + std::to_string(number) + " in the column '" + name + "'; expected at most " +
                        std::to_string(largest));
  }
  take(in, rows, name, set);
}

}  // namespace column
}  // namespace memwall
