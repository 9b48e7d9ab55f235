// A table of columns of equal length, as programs that read Apache Arrow take it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace memwall {

// Texts one behind the other; text i ends at ends[i + 1].
class TextValues {
 public:
  void add(std::string_view text) {
    bytes_ += text;
    ends_.push_back(static_cast<std::int64_t>(bytes_.size()));
  }
  std::string_view operator[](std::size_t i) const {
    const auto begin = static_cast<std::size_t>(ends_[i]);
    return std::string_view(bytes_).substr(begin, static_cast<std::size_t>(ends_[i + 1]) - begin);
  }
  std::size_t size() const { return ends_.size() - 1; }
  const std::string& bytes() const { return bytes_; }
  const std::vector<std::int64_t>& ends() const { return ends_; }

 private:
  std::string bytes_;
  std::vector<std::int64_t> ends_{0};
};

// Bits, the lowest of a byte first.
class BitValues {
 public:
  void add(bool bit) {
    if (size_ % 8 == 0) bytes_.push_back(0);
    if (bit) bytes_.back() = static_cast<std::uint8_t>(bytes_.back() | (1u << (size_ % 8)));
    ++size_;
  }
  bool operator[](std::size_t i) const { return ((bytes_[i / 8] >> (i % 8)) & 1) != 0; }
  std::size_t size() const { return size_; }
  const std::vector<std::uint8_t>& bytes() const { return bytes_; }

 private:
  std::vector<std::uint8_t> bytes_;
  std::size_t size_ = 0;
};

using IntegerValues = std::vector<std::int64_t>;
using NumberValues = std::vector<double>;
using ColumnValues = std::variant<IntegerValues, NumberValues, TextValues, BitValues>;

struct ArrowColumn {
  std::string name;
  ColumnValues values{};  // what is not known has any value
  BitValues known{};      // a bit per row
  std::size_t unknown = 0;

  void add(std::int64_t value) { put(std::get<IntegerValues>(values), value); }
  void add(double value) { put(std::get<NumberValues>(values), value); }
  void add(std::string_view value) {
    std::get<TextValues>(values).add(value);
    known.add(true);
  }
  void add_bit(bool value) {
    std::get<BitValues>(values).add(value);
    known.add(true);
  }
  // A row whose value is not known.
  void add_unknown();

 private:
  template <class Values, class Value>
  void put(Values& to, Value value) {
    to.push_back(value);
    known.add(true);
  }
};

struct ColumnTable {
  std::vector<ArrowColumn> columns;
  std::size_t rows() const { return columns.empty() ? 0 : columns.front().known.size(); }
};

inline ArrowColumn integers(std::string name) { return {.name = std::move(name), .values = IntegerValues{}}; }
inline ArrowColumn numbers(std::string name) { return {.name = std::move(name), .values = NumberValues{}}; }
inline ArrowColumn texts(std::string name) { return {.name = std::move(name), .values = TextValues{}}; }
inline ArrowColumn truths(std::string name) { return {.name = std::move(name), .values = BitValues{}}; }

}  // namespace memwall
