#include "models/hw/machine_strings.h"

namespace memwall {
namespace {

constexpr std::string_view kBlank = " \t\n\r\v\f";

// Behind blanks and comments.
std::size_t skip_blank(std::string_view file, std::size_t at) {
  while (at < file.size()) {
    if (file[at] == '#')
      at = file.find('\n', at);
    else if (kBlank.find(file[at]) != kBlank.npos)
      ++at;
    else
      return at;
  }
  return file.size();
}

}  // namespace

bool may_hold_text(std::string_view file, std::string_view value) {
  std::size_t matched = 0;  // of `value`, by the pieces so far of the string at hand
  bool open = false, fits = true;
  for (std::size_t at = skip_blank(file, 0); at < file.size(); at = skip_blank(file, at)) {
    if (file[at] != '"' && file[at] != '\'') {
      if (open && fits && matched == value.size()) return true;
      open = false;
      ++at;
      continue;
    }
    if (!open) matched = 0;
    if (!open) fits = true;
    open = true;
    const std::size_t end = file.find(file[at], at + 1);
    const std::string_view piece = file.substr(at + 1, end == file.npos ? file.npos : end - at - 1);
    if (piece.find('\\') != piece.npos) return true;
    fits = fits && value.substr(matched).starts_with(piece);
    if (fits) matched += piece.size();
    if (end == file.npos) break;
    at = end + 1;
  }
  return open && fits && matched == value.size();
}

}  // namespace memwall
