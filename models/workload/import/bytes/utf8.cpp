#include "models/workload/import/bytes/utf8.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace memwall {

bool is_ascii(std::string_view text) {
  std::uint64_t bits = 0;
  std::size_t i = 0;
  for (; i + 8 <= text.size(); i += 8) {
    std::uint64_t word;
    std::memcpy(&word, text.data() + i, 8);
    bits |= word;
  }
  for (; i < text.size(); ++i) bits |= static_cast<std::uint8_t>(text[i]);
  return (bits & 0x8080808080808080u) == 0;
}

bool check_utf8(std::string_view text, std::string& copy) {
  bool halves = false;
  copy.clear();
  for (std::size_t i = 0; i < text.size();) {
    const auto byte = [&](std::size_t at) { return at < text.size() ? static_cast<std::uint8_t>(text[at]) : 0u; };
    const std::uint32_t first = byte(i);
    if (first < 0x80) {
      ++i;
      continue;
    }
    const int more = first >= 0xf0 ? 3 : first >= 0xe0 ? 2 : 1;
    std::uint32_t code = first & (0x3fu >> more);
    for (int k = 1; k <= more; ++k) {
      if ((byte(i + k) & 0xc0) != 0x80) return false;
      code = code << 6 | (byte(i + k) & 0x3f);
    }
    static constexpr std::uint32_t kLeast[] = {0, 0x80, 0x800, 0x10000};
    if (first < 0xc2 || first > 0xf4 || code < kLeast[more] || code > 0x10ffff) return false;
    if (code >= 0xd800 && code < 0xe000) {
      if (!halves) copy = text;
      halves = true;
      copy.replace(i, 3, "\xef\xbf\xbd");
    }
    i += more + 1;
  }
  return true;
}

void make_presentable(std::string& text) {
  std::replace(text.begin(), text.end(), '\0', '?');
  if (std::string copy; !check_utf8(text, copy))
    std::replace_if(
        text.begin(), text.end(), [](char c) { return (c & 0x80) != 0; }, '?');
  else if (!copy.empty())
    text = copy;
}

}  // namespace memwall
