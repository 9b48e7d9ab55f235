#include "gui/view/panels/value_table.h"

#include <QFont>

#include <algorithm>
#include <numeric>

namespace memwall::gui {
namespace {

// A cell of CSV or of lines with tabs: quoted where it holds what ends a cell.
QString cell_text(QString text, QChar between) {
  if (between == QLatin1Char('\t')) return text.replace(QLatin1Char('\t'), QLatin1Char(' '));
  if (!text.contains(QLatin1Char('"')) && !text.contains(between) && !text.contains(QLatin1Char('\n'))) return text;
  return QLatin1Char('"') + text.replace(QLatin1String("\""), QLatin1String("\"\"")) + QLatin1Char('"');
}

}  // namespace

ValueTable::ValueTable(std::vector<TableColumn> columns, QObject* parent)
    : QAbstractTableModel(parent), columns_(std::move(columns)) {}

std::int64_t ValueTable::key(std::size_t, int) const { return 0; }
std::optional<QColor> ValueTable::swatch(std::size_t, int) const { return std::nullopt; }

void ValueTable::filter(const QString& words) {
  const QStringList wanted = words.toLower().split(QLatin1Char(' '), Qt::SkipEmptyParts);
  if (wanted == words_) return;
  change_rows([&] { words_ = wanted; });
}

int ValueTable::line_of(std::size_t row) const {
  const auto found = std::find(order_.begin(), order_.end(), row);
  return found == order_.end() ? -1 : static_cast<int>(found - order_.begin());
}

void ValueTable::sort(int column, Qt::SortOrder order) {
  if (column >= columnCount()) return;
  Q_EMIT layoutAboutToBeChanged({}, QAbstractItemModel::VerticalSortHint);
  // What is selected stays selected, wherever it moves.
  const QModelIndexList old = persistentIndexList();
  std::vector<std::size_t> rows_of_old;
  for (const QModelIndex& index : old) rows_of_old.push_back(row_at(index.row()));
  sort_column_ = column;
  sort_order_ = order;
  arrange();
  std::vector<int> lines(rows(), -1);
  for (std::size_t line = 0; !old.isEmpty() && line < order_.size(); ++line)
    lines[order_[line]] = static_cast<int>(line);
  QModelIndexList now;
  for (qsizetype i = 0; i < old.size(); ++i)
    now.append(createIndex(lines[rows_of_old[static_cast<std::size_t>(i)]], old[i].column()));
  changePersistentIndexList(old, now);
  Q_EMIT layoutChanged({}, QAbstractItemModel::VerticalSortHint);
}

void ValueTable::arrange() {
  const std::size_t total = has_total() && rows() > 0 ? 1 : 0, body = rows() - total;
  order_.resize(body);
  std::iota(order_.begin(), order_.end(), 0u);
  if (!words_.isEmpty()) {
    const std::vector<bool> kept = matching(words_);
    std::erase_if(order_, [&](std::uint32_t row) { return !kept[row]; });
  }
  if (sort_column_ >= 0) {
    const std::vector<std::int64_t> keys = sort_keys(sort_column_);
    const bool up = sort_order_ == Qt::AscendingOrder;
    // Equal values stay in the order of the table.
    std::sort(order_.begin(), order_.end(),
              [&](std::uint32_t a, std::uint32_t b) { return keys[a] != keys[b] ? (keys[a] < keys[b]) == up : a < b; });
  }
  if (total == 1) order_.push_back(static_cast<std::uint32_t>(body));
}

std::vector<std::int64_t> ValueTable::sort_keys(int column) const {
  std::vector<std::int64_t> keys(rows());
  if (columns_[static_cast<std::size_t>(column)].number) {
    for (std::size_t row = 0; row < keys.size(); ++row) keys[row] = key(row, column);
    return keys;
  }
  std::vector<QString> texts(rows());
  for (std::size_t row = 0; row < texts.size(); ++row) texts[row] = text(row, column);
  std::vector<QString> sorted = texts;
  std::sort(sorted.begin(), sorted.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const QString& a, const QString& b) { return a.compare(b, Qt::CaseInsensitive) < 0; });
  std::int64_t rank = 0;
  QHash<QString, std::int64_t> ranks;
  for (const QString& t : sorted)
    if (!ranks.contains(t)) ranks.insert(t, rank++);
  for (std::size_t row = 0; row < texts.size(); ++row) keys[row] = ranks.value(texts[row]);
  return keys;
}

std::vector<bool> ValueTable::matching(const QStringList& words) const {
  std::vector<bool> kept(rows());
  for (std::size_t row = 0; row < kept.size(); ++row) {
    QString all;
    for (int column = 0; column < columnCount(); ++column) all += text(row, column).toLower() + QLatin1Char('\n');
    kept[row] = std::all_of(words.begin(), words.end(), [&](const QString& word) { return all.contains(word); });
  }
  return kept;
}

void ValueTable::rows_know_more() {
  if (order_.empty()) return;
  Q_EMIT dataChanged(index(0, 0), index(lines() - 1, columnCount() - 1));
}

QString ValueTable::line_text(int line, bool plain_numbers, QChar between) const {
  QStringList cells;
  for (int column = 0; column < columnCount(); ++column)
    cells += cell_text(plain_numbers ? plain(row_at(line), column) : text(row_at(line), column), between);
  return cells.join(between) + QLatin1Char('\n');
}

QString ValueTable::to_text(const std::vector<int>& lines) const {
  QStringList titles;
  for (const TableColumn& column : columns_) titles += column.title;
  QString all = titles.join(QLatin1Char('\t')) + QLatin1Char('\n');
  for (const int line : lines) all += line_text(line, false, QLatin1Char('\t'));
  return all;
}

QString ValueTable::to_text() const {
  std::vector<int> all(order_.size());
  std::iota(all.begin(), all.end(), 0);
  return to_text(all);
}

QString ValueTable::to_csv() const {
  QStringList titles;
  for (const TableColumn& column : columns_) titles += cell_text(column.title, QLatin1Char(','));
  QString all = titles.join(QLatin1Char(',')) + QLatin1Char('\n');
  for (int line = 0; line < lines(); ++line) all += line_text(line, true, QLatin1Char(','));
  return all;
}

int ValueTable::rowCount(const QModelIndex& parent) const { return parent.isValid() ? 0 : lines(); }
int ValueTable::columnCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(columns_.size());
}

QVariant ValueTable::data(const QModelIndex& index, int role) const {
  if (!index.isValid()) return {};
  const std::size_t row = row_at(index.row());
  const int column = index.column();
  switch (role) {
    case Qt::DisplayRole:
    case Qt::ToolTipRole:  // whole, where the column is too narrow
      return text(row, column);
    case Qt::TextAlignmentRole:
      return int(Qt::AlignVCenter) |
             int(columns_[static_cast<std::size_t>(column)].number ? Qt::AlignRight : Qt::AlignLeft);
    case Qt::DecorationRole:
      if (const auto color = swatch(row, column)) return *color;
      return {};
    case Qt::FontRole:
      if (has_total() && row + 1 == rows()) {
        QFont bold;
        bold.setBold(true);
        return bold;
      }
      return {};
    default:
      return {};
  }
}

QVariant ValueTable::headerData(int section, Qt::Orientation orientation, int role) const {
  if (orientation != Qt::Horizontal || section < 0 || section >= columnCount()) return {};
  const TableColumn& column = columns_[static_cast<std::size_t>(section)];
  if (role == Qt::DisplayRole) return column.title;
  if (role == Qt::ToolTipRole && !column.meaning.isEmpty()) return column.meaning;
  if (role == Qt::TextAlignmentRole) return int(Qt::AlignVCenter) | int(column.number ? Qt::AlignRight : Qt::AlignLeft);
  if (role == Qt::InitialSortOrderRole) return column.number ? Qt::DescendingOrder : Qt::AscendingOrder;
  return {};
}

}  // namespace memwall::gui
