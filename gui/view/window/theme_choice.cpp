#include "gui/view/window/theme_choice.h"

#include <QApplication>
#include <QToolTip>

#include "gui/paint/qt_color.h"
#include "gui/view/widget_colors.h"

namespace memwall::gui {
namespace {

// Widgets in the colours of the canvas.
QPalette palette_of(const Theme& theme) {
  const QColor back = qt_color(theme.background), band = qt_color(theme.band), text = qt_color(theme.text);
  const QColor window = theme.dark ? back.lighter(125) : QColor(239, 239, 239);
  const QColor button = theme.dark ? back.lighter(165) : QColor(239, 239, 239);
  QPalette palette(button, window);
  palette.setColor(QPalette::Base, back);
  palette.setColor(QPalette::AlternateBase, band);
  for (const auto role : {QPalette::WindowText, QPalette::Text, QPalette::ButtonText, QPalette::ToolTipText}) {
    palette.setColor(role, text);
    palette.setColor(QPalette::Disabled, role, qt_color(theme.faint_text));
  }
  palette.setColor(QPalette::ToolTipBase, window);
  palette.setColor(QPalette::PlaceholderText, qt_color(theme.faint_text));
  palette.setColor(QPalette::Highlight, QColor(0, 114, 178));  // Okabe and Ito's blue: white text can be read on it
  palette.setColor(QPalette::HighlightedText, Qt::white);
  palette.setColor(QPalette::Link, theme.dark ? QColor(86, 180, 233) : QColor(0, 114, 178));
  return palette;
}

}  // namespace

ThemeChoice::ThemeChoice() : system_(QApplication::palette()) {}

Theme ThemeChoice::apply(const QString& choice) const {
  const bool own = choice == "light" || choice == "dark";
  const bool dark = own ? choice == "dark" : is_dark(system_);
  const Theme theme = dark ? dark_theme() : light_theme();
  const QPalette palette = own ? palette_of(theme) : system_;
  QApplication::setPalette(palette);
  QToolTip::setPalette(palette);
  return theme;
}

}  // namespace memwall::gui
