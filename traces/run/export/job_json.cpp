#include "traces/run/export/job_json.h"

namespace memwall {
namespace {

void write_tier(JsonText& json, const JobTier& tier) {
  json.key(tier.name).begin_object().field("peak_bytes", tier.peak_bytes).field("usable_bytes", tier.usable_bytes);
  json.key("by_kind").begin_object();
  for (int k = 0; k < kStorageKinds; ++k)
    if (const double bytes = tier.by_kind[static_cast<std::size_t>(k)]; bytes > 0)
      json.field(to_string(static_cast<StorageKind>(k)), bytes);
  json.end_object().end_object();
}

void write_link(JsonText& json, const JobLink& link) {
  json.key(link.name).begin_object().field("count", link.count).field("bytes", link.bytes);
  json.field("bytes_per_s", link.bytes_per_second).field("busy_bytes_per_s", link.busy_bytes_per_second);
  json.end_object();
}

}  // namespace

void write_job(JsonText& json, const JobTotals& job) {
  json.key("job").begin_object().field("ranks", job.ranks);
  if (job.model_flops_per_second > 0) {
    json.field("model_flops_per_s", job.model_flops_per_second);
    json.field("flops_per_s", job.model_flops_per_second + job.recomputed_flops_per_second);
  }
  json.key("tiers").begin_object();
  for (const JobTier& tier : job.tiers) write_tier(json, tier);
  json.end_object().key("links").begin_object();
  for (const JobLink& link : job.links) write_link(json, link);
  json.end_object().end_object();
}

}  // namespace memwall
