// Numbers as Kineto writes them, read without a detour through double.
//
// A time of day in microseconds since 1970 needs 51 bits before its fraction: a double would
// resolve a quarter of a microsecond. Integers come bare, in quotes, or behind a word ("stream 7").
#pragma once

#include <charconv>
#include <cstdint>
#include <limits>
#include <string_view>

namespace memwall {

// A whole number from a JSON token; false where there is none. Quotes, a word and "0x" are understood;
// a fraction is cut off. Unsigned 64-bit values wrap into the sign, as addresses may.
inline bool parse_integer(std::string_view token, std::int64_t& value) {
  if (token.size() >= 2 && token.front() == '"' && token.back() == '"') {
    token = token.substr(1, token.size() - 2);
    const std::size_t space = token.rfind(' ');
    if (space != std::string_view::npos) token = token.substr(space + 1);
  }
  if (token.size() > 2 && token[0] == '0' && (token[1] == 'x' || token[1] == 'X')) {
    std::uint64_t address = 0;
    const auto [stop, error] = std::from_chars(token.data() + 2, token.data() + token.size(), address, 16);
    value = static_cast<std::int64_t>(address);
    return error == std::errc{} && stop == token.data() + token.size();
  }
  const char* end = token.data() + token.size();
  auto [stop, error] = std::from_chars(token.data(), end, value);
  if (error == std::errc::result_out_of_range && !token.empty() && token[0] != '-') {
    std::uint64_t big = 0;
    const auto second = std::from_chars(token.data(), end, big);
    value = static_cast<std::int64_t>(big);
    stop = second.ptr;
    error = second.ec;
  }
  if (error != std::errc{}) return false;
  if (stop == end) return true;
  if (*stop != '.') return false;
  for (++stop; stop != end; ++stop)
    if (*stop < '0' || *stop > '9') return false;
  return true;
}

// Whole nanoseconds from a decimal number of microseconds, rounded half up; false where there is no
// number, or it is beyond +-4.5e15 us (142 years). Exponents are understood; quotes are not.
inline bool parse_microseconds(std::string_view token, std::int64_t& nanoseconds) {
  const bool negative = !token.empty() && token.front() == '-';
  if (negative) token.remove_prefix(1);
  constexpr std::int64_t kMost = 4'500'000'000'000'000'000;
  std::int64_t digits = 0;  // all digits kept, as one number
  int point = 0;            // decimals among them
  bool after_point = false, any = false, round_up = false, cut = false;
  std::size_t i = 0;
  for (; i < token.size(); ++i) {
    const char c = token[i];
    if (c == '.' && !after_point) {
      after_point = true;
      continue;
    }
    if (c < '0' || c > '9') break;
    any = true;
    if (digits <= kMost / 10 - 1) {
      digits = digits * 10 + (c - '0');
      point += after_point;
    } else {
      if (!cut) round_up = c >= '5';
      cut = true;
      point -= !after_point;
    }
  }
  if (!any) return false;
  int exponent = 0;
  if (i < token.size()) {
    if (token[i] != 'e' && token[i] != 'E') return false;
    ++i;
    if (i < token.size() && token[i] == '+') ++i;
    const auto [stop, error] = std::from_chars(token.data() + i, token.data() + token.size(), exponent);
    if (error != std::errc{} || stop != token.data() + token.size() || exponent < -100 || exponent > 100) return false;
  }
  int shift = exponent - point + 3;  // to nanoseconds
  if (cut && round_up && shift >= 0) ++digits;
  for (; shift > 0; --shift) {
    if (digits > kMost / 10) return false;
    digits *= 10;
  }
  for (; shift < -1 && digits != 0; ++shift) digits /= 10;
  if (shift == -1) digits = (digits + 5) / 10;
  if (shift < -1) digits = 0;
  if (digits > kMost) return false;
  nanoseconds = negative ? -digits : digits;
  return true;
}

}  // namespace memwall
