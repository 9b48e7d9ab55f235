// What an empty window shows: how to open a run.
#pragma once

#include <QStringList>
#include <QWidget>

class QVBoxLayout;

namespace memwall::gui {

class WelcomePage : public QWidget {
  Q_OBJECT
 public:
  explicit WelcomePage(QWidget* parent = nullptr);
  void set_recent(const QStringList& paths);

 Q_SIGNALS:
  void open_wanted();                     // a dialog
  void file_wanted(const QString& path);  // one of the recent ones

 private:
  QWidget* recent_ = nullptr;
  QVBoxLayout* column_;
};

}  // namespace memwall::gui
