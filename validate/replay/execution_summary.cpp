#include "validate/replay/execution_summary.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <utility>
#include <vector>

#include "sim/byte_units.h"

namespace memwall {
namespace {

template <class... T>
std::string formatted(const char* pattern, T... values) {
  char text[256];
  std::snprintf(text, sizeof text, pattern, values...);
  return text;
}

std::string time_text(double seconds) { return scaled_text(seconds, kTimeUnits, 4); }
std::string bytes_text(double bytes) { return scaled_text(bytes, kDecimalBytes, 4); }  // as the rates beside it

struct Share {
  std::size_t ops = 0;
  double bytes = 0;
  Duration busy{};
};

std::string totals_line(const Execution& e) {
  std::vector<double> seconds;
  for (const Duration total : e.totals) seconds.push_back(to_seconds(total));
  Measurement m;
  summarize_samples(seconds, m);
  return formatted("total      %s, median of %zu passes (10 %% to 90 %%: %s to %s)\n", time_text(m.median).c_str(),
                   seconds.size(), time_text(m.low).c_str(), time_text(m.high).c_str());
}

}  // namespace

std::string stand_ins(const Trace& schedule) {
  std::vector<std::size_t> counts(schedule.groups.size(), 0);
  for (const Op& op : schedule.ops)
    if (op.kind == OpKind::collective && op.group < counts.size()) ++counts[op.group];
  std::string text;
  for (std::size_t group = 0; group < counts.size(); ++group) {
    if (counts[group] == 0) continue;
    const std::uint32_t ranks = schedule.groups[group].ranks;
    text += (text.empty() ? "" : ", ") + std::to_string(counts[group]) +
            (counts[group] == 1 ? " stand-in for a collective of " : " stand-ins for collectives of ") +
            (ranks == 0 ? "an unknown number of" : std::to_string(ranks)) + " ranks";
  }
  return text;
}

std::string execution_summary(const Trace& t, const Execution& e) {
  std::map<Phase, Share> phases;
  Share collectives;
  std::map<std::pair<std::uint8_t, std::uint8_t>, Share> directions;
  for (OpId id = 0; id < t.ops.size(); ++id) {
    const Op& op = t.ops[id];
    if (!runs_on_device(op.kind)) continue;
    const bool moves = op.kind == OpKind::copy || op.kind == OpKind::storage_io;
    Share& share = op.kind == OpKind::collective ? collectives
                   : moves                       ? directions[{op.from, op.to}]
                                                 : phases[op.phase];
    ++share.ops;
    share.bytes += static_cast<double>(op.bytes);
    share.busy += e.times[id].end - e.times[id].start;
  }
  std::string text = totals_line(e);
  for (const auto& [phase, share] : phases)
    text += formatted("device     %-10s %s in %zu kernels and memsets\n", std::string(to_string(phase)).c_str(),
                      time_text(to_seconds(share.busy)).c_str(), share.ops);
  if (collectives.ops > 0)
    text += formatted("collective %s, %s; their times are the schedule's\n", stand_ins(t).c_str(),
                      time_text(to_seconds(collectives.busy)).c_str());
  for (const auto& [way, share] : directions)
    text += formatted("moved      %s to %s: %s in %zu ops, %s, %.2f GB/s\n", t.places[way.first].c_str(),
                      t.places[way.second].c_str(), bytes_text(share.bytes).c_str(), share.ops,
                      time_text(to_seconds(share.busy)).c_str(),
                      share.busy.count() > 0 ? share.bytes / to_seconds(share.busy) / 1e9 : 0);
  for (const PlacePeak& peak : e.peaks)
    text += formatted("peak       %-5s allocated %s, reserved %s\n", peak.place.c_str(),
                      bytes_text(static_cast<double>(peak.allocated)).c_str(),
                      bytes_text(static_cast<double>(peak.reserved)).c_str());
  return text + formatted("integrity  %llu checks of %s, %llu mismatches\n",
                          static_cast<unsigned long long>(e.integrity.checks),
                          bytes_text(static_cast<double>(e.integrity.bytes)).c_str(),
                          static_cast<unsigned long long>(e.integrity.mismatches));
}

}  // namespace memwall
