#include "gui/view/panels/difference_table.h"

#include "gui/view/value_text.h"
#include "gui/view/widget_colors.h"

namespace memwall::gui {
namespace {

ValueCell word_cell(std::string_view word) { return {text_of(word), 0, {}}; }
ValueCell bytes_cell(Bytes bytes, bool known = true) {
  return known ? ValueCell{bytes_text(bytes), bytes, QString::number(bytes)}
               : ValueCell{QStringLiteral("–"), -1, QStringLiteral(" ")};
}
ValueCell peak_cell(Bytes bytes, bool in_run, bool recorded) {
  return recorded || !in_run ? bytes_cell(bytes, in_run)
                             : ValueCell{QObject::tr("not recorded"), -1, QStringLiteral(" ")};
}
ValueCell difference_cell(Bytes bytes) { return {signed_bytes_text(bytes), bytes, QString::number(bytes)}; }
ValueCell time_cell(Duration time, bool known = true) {
  return known ? ValueCell{time_text(time), time.count(), plain_text(time)}
               : ValueCell{QStringLiteral("–"), -1, QStringLiteral(" ")};
}

}  // namespace

DifferenceTable::DifferenceTable(QObject* parent)
    : ValueTable({{tr("Change"), false, {}},
                  {tr("Name"), false, {}},
                  {tr("Operator"), false, {}},
                  {tr("Kind"), false, {}},
                  {tr("Phase"), false, {}},
                  {tr("Ops"), true, tr("How many ops of this name changed in this way")},
                  {tr("Base"), true, tr("Their time in the first run")},
                  {tr("Other"), true, tr("Their time in the second run")},
                  {tr("Difference"), true, tr("Other less base; at first the largest stand above, faster or slower")}},
                 parent) {}

void DifferenceTable::show(std::shared_ptr<const RunComparison> comparison) {
  change_rows([&] { comparison_ = std::move(comparison); });
}

QString DifferenceTable::text(std::size_t row, int column) const {
  const OpDifference& d = comparison_->comparison.ops[row];
  switch (column) {
    case change:
      return text_of(to_string(d.change));
    case name:
      return d.name.empty() ? text_of(to_string(d.kind)) : text_of(d.name);
    case operator_name:
      return text_of(d.operator_name);
    case kind:
      return text_of(to_string(d.kind));
    case phase:
      return d.phase == Phase::unknown ? QString() : text_of(to_string(d.phase));
    case count:
      return count_text(d.count);
    case base:
      return d.change == OpChange::added ? QStringLiteral("–") : time_text(d.base_time);
    case other:
      return d.change == OpChange::removed ? QStringLiteral("–") : time_text(d.other_time);
    default:
      return signed_time_text(d.difference());
  }
}

QString DifferenceTable::plain(std::size_t row, int column) const {
  const OpDifference& d = comparison_->comparison.ops[row];
  switch (column) {
    case count:
      return QString::number(d.count);
    case base:
      return plain_text(d.base_time);
    case other:
      return plain_text(d.other_time);
    case difference:
      return plain_text(d.difference());
    default:
      return text(row, column);
  }
}

std::int64_t DifferenceTable::key(std::size_t row, int column) const {
  const OpDifference& d = comparison_->comparison.ops[row];
  switch (column) {
    case count:
      return static_cast<std::int64_t>(d.count);
    case base:
      return d.base_time.count();
    case other:
      return d.other_time.count();
    default:
      return d.difference().count();
  }
}

std::optional<QColor> DifferenceTable::swatch(std::size_t row, int column) const {
  const OpDifference& d = comparison_->comparison.ops[row];
  if (column != phase || d.phase == Phase::unknown) return std::nullopt;
  return word_color(to_string(d.phase));
}

void CellTable::show(std::vector<std::vector<ValueCell>> cells) {
  change_rows([&] { cells_ = std::move(cells); });
}

QString CellTable::plain(std::size_t row, int column) const {
  const ValueCell& cell = at(row, column);
  return cell.plain.isEmpty() ? cell.text : cell.plain.trimmed();
}

std::vector<TableColumn> tier_difference_columns() {
  return {
      {QObject::tr("Tier"), false, {}},
      {QObject::tr("Base"), true, QObject::tr("Peak of the first run: blocks in use, rounding included")},
      {QObject::tr("Other"), true, QObject::tr("Peak of the second run")},
      {QObject::tr("Difference"), true, QObject::tr("Of the peaks, other less base")},
      {QObject::tr("Reserved, base"), true, QObject::tr("With the allocator's cache")},
      {QObject::tr("Reserved, other"), true, QObject::tr("With the allocator's cache")},
      {QObject::tr("By kind"), false, QObject::tr("What the kinds of storages hold at the peaks, other less base")}};
}

std::vector<std::vector<ValueCell>> tier_difference_cells(const Comparison& comparison) {
  const bool in_base = comparison.base_memory_recorded, in_other = comparison.other_memory_recorded;
  const auto difference = [&](Bytes bytes) {
    return in_base && in_other ? difference_cell(bytes) : ValueCell{QStringLiteral("–"), 0, QStringLiteral(" ")};
  };
  std::vector<std::vector<ValueCell>> rows;
  for (const TierDifference& d : comparison.tiers) {
    if (d.base_allocated == 0 && d.other_allocated == 0 && d.base_reserved == 0 && d.other_reserved == 0) continue;
    QStringList kinds;
    for (std::size_t k = 0; k < d.by_kind.size(); ++k)
      if (d.by_kind[k] != 0 && in_base && in_other)
        kinds += text_of(to_string(static_cast<StorageKind>(k))) + QLatin1Char(' ') + signed_bytes_text(d.by_kind[k]);
    rows.push_back({word_cell(d.name),
                    peak_cell(d.base_allocated, d.in_base, in_base),
                    peak_cell(d.other_allocated, d.in_other, in_other),
                    difference(d.other_allocated - d.base_allocated),
                    peak_cell(d.base_reserved, d.in_base, in_base),
                    peak_cell(d.other_reserved, d.in_other, in_other),
                    {kinds.join(QStringLiteral(", ")), 0, {}}});
  }
  return rows;
}

std::vector<TableColumn> link_difference_columns() {
  return {{QObject::tr("Link"), false, {}},
          {QObject::tr("Base"), true, QObject::tr("Bytes carried in the first run")},
          {QObject::tr("Other"), true, QObject::tr("Bytes carried in the second run")},
          {QObject::tr("Difference"), true, QObject::tr("Of the bytes, other less base")},
          {QObject::tr("Busy, base"), true, QObject::tr("Time with at least one transfer")},
          {QObject::tr("Busy, other"), true, QObject::tr("Time with at least one transfer")}};
}

std::vector<std::vector<ValueCell>> link_difference_cells(const Comparison& comparison) {
  std::vector<std::vector<ValueCell>> rows;
  for (const LinkDifference& d : comparison.links) {
    if (d.base_bytes == 0 && d.other_bytes == 0) continue;
    rows.push_back({word_cell(d.name), bytes_cell(d.base_bytes, d.in_base), bytes_cell(d.other_bytes, d.in_other),
                    difference_cell(d.other_bytes - d.base_bytes), time_cell(d.base_busy, d.in_base),
                    time_cell(d.other_busy, d.in_other)});
  }
  return rows;
}

}  // namespace memwall::gui
