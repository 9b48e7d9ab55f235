#include "cli/print/work_tables.h"

#include <fmt/format.h>

#include <array>
#include <string>

#include "cli/print/format.h"
#include "cli/print/table_cells.h"
#include "sim/human_text.h"

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

constexpr std::size_t kClasses = static_cast<std::size_t>(OperatorClass::memory) + 1;

struct ClassTotals {
  std::uint64_t kernels = 0;
  double flops = 0;
  Bytes bytes = 0;
  Duration time{};
};

using TotalsByClass = std::array<ClassTotals, kClasses + 1>;  // all together last

TotalsByClass totals_of_classes(const Trace& trace) {
  TotalsByClass all;
  for (const Op& op : trace.ops) {
    if (op.kind != OpKind::kernel && op.kind != OpKind::memset) continue;
    for (const std::size_t at : {static_cast<std::size_t>(op.operator_class), kClasses}) {
      all[at].kernels += op.kernels;
      all[at].flops += op.flops;
      all[at].bytes += op.bytes;
      all[at].time += op.duration;
    }
  }
  return all;
}

Cell flops_cell_of(double flops) { return number_cell(fmt::format("{:.4g}", flops), plain_number(flops)); }

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

Table class_effect_table(const Trace& before, const Trace& after) {
  Table t;
  t.name = "class_effect";
  t.title = "By class of operator, before the policies and after (kernels one by one)";
  t.columns = {"class",        "kernels_before", "kernels_after", "flops_before", "flops_after",
               "bytes_before", "bytes_after",    "time_before_s", "time_after_s"};
  t.headings = {"class", "kernels", "after", "FLOPs", "after", "traffic", "after", "time", "after"};
  const TotalsByClass was = totals_of_classes(before), is = totals_of_classes(after);
  for (std::size_t c = 0; c <= kClasses; ++c) {
    if (was[c].kernels + is[c].kernels == 0) continue;
    t.rows.push_back({cell(c == kClasses ? "all" : std::string(to_string(static_cast<OperatorClass>(c)))),
                      count_cell(was[c].kernels), count_cell(is[c].kernels), flops_cell_of(was[c].flops),
                      flops_cell_of(is[c].flops), bytes_cell(was[c].bytes), bytes_cell(is[c].bytes),
                      time_cell(was[c].time), time_cell(is[c].time)});
  }
  return t;
}

}  // namespace memwall
