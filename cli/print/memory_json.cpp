// The JSON form of a study of a snapshot. Field names are a promise to scripts: add, never rename.
#include <fmt/format.h>

#include "cli/print/memory_tables.h"
#include "cli/print/memory_verdict.h"
#include "sim/json_text.h"

namespace memwall {
namespace {

// Raised when a field changes its meaning or goes.
constexpr int kSchema = 1;

void write_totals(JsonText& json, const char* name, const MemoryTotals& m) {
  json.key(name).begin_object();
  json.field("allocated_bytes", m.allocated_bytes).field("reserved_bytes", m.reserved_bytes);
  json.field("active_bytes", m.active_bytes).field("requested_bytes", m.requested_bytes);
  json.field("segments", m.segments).field("blocks", m.blocks).end_object();
}

// `missing`: 0 = it fits; none = it does not, and nobody knows by how much.
void write_replayed(JsonText& json, const RecordingReplay& r, std::optional<Bytes> missing) {
  write_totals(json, "start", r.start);
  write_totals(json, "peak", r.peak);
  write_totals(json, "end", r.end);
  json.key("peak_event");
  r.peak_at_start ? json.null() : json.value(r.peak_event);
  json.field("peak_reserved_bytes", r.peak_reserved).field("peak_active_bytes", r.peak_active);
  json.field("num_alloc_retries", r.statistics.num_alloc_retries).field("num_ooms", r.statistics.num_ooms);
  json.field("fits", missing && *missing <= 0).key("missing_bytes");
  missing ? json.value(*missing) : json.null();
}

void write_check(JsonText& json, const ReplayCheck& c) {
  json.key("replay").begin_object();
  json.field("allocs", c.allocs).field("placements_checked", c.placements_checked);
  json.field("placements_equal", c.placements_equal);
  json.field("segment_allocs_recorded", c.segment_allocs_recorded);
  json.field("segment_allocs_equal", c.segment_allocs_equal);
  json.field("segment_frees_recorded", c.segment_frees_recorded);
  json.field("segment_frees_equal", c.segment_frees_equal);
  json.field("final_segments", c.final_segments).field("final_segments_equal", c.final_segments_equal);
  json.field("final_blocks", c.final_blocks).field("final_blocks_equal", c.final_blocks_equal).end_object();
}

void write_groups(JsonText& json, const char* name, const std::vector<LiveGroup>& groups) {
  json.key(name).begin_array();
  for (const LiveGroup& g : groups)
    json.begin_object()
        .field("name", g.name)
        .field("requested_bytes", g.requested)
        .field("blocks", g.blocks)
        .end_object();
  json.end_array();
}

void write_live(JsonText& json, const MemoryStudy& study, const LiveSet& live) {
  json.begin_object().field("event", live.event).field("requested_bytes", live.requested);
  write_groups(json, "by_kind", live.by_kind);
  write_groups(json, "by_phase", live.by_phase);
  write_groups(json, "by_line", live.by_line);
  json.key("largest").begin_array();
  for (const std::uint32_t index : live.largest) {
    const Allocation& a = study.table.allocations[index];
    json.begin_object().field("address", a.address).field("requested_bytes", a.requested);
    json.field("kind", to_string(a.kind)).field("phase", to_string(a.phase));
    json.field("line", source_line(study.recording, a.stack)).end_object();
  }
  json.end_array().end_object();
}

void write_fragmentation(JsonText& json, const char* name, const Fragmentation& f) {
  json.key(name).begin_object();
  json.field("internal_bytes", f.internal).field("external_bytes", f.external);
  json.field("whole_segment_bytes", f.whole_segments).field("in_split_bytes", f.in_split);
  json.key("largest_holes").begin_array();
  for (const Fragmentation::Hole& h : f.largest_holes) {
    json.begin_object().field("segment", h.segment).field("address", h.address).field("bytes", h.size);
    json.field("stream", std::uint32_t{h.stream}).field("pool", h.small_pool ? "small" : "large").end_object();
  }
  json.end_array().end_object();
}

void write_timeline(JsonText& json, const MemoryStudy& study) {
  json.key("timeline").begin_array();
  for (const MemoryStretch& s : study.stretches) {
    json.begin_object().field("name", s.name).field("begin_event", s.begin).field("end_event", s.end);
    json.field("allocated_bytes", s.highest.allocated).field("reserved_bytes", s.highest.reserved);
    json.field("active_bytes", s.highest.active).field("requested_bytes", s.highest.requested);
    json.field("allocated_bytes_after", s.last.allocated).end_object();
  }
  json.end_array();
}

void write_leaks(JsonText& json, const LeakReport& report) {
  json.key("leaks").begin_array();
  for (const Leak& l : report.leaks) {
    json.begin_object().field("line", l.line).field("kind", to_string(l.kind)).field("bytes_per_step", l.per_step);
    json.field("blocks", l.blocks).field("steps", l.steps).end_object();
  }
  json.end_array();
  json.key("requested_bytes_at_step_end").begin_array();
  for (const Bytes bytes : report.at_step_end) json.value(bytes);
  json.end_array();
}

void write_held(JsonText& json, const std::vector<LateFree>& held) {
  json.key("held_longer").begin_array();
  for (const LateFree& h : held) {
    json.begin_object().field("rule", h.rule).field("at_peak_bytes", h.at_peak).field("most_bytes", h.most);
    json.field("blocks", h.blocks).end_object();
  }
  json.end_array();
}

std::string_view name_of(AllocatorObserver::RetryStep step) {
  constexpr std::string_view names[] = {"garbage_collection", "device_refused", "release_available",
                                        "release_cached",     "served",         "out_of_memory"};
  return names[static_cast<std::size_t>(step)];
}

void write_retry_sequence(JsonText& json, const std::vector<RecordedRetry>& retry_sequence) {
  json.key("retry_sequence").begin_array();
  for (const RecordedRetry& s : retry_sequence) {
    json.begin_object().field("event", s.event).field("step", name_of(s.step)).field("request_bytes", s.request);
    json.field("bytes", s.bytes).field("reserved_bytes", s.reserved).field("cached_bytes", s.free_in_cache);
    json.field("largest_free_bytes", s.largest_free).end_object();
  }
  json.end_array();
}

void write_refusals(JsonText& json, const MemoryStudy& study) {
  json.key("out_of_memory").begin_array();
  for (const RecordedOutOfMemory& r : study.refused) {
    json.begin_object().field("event", r.event).field("request_bytes", r.request);
    json.field("device_free_bytes", r.device_free).field("reserved_bytes", r.at.reserved);
    json.field("active_bytes", r.at.active).field("largest_free_bytes", r.largest_free);
    json.key("live");
    write_live(json, study, r.live);
    json.end_object();
  }
  json.end_array();
}

void write_search(JsonText& json, const MemoryStudy& study) {
  json.key("search").begin_array();
  for (const SearchRow& r : study.search) {
    json.begin_object().field("name", r.name).field("settings", to_string(r.variant.settings));
    json.field("allocator", r.variant.allocator).field("peak_reserved_bytes", r.peak_reserved);
    json.field("peak_allocated_bytes", r.peak_allocated).field("missing_bytes", r.missing);
    json.field("num_alloc_retries", r.retries).field("num_device_alloc", r.device_allocs);
    json.field("num_device_free", r.device_frees).end_object();
  }
  json.end_array();
}

void write_steps(JsonText& json, const std::vector<RecordedStep>& steps) {
  json.key("steps").begin_array();
  for (const RecordedStep& s : steps)
    json.begin_object().field("name", s.name).field("begin_event", s.begin).field("end_event", s.end).end_object();
  json.end_array();
}

void write_head(JsonText& json, const MemoryStudy& study, const std::string& file) {
  json.field("schema", kSchema).field("file", file).field("device", study.of_device().device);
  json.field("events", static_cast<std::uint64_t>(study.of_device().events.size()));
  json.field("starts_empty", study.start.empty).field("settings", to_string(study.recording.settings));
  json.key("asked_for");
  study.other ? json.value(study.asked_for) : json.null();
  json.key("capacity_bytes");
  study.capacity ? json.value(*study.capacity) : json.null();
}

}  // namespace

std::string memory_json(const MemoryStudy& study, const std::string& file) {
  JsonText json;
  json.begin_object();
  write_head(json, study, file);
  json.key("verdict").begin_array();
  for (const std::string& sentence : verdict_of(study)) json.value(sentence);
  json.end_array();
  write_replayed(json, study.asked(), study.other ? study.other->missing : recorded_missing(study));
  write_check(json, study.recorded.check.value_or(ReplayCheck{}));
  if (study.other) {
    json.key("recorded").begin_object();
    write_replayed(json, study.recorded, recorded_missing(study));
    json.end_object();
  }
  json.key("statistics").begin_object();
  for (const auto& [name, value] : named_statistics(study.asked().statistics)) json.field(name, value);
  json.end_object();
  write_steps(json, study.table.steps);
  write_timeline(json, study);
  json.key("live_at_peak");
  write_live(json, study, study.peak);
  json.key("fragmentation").begin_object();
  write_fragmentation(json, "at_peak", study.at_peak);
  write_fragmentation(json, "at_end", study.at_end);
  json.end_object();
  write_leaks(json, study.leaks);
  write_held(json, study.held);
  write_refusals(json, study);
  write_retry_sequence(json, study.asked().retry_sequence);
  if (!study.search.empty()) write_search(json, study);
  json.key("notes").begin_array();
  for (const std::string& note : study_notes(study)) json.value(note);
  json.end_array();
  return json.end_object().finish();
}

}  // namespace memwall
