// The figures of a run that an execution has too, side by side.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "traces/run/analysis/peak.h"
#include "validate/report/time_spans.h"
#include "validate/report/tolerance.h"
#include "validate/report/validation.h"

namespace memwall {
namespace {

bool is_transfer(const Op& op) { return op.kind == OpKind::copy || op.kind == OpKind::storage_io; }
bool computes(const Op& op) {
  return op.kind == OpKind::kernel || op.kind == OpKind::memset || op.kind == OpKind::host_work;
}

TimeSpan span_of_work(const Run& run, OpId id) {
  const OpRecord& r = run.result.records[id];
  return run.trace->ops[id].kind == OpKind::host_work ? TimeSpan{r.host_start, r.host_end} : TimeSpan{r.start, r.end};
}

// Every instant belongs to the phase of the kernel, memset or host work that ends next: waiting counts for what
// waits. What follows the last one is the last one's. So the phases add up to the whole.
std::array<Duration, kPhases> times_of_phases(const Run& run) {
  std::vector<std::pair<Time, Phase>> ends;
  for (OpId id = 0; id < run.trace->ops.size(); ++id)
    if (computes(run.trace->ops[id])) ends.emplace_back(span_of_work(run, id).end, run.trace->ops[id].phase);
  std::stable_sort(ends.begin(), ends.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::array<Duration, kPhases> times{};
  Time before{};
  for (const auto& [end, phase] : ends) {
    times[static_cast<std::size_t>(phase)] += end - before;
    before = end;
  }
  if (!ends.empty()) times[static_cast<std::size_t>(ends.back().second)] += run.result.end - before;
  return times;
}

// Transfers of one direction: what they are called, what they moved, and when any of them ran.
struct Direction {
  bool storage = false;
  double bytes = 0;
  std::vector<TimeSpan> spans;
  double rate() const {
    const double seconds = to_seconds(length(united(spans)));
    return seconds > 0 ? bytes / seconds : 0;
  }
};

std::map<std::string, Direction> directions_of(const Run& run) {
  std::map<std::string, Direction> directions;
  for (OpId id = 0; id < run.trace->ops.size(); ++id) {
    const Op& op = run.trace->ops[id];
    if (!is_transfer(op) || op.bytes <= 0) continue;
    const std::string name =
        fmt::format("{} {} to {}{}", op.kind == OpKind::storage_io ? "file I/O" : "copies", run.trace->places[op.from],
                    run.trace->places[op.to], op.pageable ? ", pageable" : "");
    Direction& direction = directions[name];
    direction.storage = op.kind == OpKind::storage_io;
    direction.bytes += static_cast<double>(op.bytes);
    direction.spans.push_back(span_of_work(run, id));
  }
  return directions;
}

struct Overlap {
  Duration transfers{}, hidden{};
  double share() const { return transfers.count() == 0 ? 0 : to_seconds(hidden) / to_seconds(transfers); }
};

Overlap overlap_of(const Run& run) {
  std::vector<TimeSpan> transfers, kernels;
  for (OpId id = 0; id < run.trace->ops.size(); ++id) {
    if (is_transfer(run.trace->ops[id])) transfers.push_back(span_of_work(run, id));
    if (run.trace->ops[id].kind == OpKind::kernel) kernels.push_back(span_of_work(run, id));
  }
  transfers = united(std::move(transfers));
  return {length(transfers), common_length(transfers, united(std::move(kernels)))};
}

Duration time_of_stand_ins(const Run& run) {
  Duration time{};
  for (OpId id = 0; id < run.trace->ops.size(); ++id)
    if (run.trace->ops[id].kind == OpKind::collective) time += length({span_of_work(run, id)});
  return time;
}

class ExecutionRows {
 public:
  ExecutionRows(const Run& measured, const Run& simulated, std::string_view backend)
      : measured_(measured), simulated_(simulated), backend_(backend) {}

  std::vector<ValidationRow> all() {
    step_and_phases();
    links();
    transfers();
    stand_ins();
    peaks();
    return std::move(rows_);
  }

 private:
  void add(const std::string& metric, const std::string& unit, double measured, double predicted, ToleranceKind kind,
           bool judged = true) {
    ValidationRow row;
    row.rung = "replay";
    row.metric = metric;
    row.unit = unit;
    row.measured = measured;
    row.predicted = predicted;
    judge(row, tolerance_of(kind, backend_), judged);
    rows_.push_back(row);
  }

  // Is it long enough, in either of the two, to say something?
  bool counts(Duration measured, Duration predicted) const {
    return to_seconds(std::max(measured, predicted)) >= kJudgedShare * to_seconds(measured_.result.end);
  }

  void step_and_phases() {
    add("step time", "s", to_seconds(measured_.result.end), to_seconds(simulated_.result.end),
        ToleranceKind::step_time);
    const auto measured = times_of_phases(measured_), predicted = times_of_phases(simulated_);
    for (std::size_t p = 1; p < measured.size(); ++p)
      if (measured[p].count() > 0 || predicted[p].count() > 0)
        add(std::string(to_string(static_cast<Phase>(p))), "s", to_seconds(measured[p]), to_seconds(predicted[p]),
            ToleranceKind::phase, counts(measured[p], predicted[p]));
  }

  void links() {
    for (std::size_t l = 0; l < measured_.machine.links.size(); ++l) {
      const LinkResult &measured = measured_.result.links[l], &predicted = simulated_.result.links[l];
      if (measured.bytes == 0 && predicted.bytes == 0) continue;
      const std::string& name = measured_.machine.links[l].name;
      add(name + " bytes", "B", static_cast<double>(measured.bytes), static_cast<double>(predicted.bytes),
          ToleranceKind::link_bytes);
      add(name + " busy", "s", to_seconds(measured.busy), to_seconds(predicted.busy), ToleranceKind::link_busy,
          counts(measured.busy, predicted.busy));
    }
  }

  void transfers() {
    auto predicted = directions_of(simulated_);
    for (const auto& [name, measured] : directions_of(measured_)) {
      const Direction& other = predicted[name];
      add(name, "B/s", measured.rate(), other.rate(),
          measured.storage ? ToleranceKind::file_rate : ToleranceKind::copy_rate,
          counts(length(united(measured.spans)), length(united(other.spans))));
    }
    const Overlap measured = overlap_of(measured_), other = overlap_of(simulated_);
    if (measured.transfers.count() > 0 || other.transfers.count() > 0)
      add("overlap", "share", measured.share(), other.share(), ToleranceKind::overlap,
          counts(measured.transfers, other.transfers));
  }

  // Their times are given: the row predicts nothing, it says how much of the step they are.
  void stand_ins() {
    const Duration measured = time_of_stand_ins(measured_), predicted = time_of_stand_ins(simulated_);
    if (measured.count() > 0 || predicted.count() > 0)
      add("stand-ins for collectives", "s", to_seconds(measured), to_seconds(predicted), ToleranceKind::phase, false);
  }

  void peaks() {
    for (std::size_t t = 0; t < measured_.machine.tiers.size(); ++t) {
      const TierResult &measured = measured_.result.tiers[t], &predicted = simulated_.result.tiers[t];
      if (measured.peak_allocated == 0 && predicted.peak_allocated == 0) continue;
      const Tier& tier = measured_.machine.tiers[t];
      const bool device = tier.tier_class == TierClass::device;
      add(tier.name + " peak allocated", "B", static_cast<double>(measured.peak_allocated),
          static_cast<double>(predicted.peak_allocated), ToleranceKind::device_peak);
      add(tier.name + " peak reserved", "B", static_cast<double>(measured.peak_reserved),
          static_cast<double>(predicted.peak_reserved),
          device ? ToleranceKind::device_peak : ToleranceKind::other_peak);
    }
  }

  const Run& measured_;
  const Run& simulated_;
  std::string_view backend_;
  std::vector<ValidationRow> rows_;
};

}  // namespace

std::vector<ValidationRow> compare_execution(const Run& measured, const Run& simulated, std::string_view backend) {
  return ExecutionRows(measured, simulated, backend).all();
}

}  // namespace memwall
