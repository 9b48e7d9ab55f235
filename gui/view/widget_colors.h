// The colours of widgets, which follow the theme: whether it is a dark one, and what a word has in it.
#pragma once

#include <QColor>

#include <string_view>

class QPalette;

namespace memwall::gui {

bool is_dark(const QPalette& palette);
bool widgets_are_dark();  // those of the application now
// The colour of a word of the palette on a page as dark as the widgets.
QColor word_color(std::string_view word);

}  // namespace memwall::gui
