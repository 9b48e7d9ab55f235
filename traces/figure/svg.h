// Writes a figure as SVG 1.1.
#pragma once

#include <iosfwd>
#include <string>
#include <string_view>

#include "traces/figure/figure.h"

namespace memwall {

// Well-formed XML in UTF-8 whatever the texts hold; the same figure gives the same bytes, in any
// locale. The caller looks after the stream's state. REQUIRES: groups are balanced.
void write_svg(const Figure& figure, std::ostream& out);

// `text` as XML character data: markup escaped, and what XML cannot hold (control characters,
// bytes that are not UTF-8) replaced by U+FFFD.
std::string xml_text(std::string_view text);

}  // namespace memwall
