#include "sim/presentable.h"

#include "sim/utf8.h"

namespace memwall {
namespace {

constexpr char kDigits[] = "0123456789abcdef";

bool is_control(unsigned char c, bool one_line) {
  return (c < 0x20 && (one_line || (c != '\t' && c != '\n'))) || c == 0x7f;
}

// Of the second block of control characters, U+0080 to U+009F: some terminals obey it, too.
bool is_wide_control(std::string_view character) {
  return character.size() == 2 && character[0] == '\xc2' && static_cast<unsigned char>(character[1]) < 0xa0;
}

// U+202A to U+202E and U+2066 to U+2069, which turn the direction of text.
bool turns_direction(std::string_view character) {
  if (character.size() != 3 || character[0] != '\xe2') return false;
  const auto second = static_cast<unsigned char>(character[1]), third = static_cast<unsigned char>(character[2]);
  return (second == 0x80 && third >= 0xaa && third <= 0xae) || (second == 0x81 && third >= 0xa6 && third <= 0xa9);
}

void append_code(std::string& out, const char* escape, char c) {
  const auto byte = static_cast<unsigned char>(c);
  out += escape;
  out += kDigits[byte >> 4];
  out += kDigits[byte & 15];
}

// Of the second and the third byte of a character of three.
void append_direction(std::string& out, std::string_view character) {
  const unsigned code =
      (static_cast<unsigned>(character[1]) & 0x3f) << 6 | (static_cast<unsigned>(character[2]) & 0x3f);
  append_code(out, "\\u20", static_cast<char>(code & 0xff));
}

std::string shown(std::string_view text, bool one_line) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    const std::string_view character = text.substr(0, length == 0 ? 1 : length);
    text.remove_prefix(character.size());
    if (length == 0)
      out += "\xef\xbf\xbd";
    else if (length == 1 && is_control(static_cast<unsigned char>(character[0]), one_line))
      append_code(out, "\\x", character[0]);
    else if (is_wide_control(character))
      append_code(out, "\\u00", character[1]);
    else if (turns_direction(character))
      append_direction(out, character);
    else
      out += character;
  }
  return out;
}

}  // namespace

std::string presentable(std::string_view text) { return shown(text, false); }
std::string presentable_line(std::string_view text) { return shown(text, true); }

}  // namespace memwall
