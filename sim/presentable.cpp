#include "sim/presentable.h"

#include "sim/utf8.h"

namespace memwall {
namespace {

constexpr char kDigits[] = "0123456789abcdef";

bool is_control(unsigned char c) { return (c < 0x20 && c != '\t' && c != '\n') || c == 0x7f; }

// Of the second block of control characters, U+0080 to U+009F: some terminals obey it, too.
bool is_wide_control(std::string_view character) {
  return character.size() == 2 && character[0] == '\xc2' && static_cast<unsigned char>(character[1]) < 0xa0;
}

void append_code(std::string& out, const char* escape, char c) {
  const auto byte = static_cast<unsigned char>(c);
  out += escape;
  out += kDigits[byte >> 4];
  out += kDigits[byte & 15];
}

}  // namespace

std::string presentable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    const std::string_view character = text.substr(0, length == 0 ? 1 : length);
    text.remove_prefix(character.size());
    if (length == 0)
      out += "\xef\xbf\xbd";
    else if (length == 1 && is_control(static_cast<unsigned char>(character[0])))
      append_code(out, "\\x", character[0]);
    else if (is_wide_control(character))
      append_code(out, "\\u00", character[1]);
    else
      out += character;
  }
  return out;
}

}  // namespace memwall
