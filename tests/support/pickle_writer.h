// Writes plain data as a pickle the way CPython does: remembered values, batches of 1,000, frames of 64 KiB. For tests.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace memwall {

// None, a bool, an int, a float, a text, a list, a tuple or a dict. Copies are the same object: written once, then
// referred to.
class Plain {
 public:
  enum class Kind { none, boolean, integer, real, text, list, tuple, dict };
  using Pairs = std::vector<std::pair<Plain, Plain>>;

  Plain() = default;
  Plain(bool value) : kind_(Kind::boolean), integer_(value) {}
  Plain(int value) : Plain(static_cast<std::int64_t>(value)) {}
  Plain(std::int64_t value) : kind_(Kind::integer), integer_(value) {}
  Plain(std::uint64_t value) : Plain(static_cast<std::int64_t>(value)) {}
  Plain(double value) : kind_(Kind::real), real_(value) {}
  Plain(const char* value) : Plain(std::string(value)) {}
  Plain(std::string value);
  static Plain fresh_text(std::string value);  // an object of its own, though equal to others
  static Plain list(std::vector<Plain> items);
  static Plain tuple(std::vector<Plain> items);
  static Plain dict(Pairs pairs);

  Kind kind() const { return kind_; }
  std::int64_t integer() const { return integer_; }
  const std::string& text() const { return content_->text; }  // REQUIRES: kind text
  // Of a dict: replaced or added at the end; removed. The object itself changes, in all copies.
  void set(const std::string& key, Plain value);
  void remove(const std::string& key);
  Plain& operator[](const std::string& key);  // REQUIRES: there is one
  Pairs& pairs();                             // REQUIRES: kind dict
  std::vector<Plain>& items();                // of a list or tuple

 private:
  friend class PickleWriter;
  struct Content {
    std::string text;
    bool fresh = false;
    std::vector<Plain> items;
    Pairs pairs;
  };
  Kind kind_ = Kind::none;
  std::int64_t integer_ = 0;
  double real_ = 0;
  std::shared_ptr<Content> content_;
};

class PickleWriter {
 public:
  // `sink` gets the bytes in order; without one, finish returns them. `protocol`: 2 to 5.
  explicit PickleWriter(int protocol = 4, std::function<void(std::string_view)> sink = {});
  void write(const Plain& value);
  std::string finish();

  // For lists and dicts that are too large to be made whole: begin; for each batch of at most 1,000 open, values
  // (of a dict: key, value, ...), close.
  void begin_list();
  void begin_dict();
  void open_batch();
  void close_list_batch();
  void close_dict_batch();
  void append();  // the value just written, to the list before it

  std::uint64_t written() const { return written_ + frame_.size(); }

 private:
  void byte(int value) { frame_ += static_cast<char>(value); }
  void little(std::uint64_t value, int bytes);
  void integer(std::int64_t value);
  void text(const Plain& value);
  void list(const std::vector<Plain>& items);
  void dict(const Plain::Pairs& pairs);
  void tuple(const Plain& value);
  void memoize();
  bool recalled(const Plain& value);
  void flush();

  int protocol_;
  std::function<void(std::string_view)> sink_;
  std::string frame_, result_;
  std::uint64_t written_ = 0;
  std::uint32_t memos_ = 0;
  std::unordered_map<std::string, std::uint32_t> texts_;
  std::unordered_map<const void*, std::uint32_t> objects_;
  std::vector<std::shared_ptr<Plain::Content>> kept_;  // so that no address of objects_ is used twice
};

// The whole pickle of one value.
std::string pickled(const Plain& value, int protocol = 4);

}  // namespace memwall
