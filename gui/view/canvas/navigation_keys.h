// Keys that act as long as they are held: zooming and panning as smoothly as the screen is drawn.
#pragma once

#include <QElapsedTimer>
#include <QObject>
#include <QTimer>

#include <map>

class QKeyEvent;

namespace memwall::gui {

class CanvasWidget;
class Workspace;

// Watches the keys of a window. W A S D work wherever no text is being typed; arrows, Home, End, Page Up, Page Down, +,
// - and Space where the canvas has the focus.
class NavigationKeys : public QObject {
  Q_OBJECT
 public:
  // Neither is owned; the window is the canvas's.
  NavigationKeys(Workspace& workspace, CanvasWidget& canvas, QObject* parent);

 protected:
  bool eventFilter(QObject* object, QEvent* event) override;

 private:
  bool concerns(const QObject* object, int key) const;
  bool press(const QKeyEvent& event);
  bool release(const QKeyEvent& event);
  bool act_at_once(int key);
  void move(int key, double seconds, bool fast);
  void tick();

  Workspace& workspace_;
  CanvasWidget& canvas_;
  struct Held {
    bool fast = false;
    QElapsedTimer since;
  };
  std::map<int, Held> held_;
  QTimer timer_;
  QElapsedTimer since_tick_;
};

}  // namespace memwall::gui
