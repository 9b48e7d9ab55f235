// Cells that many tables have: a size, a count, a share, a time.
#pragma once

#include "cli/print/format.h"
#include "cli/print/table.h"
#include "sim/duration_sum.h"

namespace memwall {

inline Cell bytes_cell(Bytes bytes) { return number_cell(human_bytes(bytes), std::to_string(bytes)); }
// Of what nobody recorded: empty in CSV, null in JSON.
inline Cell unrecorded_cell(const char* text = "not recorded") { return number_cell(text, ""); }
inline Cell count_cell(std::uint64_t count) { return number_cell(grouped_text(count), std::to_string(count)); }
inline Cell share_cell(double share) { return number_cell(percent_text(share), plain_number(share)); }
inline Cell share_cell(double part, double whole) { return share_cell(whole > 0 ? part / whole : 0); }
inline Cell time_cell(Duration d) { return number_cell(human_time(d), plain_seconds(d)); }
inline Cell time_cell(double seconds) { return number_cell(human_time(seconds), plain_number(seconds)); }
inline Cell time_cell(const DurationSum& sum) { return time_cell(sum.seconds()); }

}  // namespace memwall
