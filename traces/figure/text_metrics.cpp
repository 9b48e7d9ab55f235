#include "traces/figure/text_metrics.h"

#include <algorithm>

#include "sim/utf8.h"

namespace memwall {
namespace {

// Thousandths of the font size for characters 32 to 126. Source: Helvetica.afm of Adobe's Core 14 metrics.
constexpr short kWidths[] = {
    278,  278, 355, 556, 556, 889, 667, 191, 333, 333, 389, 584, 278, 333, 278, 278,  // space to /
    556,  556, 556, 556, 556, 556, 556, 556, 556, 556, 278, 278, 584, 584, 584, 556,  // 0 to ?
    1015, 667, 667, 722, 722, 667, 611, 778, 722, 278, 500, 667, 556, 833, 722, 778,  // @ to O
    667,  778, 722, 667, 611, 722, 667, 944, 667, 667, 611, 278, 278, 278, 469, 556,  // P to _
    333,  556, 556, 500, 556, 556, 278, 556, 556, 222, 222, 500, 222, 833, 556, 556,  // ` to o
    556,  556, 333, 500, 278, 556, 500, 722, 500, 500, 500, 334, 260, 334, 584};      // p to ~
static_assert(sizeof(kWidths) / sizeof(kWidths[0]) == 95);

constexpr double kDejaVuFactor = 1.18;  // DejaVu Sans against Helvetica, over English text
constexpr double kBoldFactor = 1.09;    // Helvetica-Bold against Helvetica, likewise
constexpr std::string_view kEllipsis = "\xe2\x80\xa6";

double width_of(std::uint32_t code) {
  if (code >= 32 && code < 127) return kWidths[code - 32];
  if (code < 0x1100) return 600;
  return 1000;  // ellipsis, and scripts whose characters fill a square
}

}  // namespace

Character first_character(std::string_view text) {
  const std::size_t length = utf8_length(text);
  std::uint32_t code = static_cast<unsigned char>(text.front());
  if (length <= 1) return {code, 1, length == 1};
  code &= 0x7fu >> length;
  for (const char c : text.substr(1, length - 1)) code = code << 6 | (static_cast<unsigned char>(c) & 0x3fu);
  return {code, length, true};
}

double text_width(std::string_view text, double size, bool bold) {
  double width = 0;
  while (!text.empty()) {
    const Character c = first_character(text);
    width += width_of(c.code);
    text.remove_prefix(c.bytes);
  }
  return width * size / 1000 * kDejaVuFactor * (bold ? kBoldFactor : 1);
}

std::string fit_text(std::string_view text, double width, double size, bool bold) {
  if (text_width(text, size, bold) <= width) return std::string(text);
  double room = width - text_width(kEllipsis, size, bold);
  std::size_t bytes = 0, letters = 0;
  while (bytes < text.size()) {
    const Character c = first_character(text.substr(bytes));
    room -= text_width(text.substr(bytes, c.bytes), size, bold);
    if (room < 0) break;
    bytes += c.bytes;
    ++letters;
  }
  if (letters < 3) return "";
  return std::string(text.substr(0, bytes)) + std::string(kEllipsis);
}

std::vector<std::string> wrap_text(std::string_view text, double width, double size, bool bold, std::size_t most) {
  std::vector<std::string> lines;
  std::string line;
  while (!text.empty()) {
    const std::size_t space = std::min(text.find(' '), text.size());
    const std::string word(text.substr(0, space));
    const std::string longer = line.empty() ? word : line + " " + word;
    if (!line.empty() && text_width(longer, size, bold) > width) {
      if (lines.size() + 1 == most) {
        line.append(1, ' ').append(text);  // too much for the last line: fit_text shortens it below
        break;
      }
      lines.push_back(line);
      line = word;
    } else {
      line = longer;
    }
    text.remove_prefix(std::min(space + 1, text.size()));
  }
  if (!line.empty()) lines.push_back(line);
  for (std::string& each : lines) each = fit_text(each, width, size, bold);
  return lines;
}

}  // namespace memwall
