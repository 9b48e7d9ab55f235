// Is a foreign text what it should be?
#pragma once

#include <string>
#include <string_view>

namespace memwall {

bool is_ascii(std::string_view text);

// Is it UTF-8? Halves of surrogate pairs, which Python writes for undecodable file names, are let pass: `copy` then is
// the text with U+FFFD in their places, otherwise "".
bool check_utf8(std::string_view text, std::string& copy);

// What may be shown in sentences and written into traces: zero bytes become '?', and so does every byte beyond ASCII
// where the text is no UTF-8.
void make_presentable(std::string& text);

}  // namespace memwall
