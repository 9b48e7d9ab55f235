// The JSON form of a summary. Field names are a promise to scripts: add, never rename.
#include <fmt/format.h>

#include "sim/json_text.h"
#include "traces/run/analysis/missing_beside.h"
#include "traces/run/analysis/summary.h"
#include "traces/run/export/host_use_json.h"
#include "traces/run/export/job_json.h"
#include "traces/run/export/pipeline_json.h"

namespace memwall {
namespace {

// Raised when a field changes its meaning or goes.
constexpr int kSummarySchema = 1;

// Seconds of each class, "compute_s" and so on; `parts` windows share them evenly.
void write_times(JsonText& json, const ClassTimes& times, std::uint32_t parts) {
  json.begin_object();
  for (int c = 0; c < kTimeClasses; ++c) {
    const auto time_class = static_cast<TimeClass>(c);
    json.field(fmt::format("{}_s", to_string(time_class)),
               static_cast<double>(times[time_class].count()) / 1e12 / parts);
  }
  json.end_object();
}

void write_by_kind(JsonText& json, const std::array<Bytes, kStorageKinds>& by_kind) {
  json.begin_object();
  for (int k = 0; k < kStorageKinds; ++k)
    json.field(to_string(static_cast<StorageKind>(k)), by_kind[static_cast<std::size_t>(k)]);
  json.end_object();
}

void write_strings(JsonText& json, std::string_view key, const std::vector<std::string>& lines) {
  json.key(key).begin_array();
  for (const std::string& line : lines) json.value(line);
  json.end_array();
}

void write_tried(JsonText& json, const std::vector<TriedChange>& tried) {
  if (tried.empty()) return;
  json.key("tried").begin_array();
  for (const TriedChange& change : tried) {
    json.begin_object().field("options", change.options).field("fits", change.fits);
    json.field("peak_reserved_bytes", change.peak_reserved).field("missing_bytes", change.missing);
    json.field("missing_in", change.missing_in).seconds("step_time_s", change.step_time);
    if (change.samples_per_second > 0) json.field("samples_per_s", change.samples_per_second);
    json.end_object();
  }
  json.end_array();
}

void write_speedups(JsonText& json, const std::vector<Speedup>& speedups) {
  if (speedups.empty()) return;
  json.key("twice_as_fast").begin_array();
  for (const Speedup& speedup : speedups)
    json.begin_object().field("what", speedup.what).seconds("step_time_s", speedup.step_time).end_object();
  json.end_array();
}

void write_largest(JsonText& json, const Peak& peak) {
  json.key("largest_at_peak").begin_array();
  for (const PeakStorage& storage : peak.largest) {
    json.begin_object();
    json.field("storage", storage.storage).field("bytes", storage.bytes).field("kind", to_string(storage.kind));
    json.field("label", storage.label).field("module", storage.module).field("phase", to_string(storage.phase));
    json.seconds("begin_s", storage.begin).seconds("end_s", storage.end);
    json.end_object();
  }
  json.end_array();
}

void write_state(JsonText& json, std::string_view key, const AllocatorState& state) {
  json.key(key).begin_object().seconds("time_s", state.time);
  json.field("requested_bytes", state.usage.requested).field("allocated_bytes", state.usage.allocated);
  json.field("reserved_bytes", state.usage.reserved);
  json.field("internal_bytes", state.internal()).field("external_bytes", state.external()).end_object();
}

void write_fragmentation(JsonText& json, const AllocatorSummary& memory) {
  json.key("fragmentation").begin_object();
  write_state(json, "at_peak_allocated", memory.at_peak_allocated);
  if (memory.at_peak_reserved) write_state(json, "at_peak_reserved", *memory.at_peak_reserved);
  json.end_object();
}

void write_allocator(JsonText& json, const AllocatorSummary& memory) {
  json.key("allocator").begin_object();
  json.field("device_mallocs", memory.events.device_mallocs).field("device_frees", memory.events.device_frees);
  json.field("retries", memory.events.retries);
  if (memory.at_peak_reserved) json.field("ooms", memory.ooms);  // else the run was measured, which tells neither
  json.end_object();
}

void write_unchanged(JsonText& json, const AllocatorSummary& memory) {
  json.key("unchanged").begin_object();
  json.field("peak_allocated_bytes", memory.peak_allocated).field("peak_reserved_bytes", memory.peak_reserved);
  json.field("missing_bytes", memory.missing);
  write_fragmentation(json, memory);
  write_allocator(json, memory);
  json.end_object();
}

void write_device_peak(JsonText& json, const DevicePeak& peak) {
  json.key("device_clock").begin_object().field("peak_bytes", peak.bytes).seconds("peak_time_s", peak.time);
  json.key("peak_by_kind");
  write_by_kind(json, peak.by_kind);
  json.field("unnamed_bytes", peak.unnamed).end_object();
}

// What nobody recorded is null, not 0.
void write_unrecorded_memory(JsonText& json) {
  for (const char* key :
       {"peak_allocated_bytes", "peak_reserved_bytes", "peak_requested_bytes", "missing_bytes", "peak_time_s",
        "peak_by_kind", "peak_by_phase", "largest_at_peak", "fragmentation", "allocator"})
    json.key(key).null();
}

void write_memory(JsonText& json, const TierSummary& tier) {
  json.field("peak_allocated_bytes", tier.peak_allocated).field("peak_reserved_bytes", tier.peak_reserved);
  json.field("peak_requested_bytes", tier.peak.requested).field("missing_bytes", tier.missing);
  if (tier.missing > 0) json.field("missing_cause", to_string(tier.missing_cause));
  if (tier.missing > 0 && tier.free_at_refusal) json.field("free_at_refusal_bytes", *tier.free_at_refusal);
  json.seconds("peak_time_s", tier.peak.time);
  json.key("peak_by_kind");
  write_by_kind(json, tier.peak.by_kind);
  json.key("peak_by_phase").begin_object();
  for (int p = 0; p < kPhases; ++p)
    json.field(to_string(static_cast<Phase>(p)), tier.peak.by_phase[static_cast<std::size_t>(p)]);
  json.end_object();
  write_largest(json, tier.peak);
  write_fragmentation(json, tier.memory);
  write_allocator(json, tier.memory);
  if (tier.unchanged) write_unchanged(json, *tier.unchanged);
  if (tier.device_peak) write_device_peak(json, *tier.device_peak);
}

void write_drive_writes(JsonText& json, const DriveWrites& writes) {
  json.field("written_bytes", writes.bytes).field("written_bytes_per_day", writes.per_day);
  json.field("drive_writes_per_day", writes.drive_writes_per_day).key("drive_life_days");
  writes.life_days ? json.value(*writes.life_days) : json.null();
  if (writes.cache_full > Duration{}) json.seconds("cache_full_s", writes.cache_full);
  if (writes.full_after_steps) json.field("cache_full_after_steps", *writes.full_after_steps);
}

void write_device_memory(JsonText& json, const DeviceMemory& memory) {
  json.key("device_memory").begin_object();
  json.field("allocated_bytes", memory.allocated_in_all()).field("reserved_bytes", memory.reserved_in_all());
  if (memory.from_first_step > 0) json.field("reserved_from_first_step_bytes", memory.from_first_step);
  json.field("workspace_bytes", memory.workspaces).field("product_streams", memory.product_streams);
  json.field("context_bytes", memory.context).field("communication_bytes", memory.communication);
  json.field("communicators", memory.communicators).field("shown_bytes", memory.shown());
  json.end_object();
}

void write_tiers(JsonText& json, const std::vector<TierSummary>& tiers, bool recorded) {
  json.key("tiers").begin_object();
  for (const TierSummary& tier : tiers) {
    json.key(tier.name).begin_object();
    json.field("capacity_bytes", tier.capacity).field("usable_bytes", tier.usable);
    if (tier.compression != 1) json.field("compression", tier.compression);
    if (tier.peak_price) json.field("peak_price_dollars", *tier.peak_price);
    if (tier.writes) write_drive_writes(json, *tier.writes);
    if (recorded)
      write_memory(json, tier);
    else
      write_unrecorded_memory(json);
    json.end_object();
  }
  json.end_object();
}

void write_links(JsonText& json, const std::vector<LinkSummary>& links) {
  json.key("links").begin_object();
  for (const LinkSummary& link : links) {
    json.key(link.name).begin_object();
    json.field("bytes", link.bytes).seconds("busy_s", link.busy).field("utilization", link.utilization);
    json.field("bandwidth_bytes_per_s", link.bandwidth).end_object();
  }
  json.end_object();
}

void write_routes(JsonText& json, const std::vector<RouteSummary>& routes) {
  json.key("routes").begin_object();
  for (const RouteSummary& route : routes) {
    json.key(route.name).begin_object().field("from", route.from).field("to", route.to);
    write_strings(json, "links", route.links);
    json.field("bound_by", route.bound_by).field("bandwidth_bytes_per_s", route.bandwidth);
    json.field("bytes", route.bytes).end_object();
  }
  json.end_object();
}

void write_budgets(JsonText& json, const std::vector<MemoryBudget>& budgets) {
  if (budgets.empty()) return;
  json.key("budgets").begin_array();
  for (const MemoryBudget& budget : budgets)
    json.begin_object()
        .field("policy", budget.policy)
        .field("bytes", budget.bytes)
        .field("over_bytes", budget.over)
        .end_object();
  json.end_array();
}

void write_recipe(JsonText& json, const std::vector<RecipeItem>& recipe) {
  json.key("recipe").begin_object();
  for (const RecipeItem& item : recipe)
    json.key(item.what).begin_object().field("value", item.value).field("setting", item.setting).end_object();
  json.end_object();
}

void write_steps(JsonText& json, const std::vector<StepSummary>& steps) {
  json.key("steps").begin_array();
  for (const StepSummary& step : steps) {
    json.begin_object().field("name", step.name);
    if (step.rank) json.field("rank", *step.rank);
    json.seconds("step_time_s", step.step_time).seconds("gpu_span_s", step.gpu_span).key("time");
    write_times(json, step.times, 1);
    json.end_object();
  }
  json.end_array();
}

void write_ranks(JsonText& json, const RunSummary& summary) {
  if (summary.by_rank.empty()) return;
  json.field("job_ranks", summary.job_ranks).key("by_rank").begin_array();
  for (const RankSummary& rank : summary.by_rank) {
    json.begin_object().field("rank", rank.number).field("steps", rank.steps);
    json.seconds("step_time_s", rank.step_time).seconds("gpu_span_s", rank.gpu_span).seconds("end_s", rank.end);
    json.seconds("peer_wait_s", rank.peer_wait).field("collectives", rank.collectives).field("last", rank.last);
    json.seconds("held_up_s", rank.held_up);
    if (rank.node) json.field("node", *rank.node);
    if (rank.waits_for) json.field("waits_most_for", *rank.waits_for).seconds("waits_most_for_s", rank.waits_for_time);
    json.end_object();
  }
  json.end_array();
}

void write_wait_side(JsonText& json, std::string_view key, const std::array<WaitTotal, kWaitReasons>& totals) {
  json.key(key).begin_object();
  for (int r = 0; r < kWaitReasons; ++r) {
    const WaitTotal& total = totals[static_cast<std::size_t>(r)];
    if (total.count == 0) continue;
    json.key(to_string(static_cast<WaitReason>(r))).begin_object();
    json.seconds("seconds", total.time).field("count", total.count).end_object();
  }
  json.end_object();
}

void write_lane_waits(JsonText& json, const std::vector<LaneWait>& lanes) {
  json.key("lanes").begin_array();
  for (const LaneWait& wait : lanes) {
    json.begin_object().field("lane", wait.lane).field("where", wait.on_host ? "host" : "device");
    json.field("reason", to_string(wait.reason)).seconds("seconds", wait.time).field("count", wait.count).end_object();
  }
  json.end_array();
}

void write_origin(JsonText& json, const OriginShares& origin) {
  json.key("origin").begin_object();
  json.field("measured", origin.share(origin.measured)).field("transferred", origin.share(origin.transferred));
  json.field("modelled", origin.share(origin.modelled)).end_object();
}

void write_interval(JsonText& json, const StepInterval& interval) {
  json.key("step_time_interval").begin_object().field("share", kIntervalShare);
  json.seconds("low_s", interval.low).seconds("high_s", interval.high).field("known_share", interval.known_share);
  json.field("by_replays", interval.by_replays);
  if (interval.job)
    json.field("job", to_string(*interval.job))
        .field("host_path_share", interval.host.path)
        .field("host_thread_share", interval.host.thread);
  if (interval.carried) json.field("carried", true);
  json.end_object();
}

void write_shares(JsonText& json, std::string_view key, const std::vector<EnergyShare>& shares) {
  json.key(key).begin_object();
  for (const EnergyShare& share : shares) {
    if (!share.joules) continue;
    json.key(share.name).begin_object().field("bytes", share.bytes).field("joules", *share.joules);
    json.field("in_gpu_power", share.in_gpu_power).end_object();
  }
  json.end_object();
}

void write_energy_price(JsonText& json, const StepEnergyPrice& energy_price) {
  json.field("gpus", energy_price.gpus).field("gpu_busy_share", energy_price.busy_share);
  if (energy_price.energy) {
    json.field("energy_joules", *energy_price.energy).key("energy").begin_object();
    json.field("gpu_idle_joules", energy_price.gpu_idle).field("gpu_load_joules", energy_price.gpu_load);
    if (energy_price.host) json.field("host_joules", *energy_price.host);
    write_shares(json, "links", energy_price.links);
    write_shares(json, "tiers", energy_price.tiers);
    json.end_object();
  }
  if (energy_price.price) json.field("price_dollars", *energy_price.price);
  write_strings(json, "missing_figures", energy_price.missing);
}

void write_training(JsonText& json, const TrainingCost& training) {
  json.key("training").begin_object().field("tokens", training.tokens).field("steps", training.steps);
  json.field("seconds", training.seconds).field("gpu_hours", training.gpu_hours);
  if (training.dollars) json.field("dollars", *training.dollars);
  if (training.joules) json.field("joules", *training.joules);
  json.end_object();
}

void write_work(JsonText& json, std::string_view key, const std::vector<WorkTotal>& totals) {
  json.key(key).begin_array();
  for (const WorkTotal& total : totals) {
    json.begin_object().field("name", total.name).field("count", total.count).seconds("seconds", total.time);
    json.field("flops", total.flops).end_object();
  }
  json.end_array();
}

void write_top(JsonText& json, const TopWork& top) {
  json.seconds("device_s", top.device);
  write_work(json, "top_operators", top.operators);
  write_work(json, "top_kernels", top.kernels);
  json.key("host_on_path").begin_array();
  for (const HostTotal& total : top.host) {
    json.begin_object().field("name", total.name).field("work", to_string(total.work));
    json.seconds("seconds", total.time).field("count", total.count).end_object();
  }
  json.end_array();
}

void write_decided(JsonText& json, const ModuleDecisions& decided) {
  json.field("storages", decided.storages).field("copied_out_bytes", decided.copied_out);
  json.field("copied_in_bytes", decided.copied_in).field("made_again_bytes", decided.made_again);
  json.field("fetches", decided.fetches).field("late", decided.late).key("slack_s");
  decided.slack ? json.value(static_cast<double>(decided.slack->count()) / 1e12) : json.null();
  json.field("rerun_ops", decided.rerun_ops).seconds("rerun_time_s", decided.rerun_time);
}

void write_decisions(JsonText& json, const MemoryDecisions& decisions) {
  if (decisions.empty()) return;
  json.key("decisions").begin_object();
  write_decided(json, decisions.total());
  json.key("modules").begin_array();
  for (const ModuleDecisions& module : decisions.modules) {
    json.begin_object().field("module", module.module);
    write_decided(json, module);
    json.end_object();
  }
  json.end_array().end_object();
}

void write_counts(JsonText& json, const RunSummary& summary) {
  json.field("ops", summary.ops).field("device_ops", summary.device_ops).field("moves", summary.moves);
  json.field("events", summary.events).key("ops_by_kind").begin_object();
  for (int k = 0; k < kOpKinds; ++k)
    json.field(to_string(static_cast<OpKind>(k)), summary.ops_by_kind[static_cast<std::size_t>(k)]);
  json.end_object();
}

void write_origin_of_run(JsonText& json, const RunSummary& summary) {
  write_strings(json, "notes", summary.notes);
  json.key("inputs").begin_array();
  for (const InputFile& input : summary.inputs)
    json.begin_object().field("name", input.name).field("hash", input.hash).end_object();
  json.end_array();
  if (!summary.provenance) return;
  const Provenance& provenance = *summary.provenance;
  json.key("provenance").begin_object().field("wall_s", provenance.wall_seconds);
  json.field("host", provenance.host).field("date", provenance.date).field("version", provenance.version);
  json.field("command_line", provenance.command_line).end_object();
}

// What was asked: of which step, on which machine, with what changed.
void write_question(JsonText& json, const RunSummary& summary) {
  json.field("machine", summary.machine).field("gpu", summary.gpu).field("ranks", summary.ranks);
  write_strings(json, "overrides", summary.changes.overrides);
  write_strings(json, "scale", summary.changes.scale);
  json.field("transfer_host", summary.changes.transfer_host);
  json.key("completeness").begin_object().field("state", to_string(summary.completeness));
  json.field("reason", summary.completeness_reason);
  if (summary.completeness != Completeness::complete) json.field("over_limit", asks_first(summary.completeness));
  json.end_object();
  write_recipe(json, summary.recipe);
  write_strings(json, "policies", summary.policies);
  json.field("pager", summary.pager).field("allocator", summary.allocator);
  json.field("allocator_settings", summary.allocator_settings);
  if (summary.changes.step_without.count() > 0)
    json.seconds("step_time_without_changes_s", summary.changes.step_without);
  if (summary.unchanged_step_time.count() > 0) json.seconds("unchanged_step_time_s", summary.unchanged_step_time);
}

void write_fit(JsonText& json, const RunSummary& summary) {
  if (summary.knows_fit())
    json.field("fits", summary.fits);
  else
    json.key("fits").null();  // nobody knows
  if (!summary.fits)
    json.field("fits_device", false);
  else if (const auto missing = missing_beside_allocator(summary); missing && summary.knows_fit())
    json.field("fits_device", *missing == 0);
  if (summary.memory_recorded && !summary.lives_recorded) json.field("peaks_are_lower_bounds", true);
  write_budgets(json, summary.budgets);
}

// How long a step takes, and what it gives.
void write_step(JsonText& json, const RunSummary& summary) {
  if (summary.is_window()) json.field("window_is_step", true);
  json.field("step_time_s", static_cast<double>(summary.times.total().count()) / 1e12 / summary.step_count);
  if (summary.steady_step_time > Duration{}) json.seconds("steady_step_time_s", summary.steady_step_time);
  write_host_times(json, summary);
  if (summary.step_interval) write_interval(json, *summary.step_interval);
  json.seconds("host_period_s", summary.periods.host);
  if (summary.periods.gpu > Duration{}) json.seconds("gpu_period_s", summary.periods.gpu);
  if (summary.behind > Duration{}) json.seconds("behind_at_start_s", summary.behind);
  json.seconds("gpu_span_s", summary.gpu_span).seconds("total_s", summary.total);
  if (const auto& peaks = summary.gpu_memory)
    json.field("peak_allocated_bytes", peaks->allocated)
        .field("peak_reserved_bytes", peaks->reserved)
        .field("missing_bytes", peaks->missing);
  if (summary.samples_per_second > 0) json.field("samples_per_s", summary.samples_per_second);
  if (summary.tokens_per_second > 0) json.field("tokens_per_s", summary.tokens_per_second);
  if (const auto& use = summary.top.flops) {
    json.field("mfu", use->mfu).field("hfu", use->hfu).field("flops", use->flops).field("recomputed_flops", use->recomputed);
    json.field("arithmetic", to_string(use->arithmetic));
  }
  write_energy_price(json, summary.energy_price);
  if (summary.training) write_training(json, *summary.training);
}

// Memories, and what leads from one to another.
void write_hierarchy(JsonText& json, const RunSummary& summary) {
  write_tiers(json, summary.tiers, summary.memory_recorded);
  if (summary.device_memory && summary.memory_recorded) write_device_memory(json, *summary.device_memory);
  write_hosts(json, summary.hosts);
  write_links(json, summary.links);
  write_routes(json, summary.routes);
}

void write_waits(JsonText& json, const Waits& waits) {
  json.key("waits").begin_object();
  write_wait_side(json, "host", waits.host);
  write_wait_side(json, "device", waits.device);
  write_lane_waits(json, waits.lanes);
  json.end_object();
}

}  // namespace

std::string to_json(const RunSummary& summary) {
  JsonText json;
  json.begin_object().field("schema", kSummarySchema).field("trace", summary.trace);
  write_strings(json, "verdict", summary.verdict.sentences);
  json.field("bound_by", summary.verdict.bound_by);
  write_question(json, summary);
  write_fit(json, summary);
  write_step(json, summary);
  if (summary.job) write_job(json, *summary.job);
  write_ranks(json, summary);
  if (summary.pipeline) write_pipeline(json, summary);
  write_steps(json, summary.steps);
  write_tried(json, summary.tried);
  write_speedups(json, summary.speedups);
  write_hierarchy(json, summary);
  json.key("time");
  write_times(json, summary.times, summary.step_count);
  json.key("critical_path");
  write_times(json, summary.path, 1);
  write_waits(json, summary.waits);
  write_top(json, summary.top);
  write_decisions(json, summary.decisions);
  write_origin(json, summary.origin);
  write_counts(json, summary);
  write_origin_of_run(json, summary);
  return json.end_object().finish();
}

}  // namespace memwall
