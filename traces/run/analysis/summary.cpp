#include "traces/run/analysis/summary.h"

#include <algorithm>
#include <array>

#include "sim/machine/route_bound.h"
#include "sim/trace/derived_lives.h"
#include "sim/trace/ranks.h"
#include "traces/run/analysis/run_scan.h"
#include "traces/run/route_bytes.h"

namespace memwall {
namespace {

std::vector<StepSummary> steps_of(const Run& run, const TimeAccounting& accounting) {
  std::vector<StepSummary> steps;
  for (std::size_t i = 0; i < accounting.steps.size(); ++i) {
    const StepAccounting& step = accounting.steps[i];
    const Duration span = i < run.result.steps.size() ? run.result.steps[i].gpu_span : run.result.gpu_span;
    steps.push_back({step.window.name, step.window.end - step.window.begin, span, step.times, {}});
    if (rank_count(run.trace) > 1) steps.back().rank = run.trace->rank_table[step.window.rank].number;
  }
  return steps;
}

AllocatorSummary allocator_of(const TierResult& result) {
  AllocatorSummary summary{result.peak_allocated, result.peak_reserved, result.missing, {}, {}, result.allocator, 0};
  summary.at_peak_allocated = {result.peak_usage, result.peak_time};
  const TierPressure& pressure = result.pressure;
  if (pressure.at_peak_reserved.reserved == result.peak_reserved)
    summary.at_peak_reserved = AllocatorState{pressure.at_peak_reserved, pressure.peak_reserved_time};
  summary.ooms = pressure.ooms;
  return summary;
}

std::vector<TierSummary> tiers_of(const Run& run, std::vector<Peak> peaks) {
  std::vector<TierSummary> tiers;
  for (std::size_t t = 0; t < run.machine.tiers.size(); ++t) {
    const Tier& tier = run.machine.tiers[t];
    TierSummary summary;
    summary.name = tier.name;
    summary.tier_class = tier.tier_class;
    summary.capacity = tier.capacity;
    summary.usable = tier.holds();
    if (t < run.machine.one.tiers.size() && run.machine.one.tiers[t].capacity != tier.capacity)
      summary.shared = run.machine.one.tiers[t].holds();
    summary.peak = std::move(peaks[t]);
    if (t < run.result.tiers.size()) {
      const TierResult& result = run.result.tiers[t];
      summary.peak_allocated = result.peak_allocated;
      summary.peak_reserved = result.peak_reserved;
      summary.missing = result.missing;
      summary.missing_cause = cause_of_missing(result, summary.usable);
      if (result.refused.storage != kNoStorage)
        summary.free_at_refusal = summary.usable - result.refused.usage.allocated;
      summary.allocator = result.allocator;
      summary.memory = allocator_of(result);
    }
    summary.compression = tier.compression_ratio;
    if (tier.dollars_per_byte > 0)
      summary.peak_price = static_cast<double>(summary.peak_allocated) / tier.compression_ratio * tier.dollars_per_byte;
    if (t < run.unchanged.size()) summary.unchanged = allocator_of(run.unchanged[t]);
    tiers.push_back(std::move(summary));
  }
  return tiers;
}

std::vector<LinkSummary> links_of(const Run& run) {
  std::vector<LinkSummary> links;
  for (std::size_t l = 0; l < run.machine.links.size() && l < run.result.links.size(); ++l) {
    const Link& link = run.machine.links[l];
    const LinkResult& result = run.result.links[l];
    const double could = link.bandwidth * to_seconds(run.result.end);
    const double utilization = could > 0 ? static_cast<double>(result.bytes) / could : 0;
    links.push_back({link.name, result.bytes, result.busy, utilization, link.bandwidth});
  }
  return links;
}

std::vector<RouteSummary> routes_of(const Run& run, const std::vector<Bytes>& bytes) {
  const Machine& machine = run.machine.one;
  std::vector<RouteSummary> routes;
  for (std::size_t r = 0; r < machine.routes.size(); ++r) {
    const Route& route = machine.routes[r];
    if (bytes[r] == 0 || route.from == route.to) continue;
    RouteSummary summary{route.name, machine.tiers[route.from].name, machine.tiers[route.to].name, {}, "", 0, bytes[r]};
    for (const std::uint16_t link : route.links) summary.links.push_back(machine.links[link].name);
    const RouteBound bound = bound_of(machine, route);
    summary.bound_by = text_of(bound, machine);
    summary.bandwidth = bound.bandwidth;
    routes.push_back(std::move(summary));
  }
  return routes;
}

// All that a summary collects of every op besides its path and accounting.
struct SummaryScan {
  explicit SummaryScan(const Run& run)
      : survey(run),
        load(run),
        makers(run),
        waits(run),
        origins(run),
        counter(run),
        work(run),
        lifetimes(run),
        routes(run),
        decisions(run) {}
  template <class... More>
  void over(const Run& run, More&... more) {
    scan(run, survey, load, makers, waits, origins, counter, work, lifetimes, routes, decisions, more...);
  }
  PathSurvey survey;
  LoadCollector load;
  MakerCollector makers;
  WaitCollector waits;
  OriginCollector origins;
  OpCounter counter;
  WorkCollector work;
  LifetimeCollector lifetimes;
  RouteBytes routes;
  DecisionCollector decisions;
};

// Those of the trace, times those that are folded into each.
std::uint32_t ranks_that_run(const Trace& trace) {
  if (trace.rank_table.empty()) return trace.ranks;
  std::uint32_t ranks = 0;
  for (const Rank& rank : trace.rank_table)
    ranks += (1 + static_cast<std::uint32_t>(rank.stands_for.size())) * std::max(1u, rank.ranks);
  return ranks * trace.ranks;
}

void set_identity(const Run& run, RunSummary& summary) {
  summary.trace = run.trace->name;
  summary.machine = run.machine.name;
  summary.gpu = run.machine.gpu.name;
  summary.policies = run.policies;
  summary.pager = run.pager;
  summary.memory_recorded = run.trace->knowledge.allocations;
  summary.lives_recorded = !has_derived_lives(run.trace);
  summary.allocator = run.allocator;
  summary.allocator_settings = run.allocator_settings;
  summary.changes = run.changes;
  summary.recipe = run.trace->recipe;
  summary.completeness = run.trace->completeness;
  summary.completeness_reason = run.trace->completeness_reason;
  summary.notes = run.warnings;
  summary.warnings = run.warnings.size();
  summary.notes.insert(summary.notes.end(), run.trace->notes.begin(), run.trace->notes.end());
  summary.ranks = ranks_that_run(run.trace);
  summary.job_ranks = run.trace->job_ranks;
  summary.inputs = run.inputs;
  summary.provenance = run.provenance;
}

RunSummary summary_of(const Run& run, const std::vector<PathSegment>& path, const TimeAccounting& accounting,
                      SummaryScan& all, std::optional<PipelineSummary> pipeline) {
  RunSummary summary;
  set_identity(run, summary);
  summary.fits = run.result.fits;
  summary.budgets = run.trace->budgets;
  summary.gpu_span = run.result.gpu_span;
  summary.total = run.result.end;
  summary.by_rank = rank_summaries(run);
  summary.pipeline = std::move(pipeline);
  summary.steps = steps_of(run, accounting);
  summary.step_count = static_cast<std::uint32_t>(summary.steps.size());
  for (const StepSummary& step : summary.steps)
    for (std::size_t c = 0; c < kTimeClasses; ++c) summary.times.by_class[c] += step.times.by_class[c];
  for (const StepAccounting& step : accounting.steps) summary.behind += step.window.behind;
  summary.periods = step_periods(run);
  const Duration all_steps = summary.times.total();
  summary.step_time = all_steps / summary.step_count;
  summary.unchanged_step_time = run.unchanged_step;
  summary.steady_step_time = run.steady_step;
  summary.alone_step_time = run.alone_step;
  summary.contended_steps = run.contended_steps;
  summary.first_step_time = run.first_step;
  summary.tried = run.tried;
  summary.speedups = run.speedups;
  summary.step_interval = step_interval(run, path, summary.step_time, all.survey);
  if (all_steps.count() > 0) {
    const double steps_per_second = summary.step_count / to_seconds(all_steps);
    summary.samples_per_second = run.trace->samples_per_step * run.trace->ranks * steps_per_second;
    summary.tokens_per_second = run.trace->tokens_per_step * run.trace->ranks * steps_per_second;
  }
  summary.energy_price = step_energy_price(run, all.load);
  const std::vector<OpId> made_by = all.makers.take();
  summary.tiers = tiers_of(run, find_peaks(run, made_by));
  summary.decisions = all.decisions.take(made_by);
  const std::vector<DevicePeak> device = device_peaks(run, all.lifetimes);
  for (std::size_t t = 0; t < device.size(); ++t) summary.tiers[t].device_peak = device[t];
  const auto writes = drive_writes(run);
  for (std::size_t t = 0; t < writes.size(); ++t) summary.tiers[t].writes = writes[t];
  summary.gpu_memory = gpu_memory_peaks(run);
  summary.device_memory = device_memory(run);
  summary.hosts = host_use(run);
  summary.links = links_of(run);
  summary.routes = routes_of(run, all.routes.take());
  for (const PathSegment& segment : path) summary.path[segment.time_class] += segment.end - segment.begin;
  summary.waits = all.waits.waits();
  summary.origin = all.origins.shares();
  summary.ops = run.trace->ops.size();
  summary.events = run.result.events;
  summary.moves = run.result.moves.size();
  summary.ops_by_kind = all.counter.by_kind();
  summary.device_ops = all.counter.on_device();
  summary.top = all.work.top(path);
  summary.job = job_totals(run, summary.top.flops);
  summary.verdict = verdict_of(run, summary);
  return summary;
}

}  // namespace

std::string_view to_string(MissingCause cause) {
  constexpr std::array<std::string_view, 4> kNames = {"nothing", "in_use", "reserved", "in_one_piece"};
  return kNames[static_cast<std::size_t>(cause)];
}

MissingCause cause_of_missing(const TierResult& result, Bytes usable) {
  if (result.missing == 0) return MissingCause::nothing;
  if (result.missing == result.peak_allocated - usable) return MissingCause::in_use;
  return result.missing == result.peak_reserved - usable ? MissingCause::reserved : MissingCause::in_one_piece;
}

void OpCounter::add(OpId first, OpId last) {
  const Trace& trace = run_.trace;
  for (OpId id = first; id < last; ++id) {
    ++by_kind_[static_cast<std::size_t>(trace.ops[id].kind)];
    on_device_ += id < run_.result.records.size() && run_.result.records[id].start != kNever;
  }
}

RunSummary summarize(const Run& run) {
  SummaryScan all(run);
  if (rank_count(run.trace) > 1 || has_stages(run.trace)) {
    all.over(run);
    const std::vector<std::vector<PathSegment>> paths = critical_paths_of_ranks(run);
    const std::vector<std::vector<ClassSpan>> timelines = class_timelines(run, paths);
    return summary_of(run, critical_path(run, all.survey), account(run, timelines), all,
                      pipeline_summary(run, paths, timelines));
  }
  BusyCollector busy(run);
  all.over(run, busy);
  const std::vector<PathSegment> path = critical_path(run, all.survey);
  const TimeAccounting accounting = account(run, path, busy.take().front());
  return summary_of(run, path, accounting, all, std::nullopt);
}

RunSummary summarize(const Run& run, const std::vector<PathSegment>& path, const TimeAccounting& accounting) {
  SummaryScan all(run);
  all.over(run);
  std::optional<PipelineSummary> pipeline;
  if (has_stages(run.trace)) {
    const std::vector<std::vector<PathSegment>> paths = critical_paths_of_ranks(run);
    pipeline = pipeline_summary(run, paths, class_timelines(run, paths));
  }
  return summary_of(run, path, accounting, all, std::move(pipeline));
}

}  // namespace memwall
