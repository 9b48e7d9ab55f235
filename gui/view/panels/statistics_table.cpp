#include "gui/view/panels/statistics_table.h"

#include "gui/view/value_text.h"
#include "gui/view/widget_colors.h"

namespace memwall::gui {
namespace {

// Of device time where there is any, else of host time.
bool on_device(const StatisticsRow& row) { return row.work.count() > 0; }

Duration mean_of(const StatisticsRow& row) {
  const Duration time = on_device(row) ? row.work : row.call;
  return row.count == 0 ? Duration{} : Duration(time.count() / static_cast<std::int64_t>(row.count));
}

}  // namespace

StatisticsTable::StatisticsTable(QObject* parent)
    : ValueTable({{tr("Name"), false, {}},
                  {tr("Count"), true, tr("Spans that touch the range")},
                  {tr("Device time"), true, tr("Work on streams and copy engines within the range, added up")},
                  {tr("Share"), true, tr("Of all device time of the range; of host time where there is none")},
                  {tr("Host time"), true, tr("Calls on host threads within the range, added up")},
                  {tr("Mean"), true, tr("Of device time, else of host time, per span within the range")},
                  {tr("Longest"), true, tr("The longest span, also where it reaches beyond the range")}},
                 parent) {}

void StatisticsTable::show(SelectionStatistics statistics, StatisticsKey key) {
  change_rows([&] {
    statistics_ = std::move(statistics);
    key_ = key;
  });
}

double StatisticsTable::share_of_row(std::size_t i) const {
  const StatisticsRow& total = statistics_.total;
  return on_device(total) ? share_of(row(i).work, total.work) : share_of(row(i).call, total.call);
}

QString StatisticsTable::text(std::size_t i, int column) const {
  const StatisticsRow& r = row(i);
  switch (column) {
    case name:
      return is_total(i) ? tr("all") : r.name.empty() ? tr("(without)") : text_of(r.name);
    case count:
      return count_text(r.count);
    case work:
      return r.work.count() == 0 ? QString() : time_text(r.work);
    case share:
      return percent_text(share_of_row(i));
    case call:
      return r.call.count() == 0 ? QString() : time_text(r.call);
    case mean:
      return time_text(mean_of(r));
    case longest:
      return time_text(r.longest);
    default:
      return {};
  }
}

QString StatisticsTable::plain(std::size_t i, int column) const {
  const StatisticsRow& r = row(i);
  switch (column) {
    case count:
      return QString::number(r.count);
    case work:
      return plain_text(r.work);
    case share:
      return plain_text(share_of_row(i));
    case call:
      return plain_text(r.call);
    case mean:
      return plain_text(mean_of(r));
    case longest:
      return plain_text(r.longest);
    default:
      return text(i, column);
  }
}

std::int64_t StatisticsTable::key(std::size_t i, int column) const {
  const StatisticsRow& r = row(i);
  switch (column) {
    case count:
      return static_cast<std::int64_t>(r.count);
    case work:
      return r.work.count();
    case share:
      return on_device(statistics_.total) ? r.work.count() : r.call.count();
    case call:
      return r.call.count();
    case mean:
      return mean_of(r).count();
    default:
      return r.longest.count();
  }
}

std::optional<QColor> StatisticsTable::swatch(std::size_t i, int column) const {
  const bool has_color = key_ == StatisticsKey::phase || key_ == StatisticsKey::kind;
  // An unknown phase is none; the palette's "unknown" is a kind of storage.
  const bool no_phase = key_ == StatisticsKey::phase && row(i).name == to_string(Phase::unknown);
  if (column != name || !has_color || is_total(i) || no_phase) return std::nullopt;
  return word_color(row(i).name);
}

}  // namespace memwall::gui
