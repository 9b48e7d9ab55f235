// A table of a text: titles first; columns of numbers stand to the right.
#pragma once

#include <QString>
#include <QStringList>

#include <string_view>
#include <utility>
#include <vector>

namespace memwall::gui {

class HtmlTable {
 public:
  // Columns: title, and whether it holds numbers. Heading, explanation and titles are plain text.
  HtmlTable(const QString& heading, const QString& explanation, std::vector<std::pair<QString, bool>> columns);

  void add(const QStringList& cells);  // HTML, one per column
  QString text() const;                // "" without rows

 private:
  std::vector<std::pair<QString, bool>> columns_;
  QString html_;
  int rows_ = 0;
};

QString escaped(std::string_view text);
// The word behind a square of the colour that it has everywhere.
QString swatch(std::string_view word);

}  // namespace memwall::gui
