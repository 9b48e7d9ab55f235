// Text that somebody else wrote, fit for a terminal.
#pragma once

#include <string>
#include <string_view>

namespace memwall {

// Control characters but tabs and line ends are shown ("\\x1b"; "\\u009b" beyond ASCII, as in JSON), and so are those
// that turn the direction of what follows ("\\u202e"): a name in a file cannot clear a screen or show another name.
// Bytes that are no UTF-8 become U+FFFD. Other text stays as it is.
std::string presentable(std::string_view text);

// The same of what has to stay on one line: tabs and line ends are shown, too.
std::string presentable_line(std::string_view text);

}  // namespace memwall
