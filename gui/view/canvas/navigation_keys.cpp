#include "gui/view/canvas/navigation_keys.h"

#include <QAbstractSpinBox>
#include <QApplication>
#include <QComboBox>
#include <QKeyEvent>
#include <QLineEdit>
#include <QTextEdit>

#include <algorithm>
#include <cmath>

#include "gui/view/canvas/canvas_widget.h"

namespace memwall::gui {
namespace {

constexpr double kTap = 0.12;         // seconds that a tap is worth
constexpr qint64 kUntilHeld = 160;    // milliseconds after which a key counts as held
constexpr double kDoublings = 2.2;    // of the zoom, per second
constexpr double kWidths = 0.9;       // panned, per second
constexpr double kScroll = 500;       // logical pixels per second
constexpr double kFast = 3;           // times as fast with Shift
constexpr int kFrame = 16;            // milliseconds
constexpr double kLongestTick = 0.1;  // seconds: a slow frame does not make a leap

bool takes_text(const QWidget* widget) {
  const auto* edit = qobject_cast<const QTextEdit*>(widget);
  return qobject_cast<const QLineEdit*>(widget) || qobject_cast<const QAbstractSpinBox*>(widget) ||
         qobject_cast<const QComboBox*>(widget) || (edit && !edit->isReadOnly());
}

bool is_letter(int key) { return key == Qt::Key_W || key == Qt::Key_A || key == Qt::Key_S || key == Qt::Key_D; }

bool is_other(int key) {
  switch (key) {
    case Qt::Key_Left:
    case Qt::Key_Right:
    case Qt::Key_Up:
    case Qt::Key_Down:
    case Qt::Key_Plus:
    case Qt::Key_Minus:
    case Qt::Key_Home:
    case Qt::Key_End:
    case Qt::Key_PageUp:
    case Qt::Key_PageDown:
    case Qt::Key_Space:
      return true;
    default:
      return false;
  }
}

}  // namespace

NavigationKeys::NavigationKeys(Workspace& workspace, CanvasWidget& canvas, QObject* parent)
    : QObject(parent), workspace_(workspace), canvas_(canvas) {
  timer_.setInterval(kFrame);
  connect(&timer_, &QTimer::timeout, this, &NavigationKeys::tick);
  qApp->installEventFilter(this);
}

bool NavigationKeys::concerns(const QObject* object, int key) const {
  if (!object->isWidgetType() || !workspace_.has_run()) return false;
  const auto* widget = static_cast<const QWidget*>(object);
  if (widget->window() != canvas_.window() || takes_text(widget) || QApplication::activePopupWidget()) return false;
  return is_letter(key) || (is_other(key) && (widget == &canvas_ || widget == canvas_.window()));
}

bool NavigationKeys::eventFilter(QObject* object, QEvent* event) {
  const auto type = event->type();
  if (type == QEvent::ApplicationStateChange || type == QEvent::WindowDeactivate) {
    held_.clear();
    timer_.stop();
    return false;
  }
  if (type != QEvent::KeyPress && type != QEvent::KeyRelease) return false;
  const auto& key = static_cast<const QKeyEvent&>(*event);
  if (type == QEvent::KeyRelease) return release(key) && false;  // whoever has the focus may want it too
  return concerns(object, key.key()) && press(key);
}

bool NavigationKeys::press(const QKeyEvent& event) {
  const auto modifiers = event.modifiers() & ~(Qt::KeypadModifier | Qt::ShiftModifier);
  if (modifiers != Qt::NoModifier) return false;
  if (event.isAutoRepeat()) return true;  // the timer repeats, and more evenly
  if (act_at_once(event.key())) return true;
  // "+" is typed with Shift on many keyboards.
  const bool fast = (event.modifiers() & Qt::ShiftModifier) && event.key() != Qt::Key_Plus;
  canvas_.begin_gesture();
  move(event.key(), kTap, fast);
  Held held{fast, {}};
  held.since.start();
  held_[event.key()] = held;
  since_tick_.start();
  timer_.start();
  return true;
}

bool NavigationKeys::release(const QKeyEvent& event) {
  if (event.isAutoRepeat()) return true;
  if (event.key() == Qt::Key_Space) canvas_.hold_space(false);
  held_.erase(event.key());
  if (held_.empty()) timer_.stop();
  return true;
}

bool NavigationKeys::act_at_once(int key) {
  const auto edge = [&](bool last) {
    workspace_.change_viewport([&](Viewport& viewport) {
      viewport.remember();
      viewport.pan(viewport.x(last ? viewport.whole().end : viewport.whole().begin) - (last ? viewport.width() : 0));
    });
  };
  const double page = canvas_.height() - kRulerHeight;
  switch (key) {
    case Qt::Key_Space:
      canvas_.hold_space(true);
      return true;
    case Qt::Key_Home:
      edge(false);
      return true;
    case Qt::Key_End:
      edge(true);
      return true;
    case Qt::Key_PageUp:
      workspace_.scroll_to(workspace_.state().scroll - page);
      return true;
    case Qt::Key_PageDown:
      workspace_.scroll_to(workspace_.state().scroll + page);
      return true;
    default:
      return false;
  }
}

void NavigationKeys::move(int key, double seconds, bool fast) {
  if (fast) seconds *= kFast;
  switch (key) {
    case Qt::Key_W:
    case Qt::Key_Plus:
      return canvas_.zoom(std::exp2(kDoublings * seconds));
    case Qt::Key_S:
    case Qt::Key_Minus:
      return canvas_.zoom(std::exp2(-kDoublings * seconds));
    case Qt::Key_A:
    case Qt::Key_Left:
      return canvas_.pan(-kWidths * seconds);
    case Qt::Key_D:
    case Qt::Key_Right:
      return canvas_.pan(kWidths * seconds);
    case Qt::Key_Up:
      return workspace_.scroll_to(workspace_.state().scroll - kScroll * seconds);
    case Qt::Key_Down:
      return workspace_.scroll_to(workspace_.state().scroll + kScroll * seconds);
    default:
      return;
  }
}

void NavigationKeys::tick() {
  const double seconds = std::min(kLongestTick, static_cast<double>(since_tick_.restart()) / 1000);
  for (const auto& [key, held] : held_) {
    if (held.since.elapsed() < kUntilHeld) continue;
    canvas_.begin_gesture();
    move(key, seconds, held.fast);
  }
}

}  // namespace memwall::gui
