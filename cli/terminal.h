// What verbs print: data to stdout, sentences to stderr. Both pass through `presentable`: no name of a file's reaches a
// terminal as a command to it.
#pragma once

#include <fmt/format.h>

#include <string>
#include <utility>

namespace memwall {

// Throws std::runtime_error (exit code 1) where stdout takes no more.
void print(const std::string& text);

// As it is, with its line end.
void print_error(const std::string& text);
template <class... Arguments>
void print_error(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  print_error(fmt::format(format, std::forward<Arguments>(arguments)...));
}

}  // namespace memwall
