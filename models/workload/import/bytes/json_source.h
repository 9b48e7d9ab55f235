// Cuts a JSON document of any size into pieces, without ever holding all of it.
//
// Profilers write one object whose one huge member is an array of small objects. A JsonSource
// walks that object's members; the elements of an array are handed out one by one, everything
// else as a whole. Pieces are only cut here, by counting braces outside of strings; whoever
// receives one parses it. Plain and gzip files are told apart by content.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace memwall {

class ByteSource;
class ReadAhead;

class JsonSource {
 public:
  // Readable bytes behind every piece, as simdjson asks for.
  static constexpr std::size_t kPadding = 64;
  // The longest piece that is accepted: beyond it a file is hostile, not large.
  static constexpr std::size_t kLongestPiece = std::size_t{256} << 20;

  // Throws InputError where the file cannot be opened or does not begin with { or [.
  // A document that is an array itself counts as one member named "traceEvents".
  explicit JsonSource(const std::filesystem::path& path);
  ~JsonSource();

  // The next member's key (escapes left as they are), or nothing after the last. A value that was
  // not taken is skipped. All functions throw InputError with file, byte, found and expected.
  std::optional<std::string> next_member();
  // Is the present member's value an array?
  bool at_array();
  // The present member's whole value. Valid until the next call.
  std::string_view value();
  // The next element of the present member's array, or nothing at its end. Valid until the next call.
  std::optional<std::string_view> next_element();

  // Where the piece handed out last begins, in bytes of (inflated) JSON.
  std::uint64_t position() const { return piece_position_; }
  // An InputError's text: file, byte position of the present piece plus `offset`, then the sentence.
  [[noreturn]] void fail(const std::string& sentence, std::uint64_t offset = 0) const;

 private:
  enum class Place : std::uint8_t { before_member, at_value, in_array, done };

  bool refill();  // more bytes behind end_; false at the end of the file
  int peek();     // next byte that is not white space, or -1
  void expect(char wanted, const char* where);
  std::string_view cut();  // one value, from begin_ on
  std::size_t scan_nested(std::size_t i);
  std::size_t scan_string(std::size_t i);
  std::size_t scan_scalar(std::size_t i);
  bool more(std::size_t& i);  // makes byte i readable; may move the buffer
  [[noreturn]] void fail_here(const std::string& found, const std::string& expected) const;
  std::string found_here();

  std::filesystem::path path_;
  std::unique_ptr<ByteSource> bytes_;
  std::unique_ptr<ReadAhead> ahead_;  // reads bytes_
  std::vector<char> buffer_;
  std::size_t begin_ = 0, end_ = 0;  // unread part of buffer_
  std::uint64_t base_ = 0;           // position of buffer_[0] in the document
  std::uint64_t piece_position_ = 0;
  Place place_ = Place::before_member;
  bool first_ = true;        // no member, or element, was read yet
  bool bare_array_ = false;  // the document is an array
};

}  // namespace memwall
