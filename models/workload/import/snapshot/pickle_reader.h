// Reads a pickle of plain data - dicts, lists, tuples, texts, numbers - as a stream, and never as a program.
//
// A pickle is a program for a stack machine. Most of its opcodes import and call Python code; those are refused by
// name, and nothing in a file is ever called. What plain data needs of protocols 2 to 5 is known; old text opcodes,
// bytes and sets are refused too. Source of the opcodes: CPython, Lib/pickletools.py.
//
// No tree is built. As soon as a dict is filled or a list is finished, its owner (PickleContent) turns it into
// something small. That works because CPython writes a value whole before it refers to it again, and fills a dict of
// up to 1,000 entries at once: a list or dict that changes after it was used is refused, so cycles are.
//
// Memory: the owner's, 8 bytes per remembered value (at most one per 8 bytes of text), 8 per waiting value (at most
// 2^20), and one text. Space is never taken for a declared length, only for bytes that were read.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace memwall {

// A value in 8 bytes: its kind and a number of 56 bits.
class PickleValue {
 public:
  enum class Kind : std::uint8_t {
    none,
    boolean,
    integer,  // in [-2^55, 2^55)
    wide,     // an integer beyond that; its value is not kept
    text,     // number: the owner's
    open,     // a list or dict that may still grow; only within the reader
    other,    // of no interest to the owner
    shared,   // something of the owner's that may be referred to again
    unique    // something of the owner's that has one place only
  };
  static constexpr std::int64_t kLargest = (std::int64_t{1} << 55) - 1;

  constexpr PickleValue() = default;
  constexpr PickleValue(Kind kind, std::int64_t number)
      : bits_(static_cast<std::uint64_t>(number) << 8 | static_cast<std::uint8_t>(kind)) {}
  // Of kinds shared and unique: `tag` says what `index` counts.
  constexpr PickleValue(Kind kind, std::uint8_t tag, std::uint32_t index)
      : PickleValue(kind, static_cast<std::int64_t>(tag) << 32 | index) {}

  constexpr Kind kind() const { return static_cast<Kind>(bits_ & 0xff); }
  constexpr std::int64_t number() const { return static_cast<std::int64_t>(bits_) >> 8; }
  constexpr std::uint8_t tag() const { return static_cast<std::uint8_t>(bits_ >> 40); }
  constexpr std::uint32_t index() const { return static_cast<std::uint32_t>(bits_ >> 8); }
  constexpr bool is(Kind kind, std::uint8_t tag) const { return this->kind() == kind && this->tag() == tag; }
  bool operator==(const PickleValue&) const = default;

 private:
  std::uint64_t bits_ = 0;
};

// What a PickleContent throws; read_pickle makes an InputError of it, with file and byte.
struct PickleError {
  std::string found, expected;
};

// Makes something of a pickle's values. Every function may throw PickleError. Values of kind unique that are passed in
// are used up: they come in the reverse order of their making, counted from the end of `items`.
class PickleContent {
 public:
  virtual ~PickleContent() = default;
  virtual PickleValue text(std::string_view text) = 0;  // valid UTF-8
  virtual PickleValue real(double value) = 0;
  virtual PickleValue tuple(std::span<const PickleValue> items) = 0;
  // `pairs`: key, value, key, value, ...; keys are hashable. `before`: what the first 1,000 entries became.
  virtual PickleValue dict(std::span<const PickleValue> pairs) = 0;
  virtual PickleValue more_of_dict(PickleValue before, std::span<const PickleValue> pairs) = 0;
  // A list is begun by its first items; `list` is what begin_list returned.
  virtual PickleValue begin_list() = 0;
  virtual void append(PickleValue list, std::span<const PickleValue> items) = 0;
  virtual PickleValue finish_list(PickleValue list) = 0;
  virtual PickleValue empty_list() = 0;
  virtual PickleValue empty_dict() = 0;
  // "a text", "a trace entry", ...
  virtual std::string name(PickleValue value) const = 0;
};

// Reads the file, gzip-compressed or not, and returns its one value. Throws InputError naming file, byte, found and
// expected.
PickleValue read_pickle(const std::filesystem::path& path, PickleContent& content);

// "a list", "an integer", ...: of kinds that are not the owner's.
std::string_view to_string(PickleValue::Kind kind);

}  // namespace memwall
