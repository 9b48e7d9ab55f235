#include "cli/print/stage_tables.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/print/table_cells.h"

namespace memwall {
namespace {

// "1", "1, 9, 17".
std::string stages_of(const StageSummary& stage) {
  std::string text;
  for (const PipelineChunk& chunk : stage.chunks) text += fmt::format("{}{}", text.empty() ? "" : ", ", chunk.stage);
  return text.empty() ? "-" : text;
}

// "tensor parallel": "exposed_tensor_parallel_s".
std::string column_of(const std::string& group) {
  std::string name = group;
  std::replace_if(
      name.begin(), name.end(), [](char c) { return c == ' ' || c == '-'; }, '_');
  return fmt::format("exposed_{}_s", name);
}

Cell number(std::uint32_t n) { return number_cell(std::to_string(n), std::to_string(n)); }

bool recomputes(const PipelineSummary& pipeline) {
  return std::any_of(pipeline.stages.begin(), pipeline.stages.end(),
                     [](const StageSummary& stage) { return stage.recompute > Duration{}; });
}

// One word over a column.
const char* heading_of(StorageKind kind) {
  switch (kind) {
    case StorageKind::parameter:
      return "parameters";
    case StorageKind::gradient:
      return "gradients";
    case StorageKind::optimizer_state:
      return "optimizer";
    case StorageKind::activation:
      return "activations";
    case StorageKind::workspace:
      return "workspaces";
    case StorageKind::communication_buffer:
      return "messages";
    default:
      return to_string(kind).data();
  }
}

bool lacks_memory(const RunSummary& s) {
  return std::any_of(s.pipeline->stages.begin(), s.pipeline->stages.end(),
                     [&](const StageSummary& stage) { return s.tiers[stage.tier].missing > 0; });
}

bool waits_for_equals(const PipelineSummary& pipeline) {
  return std::any_of(pipeline.stages.begin(), pipeline.stages.end(),
                     [](const StageSummary& stage) { return stage.equals > Duration{}; });
}

// What comes to whose peak, in the order of the kinds.
std::vector<StorageKind> kinds_at_peaks(const RunSummary& s) {
  std::vector<StorageKind> kinds;
  for (std::size_t k = 0; k < kStorageKinds; ++k)
    if (std::any_of(s.pipeline->stages.begin(), s.pipeline->stages.end(),
                    [&](const StageSummary& stage) { return s.tiers[stage.tier].peak.by_kind[k] > 0; }))
      kinds.push_back(static_cast<StorageKind>(k));
  return kinds;
}

bool has_memory(const RunSummary& s) {
  return s.pipeline && s.memory_recorded &&
         std::all_of(s.pipeline->stages.begin(), s.pipeline->stages.end(),
                     [&](const StageSummary& stage) { return stage.tier < s.tiers.size(); });
}

}  // namespace

Table stage_table(const RunSummary& s) {
  Table t{.name = "stages",
          .title = "",
          .columns = {"rank", "ranks", "stages", "step_time_s", "compute_s"},
          .headings = {"rank", "for", "stage", "step time", "compute"},
          .rows = {},
          .wrap = true};
  if (!s.pipeline) return t;
  const PipelineSummary& pipeline = *s.pipeline;
  const bool again = recomputes(pipeline), waits = waits_for_equals(pipeline);
  const auto column = [&](std::string name, std::string heading) {
    t.columns.push_back(std::move(name));
    t.headings.push_back(std::move(heading));
  };
  if (again) column("recompute_s", "of it again");
  column("bubble_s", "bubble");
  if (waits) column("equal_ranks_s", "for equals");
  for (const std::string& group : pipeline.groups) column(column_of(group), group);
  column("other_s", "other");
  column("holds", "holds");
  t.title = fmt::format(
      "Where the time of a step goes, stage by stage ({} ranks of the job; for: how many do the same; bubble: waits "
      "for other stages; {}other: "
      "host, copies, allocator)",
      s.ranks, pipeline.groups.empty() ? "" : "by group: communication that nothing hides; ");
  for (const StageSummary& stage : pipeline.stages) {
    std::vector<Cell> row{number(stage.rank), number(stage.ranks), cell(stages_of(stage)), time_cell(stage.step_time),
                          time_cell(stage.compute)};
    if (again) row.push_back(time_cell(stage.recompute));
    row.push_back(time_cell(stage.bubble));
    if (waits) row.push_back(time_cell(stage.equals));
    for (const Duration exposed : stage.exposed) row.push_back(time_cell(exposed));
    row.push_back(time_cell(stage.other));
    row.push_back(cell(layers_text(stage.chunks)));
    t.rows.push_back(std::move(row));
  }
  return t;
}

Table stage_memory_table(const RunSummary& s) {
  Table t{.name = "stage_memory",
          .title = "",
          .columns = {"rank", "stages", "peak_reserved_bytes", "peak_allocated_bytes"},
          .headings = {"rank", "stage", "reserved", "peak"},
          .rows = {},
          .wrap = true};
  if (!has_memory(s)) return t;
  const bool lacks = lacks_memory(s);
  if (lacks) {
    t.columns.emplace_back("missing_bytes");
    t.headings.emplace_back("missing");
  }
  const std::vector<StorageKind> kinds = kinds_at_peaks(s);
  for (const StorageKind kind : kinds) {
    t.columns.push_back(fmt::format("{}_bytes", to_string(kind)));
    t.headings.emplace_back(heading_of(kind));
  }
  t.title = fmt::format(
      "Memory of each stage's GPU, of which {} are usable (reserved: with the allocator's cache; peak: blocks in use; "
      "by "
      "kind at the peak, as requested)",
      human_bytes(s.tiers[s.pipeline->stages.front().tier].usable));
  for (const StageSummary& stage : s.pipeline->stages) {
    const TierSummary& tier = s.tiers[stage.tier];
    std::vector<Cell> row{number(stage.rank), cell(stages_of(stage)), bytes_cell(tier.peak_reserved),
                          bytes_cell(tier.peak_allocated)};
    if (lacks) row.push_back(bytes_cell(tier.missing));
    for (const StorageKind kind : kinds) row.push_back(bytes_cell(tier.peak.by_kind[static_cast<std::size_t>(kind)]));
    t.rows.push_back(std::move(row));
  }
  return t;
}

}  // namespace memwall
