#include "cli/print/numbered_modules.h"

#include <algorithm>
#include <string_view>

namespace memwall {

std::string without_numbers(const std::string& module) {
  std::string text;
  for (std::size_t begin = 0; begin <= module.size();) {
    const std::size_t end = std::min(module.find('.', begin), module.size());
    const std::string_view part = std::string_view(module).substr(begin, end - begin);
    const std::size_t digits = part.find_last_not_of("0123456789") + 1;
    const bool numbered = digits < part.size() && (digits == 0 || part[digits - 1] == '_');
    text += part.substr(0, numbered ? digits : part.size());
    if (numbered) text += '*';
    if (end < module.size()) text += '.';
    begin = end + 1;
  }
  return text;
}

}  // namespace memwall
