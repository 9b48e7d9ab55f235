// What an empty window shows: how to open a run.
#pragma once

#include <QStringList>
#include <QWidget>

class QLabel;
class QVBoxLayout;

namespace memwall::gui {

class WelcomePage : public QWidget {
  Q_OBJECT
 public:
  explicit WelcomePage(QWidget* parent = nullptr);
  void set_recent(const QStringList& paths);
  void set_opening(const QString& name);  // "": nothing is being opened

 Q_SIGNALS:
  void open_wanted();                     // a dialog
  void file_wanted(const QString& path);  // one of the recent ones

 private:
  QLabel* title_ = nullptr;
  QWidget* recent_ = nullptr;
  QVBoxLayout* column_;
};

}  // namespace memwall::gui
