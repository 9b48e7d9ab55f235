// Tells of work in the background once it takes long enough to ask oneself, with a button that cancels it.
#pragma once

#include <QTimer>
#include <QWidget>

class QLabel;
class QProgressBar;

namespace memwall::gui {

class Background;

class ProgressLine : public QWidget {
  Q_OBJECT
 public:
  static constexpr int kPatience = 300;  // milliseconds before it shows

  // `background` is not owned and outlives this.
  explicit ProgressLine(Background& background, QWidget* parent = nullptr);

 private:
  void begin(const QString& what);
  void end();
  Background& background_;
  QLabel* what_;
  QProgressBar* bar_;
  QTimer patience_;
};

}  // namespace memwall::gui
