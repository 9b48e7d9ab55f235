// How wide a text is, without asking a screen: so that labels can be placed where they fit.
//
// Widths are those of Helvetica (Adobe's font metrics), plus a margin because the
// reader's sans-serif may be wider. They are estimates for layout, nothing more.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace memwall {

// The character that begins a text. Bytes that are not UTF-8 are characters of one byte, not valid.
struct Character {
  std::uint32_t code = 0;
  std::size_t bytes = 1;
  bool valid = true;
};
// REQUIRES: text is not empty.
Character first_character(std::string_view text);

// In points.
double text_width(std::string_view text, double size, bool bold = false);

// `text` if it fits into `width`, else its beginning with an ellipsis; "" where not even three
// letters and the ellipsis fit. Whoever shortens a text keeps the whole one in a group's title.
std::string fit_text(std::string_view text, double width, double size, bool bold = false);

// Lines of at most `width`, broken at spaces; a longer word is shortened as by fit_text. Beyond
// `most` lines the last one ends with an ellipsis. REQUIRES: most >= 1.
std::vector<std::string> wrap_text(std::string_view text, double width, double size, bool bold = false,
                                   std::size_t most = 100);

}  // namespace memwall
