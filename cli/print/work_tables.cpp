#include "cli/print/work_tables.h"

#include <fmt/format.h>

#include "cli/print/table_cells.h"

namespace memwall {
namespace {

constexpr std::size_t kRowsShown = 5;

double share_of_path(Duration part, Duration whole) {
  return whole.count() > 0 ? static_cast<double>(part.count()) / static_cast<double>(whole.count()) : 0;
}

Table work_table(const std::vector<WorkTotal>& totals, const DurationSum& all, std::uint32_t steps, const char* name,
                 std::string title) {
  Table t{.name = name,
          .title = std::move(title),
          .columns = {"name", "seconds", "share", "count", "flops"},
          .headings = {"", "per step", "share", "ops", "TFLOP/s"},
          .rows = {}};
  constexpr std::size_t kLongest = 70;
  for (const WorkTotal& total : totals) {
    const double seconds = total.time.seconds();
    const std::string shown = total.name.size() > kLongest ? total.name.substr(0, kLongest) + "..." : total.name;
    t.rows.push_back({cell(shown, total.name), time_cell(seconds / steps), share_cell(seconds, all.seconds()),
                      count_cell(total.count),
                      total.flops > 0 && seconds > 0
                          ? number_cell(fmt::format("{:.4g}", total.flops / seconds / 1e12), plain_number(total.flops))
                          : number_cell("", "null")});
  }
  return t;
}

const char* host_work_meaning(HostWork work) {
  switch (work) {
    case HostWork::call:
      return "in calls";
    case HostWork::work:
      return "works";
    case HostWork::synchronize:
      return "returns from waiting for the device";
    case HostWork::gap:
      return "before its call";
    case HostWork::latency:
      return "launches, stream gaps, events";
  }
  return "";
}

// Times are per step, counts are not.
std::string of_all_steps(const RunSummary& s, const char* counted) {
  return s.step_count > 1 ? fmt::format("; {}: of all {} steps", counted, s.step_count) : "";
}

}  // namespace

Table operator_table(const RunSummary& s) {
  Table t = work_table(s.top.operators, s.top.device, s.step_count, "operators",
                       fmt::format("Operators that take most of the device's time (of {}; several may run at once{})",
                                   grouped_text(s.top.operator_names), of_all_steps(s, "ops")));
  t.screen_rows = kRowsShown;
  return t;
}

Table kernel_table(const RunSummary& s) {
  return work_table(s.top.kernels, s.top.device, s.step_count, "kernels",
                    fmt::format("Kernels and copies that take most of the device's time (of {} names{})",
                                grouped_text(s.top.kernel_names), of_all_steps(s, "ops")));
}

Table host_table(const RunSummary& s) {
  Table t{.name = "host",
          .title = s.device_ops > 0 ? "The host on the whole run's critical path: what the GPU waits for there"
                                    : "The host on the whole run's critical path; no work of the device is known",
          .columns = {"name", "work", "seconds", "share", "count"},
          .headings = {"", "", "total", "of the path", "times"},
          .rows = {}};
  t.screen_rows = kRowsShown;
  const Duration path = s.path.total();
  if (share_of_path(s.path[TimeClass::host], path) < 0.05) t.detail = true;
  for (const HostTotal& total : s.top.host) {
    if (t.rows.size() == 10) break;
    const std::string name = !total.name.empty()               ? total.name
                             : total.work == HostWork::latency ? "latencies"
                                                               : "outside of any operator";
    t.rows.push_back({cell(name, total.name), cell(host_work_meaning(total.work), std::string(to_string(total.work))),
                      time_cell(total.time), share_cell(share_of_path(total.time, path)), count_cell(total.count)});
  }
  return t;
}

}  // namespace memwall
