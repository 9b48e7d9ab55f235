// Text with links to ops, storages and instants of the runs that are open: a click goes there.
#pragma once

#include <QTextBrowser>

#include "gui/view/workspace.h"

namespace memwall::gui {

class ReferenceBrowser : public QTextBrowser {
 public:
  ReferenceBrowser(Workspace& workspace, const QString& name, QWidget* parent = nullptr);

  // What a link to it says in its href.
  static QString address(OpRef op);
  static QString address(StorageRef storage);
  static QString address(Time time);  // of the canvas
  // "<a href=...>text</a>", the text as it stands.
  template <class Target>
  static QString link(Target target, const QString& text) {
    return QStringLiteral("<a href=\"%1\">%2</a>").arg(address(target), text.toHtmlEscaped());
  }
  // Goes where a link points; false if it points nowhere (any more).
  bool follow(const QString& address);
  // Shows `html` from its top, or where it was scrolled to if `stay`.
  void show_html(const QString& html, bool stay = false);

 private:
  void apply_theme();
  Workspace& workspace_;
};

}  // namespace memwall::gui
