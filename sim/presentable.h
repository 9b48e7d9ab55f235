// Text that somebody else wrote, fit for a terminal.
#pragma once

#include <string>
#include <string_view>

namespace memwall {

// Control characters but tabs and line ends are shown ("\\x1b"; "\\u009b" beyond ASCII, as in JSON), so that a name in
// a file cannot clear a screen or fake a line; bytes that are no UTF-8 become U+FFFD. Other text stays as it is.
std::string presentable(std::string_view text);

}  // namespace memwall
