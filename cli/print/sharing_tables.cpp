#include "cli/print/sharing_tables.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/print/table_cells.h"

namespace memwall {
namespace {

Cell yes_or_no(bool yes) { return {yes ? "yes" : "no", yes ? "true" : "false", true}; }
Cell unknown() { return {"unknown", "null", true}; }
Cell factor_cell(double factor) { return number_cell(fmt::format("{:.2f}x", factor), plain_number(factor)); }

// Ticks for people: a time where durations are known, else steps.
Cell ticks_cell(const DynamicShare& d, std::int64_t ticks) {
  if (d.seconds_per_tick > 0) {
    const double seconds = static_cast<double>(ticks) * d.seconds_per_tick;
    return number_cell(human_time(from_seconds(std::min(seconds, 9e6))), plain_number(seconds));
  }
  const double steps = static_cast<double>(ticks) / static_cast<double>(d.ticks_per_step);
  return number_cell(fmt::format("{:.2f} steps", steps), plain_number(steps));
}

Table ways(const SharingReport& r) {
  const DynamicShare& d = r.dynamic;
  const bool times = d.seconds_per_tick > 0;
  Table t{.name = "ways",
          .title = "Ways to share it",
          .columns = {"way", "all_fit", "waiting", "makespan", "unit", "slowdown_at_most", "meaning"},
          .headings = {"way", "all fit", "waiting", "makespan", "in", "slower by", "what it is"},
          .rows = {},
          .wrap = true};
  const std::optional<double> slicing = time_slicing_slowdown(r.jobs);
  const Cell slower = slicing ? factor_cell(*slicing) : unknown();
  const Cell none{"-", "null", true};
  t.rows.push_back({cell("static_equal"), yes_or_no(r.equal.all_fit()), none, none, none, slower,
                    cell("equal parts, all the time")});
  t.rows.push_back({cell("static_by_peak"), yes_or_no(r.by_peak.all_fit()), none, none, none, slower,
                    cell("parts in proportion to the peaks, all the time")});
  const Cell unit{times ? "time" : "steps", times ? "s" : "steps"};
  std::int64_t waiting = 0;
  for (const std::int64_t w : d.waiting) waiting += w;
  t.rows.push_back({cell("dynamic"), yes_or_no(d.possible), d.possible ? ticks_cell(d, waiting) : none,
                    d.possible ? ticks_cell(d, d.makespan) : none, unit, slower,
                    cell(d.possible ? fmt::format("a step starts when its forecast fits; {} one after the other",
                                                  ticks_cell(d, d.one_after_the_other).text)
                                    : d.why_not)});
  if (r.mig) {
    double worst = 1;
    bool known = r.mig->placed == r.jobs.size();
    for (const MigShare::Place& p : r.mig->places) {
      known = known && p.slowdown_at_most.has_value();
      worst = std::max(worst, p.slowdown_at_most.value_or(1));
    }
    t.rows.push_back({cell("mig"), yes_or_no(r.mig->placed == r.jobs.size()), none, none, none,
                      known ? factor_cell(worst) : unknown(),
                      cell(fmt::format("{} of {} jobs have an instance of their own", r.mig->placed, r.jobs.size()))});
  }
  return t;
}

Table parts(const SharingReport& r) {
  Table t{
      .name = "jobs",
      .title = "Each job: the upper bound of its forecast, its part, and its wait",
      .columns = {"job", "peak_bytes", "between_steps_bytes", "gpu_busy", "equal_bytes", "equal_fits", "by_peak_bytes",
                  "by_peak_fits", "dynamic_waiting", "mig_profile", "mig_share", "mig_slowdown_at_most"},
      .headings = {"job", "peak", "between steps", "GPU busy", "equal part", "fits", "part by peak", "fits", "waits",
                   "MIG", "of the GPU", "slower by"},
      .rows = {}};
  for (std::size_t j = 0; j < r.jobs.size(); ++j) {
    const SharedJob& job = r.jobs[j];
    std::vector<Cell> row{cell(job.name),
                          bytes_cell(static_cast<Bytes>(job.peak())),
                          bytes_cell(static_cast<Bytes>(job.between_steps())),
                          job.gpu_busy ? share_cell(*job.gpu_busy) : unknown(),
                          bytes_cell(r.equal.parts[j].bytes),
                          yes_or_no(r.equal.parts[j].fits),
                          bytes_cell(r.by_peak.parts[j].bytes),
                          yes_or_no(r.by_peak.parts[j].fits),
                          r.dynamic.possible ? ticks_cell(r.dynamic, r.dynamic.waiting[j]) : Cell{"-", "null", true}};
    const MigShare::Place place = r.mig ? r.mig->places[j] : MigShare::Place{-1, std::nullopt, 0};
    if (place.profile >= 0) {
      row.push_back(cell(r.machine->gpu.mig_profiles[static_cast<std::size_t>(place.profile)].name));
      row.push_back(share_cell(place.share));
      row.push_back(place.slowdown_at_most ? factor_cell(*place.slowdown_at_most) : unknown());
    } else {
      row.push_back(cell(r.mig ? "none" : "-"));
      row.push_back({"-", "null", true});
      row.push_back({"-", "null", true});
    }
    t.rows.push_back(std::move(row));
  }
  return t;
}

}  // namespace

SharingReport report_sharing(const std::vector<SharedJob>& jobs, Bytes capacity, const std::optional<Machine>& machine,
                             int steps) {
  SharingReport r{.jobs = jobs,
                  .capacity = capacity,
                  .machine = machine,
                  .equal = split_equally(jobs, capacity),
                  .by_peak = split_by_peak(jobs, capacity),
                  .dynamic = share_by_forecast(jobs, capacity, steps),
                  .mig = {},
                  .notes = {}};
  if (machine && !machine->gpu.mig_profiles.empty()) r.mig = share_by_mig(jobs, machine->gpu);
  r.some_way_fits = r.by_peak.all_fit() || r.dynamic.possible || (r.mig && r.mig->placed == jobs.size());
  r.notes.push_back(fmt::format("Dynamic: {} steps of each job, {}.", steps,
                                r.dynamic.seconds_per_tick > 0
                                    ? "placed in time by the durations of the files"
                                    : "taken to last equally long, because some file does not say how long they do; "
                                      "waiting is in steps"));
  r.notes.push_back(
      "Slower by: kernels take turns where their busy shares add up to more than 1; on MIG at most as if all kernels "
      "slowed down with their share of multiprocessors or memory slices. Only run files know the busy share.");
  if (!machine) r.notes.push_back("MIG was not looked at: --machine names a GPU with its profiles.");
  if (machine && !r.mig) r.notes.push_back(fmt::format("The file of machine {} has no MIG profiles.", machine->name));
  return r;
}

std::vector<Table> sharing_tables(const SharingReport& report) { return {ways(report), parts(report)}; }

}  // namespace memwall
