// What `memwall sweep` was asked, as a study, and where its answer goes: for points that run here, as a shard, or did
// elsewhere.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "cli/study_options.h"
#include "cli/sweep_pictures.h"
#include "study/sweep/study_file.h"
#include "study/sweep/sweep.h"

namespace memwall {

// Exit code of a sweep of which some points failed (docs/man/memwall.1).
inline constexpr int kPointsFailed = 5;

// Files beside the answer; "" = none, "-" = stdout.
struct SweepFiles {
  std::string csv, ndjson, json;
  std::vector<std::string> all() const { return {csv, ndjson, json}; }
  bool any() const { return !csv.empty() || !ndjson.empty() || !json.empty(); }
};

struct SweepOptions {
  StudyFile study;
  PointsOptions points;
  std::string preset;
  SweepFiles files;
  bool one_line = false;
};

// A file's or a preset's, and what the command line says besides. Throws UsageError where a step is needed and there is
// none.
StudyFile study_of(const SweepOptions& o, bool needs_step = true);

// Throws UsageError where there is no axis.
SweepRequest request_of(const PointsOptions& points, const StudyFile& study);

// Files that the points may read, named by axes, too: no output may replace one.
std::vector<std::filesystem::path> inputs_of(const std::vector<std::string>& steps, const StudyFile& study,
                                             const SweepRequest& request);

// Throws UsageError where two outputs have one place, or one cannot be written or would replace an input. `journal`: ""
// = none.
void require_own_places(const SweepFiles& files, const std::string& journal, const SweepPictures& pictures,
                        const std::vector<std::filesystem::path>& inputs);

// Prints the answer, writes files and pictures; returns the exit code.
int answer_sweep(const SweepOptions& o, const StudyFile& study, const SweepRequest& request, const SweepResult& result,
                 const SweepPictures& pictures);

}  // namespace memwall
