#include "traces/run/export/host_use_json.h"

namespace memwall {
namespace {

void write_page_locking(JsonText& json, std::string_view key, const PageLocking& locked) {
  json.key(key).begin_object().field("calls", locked.calls).field("bytes", locked.bytes).end_object();
}

void write_cores(JsonText& json, const std::vector<CoreUse>& cores) {
  json.key("cores").begin_array();
  for (const CoreUse& use : cores) {
    json.begin_object().field("cores", use.cores).field("ranks", use.ranks).field("most", use.most);
    json.field("mean", use.mean).field("mean_optimizer", use.mean_optimizer);
    json.field("mean_memory_work", use.mean_memory_work).field("mean_threads", use.mean_threads);
    json.seconds("beyond_s", use.beyond).end_object();
  }
  json.end_array();
}

void write_host(JsonText& json, const HostUse& use) {
  json.begin_object().field("tier", use.tier).key("ranks").begin_array();
  for (const std::uint32_t number : use.ranks) json.value(number);
  json.end_array().field("hosts", use.hosts).field("usable_bytes", use.usable);
  json.field("peak_reserved_bytes", use.peak_reserved).seconds("peak_time_s", use.time);
  json.key("memory").begin_array();
  for (const HostMemoryCause& cause : use.causes)
    json.begin_object()
        .field("kind", to_string(cause.kind))
        .field("page_locked", cause.pinned)
        .field("bytes", cause.bytes)
        .end_object();
  json.end_array().field("rounding_bytes", use.rounding).field("cached_bytes", use.cached);
  write_page_locking(json, "page_locked_before_step", use.before_step);
  write_page_locking(json, "page_locked_in_first_step", use.in_first_step);
  write_cores(json, use.cores);
  json.end_object();
}

}  // namespace

void write_host_times(JsonText& json, const RunSummary& summary) {
  if (summary.first_step_time > Duration{}) json.seconds("first_step_time_s", summary.first_step_time);
  if (summary.alone_step_time > Duration{}) json.seconds("alone_step_time_s", summary.alone_step_time);
  const ContendedSteps& steps = summary.contended_steps;
  if (steps == ContendedSteps{}) return;
  json.key("contention").begin_object().seconds("links_shared_step_time_s", steps.links);
  json.seconds("memory_channels_shared_step_time_s", steps.memory_channels);
  json.seconds("cores_shared_step_time_s", steps.cores);
  json.seconds("storage_shared_step_time_s", steps.storage).end_object();
}

void write_hosts(JsonText& json, const std::vector<HostUse>& hosts) {
  if (hosts.empty()) return;
  json.key("hosts").begin_array();
  for (const HostUse& use : hosts) write_host(json, use);
  json.end_array();
}

}  // namespace memwall
