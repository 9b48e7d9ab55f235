// Asks which figure of the open runs is to be written, and writes it in the background.
#pragma once

#include <QDialog>

#include "gui/drawing/run_figures.h"
#include "gui/view/workspace.h"

class QComboBox;
class QDoubleSpinBox;
class QLineEdit;

namespace memwall::gui {

class ExportDialog : public QDialog {
  Q_OBJECT
 public:
  // `canvas`: its size in logical pixels, for the figure of what the screen shows. REQUIRES: a run is open.
  ExportDialog(Workspace& workspace, QSize canvas, QWidget* parent);

  void accept() override;  // starts the writing; the workspace says when it is done, or reports why not

 private:
  void choose_file();
  void adapt();  // what can be chosen for the view
  Figure canvas_figure() const;
  void write_run_figure(const QString& path);

  Workspace& workspace_;
  QSize canvas_;
  QComboBox *view_, *tier_, *range_;
  QLineEdit* path_;
  QDoubleSpinBox* scale_;
};

}  // namespace memwall::gui
