#include "cli/sweep_shards.h"

#include <fmt/format.h>

#include <utility>

#include "cli/print/table.h"
#include "cli/progress.h"
#include "cli/terminal.h"
#include "sim/error.h"
#include "sim/human_text.h"
#include "study/sweep/sweep_shard.h"

namespace memwall {

int run_shard(const SweepOptions& o, const StudyFile& study, const SweepRequest& whole, const std::string& text,
              const SweepWatch& watch) {
  if (o.points.journal.none)
    throw UsageError("--shard: what the shard's points give is kept in its journal; leave out --no-journal.");
  if (o.files.any() || o.one_line)
    throw UsageError(
        "--shard: the answer is that of all shards; expected --csv, --ndjson, --json and --one-line with memwall sweep "
        "merge.");
  SweepRequest request = whole;
  request.shard = parse_shard(text);
  const std::string place =
      o.points.journal.path.empty() ? shard_journal("memwall-sweep", *request.shard) : o.points.journal.path;
  const std::string fingerprint = fingerprint_of(request);
  SweepJournal journal(place);
  SweepResult result;
  {
    TerminalWatch reading("reading");
    Study steps(&reading);
    result = sweep(steps, request, &journal, watch);
  }
  const std::size_t failures = result.failures();
  std::vector<PointRecord> records;
  for (SweepPoint& point : result.points) records.push_back(std::move(point.record));
  const std::size_t all = points_of(request.space).size();
  finish_shard(place, {study, request.accept_gaps, fingerprint, *request.shard, all}, records);
  print(fmt::format("Shard {}: {} of {} points: {} ran, {} failed. They are in {}.\n", to_string(*request.shard),
                    result.points.size(), all, result.points.size() - failures, failures, place));
  return 0;
}

int merge_shards(const SweepOptions& o, const std::vector<std::string>& journals) {
  (void)parse_format(o.points.format);
  MergedShards merged = merged_shards({journals.begin(), journals.end()});
  PointsOptions points = o.points;
  points.accept_gaps = merged.accept_gaps;
  SweepRequest request = request_of(points, merged.study);
  std::vector<std::filesystem::path> inputs = inputs_of(merged.study.base.step, merged.study, request);
  inputs.insert(inputs.end(), journals.begin(), journals.end());
  const SweepPictures pictures(merged.study.figures, request, inputs);
  for (const std::string& field : pictures.fields(request)) request.fields.push_back(field);
  require_own_places(o.files, "", pictures, inputs);
  SweepOptions as_asked = o;
  as_asked.points = points;
  return answer_sweep(as_asked, merged.study, request, assembled(request, std::move(merged.records)), pictures);
}

}  // namespace memwall
