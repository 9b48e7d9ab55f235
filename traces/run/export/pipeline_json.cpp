#include "traces/run/export/pipeline_json.h"

namespace memwall {
namespace {

void write_chunks(JsonText& json, const StageSummary& stage) {
  json.key("chunks").begin_array();
  for (const PipelineChunk& chunk : stage.chunks) {
    json.begin_object().field("stage", chunk.stage).field("first_layer", chunk.first_layer);
    json.field("layers", chunk.layers).field("embedding", chunk.embedding).field("loss", chunk.loss).end_object();
  }
  json.end_array();
}

void write_peak(JsonText& json, const TierSummary& tier) {
  json.field("tier", tier.name).field("peak_allocated_bytes", tier.peak_allocated);
  json.field("peak_reserved_bytes", tier.peak_reserved).field("missing_bytes", tier.missing);
  json.key("peak_by_kind").begin_object();
  for (std::size_t k = 0; k < kStorageKinds; ++k)
    if (tier.peak.by_kind[k] > 0) json.field(to_string(static_cast<StorageKind>(k)), tier.peak.by_kind[k]);
  json.end_object();
}

}  // namespace

void write_pipeline(JsonText& json, const RunSummary& summary) {
  const PipelineSummary& pipeline = *summary.pipeline;
  json.key("pipeline").begin_object().field("stages", pipeline.stage_count);
  if (pipeline.microbatches > 0) json.field("microbatches", pipeline.microbatches);
  json.field("bubble_share", pipeline.bubble_share);
  if (pipeline.ideal_bubble_share > 0) json.field("ideal_bubble_share", pipeline.ideal_bubble_share);
  if (pipeline.slowest)
    json.field("slowest_rank", pipeline.stages[*pipeline.slowest].rank)
        .seconds("slowest_cost_s", pipeline.slowest_cost);
  if (pipeline.straggler)
    json.field("straggler", pipeline.stages[*pipeline.straggler].rank).seconds("straggles_s", pipeline.straggles);
  json.key("by_rank").begin_array();
  for (const StageSummary& stage : pipeline.stages) {
    json.begin_object().field("rank", stage.rank).field("ranks", stage.ranks);
    write_chunks(json, stage);
    json.seconds("step_time_s", stage.step_time).seconds("compute_s", stage.compute);
    json.seconds("recompute_s", stage.recompute).seconds("bubble_s", stage.bubble);
    json.seconds("equal_ranks_s", stage.equals).key("exposed_s").begin_object();
    for (std::size_t g = 0; g < pipeline.groups.size(); ++g) json.seconds(pipeline.groups[g], stage.exposed[g]);
    json.end_object().seconds("other_s", stage.other);
    if (summary.memory_recorded && stage.tier < summary.tiers.size()) write_peak(json, summary.tiers[stage.tier]);
    json.end_object();
  }
  json.end_array().end_object();
}

}  // namespace memwall
