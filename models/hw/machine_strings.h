// Looks into a machine file without parsing it: what most files can be passed over by.
#pragma once

#include <string_view>

namespace memwall {

// May one of the strings in this text of a machine file (text format of Protocol Buffers) be `value`? Never false where
// one is, whether it is written in one piece or in several; true as well where a string has an escape, and nothing is
// said of a file that is not well formed. Linear in the text.
bool may_hold_text(std::string_view file, std::string_view value);

}  // namespace memwall
