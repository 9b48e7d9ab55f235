#include "cli/study_options.h"

#include <thread>

#include "cli/gaps_option.h"
#include "cli/onto_option.h"
#include "cli/terminal.h"
#include "sim/error.h"

namespace memwall {

void add_base_options(CLI::App& app, StudyFile& study) {
  Scenario& base = study.base;
  app.add_option("--et", base.execution_traces, "ExecutionTrace of the same run, beside a Kineto capture")
      ->allow_extra_args(false);
  add_onto_option(app, base.onto);
  app.add_option("--machine", study.machines, "A machine's name or file; several, joined by commas, are an axis")
      ->delimiter(',')
      ->allow_extra_args(false);
  app.add_option("--measured-on", base.measured_on,
                 "The machine of the durations, a name or a file, where a capture does not say its GPU");
  app.add_option("--set", base.settings, "Override a number of the machine at every point; repeatable")
      ->allow_extra_args(false);
  app.add_option("--policy", base.policies, "A policy of every point: NAME:key=value; repeatable")
      ->allow_extra_args(false);
  app.add_option("--scale", base.scale, "Multiply durations at every point: host=0.5; repeatable")
      ->allow_extra_args(false);
}

std::unique_ptr<SweepJournal> JournalOptions::open() const {
  if (none) return nullptr;
  try {
    return std::make_unique<SweepJournal>(place());
  } catch (const InputError& error) {
    if (!path.empty()) throw;
    print_error("memwall: {} Finished points are not kept; --journal FILE names another place.\n", error.what());
    return nullptr;
  }
}

void add_journal_options(CLI::App& app, JournalOptions& journal) {
  app.add_option(
      "--journal", journal.path,
      std::string("Where finished points are kept, for the same command and for others; default: ") + kUsualJournal);
  app.add_flag("--no-journal", journal.none, "Keep none, and compute every point");
}

void add_jobs_option(CLI::App& app, unsigned& jobs) {
  app.add_option("--jobs", jobs, "Threads; default: as many as this computer runs. The result is the same")
      ->check(CLI::Range(1u, 1024u));
}

void add_points_options(CLI::App& app, PointsOptions& points) {
  add_journal_options(app, points.journal);
  add_jobs_option(app, points.jobs);
  add_gaps_option(app, points.accept_gaps);
  app.add_flag(
      "--written-out", points.written_out,
      "Simulate jobs over many GPUs operator by operator. Without it their passes are folded, many times faster, "
      "where times, throughput and peaks alone are asked for");
  app.add_option("--format", points.format, "table, json, csv or md")->capture_default_str();
  app.add_flag("--full", points.full, "Print every row; json and csv hold all of them anyway");
}

unsigned jobs_or_all(unsigned jobs) { return jobs > 0 ? jobs : std::max(1u, std::thread::hardware_concurrency()); }

}  // namespace memwall
