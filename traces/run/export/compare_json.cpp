// The JSON form of a comparison. Field names are a promise to scripts: add, never rename.
#include <fmt/format.h>

#include "sim/json_text.h"
#include "traces/run/analysis/compare.h"

namespace memwall {
namespace {

constexpr int kComparisonSchema = 1;

void write_texts(JsonText& json, std::string_view key, const std::vector<std::string>& texts) {
  json.key(key).begin_array();
  for (const std::string& text : texts) json.value(text);
  json.end_array();
}

struct Side {
  const std::string& machine;
  const std::vector<std::string>&overrides, &policies, &settings;
  const std::string& bound_by;
  bool knows_memory, fits;
  Duration time;
};

void write_side(JsonText& json, std::string_view key, const Side& side) {
  json.key(key).begin_object().field("machine", side.machine);
  write_texts(json, "overrides", side.overrides);
  write_texts(json, "policies", side.policies);
  write_texts(json, "settings", side.settings);
  json.key("bound_by");
  side.bound_by.empty() ? json.null() : json.value(side.bound_by);
  json.key("fits");
  side.knows_memory || !side.fits ? json.value(side.fits) : json.null();
  json.seconds("time_s", side.time).end_object();
}

void write_classes(JsonText& json, const Comparison& comparison) {
  json.key("waterfall").begin_object();
  for (int c = 0; c < kTimeClasses; ++c) {
    const auto time_class = static_cast<TimeClass>(c);
    json.key(to_string(time_class)).begin_object();
    json.seconds("base_s", comparison.base_classes[time_class]);
    json.seconds("other_s", comparison.other_classes[time_class]);
    json.seconds("difference_s", comparison.waterfall[time_class]).end_object();
  }
  json.end_object();
}

void write_tiers(JsonText& json, const Comparison& comparison) {
  const auto write = [&](std::string_view key, Bytes bytes, bool recorded) {
    json.key(key);
    recorded ? json.value(bytes) : json.null();
  };
  const bool in_base = comparison.base_memory_recorded, in_other = comparison.other_memory_recorded;
  json.key("tiers").begin_object();
  for (const TierDifference& tier : comparison.tiers) {
    json.key(tier.name).begin_object().field("in_base", tier.in_base).field("in_other", tier.in_other);
    write("base_peak_allocated_bytes", tier.base_allocated, in_base);
    write("other_peak_allocated_bytes", tier.other_allocated, in_other);
    write("base_peak_reserved_bytes", tier.base_reserved, in_base);
    write("other_peak_reserved_bytes", tier.other_reserved, in_other);
    json.key("difference_by_kind");
    if (!in_base || !in_other) {
      json.null().end_object();
      continue;
    }
    json.begin_object();
    for (int k = 0; k < kStorageKinds; ++k)
      json.field(to_string(static_cast<StorageKind>(k)), tier.by_kind[static_cast<std::size_t>(k)]);
    json.end_object().end_object();
  }
  json.end_object();
}

void write_links(JsonText& json, const std::vector<LinkDifference>& links) {
  json.key("links").begin_object();
  for (const LinkDifference& link : links) {
    json.key(link.name).begin_object().field("in_base", link.in_base).field("in_other", link.in_other);
    json.field("base_bytes", link.base_bytes).field("other_bytes", link.other_bytes);
    json.seconds("base_busy_s", link.base_busy).seconds("other_busy_s", link.other_busy).end_object();
  }
  json.end_object();
}

void write_ops(JsonText& json, const Comparison& comparison) {
  json.key("ops").begin_object().field("equal", comparison.ops_equal).field("changed", comparison.ops_changed);
  json.field("added", comparison.ops_added).field("removed", comparison.ops_removed).end_object();
  json.key("differences").begin_array();
  for (const OpDifference& d : comparison.ops) {
    json.begin_object().field("change", to_string(d.change)).field("name", d.name).field("operator", d.operator_name);
    json.field("kind", to_string(d.kind)).field("phase", to_string(d.phase)).field("count", d.count);
    json.seconds("base_s", d.base_time).seconds("other_s", d.other_time).seconds("difference_s", d.difference());
    json.field("base_bytes", d.base_bytes).field("other_bytes", d.other_bytes).end_object();
  }
  json.end_array();
  json.key("lag").begin_array();
  for (const LagPoint& point : comparison.lag)
    json.begin_object().seconds("time_s", point.time).seconds("lag_s", point.lag).end_object();
  json.end_array();
}

}  // namespace

// Of one step, all GPUs together; what a run does not know is absent.
void write_energy_price(JsonText& json, const Comparison& comparison) {
  const auto write = [&](std::string_view unit, const std::optional<double>& base, const std::optional<double>& other) {
    if (base) json.field(fmt::format("base_{}", unit), *base);
    if (other) json.field(fmt::format("other_{}", unit), *other);
    if (base && other) json.field(fmt::format("difference_{}", unit), *other - *base);
  };
  write("energy_joules", comparison.base_energy_price.energy, comparison.other_energy_price.energy);
  write("price_dollars", comparison.base_energy_price.price, comparison.other_energy_price.price);
}

std::string to_json(const Comparison& comparison) {
  JsonText json;
  json.begin_object().field("schema", kComparisonSchema).key("verdict").begin_array();
  for (const std::string& sentence : verdict_of(comparison)) json.value(sentence);
  json.end_array();
  const Comparison& c = comparison;
  write_side(json, "base",
             {c.base_machine, c.base_overrides, c.base_policies, c.base_settings, c.base_bound_by,
              c.base_memory_recorded && c.base_lives_recorded, c.base_fits, c.base_time});
  write_side(json, "other",
             {c.other_machine, c.other_overrides, c.other_policies, c.other_settings, c.other_bound_by,
              c.other_memory_recorded && c.other_lives_recorded, c.other_fits, c.other_time});
  json.field("same_lineage", comparison.same_lineage);
  if (!comparison.same_lineage)
    json.field("base_trace", comparison.base_trace).field("other_trace", comparison.other_trace);
  json.seconds("difference_s", comparison.other_time - comparison.base_time);
  write_energy_price(json, comparison);
  write_classes(json, comparison);
  write_tiers(json, comparison);
  write_links(json, comparison.links);
  write_ops(json, comparison);
  return json.end_object().finish();
}

}  // namespace memwall
