#include "gui/view/panels/html_table.h"

#include <QColor>

#include "gui/view/value_text.h"
#include "gui/view/widget_colors.h"

namespace memwall::gui {
namespace {

QString alignment(bool number) { return number ? QStringLiteral(" align=\"right\"") : QString(); }

}  // namespace

HtmlTable::HtmlTable(const QString& heading, const QString& explanation, std::vector<std::pair<QString, bool>> columns)
    : columns_(std::move(columns)) {
  html_ = QStringLiteral("<h3>%1</h3>").arg(heading.toHtmlEscaped());
  if (!explanation.isEmpty()) html_ += QStringLiteral("<p class=\"faint\">%1</p>").arg(explanation.toHtmlEscaped());
  html_ += QStringLiteral("<table cellspacing=\"0\">");
  QString titles;
  bool any = false;
  for (const auto& [title, number] : columns_) {
    titles += QStringLiteral("<th%1>%2</th>").arg(alignment(number), title.toHtmlEscaped());
    any = any || !title.isEmpty();
  }
  if (any) html_ += QStringLiteral("<tr>%1</tr>").arg(titles);
}

void HtmlTable::add(const QStringList& cells) {
  html_ += QStringLiteral("<tr>");
  for (qsizetype i = 0; i < cells.size(); ++i)
    html_ += QStringLiteral("<td%1>%2</td>")
                 .arg(alignment(columns_[static_cast<std::size_t>(i)].second),
                      cells[i].isEmpty() ? QStringLiteral("&nbsp;") : cells[i]);
  html_ += QStringLiteral("</tr>");
  ++rows_;
}

QString HtmlTable::text() const { return rows_ == 0 ? QString() : html_ + QStringLiteral("</table>"); }

QString escaped(std::string_view text) { return text_of(text).toHtmlEscaped(); }

QString swatch(std::string_view word) {
  return QStringLiteral("<span style=\"color:%1\">■</span> %2").arg(word_color(word).name(), escaped(word));
}

}  // namespace memwall::gui
