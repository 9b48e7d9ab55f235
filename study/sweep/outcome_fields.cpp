#include "study/sweep/outcome_fields.h"

#include <simdjson.h>

#include <algorithm>
#include <array>
#include <cassert>

#include "sim/trace/derived_lives.h"
#include "traces/run/analysis/drive_writes.h"
#include "traces/run/analysis/gpu_memory_peaks.h"
#include "traces/run/analysis/step_periods.h"
#include "traces/run/analysis/summary.h"

namespace memwall {
namespace {

constexpr std::array<std::string_view, 12> kOfRun = {
    "fits",          "step_time_s",  "steady_step_time_s",   "host_period_s",       "gpu_period_s",  "gpu_span_s",
    "total_s",       "samples_per_s", "tokens_per_s",        "peak_allocated_bytes", "peak_reserved_bytes", "missing_bytes"};
constexpr std::array<std::string_view, 12> kOfTier = {
    "capacity_bytes",       "usable_bytes",    "peak_allocated_bytes", "peak_reserved_bytes",
    "peak_requested_bytes", "missing_bytes",   "written_bytes",        "written_bytes_per_day",
    "drive_writes_per_day", "drive_life_days", "cache_full_s",         "cache_full_after_steps"};
constexpr std::array<std::string_view, 4> kOfLink = {"bytes", "busy_s", "utilization", "bandwidth_bytes_per_s"};

// To the last bit what JsonText::seconds writes: to_seconds() may be one unit in the last place beside it.
void add_seconds(OutcomeFields& fields, std::string name, Duration time) {
  fields.add(std::move(name), static_cast<double>(time.count()) / 1e12);
}

void add_times(const Run& run, OutcomeFields& fields) {
  const std::vector<StepWindow> windows = step_windows(run);
  DurationSum all;
  for (const StepWindow& window : windows) all += window.end - window.begin;
  const double steps = static_cast<double>(windows.size());
  // A mean of whole picoseconds, not a whole number of them, as the JSON divides.
  if (const auto whole = all.duration(); whole && steps > 0)
    fields.add("step_time_s", static_cast<double>(whole->count()) / 1e12 / steps);
  else
    fields.add("step_time_s", steps > 0 ? all.seconds() / steps : 0);
  if (run.steady_step > Duration{}) add_seconds(fields, "steady_step_time_s", run.steady_step);
  const StepPeriods periods = step_periods(run);
  add_seconds(fields, "host_period_s", periods.host);
  if (periods.gpu > Duration{}) add_seconds(fields, "gpu_period_s", periods.gpu);
  add_seconds(fields, "gpu_span_s", run.result.gpu_span);
  add_seconds(fields, "total_s", run.result.end);
  const double seconds = all.seconds();
  if (seconds <= 0) return;
  // In the order in which the summary multiplies, so that the JSON has the same bits.
  const double steps_per_second = steps / seconds;
  const Trace& trace = run.trace;
  if (trace.samples_per_step > 0) fields.add("samples_per_s", trace.samples_per_step * trace.ranks * steps_per_second);
  if (trace.tokens_per_step > 0) fields.add("tokens_per_s", trace.tokens_per_step * trace.ranks * steps_per_second);
}

// As the JSON has them; what is null there is not known.
void add_drive_writes(const std::string& tier, const DriveWrites& writes, OutcomeFields& fields) {
  fields.add(tier + "written_bytes", writes.bytes);
  fields.add(tier + "written_bytes_per_day", writes.per_day);
  fields.add(tier + "drive_writes_per_day", writes.drive_writes_per_day);
  if (writes.life_days) fields.add(tier + "drive_life_days", *writes.life_days);
  if (writes.cache_full > Duration{}) add_seconds(fields, tier + "cache_full_s", writes.cache_full);
  if (writes.full_after_steps)
    fields.add(tier + "cache_full_after_steps", static_cast<double>(*writes.full_after_steps));
}

void add_peaks(const Run& run, OutcomeFields& fields) {
  const std::optional<GpuMemoryPeaks> peaks = gpu_memory_peaks(run);
  if (!peaks) return;
  fields.add("peak_allocated_bytes", static_cast<double>(peaks->allocated));
  fields.add("peak_reserved_bytes", static_cast<double>(peaks->reserved));
  fields.add("missing_bytes", static_cast<double>(peaks->missing));
}

void add_tiers(const Run& run, bool recorded, OutcomeFields& fields) {
  const auto writes = drive_writes(run);
  for (std::size_t t = 0; t < run.machine.tiers.size(); ++t) {
    const Tier& tier = run.machine.tiers[t];
    const std::string name = "tiers." + tier.name + ".";
    const auto add = [&](const char* field, Bytes bytes) { fields.add(name + field, static_cast<double>(bytes)); };
    add("capacity_bytes", tier.capacity);
    add("usable_bytes", tier.holds());
    if (writes[t]) add_drive_writes(name, *writes[t], fields);
    if (!recorded || t >= run.result.tiers.size()) continue;
    const TierResult& result = run.result.tiers[t];
    add("peak_allocated_bytes", result.peak_allocated);
    add("peak_reserved_bytes", result.peak_reserved);
    Bytes requested = 0;
    for (const Bytes bytes : result.peak_by_kind) requested += bytes;
    add("peak_requested_bytes", requested);
    add("missing_bytes", result.missing);
  }
}

void add_links(const Run& run, OutcomeFields& fields) {
  for (std::size_t l = 0; l < run.machine.links.size() && l < run.result.links.size(); ++l) {
    const Link& link = run.machine.links[l];
    const LinkResult& result = run.result.links[l];
    const std::string name = "links." + link.name + ".";
    const double could = link.bandwidth * to_seconds(run.result.end);
    fields.add(name + "bytes", static_cast<double>(result.bytes));
    add_seconds(fields, name + "busy_s", result.busy);
    fields.add(name + "utilization", could > 0 ? static_cast<double>(result.bytes) / could : 0);
    fields.add(name + "bandwidth_bytes_per_s", link.bandwidth);
  }
}

// Nested objects and arrays by dots; what is no number is left out.
void flatten(const simdjson::dom::element& element, const std::string& name, OutcomeFields& fields) {
  using simdjson::dom::element_type;
  const std::string prefix = name.empty() ? "" : name + ".";
  switch (element.type()) {
    case element_type::OBJECT:
      for (const auto& field : simdjson::dom::object(element))
        flatten(field.value, prefix + std::string(field.key), fields);
      return;
    case element_type::ARRAY: {
      std::size_t index = 0;
      for (const simdjson::dom::element item : simdjson::dom::array(element))
        flatten(item, prefix + std::to_string(index++), fields);
      return;
    }
    case element_type::BOOL:
      fields.add(name, bool(element) ? 1 : 0);
      return;
    case element_type::INT64:
      fields.add(name, static_cast<double>(std::int64_t(element)));
      return;
    case element_type::UINT64:
      fields.add(name, static_cast<double>(std::uint64_t(element)));
      return;
    case element_type::DOUBLE:
      fields.add(name, double(element));
      return;
    default:
      return;
  }
}

}  // namespace

std::optional<double> OutcomeFields::find(std::string_view name) const {
  const auto found = std::ranges::find(fields_, name, &std::pair<std::string, double>::first);
  return found == fields_.end() ? std::nullopt : std::optional(found->second);
}

OutcomeFields quick_fields(const Run& run) {
  OutcomeFields fields;
  const bool recorded = run.trace->knowledge.allocations;
  if ((recorded && !has_derived_lives(run.trace)) || !run.result.fits)
    fields.add("fits", run.result.fits && run.trace->keeps_to_budgets() ? 1 : 0);
  add_times(run, fields);
  add_peaks(run, fields);
  add_tiers(run, recorded, fields);
  add_links(run, fields);
  return fields;
}

std::span<const std::string_view> quick_fields_of_run() { return kOfRun; }

bool is_quick_field(std::string_view name) {
  const std::size_t first = name.find('.'), last = name.rfind('.');
  if (first == std::string_view::npos) return std::ranges::find(kOfRun, name) != kOfRun.end();
  if (first == last) return false;
  const std::string_view of = name.substr(0, first), field = name.substr(last + 1);
  if (name.substr(first + 1, last - first - 1).find('.') != std::string_view::npos) return false;
  return (of == "tiers" && std::ranges::find(kOfTier, field) != kOfTier.end()) ||
         (of == "links" && std::ranges::find(kOfLink, field) != kOfLink.end());
}

OutcomeFields all_fields(const Run& run) {
  OutcomeFields quick = quick_fields(run), rest;
  simdjson::dom::parser parser;
  const simdjson::padded_string text(to_json(summarize(run)));
  simdjson::dom::element root;
  const bool is_json = parser.parse(text).get(root) == simdjson::SUCCESS;
  assert(is_json);
  if (!is_json) return quick;
  flatten(root, "", rest);
  for (const auto& [name, value] : rest.all()) {
    if (is_quick_field(name)) continue;
    const bool over_budget = name == "fits_device" && quick.find("fits") == 0;  // a run's JSON tells budgets apart
    quick.add(name, over_budget ? 0 : value);
  }
  return quick;
}

}  // namespace memwall
