#include "models/workload/import/bytes/json_source.h"

#include <algorithm>
#include <bit>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "models/workload/import/bytes/byte_source.h"
#include "sim/error.h"

namespace memwall {
namespace {

constexpr std::size_t kJsonChunk = std::size_t{1} << 20;

bool is_space(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }

// The first `"` or `\` in [i, end), or end.
std::size_t find_quote(const char* data, std::size_t i, std::size_t end) {
#if defined(__SSE2__)
  const __m128i quote = _mm_set1_epi8('"'), backslash = _mm_set1_epi8('\\');
  for (; i + 16 <= end; i += 16) {
    const __m128i block = _mm_loadu_si128(reinterpret_cast<const __m128i*>(data + i));
    const int mask = _mm_movemask_epi8(_mm_or_si128(_mm_cmpeq_epi8(block, quote), _mm_cmpeq_epi8(block, backslash)));
    if (mask != 0) return i + static_cast<std::size_t>(std::countr_zero(static_cast<unsigned>(mask)));
  }
#endif
  while (i < end && data[i] != '"' && data[i] != '\\') ++i;
  return i;
}

// The first quote, brace or bracket in [i, end), or end.
std::size_t find_structure(const char* data, std::size_t i, std::size_t end) {
#if defined(__SSE2__)
  // '[' and '{', like ']' and '}', differ in one bit (0x20) only.
  const __m128i quote = _mm_set1_epi8('"'), open = _mm_set1_epi8('{'), close = _mm_set1_epi8('}'),
                bit = _mm_set1_epi8(0x20);
  for (; i + 16 <= end; i += 16) {
    const __m128i block = _mm_loadu_si128(reinterpret_cast<const __m128i*>(data + i));
    const __m128i folded = _mm_or_si128(block, bit);
    const __m128i hit = _mm_or_si128(_mm_cmpeq_epi8(block, quote),
                                     _mm_or_si128(_mm_cmpeq_epi8(folded, open), _mm_cmpeq_epi8(folded, close)));
    const int mask = _mm_movemask_epi8(hit);
    if (mask != 0) return i + static_cast<std::size_t>(std::countr_zero(static_cast<unsigned>(mask)));
  }
#endif
  while (i < end && data[i] != '"' && (data[i] | 0x20) != '{' && (data[i] | 0x20) != '}') ++i;
  return i;
}

std::string quoted(char c) {
  if (c >= ' ' && c < 127) return std::string("'") + c + "'";
  return "byte " + std::to_string(static_cast<unsigned char>(c));
}

}  // namespace

JsonSource::JsonSource(const std::filesystem::path& path)
    : path_(path), bytes_(std::make_unique<ByteSource>(path)), buffer_(kJsonChunk + kPadding) {
  const int first = peek();
  if (first == '[') {
    bare_array_ = true;
  } else if (first == '{') {
    ++begin_;
  } else {
    fail_here(found_here(), "JSON that begins with '{' or '['");
  }
}

JsonSource::~JsonSource() = default;

void JsonSource::fail(const std::string& sentence, std::uint64_t offset) const {
  throw InputError(path_.string() + ", byte " + std::to_string(piece_position_ + offset) + " of the JSON: " + sentence);
}

void JsonSource::fail_here(const std::string& found, const std::string& expected) const {
  throw InputError(path_.string() + ", byte " + std::to_string(base_ + begin_) + " of the JSON: found " + found +
                   "; expected " + expected + ".");
}

std::string JsonSource::found_here() {
  const int next = peek();
  return next < 0 ? "the end of the file" : quoted(static_cast<char>(next));
}

bool JsonSource::refill() {
  if (begin_ > 0) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    base_ += begin_;
    end_ -= begin_;
    begin_ = 0;
  }
  const std::size_t room = buffer_.size() - kPadding - end_;
  if (room < kJsonChunk / 2) {
    if (end_ > kLongestPiece)
      fail_here("one value of more than " + std::to_string(kLongestPiece >> 20) + " MiB", "a list of small events");
    buffer_.resize(buffer_.size() * 2);
  }
  const std::size_t got = bytes_->read(buffer_.data() + end_, buffer_.size() - kPadding - end_);
  end_ += got;
  return got > 0;
}

bool JsonSource::more(std::size_t& i) {
  if (i < end_) return true;
  i -= begin_;  // refill moves the unread part to the front
  const bool got = refill();
  i += begin_;
  return got;
}

int JsonSource::peek() {
  while (true) {
    while (begin_ < end_ && is_space(buffer_[begin_])) ++begin_;
    if (begin_ < end_) return static_cast<unsigned char>(buffer_[begin_]);
    if (!refill()) return -1;
  }
}

void JsonSource::expect(char wanted, const char* where) {
  if (peek() != static_cast<unsigned char>(wanted)) fail_here(found_here(), quoted(wanted) + " " + where);
  ++begin_;
}

std::size_t JsonSource::scan_string(std::size_t i) {
  ++i;  // the opening quote
  while (true) {
    i = find_quote(buffer_.data(), i, end_);
    if (i == end_) {
      if (!more(i)) fail_here("the end of the file inside a string", "its closing '\"'");
    } else if (buffer_[i] == '"') {
      return i + 1;
    } else {
      ++i;  // backslash: whatever comes next belongs to it
      if (!more(i)) fail_here("the end of the file inside a string", "its closing '\"'");
      ++i;
    }
  }
}

std::size_t JsonSource::scan_nested(std::size_t i) {
  std::int64_t depth = 0;
  while (true) {
    i = find_structure(buffer_.data(), i, end_);
    if (i == end_) {
      if (!more(i)) fail_here("the end of the file inside a value that begins here", "its closing bracket");
      continue;
    }
    const char c = buffer_[i];
    if (c == '"') {
      i = scan_string(i);
    } else {
      depth += (c | 0x20) == '{' ? 1 : -1;
      ++i;
      if (depth == 0) return i;
    }
  }
}

std::size_t JsonSource::scan_scalar(std::size_t i) {
  while (more(i)) {
    const char c = buffer_[i];
    if (c == ',' || c == '}' || c == ']' || is_space(c)) break;
    ++i;
  }
  return i;
}

std::string_view JsonSource::cut() {
  const int first = peek();
  piece_position_ = base_ + begin_;
  std::size_t stop = begin_;
  if (first == '{' || first == '[') {
    stop = scan_nested(begin_);
  } else if (first == '"') {
    stop = scan_string(begin_);
  } else {
    stop = scan_scalar(begin_);
    if (stop == begin_) fail_here(found_here(), "a value");
  }
  const std::string_view piece(buffer_.data() + begin_, stop - begin_);
  begin_ = stop;
  return piece;
}

std::optional<std::string> JsonSource::next_member() {
  if (place_ == Place::at_value && at_array())
    next_element();  // an array is skipped by its elements: it may be longer than any piece
  else if (place_ == Place::at_value)
    value();
  while (place_ == Place::in_array) next_element();
  if (place_ == Place::done) return std::nullopt;
  if (bare_array_) {
    if (!first_) {
      place_ = Place::done;
      return std::nullopt;
    }
    first_ = false;
    place_ = Place::at_value;
    return "traceEvents";
  }
  const int next = peek();
  if (next == '}') {
    ++begin_;
    if (peek() >= 0) fail_here(found_here(), "the end of the file after the closing '}'");
    place_ = Place::done;
    return std::nullopt;
  }
  if (!first_) expect(',', "between two members");
  first_ = false;
  if (peek() != '"') fail_here(found_here(), "a member's name in quotes");
  const std::string_view text = cut();
  std::string key(text.substr(1, text.size() - 2));
  expect(':', "after a member's name");
  place_ = Place::at_value;
  return key;
}

bool JsonSource::at_array() { return place_ == Place::at_value && peek() == '['; }

std::string_view JsonSource::value() {
  place_ = Place::before_member;
  return cut();
}

std::optional<std::string_view> JsonSource::next_element() {
  bool opening = false;
  if (place_ == Place::at_value) {
    expect('[', "to open an array");
    place_ = Place::in_array;
    opening = true;
  }
  if (place_ != Place::in_array) return std::nullopt;
  if (peek() == ']') {
    ++begin_;
    place_ = Place::before_member;
    return std::nullopt;
  }
  if (!opening) expect(',', "between two elements");
  return cut();
}

}  // namespace memwall
