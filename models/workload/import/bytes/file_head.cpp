#include "models/workload/import/bytes/file_head.h"

#include <fmt/format.h>

#include <cctype>

#include "models/workload/import/bytes/byte_source.h"

namespace memwall {
namespace {

using std::string_view;
constexpr std::size_t kHead = 64 << 10;

std::string read_head(const std::filesystem::path& path) {
  std::string raw(kHead, '\0');
  raw.resize(ByteSource(path).read(raw.data(), raw.size()));
  return raw;
}

std::string without_blanks(std::string text) {
  if (text.starts_with("\xef\xbb\xbf")) text.erase(0, 3);
  std::size_t blanks = 0;
  while (blanks < text.size() && std::isspace(static_cast<unsigned char>(text[blanks])) != 0) ++blanks;
  text.erase(0, blanks);
  return text;
}

// Behind the quote that closes the string opened at `i`, or the text's size.
std::size_t behind_string(string_view text, std::size_t i) {
  for (++i; i < text.size(); ++i) {
    if (text[i] == '\\')
      ++i;
    else if (text[i] == '"')
      return i + 1;
  }
  return text.size();
}

bool names_a_member(string_view text, std::size_t behind) {
  const std::size_t next = text.find_first_not_of(" \t\r\n", behind);
  return next != string_view::npos && text[next] == ':';
}

}  // namespace

FirstMembers first_members(string_view text) {
  FirstMembers members;
  if (!text.starts_with('{')) return members;
  std::size_t depth = 0;
  for (std::size_t i = 0; i < text.size();) {
    const char c = text[i];
    if (c == '"') {
      const std::size_t behind = behind_string(text, i);
      if (depth == 1 && names_a_member(text, behind)) members.names.emplace_back(text.substr(i + 1, behind - i - 2));
      i = behind;
      continue;
    }
    if (c == '{' || c == '[') ++depth;
    if ((c == '}' || c == ']') && --depth == 0) {
      members.closed = true;
      break;
    }
    ++i;
  }
  return members;
}

FileHead read_file_head(const std::filesystem::path& path) {
  FileHead head;
  head.path = path;
  head.raw = read_head(path);
  head.text = without_blanks(head.raw);
  head.members = first_members(head.text).names;
  return head;
}

std::string printable_prefix(string_view text) {
  std::string out;
  for (const char c : text.substr(0, 24))
    out += std::isprint(static_cast<unsigned char>(c)) != 0 ? std::string(1, c)
                                                            : fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
  return out;
}

}  // namespace memwall
