#include "gui/view/widget_colors.h"

#include <QGuiApplication>
#include <QPalette>

#include "traces/figure/palette.h"

namespace memwall::gui {

bool is_dark(const QPalette& palette) {
  return palette.color(QPalette::Window).lightness() < palette.color(QPalette::WindowText).lightness();
}

bool widgets_are_dark() { return is_dark(QGuiApplication::palette()); }

QColor word_color(std::string_view word) {
  const Color color = palette::color_of(word, widgets_are_dark() ? palette::Page::dark : palette::Page::light);
  return {color.red, color.green, color.blue};
}

}  // namespace memwall::gui
