#include "gui/view/value_text.h"

#include <fmt/format.h>

#include <cmath>

#include "traces/figure/axis.h"

namespace memwall::gui {
namespace {

template <class Number>
QString with_sign(Number number, const QString& text) {
  return number > Number{} ? QLatin1Char('+') + text : text;
}

}  // namespace

QString text_of(std::string_view utf8) {
  QString text = QString::fromUtf8(utf8.data(), static_cast<qsizetype>(utf8.size()));
  for (QChar& c : text)
    if (c.category() == QChar::Other_Control) c = QLatin1Char(' ');
  return text;
}

QString time_text(Duration time) { return text_of(format_time(time)); }
QString time_text(const DurationSum& sum) { return text_of(format_time(sum)); }
QString bytes_text(Bytes bytes) { return text_of(format_bytes(static_cast<double>(bytes))); }
QString rate_text(double bytes_per_second) { return text_of(format_rate(bytes_per_second)); }
QString percent_text(double share) { return text_of(memwall::percent_text(share)); }

QString count_text(std::uint64_t count) { return text_of(grouped_text(count)); }
QString signed_time_text(Duration time) { return with_sign(time, time_text(time)); }
QString signed_bytes_text(Bytes bytes) { return with_sign(bytes, bytes_text(bytes)); }

double share_of(Duration part, Duration all) {
  return all.count() > 0 ? static_cast<double>(part.count()) / static_cast<double>(all.count()) : 0;
}

QString instant_text(Time time, Time end) {
  const ScaledUnit unit = time_unit(to_seconds(end));
  const int decimals = unit.factor == 1 ? 6 : 3;
  return text_of(fmt::format("{:.{}f} {}", to_seconds(time) / unit.factor, decimals, unit.name));
}

QString range_text(TimeRange range, Time end) {
  return QStringLiteral("%1 to %2 (%3)")
      .arg(instant_text(range.begin, end), instant_text(range.end, end), time_text(range.length()));
}

QString plain_text(double number) { return text_of(fmt::format("{}", number)); }
QString plain_text(Duration time) { return plain_text(to_seconds(time)); }

}  // namespace memwall::gui
