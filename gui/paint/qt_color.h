// Colours of figures as Qt has them.
#pragma once

#include <QColor>

#include "traces/figure/figure.h"

namespace memwall::gui {

inline QColor qt_color(Color color) { return QColor(color.red, color.green, color.blue, color.opacity); }

}  // namespace memwall::gui
