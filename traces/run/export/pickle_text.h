// Writes Python's pickle by hand, for plain data: dicts, lists, pairs, texts and numbers.
//
// Source: Lib/pickletools.py of CPython; protocol 4 without frames, which every reader since Python 3.4 takes. A text
// that comes again is a reference to the first one, and so is whatever was remembered.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace memwall {

class PickleText {
 public:
  PickleText() { bytes_.append("\x80\x04", 2); }

  // Keys and values alternate between the two.
  void begin_dict() { bytes_ += "}("; }
  void end_dict() { bytes_ += 'u'; }
  // `next_item` goes before each item of a list that may be long: as CPython does, it is written in batches, which
  // readers take whole (the viewer of pytorch.org/memory_viz as the arguments of one call).
  void begin_list() {
    bytes_ += "](";
    items_.push_back(0);
  }
  void next_item();
  void end_list() {
    bytes_ += 'e';
    items_.pop_back();
  }

  void text(std::string_view value);
  void integer(std::int64_t value);
  void real(double value);
  void boolean(bool value) { bytes_ += value ? '\x88' : '\x89'; }
  // A tuple of two whole numbers.
  void pair(std::int64_t first, std::int64_t second);

  void field(std::string_view key, std::string_view value) { text(key), text(value); }
  void field(std::string_view key, const char* value) { field(key, std::string_view(value)); }
  template <std::integral Number>
  void field(std::string_view key, Number value) {
    text(key), integer(static_cast<std::int64_t>(value));
  }

  // What was just written can come again by this number.
  std::uint32_t remember();
  void recall(std::uint32_t number);

  // Behind the one value that a pickle is.
  void end() { bytes_ += '.'; }

  // What was written since clear(); references reach back beyond it.
  const std::string& bytes() const { return bytes_; }
  void clear() { bytes_.clear(); }

 private:
  void little(std::uint64_t value, int bytes);

  std::string bytes_;
  std::vector<std::size_t> items_;  // of each list that is open
  std::unordered_map<std::string, std::uint32_t> texts_;
  std::uint32_t remembered_ = 0;
};

}  // namespace memwall
