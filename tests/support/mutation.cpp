#include "tests/support/mutation.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>
#include <vector>

#include "tests/support/damage.h"

namespace memwall {
namespace {

using Random = std::mt19937_64;

constexpr std::array<std::string_view, 24> kOdd{"-1",
                                                "0",
                                                "1e308",
                                                "-1e308",
                                                "18446744073709551615",
                                                "-9223372036854775808",
                                                "9223372036854775807",
                                                "9007199254740993",
                                                "4294967296",
                                                "2147483648",
                                                "NaN",
                                                "nan",
                                                "-Infinity",
                                                "null",
                                                "true",
                                                "\"\"",
                                                "\"x\"",
                                                "\"-3\"",
                                                "[]",
                                                "{}",
                                                "[[[[]]]]",
                                                "0.0000001",
                                                "1",
                                                "2"};

struct Range {
  std::size_t begin = 0, end = 0;
};

std::size_t below(Random& random, std::size_t n) { return n == 0 ? 0 : random() % n; }

// A token of a text near a random place: a number, a name, a string with its quotes.
Range some_token(const std::string& text, Random& random) {
  constexpr std::string_view kBetween = " \t\r\n,:;{}[]()|=";
  std::size_t begin = text.find_first_not_of(kBetween, below(random, text.size()));
  if (begin == std::string::npos) return {};
  if (text[begin] == '"') {
    const std::size_t end = text.find('"', begin + 1);
    return {begin, end == std::string::npos ? text.size() : end + 1};
  }
  const std::size_t end = text.find_first_of(kBetween, begin);
  return {begin, end == std::string::npos ? text.size() : end};
}

// A member of a JSON object: "name": value, with the comma behind it.
Range some_member(const std::string& text, Random& random) {
  const std::size_t colon = text.find("\":", below(random, text.size()));
  if (colon == std::string::npos || colon == 0) return {};
  const std::size_t begin = text.rfind('"', colon - 1);
  if (begin == std::string::npos) return {};
  int depth = 0;
  for (std::size_t i = colon + 2; i < text.size(); ++i) {
    if (text[i] == '"') {
      i = text.find('"', i + 1);
      if (i == std::string::npos) return {};
    } else if (text[i] == '{' || text[i] == '[') {
      ++depth;
    } else if (text[i] == '}' || text[i] == ']') {
      if (depth-- == 0) return {begin, i};
    } else if (text[i] == ',' && depth == 0) {
      return {begin, i + 1};
    }
  }
  return {};
}

Range some_line(const std::string& text, Random& random) {
  const std::size_t end = text.find('\n', below(random, text.size()));
  if (end == std::string::npos) return {};
  const std::size_t before = end == 0 ? std::string::npos : text.rfind('\n', end - 1);
  return {before == std::string::npos ? 0 : before + 1, end + 1};
}

void change_text(std::string& text, Random& random) {
  switch (random() % 9) {
    case 0:
    case 1:
    case 2:
      if (const Range t = some_token(text, random); t.end > t.begin)
        text.replace(t.begin, t.end - t.begin, kOdd[below(random, kOdd.size())]);
      break;
    case 3:
      if (const Range m = some_member(text, random); m.end > m.begin) text.erase(m.begin, m.end - m.begin);
      break;
    case 4:
      if (const Range m = some_member(text, random); m.end > m.begin) {
        std::string copy = text.substr(m.begin, m.end - m.begin);
        text.insert(m.begin, copy.ends_with(',') ? copy : copy + ",");
      }
      break;
    case 5:  // a member or column renamed
      if (const Range t = some_token(text, random); t.end > t.begin + 2) text[t.begin + 1] ^= 0x05;
      break;
    case 6: {
      const Range a = some_line(text, random), b = some_line(text, random);
      if (a.end == a.begin) break;
      const std::string line = text.substr(a.begin, a.end - a.begin);
      if (random() % 2 == 0) text.erase(a.begin, a.end - a.begin);
      if (random() % 2 == 0) text.insert(std::min(b.begin, text.size()), line);
      break;
    }
    default:
      text = damaged(std::move(text), random);
  }
}

void change_binary(std::string& bytes, Random& random) {
  const std::size_t at = below(random, bytes.size());
  const std::size_t length = std::min(bytes.size() - at, std::size_t{1} << (random() % 13));
  switch (random() % 9) {
    case 0:
    case 1:
      bytes[at] = static_cast<char>(bytes[at] ^ (1 << (random() % 8)));
      break;
    case 2:
      bytes[at] = static_cast<char>(std::array{0x00, 0x7f, 0x80, 0xff, 0x0a, 0x12}[random() % 6]);
      break;
    case 3: {  // a word of the four or eight bytes that fields are made of
      const std::uint64_t word = std::array{std::uint64_t{0}, ~std::uint64_t{0}, std::uint64_t{1} << 63,
                                            std::uint64_t{1} << 31, std::uint64_t{0x7fffffffffffffff}}[random() % 5];
      std::memcpy(bytes.data() + at, &word, std::min<std::size_t>(bytes.size() - at, random() % 2 == 0 ? 4 : 8));
      break;
    }
    case 4:
      std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(at), length, '\0');
      break;
    case 5:
      bytes.erase(at, length);
      break;
    case 6:
      bytes.insert(below(random, bytes.size()), bytes.substr(at, length));
      break;
    case 7: {  // pages of a database change places
      constexpr std::size_t kPage = 4096;
      const std::size_t a = below(random, bytes.size() / kPage) * kPage,
                        b = below(random, bytes.size() / kPage) * kPage;
      if (bytes.size() >= 2 * kPage)
        std::swap_ranges(bytes.begin() + static_cast<std::ptrdiff_t>(a),
                         bytes.begin() + static_cast<std::ptrdiff_t>(a + kPage),
                         bytes.begin() + static_cast<std::ptrdiff_t>(b));
      break;
    }
    default:
      if (random() % 4 == 0) bytes.resize(at);
  }
}

// What closes a JSON text that ends at `end`; npos in `end` where no element ended before.
std::string closing(const std::string& text, std::size_t most, std::size_t& end) {
  std::string open, at_end;
  end = std::string::npos;
  for (std::size_t i = 0; i < std::min(most, text.size()); ++i) {
    const char c = text[i];
    if (c == '"') {
      for (++i; i < text.size() && text[i] != '"'; ++i)
        if (text[i] == '\\') ++i;
    } else if (c == '{' || c == '[') {
      open += c == '{' ? '}' : ']';
    } else if ((c == '}' || c == ']') && !open.empty()) {
      open.pop_back();
      if (c == '}' && open.ends_with(']')) {  // an element of an array: what follows it can be left out
        end = i + 1;
        at_end = open;
      }
    }
  }
  std::reverse(at_end.begin(), at_end.end());
  return at_end;
}

}  // namespace

bool is_text(const std::string& content) {
  const std::string_view head = std::string_view(content).substr(0, 1024);
  const auto odd = std::count_if(head.begin(), head.end(), [](char c) {
    return static_cast<unsigned char>(c) < 32 && c != '\n' && c != '\r' && c != '\t';
  });
  return odd == 0;
}

std::string mutated(std::string content, Random& random) {
  const bool text = is_text(content);
  const int changes = 1 + static_cast<int>(random() % 3);
  for (int i = 0; i < changes && !content.empty(); ++i)
    text ? change_text(content, random) : change_binary(content, random);
  return content;
}

std::string shortened_text(const std::string& content, std::size_t most) {
  if (content.size() <= most || !is_text(content)) return content;
  const std::size_t first = content.find_first_not_of(" \t\r\n");
  if (first != std::string::npos && (content[first] == '{' || content[first] == '[')) {
    std::size_t end = 0;
    const std::string close = closing(content, most, end);
    if (end != std::string::npos && !close.empty()) return content.substr(0, end) + close;
  }
  const std::size_t line = content.rfind('\n', most);
  return line == std::string::npos ? content : content.substr(0, line + 1);
}

}  // namespace memwall
