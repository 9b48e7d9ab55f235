// Cells that many tables have: a size, a count, a share, a time.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <string>

#include "cli/print/format.h"
#include "cli/print/table.h"
#include "sim/duration_sum.h"

namespace memwall {

inline Cell bytes_cell(Bytes bytes) { return number_cell(human_bytes(bytes), std::to_string(bytes)); }
// Of what nobody recorded: empty in CSV, null in JSON.
inline Cell unrecorded_cell(const char* text = "not recorded") { return number_cell(text, ""); }
inline Cell count_cell(std::uint64_t count) { return number_cell(grouped_text(count), std::to_string(count)); }
// Four digits, of large numbers all: "11.7", "12,003".
inline std::string amount_words(double amount) {
  return amount < 9999.5 ? fmt::format("{:.4g}", amount)
                         : grouped_text(static_cast<std::uint64_t>(std::llround(amount)));
}
inline Cell share_cell(double share) { return number_cell(percent_text(share), plain_number(share)); }
inline Cell share_cell(double part, double whole) { return share_cell(whole > 0 ? part / whole : 0); }
inline Cell time_cell(Duration d) { return number_cell(human_time(d), plain_seconds(d)); }
inline Cell time_cell(double seconds) { return number_cell(human_time(seconds), plain_number(seconds)); }
inline Cell time_cell(const DurationSum& sum) { return time_cell(sum.seconds()); }

}  // namespace memwall
