#include "cli/print/memory_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <tuple>

#include "cli/print/answer.h"
#include "cli/print/memory_verdict.h"
#include "cli/print/table_cells.h"

namespace memwall {
namespace {

constexpr std::ptrdiff_t kSearchRowsShown = 8;

std::string settings_text(const AllocatorSettings& settings) {
  const std::string text = to_string(settings);
  return text.empty() ? "default settings" : text;
}

std::string title(const MemoryStudy& study, const std::string& file) {
  std::string text = fmt::format("{}, device {}, {}", file, study.of_device().device,
                                 study.other ? "replayed under other conditions" : "as recorded");
  return text + (study.asked().missing > 0 ? ", memory taken as unlimited" : "");
}

Table overview(const MemoryStudy& study) {
  Table t{.name = "overview",
          .title = "",
          .columns = {"what", "value", "meaning"},
          .headings = {"", "", ""},
          .rows = {},
          .wrap = true};
  const auto row = [&](const char* what, std::string value, std::string meaning) {
    t.rows.push_back({cell(what), cell(std::move(value)), cell(std::move(meaning))});
  };
  const ReplayCheck check = study.recorded.check.value_or(ReplayCheck{});
  row("events", grouped_text(study.of_device().events.size()),
      study.start.empty ? "the recording begins before the first allocation"
                        : "the recording begins with memory in use; its state was found by walking backward");
  row("replay", fmt::format("{} of {}", grouped_text(check.placements_equal), grouped_text(check.placements_checked)),
      "placements that land on the recorded address");
  if (check.segment_allocs_recorded > 0)
    row("segments obtained",
        fmt::format("{} of {}", grouped_text(check.segment_allocs_equal), grouped_text(check.segment_allocs_recorded)),
        "at the recorded moment and of the recorded size");
  row("settings", settings_text(study.recording.settings), "of the recording");
  if (study.other) row("asked for", study.asked_for, "what the figures below are of, where nothing else is said");
  if (study.table.steps.size() > 1 && study.leaks.leaks.empty() && study.leaks.why_not.empty())
    row("leaks", "none", "nothing that a step makes and leaves behind in every step");
  row("steps", study.table.steps.empty() ? "none found" : grouped_text(study.table.steps.size()),
      "training steps within the recording");
  return t;
}

void totals_row(Table& t, const char* when, const MemoryTotals& m, const std::string& note) {
  t.rows.push_back({cell(when), bytes_cell(m.allocated_bytes), bytes_cell(m.requested_bytes),
                    bytes_cell(m.active_bytes), bytes_cell(m.reserved_bytes), count_cell(m.segments),
                    count_cell(m.blocks), cell(note)});
}

Table totals(const MemoryStudy& study) {
  Table t{.name = "totals",
          .title =
              "Memory (allocated: blocks handed out; requested: before rounding; active: with blocks that a stream "
              "may still use; reserved: obtained from the device)",
          .columns = {"when", "allocated_bytes", "requested_bytes", "active_bytes", "reserved_bytes", "segments",
                      "blocks", "note"},
          .headings = {"", "allocated", "requested", "active", "reserved", "segments", "blocks", ""},
          .rows = {},
          .wrap = true};
  const RecordingReplay& r = study.asked();
  totals_row(t, "start", r.start, "");
  totals_row(t, "peak", r.peak,
             r.peak_at_start ? "at the start" : fmt::format("of allocated, at event {}", r.peak_event));
  totals_row(t, "end", r.end, "");
  if (study.other) {
    totals_row(t, "recorded peak", study.recorded.peak, "as it was");
    totals_row(t, "recorded end", study.recorded.end, "as it was");
  }
  return t;
}

Table calls(const MemoryStudy& study) {
  Table t{.name = "calls",
          .title = "What the allocator had to do",
          .columns = {"what", "value", "meaning"},
          .headings = {"", "", ""},
          .rows = {}};
  const RecordingReplay& r = study.asked();
  const AllocatorStatistics& s = r.statistics;
  const auto row = [&](const char* what, Cell value, const char* meaning) {
    t.rows.push_back({cell(what), std::move(value), cell(meaning)});
  };
  row("peak reserved", bytes_cell(r.peak_reserved), "highest of the whole replay, at whatever instant");
  row("num_alloc_retries", count_cell(static_cast<std::uint64_t>(s.num_alloc_retries)),
      "requests that had to flush the cache first");
  row("num_ooms", count_cell(static_cast<std::uint64_t>(s.num_ooms)), "requests that found no memory at all");
  row("num_device_alloc", count_cell(static_cast<std::uint64_t>(s.num_device_alloc)), "cudaMalloc and mapping calls");
  row("num_device_free", count_cell(static_cast<std::uint64_t>(s.num_device_free)), "cudaFree and unmapping calls");
  return t;
}

Table timeline(const MemoryStudy& study) {
  Table t{.name = "timeline",
          .title = "Timeline (highest within each stretch)",
          .columns = {"stretch", "first_event", "allocated_bytes", "requested_bytes", "active_bytes", "reserved_bytes",
                      "allocated_bytes_after"},
          .headings = {"", "from event", "allocated", "requested", "active", "reserved", "allocated after"},
          .rows = {}};
  for (const MemoryStretch& s : study.stretches)
    t.rows.push_back({cell(s.name), count_cell(s.begin), bytes_cell(s.highest.allocated),
                      bytes_cell(s.highest.requested), bytes_cell(s.highest.active), bytes_cell(s.highest.reserved),
                      bytes_cell(s.last.allocated)});
  return t;
}

Table groups(std::string name, std::string heading, const std::vector<LiveGroup>& groups, Bytes whole) {
  Table t{.name = std::move(name),
          .title = std::move(heading),
          .columns = {"name", "requested_bytes", "share", "blocks"},
          .headings = {"", "requested", "share", "blocks"},
          .rows = {}};
  for (const LiveGroup& g : groups)
    t.rows.push_back({cell(g.name), bytes_cell(g.requested), share_cell(g.requested, whole), count_cell(g.blocks)});
  return t;
}

Table fragmentation(const MemoryStudy& study) {
  Table t{.name = "fragmentation",
          .title = "Fragmentation, as recorded",
          .columns = {"what", "at_peak_bytes", "at_end_bytes", "meaning"},
          .headings = {"", "at the peak", "at the end", ""},
          .rows = {}};
  const Fragmentation &p = study.at_peak, &e = study.at_end;
  const auto row = [&](const char* what, Bytes at_peak, Bytes at_end, const char* meaning) {
    t.rows.push_back({cell(what), bytes_cell(at_peak), bytes_cell(at_end), cell(meaning)});
  };
  row("internal", p.internal, e.internal, "allocated less requested: rounding, remainders not worth splitting off");
  row("external", p.external, e.external, "reserved less active: cached, not in use");
  row("  whole segments", p.whole_segments, e.whole_segments, "of it, what empty_cache would return");
  row("  in split segments", p.in_split, e.in_split, "of it, free blocks beside blocks in use");
  const auto largest = [](const Fragmentation& f) {
    return f.largest_holes.empty() ? 0 : f.largest_holes.front().size;
  };
  row("largest hole", largest(p), largest(e), "the largest request that the cache could serve, of its pool and stream");
  return t;
}

Table holes(const MemoryStudy& study) {
  Table t{.name = "holes",
          .title = "Largest holes at the peak",
          .columns = {"bytes", "segment", "offset_bytes", "pool", "stream"},
          .headings = {"size", "segment", "at byte", "pool", "stream"},
          .rows = {}};
  for (const Fragmentation::Hole& h : study.at_peak.largest_holes)
    t.rows.push_back({bytes_cell(h.size), cell(fmt::format("{:#x}", h.segment)), count_cell(h.address - h.segment),
                      cell(h.small_pool ? "small" : "large"), count_cell(h.stream)});
  return t;
}

Table largest(const MemoryStudy& study) {
  Table t{.name = "largest",
          .title = "The largest blocks at the peak",
          .columns = {"requested_bytes", "kind", "phase", "line"},
          .headings = {"requested", "kind", "phase", "made by"},
          .rows = {}};
  for (const std::uint32_t index : study.peak.largest) {
    const Allocation& a = study.table.allocations[index];
    const bool older = a.begin == Allocation::kBefore && a.stack == 0;
    t.rows.push_back({bytes_cell(a.requested), cell(std::string(to_string(a.kind))),
                      cell(older ? "before" : std::string(to_string(a.phase))),
                      cell(older ? "before the recording" : source_line(study.recording, a.stack))});
  }
  return t;
}

Table leaks(const MemoryStudy& study) {
  Table t{.name = "leaks",
          .title = "What grows from step to step",
          .columns = {"line", "kind", "bytes_per_step", "blocks", "steps"},
          .headings = {"made by", "kind", "per step", "blocks", "steps"},
          .rows = {}};
  for (const Leak& l : study.leaks.leaks)
    t.rows.push_back({cell(l.line), cell(std::string(to_string(l.kind))), bytes_cell(l.per_step), count_cell(l.blocks),
                      count_cell(l.steps)});
  return t;
}

Table held_longer(const MemoryStudy& study) {
  Table t{.name = "held_longer",
          .title = "Held longer than used",
          .columns = {"at_peak_bytes", "most_bytes", "blocks", "rule"},
          .headings = {"at the peak", "at worst", "blocks", ""},
          .rows = {},
          .wrap = true};
  for (const LateFree& h : study.held)
    t.rows.push_back({bytes_cell(h.at_peak), bytes_cell(h.most), count_cell(h.blocks), cell(h.rule)});
  return t;
}

Table refusals(const MemoryStudy& study) {
  Table t{.name = "out_of_memory",
          .title = "Out of memory, as recorded",
          .columns = {"event", "request_bytes", "device_free_bytes", "reserved_bytes", "active_bytes", "cached_bytes",
                      "largest_free_bytes", "why"},
          .headings = {"event", "asked for", "device had", "reserved", "active", "cached", "largest piece", ""},
          .rows = {},
          .wrap = true};
  for (const RecordedOutOfMemory& r : study.refused) {
    const Bytes cached = r.at.reserved - r.at.active;
    const char* why = cached >= r.request   ? "enough was cached, but in pieces: fragmentation"
                      : r.despite_device    ? "a limit of the process, or another process: the device had enough"
                      : is_fragmentation(r) ? "cache and device together had enough, in pieces"
                                            : "what lives does not leave that much";
    t.rows.push_back({count_cell(r.event), bytes_cell(r.request), bytes_cell(r.device_free), bytes_cell(r.at.reserved),
                      bytes_cell(r.at.active), bytes_cell(cached), bytes_cell(r.largest_free), cell(why)});
  }
  return t;
}

const char* meaning(AllocatorObserver::RetryStep step) {
  using RetryStep = AllocatorObserver::RetryStep;
  switch (step) {
    case RetryStep::garbage_collection:
      return "old cached blocks were freed";
    case RetryStep::device_refused:
      return "the device refused a segment";
    case RetryStep::release_available:
      return "oversize cached blocks were freed";
    case RetryStep::release_cached:
      return "every wholly free segment was freed (a retry)";
    case RetryStep::served:
      return "then it succeeded";
    case RetryStep::out_of_memory:
      return "OUT OF MEMORY; the replay goes on without a limit";
  }
  return "";
}

Table retry_sequence(const MemoryStudy& study, std::size_t limit) {
  const auto& steps = study.asked().retry_sequence;
  const std::size_t shown = std::min(steps.size(), limit * 4);
  Table t{
      .name = "retry_sequence",
      .title = shown < steps.size()
                   ? fmt::format("The retry sequence, first {} of {} steps", shown, grouped_text(steps.size()))
                   : "The retry sequence",
      .columns = {"event", "request_bytes", "step", "bytes", "reserved_bytes", "cached_bytes", "largest_free_bytes"},
      .headings = {"event", "asked for", "", "how much", "reserved", "cached", "largest piece"},
      .rows = {}};
  for (std::size_t i = 0; i < shown; ++i) {
    const RecordedRetry& s = steps[i];
    t.rows.push_back({count_cell(s.event), bytes_cell(s.request), cell(meaning(s.step)), bytes_cell(s.bytes),
                      bytes_cell(s.reserved), bytes_cell(s.free_in_cache), bytes_cell(s.largest_free)});
  }
  return t;
}

// What the search is asked for: is there a setting that would have let it run?
std::string verdict(const MemoryStudy& study) {
  if (!study.capacity) return "";
  std::size_t tried = 0, fitting = 0;
  for (const SearchRow& row : study.search) {
    if (row.variant.allocator == "planned") continue;  // no setting
    ++tried;
    if (row.missing <= 0) ++fitting;
  }
  return fmt::format("; memory for {} of segments{}: {} of {} fit{}", human_bytes(*study.capacity),
                     study.capacity_from_refusal ? " (what the recording had)" : "", fitting, tried,
                     study.start.empty ? "" : " from a clean start");
}

// Settings of several keys are long: they stand last, and may be broken between keys.
std::string readable(const std::string& settings) {
  std::string text;
  for (const char c : settings) text += c == ',' ? std::string(", ") : std::string(1, c);
  return text;
}

// Rows by their number: first one of each effect, the default among them, then those that repeat one.
std::vector<std::size_t> distinct_first(const std::vector<SearchRow>& rows) {
  const auto effect = [&](std::size_t i) {
    const SearchRow& r = rows[i];
    return std::tuple(r.peak_reserved, r.peak_allocated, r.missing, r.retries, r.device_allocs, r.device_frees);
  };
  std::vector<std::size_t> first, repeated;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const bool known = std::any_of(first.begin(), first.end(), [&](std::size_t j) { return effect(j) == effect(i); });
    (known && !rows[i].name.empty() ? repeated : first).push_back(i);
  }
  const auto is_default = std::find_if(first.begin(), first.end(), [&](std::size_t i) { return rows[i].name.empty(); });
  if (is_default != first.end() && is_default - first.begin() >= kSearchRowsShown)
    std::rotate(first.begin() + kSearchRowsShown - 1, is_default, is_default + 1);
  first.insert(first.end(), repeated.begin(), repeated.end());
  return first;
}

Table search(const MemoryStudy& study) {
  Table t{.name = "search",
          .title = "Settings tried, best first (equal effects last)" + verdict(study),
          .columns = {"rank", "peak_reserved_bytes", "peak_allocated_bytes", "missing_bytes", "retries",
                      "device_allocs", "device_frees", "settings"},
          .headings = {"", "reserved", "allocated", "missing", "retries", "mallocs", "frees", ""},
          .rows = {},
          .wrap = true};
  for (const std::size_t i : distinct_first(study.search)) {
    const SearchRow& r = study.search[i];
    const std::string name = r.name.empty() ? "default" : r.name;
    t.rows.push_back({count_cell(i + 1), bytes_cell(r.peak_reserved), bytes_cell(r.peak_allocated),
                      bytes_cell(r.missing), count_cell(static_cast<std::uint64_t>(r.retries)),
                      count_cell(static_cast<std::uint64_t>(r.device_allocs)),
                      count_cell(static_cast<std::uint64_t>(r.device_frees)), cell(readable(name), name)});
  }
  return t;
}

Table notes(const MemoryStudy& study) {
  Table t{.name = "notes", .title = "Notes", .columns = {"note"}, .headings = {""}, .rows = {}, .prose = true};
  for (std::string& note : study_notes(study)) t.rows.push_back({cell(std::move(note))});
  return t;
}

// What stands on the first screen, and how much of it.
void lay_out(Table& t) {
  static constexpr std::array kDetails{"calls",         "timeline", "peak_by_phase",  "largest",
                                       "fragmentation", "holes",    "retry_sequence", "held_longer"};
  t.detail = std::find(kDetails.begin(), kDetails.end(), t.name) != kDetails.end();
  if (t.name == "notes") t.screen_rows = 7;
  if (t.name == "search") t.screen_rows = kSearchRowsShown;
  if (t.name == "peak_by_line" || t.name == "leaks" || t.name == "out_of_memory_by_line") t.screen_rows = 8;
}

}  // namespace

std::vector<Table> memory_tables(const MemoryStudy& study, const std::string& file, std::size_t limit) {
  std::vector<Table> all{answer_table(title(study, file), verdict_of(study)), overview(study), totals(study),
                         calls(study), refusals(study)};
  if (!study.refused.empty()) {
    const LiveSet& live = study.refused.back().live;
    all.push_back(groups(
        "out_of_memory_by_kind",
        fmt::format("{} requested when memory ran out (event {}), by kind", human_bytes(live.requested), live.event),
        live.by_kind, live.requested));
    all.push_back(groups("out_of_memory_by_line", "By source line", live.by_line, live.requested));
  }
  all.push_back(timeline(study));
  const Bytes whole = study.peak.requested;
  const std::string at = fmt::format("{} requested at the recorded peak", human_bytes(whole));
  all.push_back(groups("peak_by_kind", at + ", by kind", study.peak.by_kind, whole));
  all.push_back(groups("peak_by_phase", "By the phase that made it", study.peak.by_phase, whole));
  all.push_back(groups("peak_by_line", "By source line", study.peak.by_line, whole));
  all.push_back(largest(study));
  all.push_back(fragmentation(study));
  all.push_back(holes(study));
  all.push_back(leaks(study));
  all.push_back(held_longer(study));
  all.push_back(retry_sequence(study, limit));
  all.push_back(search(study));
  all.push_back(notes(study));
  std::erase_if(all, [](const Table& t) { return t.rows.empty(); });
  for (Table& t : all) lay_out(t);
  return all;
}

std::string missing_sentence(const MemoryStudy& study) {
  if (study.asked().missing <= 0) return {};
  return fmt::format("does not fit: {} more would be needed (peak reserved {}, peak allocated {})",
                     human_bytes(study.asked().missing), human_bytes(study.asked().peak_reserved),
                     human_bytes(study.asked().peak.allocated_bytes));
}

}  // namespace memwall
