#include "gui/view/panels/reference_browser.h"

#include <QScrollBar>

#include "gui/paint/qt_color.h"

namespace memwall::gui {

ReferenceBrowser::ReferenceBrowser(Workspace& workspace, const QString& name, QWidget* parent)
    : QTextBrowser(parent), workspace_(workspace) {
  setAccessibleName(name);
  setOpenLinks(false);
  setOpenExternalLinks(false);
  setTabChangesFocus(false);  // Tab goes from link to link, and on after the last
  setTextInteractionFlags(Qt::TextBrowserInteraction | Qt::TextSelectableByKeyboard);
  setFrameShape(QFrame::NoFrame);
  connect(this, &QTextBrowser::anchorClicked, this, [this](const QUrl& url) { follow(url.toString()); });
  connect(&workspace, &Workspace::theme_changed, this, [this] { apply_theme(); });
  apply_theme();
}

QString ReferenceBrowser::address(OpRef op) {
  return QStringLiteral("op:%1:%2:%3").arg(op.run).arg(op.op).arg(op.call ? 1 : 0);
}
QString ReferenceBrowser::address(StorageRef storage) {
  return QStringLiteral("storage:%1:%2").arg(storage.run).arg(storage.storage);
}
QString ReferenceBrowser::address(Time time) { return QStringLiteral("time:%1").arg(time.count()); }

bool ReferenceBrowser::follow(const QString& address) {
  const QStringList parts = address.split(QLatin1Char(':'));
  const auto number = [&](int i) { return i < parts.size() ? parts[i].toLongLong() : -1; };
  if (parts[0] == QLatin1String("time") && workspace_.has_run()) {
    workspace_.go_to_time(Time(number(1)));
    return true;
  }
  const auto& runs = workspace_.state().runs;
  if (number(1) < 0 || static_cast<std::size_t>(number(1)) >= runs.size()) return false;
  const auto run = static_cast<std::uint8_t>(number(1));
  const auto which = static_cast<std::uint64_t>(number(2));
  if (parts[0] == QLatin1String("op") && which < runs[run].outline().ops)
    workspace_.go_to({run, static_cast<OpId>(which), number(3) == 1});
  else if (parts[0] == QLatin1String("storage") && which < runs[run].outline().storages)
    workspace_.select_storage(StorageRef{run, static_cast<StorageId>(which)});
  else
    return false;
  return true;
}

void ReferenceBrowser::show_html(const QString& html, bool stay) {
  const int scrolled = verticalScrollBar()->value();
  setHtml(html);
  if (stay) verticalScrollBar()->setValue(scrolled);
}

void ReferenceBrowser::apply_theme() {
  const Theme& theme = workspace_.theme();
  const auto name = [](const Color& c) { return qt_color(c).name(); };
  // Links are told from text by their line too.
  const QString link = theme.dark ? QStringLiteral("#7cc4f5") : QStringLiteral("#0058a3");
  document()->setDefaultStyleSheet(QStringLiteral("a { color: %1; } h3 { margin: 8px 0 2px 0; font-size: medium; }"
                                                  "td { padding: 1px 12px 1px 0; } th { padding: 1px 12px 1px 0; "
                                                  "font-weight: normal; color: %2; text-align: left; }"
                                                  ".faint { color: %2; } p { margin: 2px 0 6px 0; }")
                                       .arg(link, name(theme.faint_text)));
}

}  // namespace memwall::gui
