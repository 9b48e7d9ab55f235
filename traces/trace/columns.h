// Columns of a trace file: one field of all rows of a chunk. As many values as
// rows, or one that all share, or none where all rows hold the default.
#pragma once

#include <algorithm>
#include <cstddef>
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

// Some rows in a row of a table that is filled: those from `first` on, of `all` that the columns hold values for.
template <class Row>
struct Rows {
  Rows(std::span<Row> whole) : rows(whole), all(whole.size()) {}  // NOLINT: all of them are some of them
  Rows(std::span<Row> part, std::size_t before, std::size_t whole) : rows(part), first(before), all(whole) {}
  std::span<Row> rows;
  std::size_t first = 0, all = 0;
};

template <class Field>
void require_size(const Field& in, std::size_t rows, const char* name) {
  const auto size = static_cast<std::size_t>(in.size());
  if (size > 1 && size != rows)
    throw ColumnError("holds " + std::to_string(size) + " values in the column '" + name + "' of " +
                      std::to_string(rows) + " rows");
}

// Calls set(row, value) for every one of the rows that does not hold the default.
template <class Row, class Field, class Set>
void take(const Field& in, const Rows<Row>& rows, const char* name, Set set) {
  if (in.empty()) return;
  require_size(in, rows.all, name);
  if (in.size() == 1 && rows.all != 1) {
    const auto value = in[0];
    for (Row& row : rows.rows) set(row, value);
    return;
  }
  const auto* value = &in[0] + rows.first;
  for (Row& row : rows.rows) set(row, *value++);
}

// Likewise, where a value above `largest` has no meaning.
template <class Row, class Field, class Set>
void take_up_to(std::uint64_t largest, const Field& in, const Rows<Row>& rows, const char* name, Set set) {
  if (in.empty()) return;
  using Value = std::decay_t<decltype(in[0])>;
  const auto number = [](Value value) { return static_cast<std::uint64_t>(static_cast<std::make_unsigned_t<Value>>(value)); };
  const bool shared = in.size() == 1, fits = static_cast<std::size_t>(in.size()) == rows.all;
  const std::size_t first = fits && !shared ? rows.first : 0;
  const std::size_t count = fits && !shared ? rows.rows.size() : static_cast<std::size_t>(in.size());
  const Value* const values = &in[0] + first;
  std::uint64_t most = 0;
  for (std::size_t i = 0; i < count; ++i) most = std::max(most, number(values[i]));
  if (most > largest)
    for (std::size_t i = 0; i < count; ++i)
      if (number(values[i]) > largest)
        throw ColumnError("holds " + std::to_string(number(values[i])) + " in the column '" + name +
                          "'; expected at most " + std::to_string(largest));
  take(in, rows, name, set);
}

}  // namespace column
}  // namespace memwall
