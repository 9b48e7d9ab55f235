// Texts that were laid out: a word that is painted sixty times a second is shaped once.
#pragma once

#include <QFont>
#include <QGlyphRun>

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "traces/figure/figure.h"

class QPainter;

namespace memwall::gui {

// One size and weight. The families are those that SVG files name.
QFont figure_font(int pixels, bool bold);
// What is painted of a text: blanks as in SVG (runs count as one, none at the ends), and U+FFFD for what is no
// character.
QString painted_text(std::string_view utf8);

class TextCache {
 public:
  // At the text's anchor, turned by its angle.
  void paint(const Text& text, QPainter& painter);
  std::size_t size() const { return now_ + before_; }

 private:
  struct Layout {
    QList<QGlyphRun> runs;
    double width = 0, baseline = 0;
  };
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };
  using Layouts = std::unordered_map<std::string, std::shared_ptr<const Layout>, Hash, std::equal_to<>>;
  struct Font {
    int pixels = 0;
    bool bold = false;
    QFont font;
    Layouts now, before;  // used since the last turn, and in the one before
  };
  static constexpr std::size_t kMost = 4096;  // layouts of a turn

  Font& font_of(int pixels, bool bold);
  std::shared_ptr<const Layout> layout_of(Font& font, const std::string& text);
  void turn();

  std::vector<std::unique_ptr<Font>> fonts_;
  std::size_t now_ = 0, before_ = 0;
};

}  // namespace memwall::gui
