// A picture of the whole window without a person before it: for manuals and reports.
//
//   memwall-viewer --picture window.png --size 1600x1000 --theme dark --op 120 --press P --press Q run.h5
#pragma once

#include <QSize>
#include <QString>
#include <QStringList>

namespace memwall::gui {

struct WindowPicture {
  QString file;  // .png
  QSize size{1600, 1000};
  QString theme = "light";
  QString range;      // what is visible, as `memwall render --range` has it; empty: everything
  QString op;         // the number of an op that is chosen; empty: none
  QStringList press;  // keys of commands, in order: "P", "Q"
};

// "1600x1000". Throws UsageError.
QSize parse_size(const QString& text);

// Opens the runs, waits until everything is read and worked out, does what `picture` asks for, and writes the window.
// Nothing is remembered for other starts. Returns the exit code; what is wrong is told on stderr. REQUIRES: a
// QApplication.
int write_window_picture(const WindowPicture& picture, const QStringList& paths);

}  // namespace memwall::gui
