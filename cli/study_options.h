// What verbs that run many points of a step have in common: the step at every point, the journal, threads, the report.
#pragma once

#include <CLI/CLI.hpp>

#include <memory>
#include <string>

#include "study/sweep/study_file.h"
#include "study/sweep/sweep_journal.h"

namespace memwall {

// --et, --onto, --machine, --measured-on, --set, --policy, --scale.
void add_base_options(CLI::App& app, StudyFile& study);

struct JournalOptions {
  std::string path{};  // "" = kUsualJournal
  bool none = false;

  // Where the usual one cannot be opened, a sentence on stderr and no journal; a named one throws InputError.
  std::unique_ptr<SweepJournal> open() const;  // null = none
  std::string place() const { return path.empty() ? kUsualJournal : path; }
};
// --journal, --no-journal.
void add_journal_options(CLI::App& app, JournalOptions& journal);

// --jobs; 0 = not given.
void add_jobs_option(CLI::App& app, unsigned& jobs);
unsigned jobs_or_all(unsigned jobs);  // as many as this computer runs

struct PointsOptions {
  JournalOptions journal;
  std::string format = "table";
  unsigned jobs = 0;  // 0 = not given
  bool accept_gaps = false, written_out = false, full = false;
};
// --journal, --no-journal, --jobs, --accept-gaps, --format, --full.
void add_points_options(CLI::App& app, PointsOptions& points);

}  // namespace memwall
