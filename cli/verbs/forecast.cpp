// memwall forecast: the memory of the next steps, and whether several jobs can share a GPU.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <memory>

#include "cli/capacity_option.h"
#include "cli/memory_series.h"
#include "cli/print/answer.h"
#include "cli/print/screen.h"
#include "cli/print/sharing_tables.h"
#include "cli/print/table_cells.h"
#include "cli/verbs/verbs.h"
#include "models/hw/machine_file.h"
#include "models/workload/forecast/sharing.h"
#include "sim/error.h"
#include "sim/human_text.h"
#include "sim/words.h"

namespace memwall {
namespace {

struct ForecastOptions {
  std::string file, capacity, machine, format = "table";
  std::vector<std::string> share;
  int steps_ahead = 5, steps = 20;
  std::optional<int> device;
  std::size_t period = 0;
  double coverage = 0.9;
  bool full = false;
};

// 0 = not given.
Bytes capacity_of(const ForecastOptions& o, const std::optional<Machine>& machine) {
  if (!o.capacity.empty()) return parse_capacity(o.capacity);
  return machine ? machine->tiers[static_cast<std::size_t>(machine->tier("hbm"))].usable() : 0;
}

// A period that is not known to be a whole training step may be a part of one. The highest of the recording, outside
// of the last few periods, then comes again in every step: no forecast of the next period may hide it. 0 = steps are
// known.
Bytes highest_to_come_again(const JobMemory& job) { return job.steps_told ? 0 : job.highest; }

// Whether and when the capacity is reached: a sentence without its end; "none" where it is not.
std::string warning_of(const JobMemory& job, const MemoryForecast& f, Bytes capacity) {
  const std::string whole = human_bytes(capacity), unit = f.unit();
  const Bytes highest = highest_to_come_again(job);
  if (f.steps_to_capacity && *f.steps_to_capacity <= static_cast<std::int64_t>(f.steps.size()))
    return fmt::format("out of memory ahead: the expected peak of {} {} from now passes {}", unit, *f.steps_to_capacity,
                       whole);
  if (highest > capacity)
    return fmt::format("the recording itself came to {}, more than {}, and shows too few whole steps to say when again",
                       human_bytes(highest), whole);
  if (job.missing > 0)
    return fmt::format(
        "does not fit: replayed with its allocator in {}, the recording itself lacks {}, though {} stay below", whole,
        human_bytes(job.missing), job.counted);
  if (f.steps_to_limit)
    return fmt::format("out of memory possible: the interval of {} {} from now passes {}", unit, *f.steps_to_limit,
                       whole);
  if (f.steps_to_capacity)
    return fmt::format("beyond the horizon: growing on like this, {} {} from now passes {}", unit, *f.steps_to_capacity,
                       whole);
  return "none";
}

// The answer to whether it fits, first of all.
std::string fit_sentence(const JobMemory& job, const MemoryForecast& f, Bytes capacity) {
  if (capacity == 0) return "Whether it fits is not asked: give --capacity or --machine.";
  std::string warning = warning_of(job, f, capacity);
  if (warning != "none") {
    warning.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(warning.front())));
    return warning + ".";
  }
  const char* stays = by_number(f.steps.size(), "stays", "stay");
  const std::string next = f.steps.size() == 1 ? std::string("the next ") + f.unit()
                                               : fmt::format("the next {} {}s", f.steps.size(), f.unit());
  return fmt::format("It fits{}: {} {} within {}.",
                     job.cache_on_top ? fmt::format(" as far as {} go", job.counted) : "", next, stays,
                     human_bytes(capacity));
}

// What is not in the bytes that were forecast.
std::string reserve_sentence(const JobMemory& job, Bytes capacity) {
  if (!job.cache_on_top || capacity == 0) return "";
  const std::string text = "The allocator's rounding and cache, and the CUDA context, come on top: ";
  if (job.reserved < job.highest || job.reserved == 0) return text + "how much that is, the file does not say.";
  return fmt::format(
      "{}{} were reserved {}, {} more than the recording's peak{}.", text, human_bytes(job.reserved),
      job.reserved_where, human_bytes(job.reserved - job.highest),
      job.reserved > capacity
          ? fmt::format("; that passes {}, and only what the allocator can give back of it will do",
                        human_bytes(capacity))
          : "");
}

std::string expected_sentence(const JobMemory& job, const MemoryForecast& f) {
  const StepForecast& next = f.steps.front();
  const std::string growth =
      f.growth_per_step == 0
          ? fmt::format("nothing grew from {0} to {0}", f.unit())
          : fmt::format("past {}s {} by {} each (median)", f.unit(), f.growth_per_step > 0 ? "grew" : "shrank",
                        human_bytes(std::abs(f.growth_per_step)));
  return fmt::format(
      "The next {} is expected to hold {} at its peak ({:g} % interval: {} to {}); the recording's own peak is {}, "
      "and {}.",
      f.unit(), human_bytes(next.peak), f.coverage * 100, human_bytes(next.low), human_bytes(next.high),
      human_bytes(job.highest), growth);
}

// Whether the memory will do, what comes on top, what the next steps will hold, and how far that can be trusted.
std::vector<std::string> forecast_sentences(const JobMemory& job, const MemoryForecast& f, Bytes capacity) {
  std::vector<std::string> sentences{fit_sentence(job, f, capacity), expected_sentence(job, f),
                                     reserve_sentence(job, capacity)};
  if (f.period_found)
    sentences.push_back(fmt::format(
        "A period is what repeats every {} samples; whether it is a whole training step or a part of one is not known.",
        f.period));
  sentences.push_back(
      f.backtests > 0
          ? fmt::format("On {} such forecasts were off by {} in the mean.",
                        counted_text(f.backtests, std::string("past ") + f.unit()), human_bytes(f.error))
          : fmt::format("There are too few past {}s to say how far such forecasts are off.", f.unit()));
  return sentences;
}

Table figures_of(const JobMemory& job, const MemoryForecast& f, Bytes capacity) {
  Table t{.name = "forecast",
          .title = "The figures",
          .columns = {"figure", "value", "meaning"},
          .headings = {"", "", ""},
          .rows = {}};
  const auto add = [&](std::string name, Cell value, std::string meaning) {
    t.rows.push_back({cell(std::move(name)), std::move(value), cell(std::move(meaning))});
  };
  const std::string unit = f.unit();
  const auto add_steps = [&](const char* name, std::int64_t steps, const char* what) {
    add(name, number_cell(std::to_string(steps), std::to_string(steps)),
        fmt::format("{}s from now until {} passes the capacity", unit, what));
  };
  if (f.steps_to_capacity) add_steps("steps_to_capacity", *f.steps_to_capacity, "the expected peak");
  if (f.steps_to_limit) add_steps("steps_to_limit", *f.steps_to_limit, "the interval");
  if (capacity > 0) add("capacity", bytes_cell(capacity), "of the GPU, as given");
  add("highest_recorded", bytes_cell(job.highest),
      job.steps_told ? "of the whole recording"
                     : "of the whole recording; a whole training step may come to it again");
  if (job.cache_on_top && job.reserved > 0)
    add("reserved", bytes_cell(job.reserved), fmt::format("by the allocator, {}", job.reserved_where));
  add("growth_per_step", bytes_cell(f.growth_per_step), fmt::format("of the trend, median over the past {}s", unit));
  add("period", count_cell(f.period),
      f.period_found ? "samples per period, found by autocorrelation"
                     : "samples per step, as given or as the file says where its steps begin");
  if (const double seconds = seconds_per_step(job, f); seconds > 0)
    add("step_time", time_cell(seconds), "of a " + unit);
  add("backtests", count_cell(f.backtests),
      fmt::format("past {}s, each forecast from those before it; their mean absolute errors:", unit));
  add("error", bytes_cell(f.error), "of this forecast, its choice of a method included");
  add("seasonal_naive_error", bytes_cell(f.seasonal_naive_error),
      fmt::format("of taking the peak of the {} before", unit));
  add("last_value_error", bytes_cell(f.last_value_error), fmt::format("of taking the last value before the {}", unit));
  return t;
}

Table steps_of(const MemoryForecast& f) {
  Table t{.name = "steps",
          .title = fmt::format("The peaks expected, with an interval that holds {:g} % of them", f.coverage * 100),
          .columns = {"steps_ahead", "peak_bytes", "low_bytes", "high_bytes"},
          .headings = {f.unit(), "peak", "low", "high"},
          .rows = {}};
  for (const StepForecast& s : f.steps)
    t.rows.push_back({number_cell(fmt::format("+{}", s.steps_ahead), std::to_string(s.steps_ahead)), bytes_cell(s.peak),
                      bytes_cell(s.low), bytes_cell(s.high)});
  return t;
}

Table notes_of(const std::vector<std::string>& sentences) {
  Table t{.name = "notes", .title = "Notes", .columns = {"note"}, .headings = {""}, .rows = {}, .prose = true};
  for (const std::string& s : sentences) t.rows.push_back({cell(s)});
  return t;
}

int forecast_one(const ForecastOptions& o, Format format, Bytes capacity) {
  const JobMemory job = read_job_memory(o.file, o.period, o.device, capacity);
  const MemoryForecast f = forecast_memory(job.series, o.steps_ahead, capacity, o.coverage);
  std::vector<std::string> notes{fmt::format("Continued by: {}.", f.method)};
  const Bytes highest = highest_to_come_again(job);
  notes.insert(notes.end(), job.notes.begin(), job.notes.end());
  notes.insert(notes.end(), f.notes.begin(), f.notes.end());
  const std::string title =
      fmt::format("{}: memory of the next {}s, from {}", job.name, f.unit(),
                                        counted_text(f.whole_steps, std::string("past ") + f.unit()));
  std::vector<Table> tables{answer_table(title, forecast_sentences(job, f, capacity)), steps_of(f),
                            figures_of(job, f, capacity), notes_of(notes)};
  tables[1].screen_rows = 10;
  tables[2].detail = true;
  tables[3].screen_rows = 7;
  print(screen_text(std::move(tables), format, o.full));
  const bool passes = f.steps_to_capacity && *f.steps_to_capacity <= o.steps_ahead;
  if (!passes && job.missing <= 0 && (capacity == 0 || highest <= capacity)) return 0;
  print_error("memwall forecast: {}: {}.\n", o.file, warning_of(job, f, capacity));
  return 3;
}

// The forecast's next step as an upper bound: its expected course, lifted to the top of the interval.
SharedJob shared_job(const JobMemory& job, const MemoryForecast& f) {
  SharedJob shared{
      .name = job.name, .step = f.next_step, .seconds = seconds_per_step(job, f), .gpu_busy = job.gpu_busy};
  const Bytes bound = std::max(f.steps.front().high, highest_to_come_again(job));
  const double lift = static_cast<double>(bound) - shared.peak();
  for (double& sample : shared.step) sample += lift;
  return shared;
}

// Whether they can share it, in which ways, and what their peaks would take at once.
std::vector<std::string> sharing_sentences(const SharingReport& report) {
  std::vector<std::string> ways;
  if (report.equal.all_fit()) ways.push_back("in equal parts");
  if (report.by_peak.all_fit()) ways.push_back("in parts by their peaks");
  if (report.dynamic.possible) ways.push_back("by turns, step by step (dynamic)");
  if (report.mig && report.mig->placed == report.jobs.size()) ways.push_back("in MIG instances");
  double peaks = 0;
  for (const SharedJob& job : report.jobs) peaks += job.peak();
  const std::string together = fmt::format("Their peaks together take {} of {}.",
                                           human_bytes(static_cast<Bytes>(peaks)), human_bytes(report.capacity));
  return {
      ways.empty() ? "No way of sharing lets all jobs run." : fmt::format("They can share it {}.", enumerated(ways)),
      together};
}

int forecast_sharing(const ForecastOptions& o, Format format, const std::optional<Machine>& machine, Bytes capacity) {
  if (o.share.size() < 2 || o.share.size() > 12)
    throw UsageError(fmt::format("--share takes 2 to 12 files, one per job; found {}.", o.share.size()));
  if (capacity == 0) throw UsageError("--share needs the memory to share: give --capacity or --machine.");
  std::vector<SharedJob> jobs;
  std::vector<std::string> notes;
  for (const std::string& file : o.share) {
    const JobMemory job = read_job_memory(file, o.period, o.device);
    jobs.push_back(shared_job(job, forecast_memory(job.series, 1, capacity, o.coverage)));
    for (const std::string& note : job.notes) notes.push_back(job.name + ": " + note);
  }
  const SharingReport report = report_sharing(jobs, capacity, machine, o.steps);
  std::vector<Table> tables = sharing_tables(report);
  tables.insert(tables.begin(),
                answer_table(fmt::format("{} jobs on one GPU of {}", jobs.size(), human_bytes(capacity)),
                             sharing_sentences(report)));
  notes.insert(notes.begin(), report.notes.begin(), report.notes.end());
  tables.push_back(notes_of(notes));
  print(to_text(tables, format));
  if (report.some_way_fits) return 0;
  print_error("memwall forecast: no way of sharing {} lets all {} jobs run.\n", human_bytes(capacity), jobs.size());
  return 3;
}

int forecast(const ForecastOptions& o) {
  const Format format = parse_format(o.format);
  const std::optional<Machine> machine =
      o.machine.empty() ? std::nullopt : std::optional<Machine>(load_machine(o.machine));
  const Bytes capacity = capacity_of(o, machine);
  if (o.share.empty() == o.file.empty())
    throw UsageError(o.file.empty() ? "a FILE is missing, or --share with several."
                                    : "FILE and --share are one too many: list all jobs after --share.");
  return o.share.empty() ? forecast_one(o, format, capacity) : forecast_sharing(o, format, machine, capacity);
}

void add_forecast_options(CLI::App& app, ForecastOptions& o) {
  app.add_option("file", o.file,
                 "A memory snapshot (torch.cuda.memory._dump_snapshot, also .gz), a run of several steps (.h5), or a "
                 "log of samples (CSV: nvidia-smi's timestamp, memory.used [MiB]; or seconds,bytes)");
  app.add_option("--steps-ahead", o.steps_ahead, "How many steps to forecast")
      ->check(CLI::Range(1, 10000))
      ->capture_default_str();
  app.add_option("--period", o.period, "Samples (or events) per step; default: as the file says, or found")
      ->check(CLI::Range(std::size_t{2}, std::size_t{1} << 30));
  app.add_option("--capacity", o.capacity, "Memory of the GPU, to warn before it is full: 80GiB");
  app.add_option("--machine", o.machine,
                 "A machine's name or file: its usable memory; with --share also its MIG profiles");
  app.add_option("--coverage", o.coverage, "Share of the peaks that the interval is to hold")
      ->check(CLI::Range(0.01, 0.999))
      ->capture_default_str();
  app.add_option("--device", o.device, "Of a snapshot: number of the GPU; default: the one that reserved most");
  app.add_option("--share", o.share, "Several files, one per job: can they share one GPU, and at what cost?");
  app.add_option("--steps", o.steps, "With --share: steps that each job runs in the dynamic schedule")
      ->check(CLI::Range(1, 100))
      ->capture_default_str();
  app.add_flag("--full", o.full, "Print every table and every row; json and csv hold all of them anyway");
  app.add_option("--format", o.format, "table, json, csv or md")->capture_default_str();
}

}  // namespace

Verb add_forecast(CLI::App& parent) {
  auto o = std::make_shared<ForecastOptions>();
  CLI::App* app = parent.add_subcommand("forecast", "Memory of the next steps with an interval, and an early warning");
  add_forecast_options(*app, *o);
  app->footer(
      "The method, and how well it does, is in docs/forecast.md. Exit code 3 means: the expected peak of one of\n"
      "the next steps passes the capacity (that only its interval does is a warning), or, of a snapshot, that its\n"
      "own highest does where it shows fewer than two whole steps, or that its allocator, replayed there, finds no\n"
      "memory; with --share, that no way of sharing lets all jobs run. The result is printed in full either way.\n\n"
      "Examples:\n"
      "  memwall forecast snapshot.pickle --capacity 40GiB\n"
      "  nvidia-smi --query-gpu=timestamp,memory.used --format=csv -lms 200 > log.csv\n"
      "  memwall forecast log.csv --steps-ahead 50 --machine h100-sxm-80gb\n"
      "  memwall forecast --share a.h5 b.h5 c.csv --machine h100-sxm-80gb");
  return {app, [o] { return forecast(*o); }};
}

}  // namespace memwall
