// What verbs print: data to stdout, sentences to stderr. Both pass through `presentable`: no name of a file's reaches a
// terminal as a command to it.
#pragma once

#include <fmt/format.h>

#include <string>
#include <utility>

namespace memwall {

// Throws std::runtime_error (exit code 1) where stdout takes no more.
void print(const std::string& text);

// As it is, with its line end; but /dev/stdin is called "standard input".
void print_error(const std::string& text);
template <class... Arguments>
void print_error(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  print_error(fmt::format(format, std::forward<Arguments>(arguments)...));
}

// "WHO: SENTENCE", one line on stderr whatever names it holds; WHO in red where there are colors.
void print_failure(const std::string& who, const std::string& sentence);

// `text` with the path /dev/stdin, wherever it stands in it, as people call it.
std::string with_standard_input_named(std::string text);

}  // namespace memwall
