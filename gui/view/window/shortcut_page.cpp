#include "gui/view/window/shortcut_page.h"

#include <QDialogButtonBox>
#include <QKeyEvent>
#include <QKeySequence>
#include <QTextBrowser>
#include <QVBoxLayout>

namespace memwall::gui {
namespace {

QString row(const QString& left, const QString& right) {
  return QStringLiteral(
             "<tr><td style='padding:2px 18px 2px 0; white-space:nowrap'><b>%1</b></td><td "
             "style='padding:2px'>%2</td></tr>")
      .arg(left.toHtmlEscaped(), right.toHtmlEscaped());
}

}  // namespace

QString ShortcutPage::html_of(const std::vector<Command>& commands) {
  QString text;
  QString menu;
  for (const Command& command : commands) {
    if (command.keys.isEmpty()) continue;
    if (command.menu != menu) {
      if (!menu.isEmpty()) text += "</table>";
      menu = command.menu;
      text += QStringLiteral("<h3>%1</h3><table>").arg(QString(menu).remove('&').toHtmlEscaped());
    }
    QStringList keys;
    for (const QString& key : command.keys) keys.append(QKeySequence(key).toString(QKeySequence::NativeText));
    text += row(keys.join(QObject::tr(" or ")), command.help);
  }
  if (!menu.isEmpty()) text += "</table>";
  text += QStringLiteral("<h3>%1</h3><table>").arg(QObject::tr("Mouse"));
  for (const Gesture& gesture : gestures()) text += row(gesture.how, gesture.what);
  return text + "</table>";
}

ShortcutPage::ShortcutPage(const std::vector<Command>& commands, QWidget* parent) : QDialog(parent) {
  setObjectName("shortcuts");
  setWindowTitle(tr("Keys and gestures"));
  setAttribute(Qt::WA_DeleteOnClose);
  auto* browser = new QTextBrowser(this);
  browser->setAccessibleName(tr("Keys and gestures"));
  browser->setHtml(html_of(commands));
  auto* buttons = new QDialogButtonBox(QDialogButtonBox::Close, this);
  connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
  auto* layout = new QVBoxLayout(this);
  layout->addWidget(browser);
  layout->addWidget(buttons);
  resize(680, 720);
}

void ShortcutPage::keyPressEvent(QKeyEvent* event) {
  if (event->key() == Qt::Key_Question || event->key() == Qt::Key_Escape) return close(), void();
  QDialog::keyPressEvent(event);
}

}  // namespace memwall::gui
