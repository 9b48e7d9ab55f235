#include "gui/model/readable_name.h"

#include <algorithm>
#include <cctype>

namespace memwall::gui {
namespace {

bool is_identifier(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '~'; }

// Where parameters and template arguments begin: the first "<" or "(" that follows a letter or digit and is not that
// of "(anonymous namespace)" or "operator<". npos: it has none.
std::size_t arguments_of(std::string_view name) {
  for (std::size_t i = 1; i < name.size(); ++i) {
    if (name[i] != '<' && name[i] != '(') continue;
    if (!is_identifier(name[i - 1])) continue;
    const std::string_view before = name.substr(0, i);
    if (before.ends_with("operator")) continue;
    return i;
  }
  return std::string_view::npos;
}

// The end of what the bracket at `open` encloses; npos where it is not closed, as in names that were cut.
std::size_t closed(std::string_view name, std::size_t open) {
  int depth = 0;
  for (std::size_t i = open; i < name.size(); ++i) {
    if (name[i] == '<' || name[i] == '(' || name[i] == '{') ++depth;
    const bool arrow = name[i] == '>' && i > 0 && name[i - 1] == '-';
    if ((name[i] == '>' && !arrow) || name[i] == ')' || name[i] == '}') --depth;
    if (depth == 0) return i + 1;
  }
  return std::string_view::npos;
}

// After the last "::" or blank.
std::string_view last_part(std::string_view name) {
  const std::size_t colon = name.rfind("::"), blank = name.rfind(' ');
  std::size_t from = 0;
  if (colon != std::string_view::npos) from = colon + 2;
  if (blank != std::string_view::npos && blank + 1 > from) from = blank + 1;
  return name.substr(from);
}

}  // namespace

std::string readable_name(std::string_view name) {
  constexpr std::string_view kAnonymous = "(anonymous namespace)::";
  std::string plain(name);
  for (std::size_t at; (at = plain.find(kAnonymous)) != std::string::npos;) plain.erase(at, kAnonymous.size());
  std::string_view rest = plain;
  // Template arguments of a class come before its member's name: void C<T>::run<U>(int).
  for (std::size_t open; (open = arguments_of(rest)) != std::string_view::npos;) {
    const std::size_t end = closed(rest, open);
    if (end != std::string_view::npos && rest.substr(end).starts_with("::")) {
      rest.remove_prefix(end + 2);
      continue;
    }
    const std::string_view function = last_part(rest.substr(0, open));
    return std::string(function.empty() ? name : function);
  }
  const bool sentence = rest.find(' ') != std::string_view::npos;
  const std::size_t colon = sentence ? std::string_view::npos : rest.rfind("::");
  const std::string_view function = colon == std::string_view::npos ? rest : rest.substr(colon + 2);
  return std::string(function.empty() ? name : function);
}

std::string with_blanks(std::string_view word) {
  std::string text(word);
  std::replace(text.begin(), text.end(), '_', ' ');
  return text;
}

}  // namespace memwall::gui
