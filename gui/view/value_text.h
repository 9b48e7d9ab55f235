// Numbers as the panels write them: the units and digits of the figures, whole groups of digits,
// plain numbers for other programs.
#pragma once

#include <QString>

#include <cstdint>
#include <string>
#include <string_view>

#include "gui/model/time_range.h"
#include "sim/units.h"

namespace memwall::gui {

// UTF-8 in, and control characters, which a file may hold, as blanks.
QString text_of(std::string_view utf8);

QString time_text(Duration time);              // "12.3 ms"
QString time_text(const DurationSum& sum);
QString bytes_text(Bytes bytes);               // "39.3 GB"
QString rate_text(double bytes_per_second);    // "25 GB/s"
QString percent_text(double share);            // "12.3 %"
QString count_text(std::uint64_t count);       // "1,234,567"
QString signed_time_text(Duration time);       // "+12.3 ms"
QString signed_bytes_text(Bytes bytes);        // "+39.3 GB"
double share_of(Duration part, Duration all);  // 0 of nothing

// An instant of a run that ends at `end`: all instants of one run with the same unit and decimals, about a millionth of
// the run apart, so that they line up: "12.345 ms".
QString instant_text(Time time, Time end);
QString range_text(TimeRange range, Time end);  // "12.345 ms to 13.000 ms (655 µs)"

// Shortest text that reads back to the same double; seconds for times.
QString plain_text(double number);
QString plain_text(Duration time);

}  // namespace memwall::gui
