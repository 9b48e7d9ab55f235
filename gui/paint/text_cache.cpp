#include "gui/paint/text_cache.h"

#include <QPainter>
#include <QTextLayout>

#include <algorithm>
#include <cmath>

#include "gui/paint/qt_color.h"
#include "traces/figure/text_metrics.h"

namespace memwall::gui {

QFont figure_font(int pixels, bool bold) {
  QFont font;
  // The first is the one whose widths traces/figure/text_metrics.h allows for.
  font.setFamilies({"DejaVu Sans", "Helvetica", "Arial"});
  // Shades of grey on any screen, and letters where they belong whatever the scale: the same picture everywhere.
  font.setStyleHint(QFont::SansSerif,
                    static_cast<QFont::StyleStrategy>(QFont::PreferAntialias | QFont::NoSubpixelAntialias));
  font.setHintingPreference(QFont::PreferNoHinting);
  font.setPixelSize(pixels);
  font.setBold(bold);
  return font;
}

QString painted_text(std::string_view utf8) {
  std::string text;
  text.reserve(utf8.size());
  while (!utf8.empty()) {
    const Character c = first_character(utf8);
    const bool blank = c.code == ' ' || c.code == '\t' || c.code == '\n';
    if (!c.valid || (c.code < 0x20 && !blank) || c.code == 0x7f || c.code == 0xfffe || c.code == 0xffff)
      text += "\xef\xbf\xbd";
    else if (!blank)
      text += utf8.substr(0, c.bytes);
    else if (!text.empty() && text.back() != ' ')
      text += ' ';
    utf8.remove_prefix(c.bytes);
  }
  if (text.ends_with(' ')) text.pop_back();
  return QString::fromUtf8(text.data(), static_cast<qsizetype>(text.size()));
}

void TextCache::paint(const Text& text, QPainter& painter) {
  if (text.color.opacity == 0 || !(text.size > 0)) return;
  const int pixels = std::clamp(static_cast<int>(std::lround(text.size)), 1, 1000);
  const std::shared_ptr<const Layout> layout = layout_of(font_of(pixels, text.bold), text.text);
  painter.setPen(qt_color(text.color));
  const double share = text.anchor == Anchor::start ? 0 : text.anchor == Anchor::middle ? 0.5 : 1;
  const QPointF from(-share * layout->width, -layout->baseline);
  // Qt's fonts have whole pixels; other sizes are scaled.
  if (text.angle == 0 && text.size == pixels) {
    for (const QGlyphRun& run : layout->runs) painter.drawGlyphRun(QPointF(text.at.x, text.at.y) + from, run);
    return;
  }
  const QTransform before = painter.transform();
  painter.translate(text.at.x, text.at.y);
  painter.rotate(-text.angle);
  painter.scale(text.size / pixels, text.size / pixels);
  for (const QGlyphRun& run : layout->runs) painter.drawGlyphRun(from, run);
  painter.setTransform(before);
}

TextCache::Font& TextCache::font_of(int pixels, bool bold) {
  for (const auto& font : fonts_)
    if (font->pixels == pixels && font->bold == bold) return *font;
  fonts_.push_back(std::make_unique<Font>(Font{pixels, bold, figure_font(pixels, bold), {}, {}}));
  return *fonts_.back();
}

std::shared_ptr<const TextCache::Layout> TextCache::layout_of(Font& font, const std::string& text) {
  if (const auto found = font.now.find(text); found != font.now.end()) return found->second;
  std::shared_ptr<const Layout> layout;
  if (const auto found = font.before.find(text); found != font.before.end()) {
    layout = found->second;
  } else {
    QTextLayout shaped(painted_text(text), font.font);
    // Left to right from the anchor on, whatever the script.
    QTextOption option(Qt::AlignLeft | Qt::AlignAbsolute);
    option.setTextDirection(Qt::LeftToRight);
    option.setWrapMode(QTextOption::NoWrap);
    shaped.setTextOption(option);
    shaped.beginLayout();
    const QTextLine line = shaped.createLine();
    shaped.endLayout();
    Layout made;
    if (line.isValid()) made = {shaped.glyphRuns(), line.naturalTextWidth(), line.ascent()};
    layout = std::make_shared<const Layout>(std::move(made));
  }
  if (now_ >= kMost) turn();
  font.now.emplace(text, layout);
  ++now_;
  return layout;
}

// What nobody painted for a whole turn goes.
void TextCache::turn() {
  for (const auto& font : fonts_) {
    font->before = std::move(font->now);
    font->now.clear();
  }
  before_ = now_;
  now_ = 0;
}

}  // namespace memwall::gui
