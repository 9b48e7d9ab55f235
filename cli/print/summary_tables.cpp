#include "cli/print/summary_tables.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "cli/print/device_clock_table.h"
#include "cli/print/energy_price_tables.h"
#include "cli/print/rank_tables.h"
#include "cli/print/table_cells.h"
#include "cli/print/wait_table.h"

namespace memwall {
namespace {

double share_of(Duration part, Duration whole) {
  return whole.count() > 0 ? static_cast<double>(part.count()) / static_cast<double>(whole.count()) : 0;
}

std::string machine_line(const RunSummary& s) {
  std::string line = fmt::format("{} on {}", s.trace, s.machine);
  if (s.ranks > 1) line += fmt::format(", {} ranks", s.ranks);
  if (s.policies.empty() && s.pager.empty()) line += ", no policy";
  if (!s.policies.empty()) line += fmt::format(", {}", fmt::join(s.policies, " + "));
  if (!s.pager.empty()) line += fmt::format(", pager {}", s.pager);
  return line + (s.fits ? "" : "  --  DOES NOT FIT, memory taken as unlimited");
}

Table overview(const RunSummary& s) {
  Table t{.name = "overview",
          .title = machine_line(s),
          .columns = {"what", "value", "includes"},
          .headings = {"", "", ""},
          .rows = {},
          .wrap = true};
  const auto row = [&](const char* what, Cell value, std::string includes) {
    value.right = true;
    t.rows.push_back({cell(what), std::move(value), cell(std::move(includes))});
  };
  row("step time", time_cell(s.step_time),
      s.step_count > 1
          ? fmt::format("host, one step boundary to the next; mean of {} steps{}, the last ends with all work",
                        s.step_count, s.by_rank.size() > 1 ? fmt::format(" of {} ranks", s.by_rank.size()) : "")
          : "host, from the step's boundary to the end of all work it left");
  if (s.step_interval)
    row("80 % interval",
        cell(fmt::format("{} to {}", human_time(s.step_interval->low), human_time(s.step_interval->high))),
        fmt::format("of the step time, from the residuals of the cost model; {} of the critical path has one",
                    percent_text(s.step_interval->known_share)));
  row("GPU span", time_cell(s.gpu_span), "first GPU start to last GPU end of the whole run");
  row("total", time_cell(s.total), "start of the host program to the end of everything");
  if (s.samples_per_second > 0)
    row("samples", number_cell(fmt::format("{:.1f} /s", s.samples_per_second), plain_number(s.samples_per_second)),
        "all ranks together");
  if (s.tokens_per_second > 0)
    row("tokens", number_cell(fmt::format("{:.0f} /s", s.tokens_per_second), plain_number(s.tokens_per_second)),
        "all ranks together");
  add_energy_price_rows(s, t);
  row("ops", count_cell(s.ops),
      fmt::format("{} of them on the device, {} moves by the pager, {} events", grouped_text(s.device_ops),
                  grouped_text(s.moves), grouped_text(s.events)));
  return t;
}

Table step_table(const RunSummary& s) {
  Table t{.name = "steps",
          .title = "Steps",
          .columns = {"step", "step_time_s", "gpu_span_s"},
          .headings = {"step", "host", "GPU span"},
          .rows = {}};
  for (const StepSummary& step : s.steps) {
    const std::string name = step.rank ? fmt::format("{}, rank {}", step.name, *step.rank) : step.name;
    t.rows.push_back({cell(name), time_cell(step.step_time), time_cell(step.gpu_span)});
  }
  return t;
}

const char* class_meaning(TimeClass c) {
  switch (c) {
    case TimeClass::compute:
      return "a kernel runs that is not recompute; whatever else runs is hidden behind it";
    case TimeClass::recompute:
      return "a recomputed kernel runs, and no other";
    case TimeClass::copy:
      return "no kernel runs; waiting for a transfer between tiers";
    case TimeClass::collective:
      return "no kernel runs; waiting for communication between ranks";
    case TimeClass::storage:
      return "no kernel runs; waiting for a read or write of storage";
    case TimeClass::allocator:
      return "no kernel runs; allocating, freeing, or waiting until an allocation fits";
    case TimeClass::fault:
      return "no kernel runs; a kernel waits for data that a pager brings in";
    case TimeClass::host:
      return "no kernel runs; host calls, gaps between them, launch latencies";
    case TimeClass::idle:
      return "nothing is pending";
  }
  return "";
}

Table time_table(const RunSummary& s) {
  Table t{.name = "time",
          .title = "Where the time of a step goes (adds up to the step), and the critical path of the run",
          .columns = {"class", "seconds", "share", "path_s", "meaning"},
          .headings = {"", "per step", "share", "on the path", ""},
          .rows = {}};
  const Duration all = s.times.total();
  for (int c = 0; c < kTimeClasses; ++c) {
    const auto time_class = static_cast<TimeClass>(c);
    const Duration part = s.times[time_class], path = s.path[time_class];
    if (part.count() == 0 && path.count() == 0) continue;
    t.rows.push_back({cell(std::string(to_string(time_class))), time_cell(part / s.step_count),
                      share_cell(share_of(part, all)), time_cell(path), cell(class_meaning(time_class))});
  }
  return t;
}

std::string kinds_text(const Peak& peak) {
  std::vector<std::pair<Bytes, int>> kinds;
  for (int k = 0; k < kStorageKinds; ++k)
    if (peak.by_kind[static_cast<std::size_t>(k)] > 0)
      kinds.emplace_back(-peak.by_kind[static_cast<std::size_t>(k)], k);
  std::sort(kinds.begin(), kinds.end());
  std::string text;
  for (const auto& [bytes, kind] : kinds)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", to_string(static_cast<StorageKind>(kind)),
                        human_bytes(-bytes));
  return text;
}

Table tier_table(const RunSummary& s) {
  Table t{.name = "tiers",
          .title =
              "Memory by the allocator's (host) clock (peak: blocks in use, rounding included; reserved: with the "
              "allocator's cache; by kind: as requested)",
          .columns = {"tier", "usable_bytes", "peak_allocated_bytes", "share", "peak_reserved_bytes", "missing_bytes",
                      "by_kind"},
          .headings = {"tier", "usable", "peak", "of it", "reserved", "missing", "by kind at the peak"},
          .rows = {},
          .wrap = true};
  for (const TierSummary& tier : s.tiers) {
    const double used =
        tier.usable > 0 ? static_cast<double>(tier.peak_allocated) / static_cast<double>(tier.usable) : 0;
    t.rows.push_back({cell(tier.name), bytes_cell(tier.usable), bytes_cell(tier.peak_allocated), share_cell(used),
                      bytes_cell(tier.peak_reserved), bytes_cell(tier.missing), cell(kinds_text(tier.peak))});
  }
  return t;
}

// Of tiers whose allocator loses anything: the GPU's, and page-locked host memory.
bool can_fragment(const TierSummary& tier) {
  const auto loses = [](const AllocatorSummary& memory) {
    return memory.at_peak_allocated.internal() > 0 || memory.peak_reserved > memory.peak_allocated;
  };
  if (tier.memory.peak_reserved == 0) return false;
  return tier.tier_class == TierClass::device || loses(tier.memory) || (tier.unchanged && loses(*tier.unchanged));
}

void add_fragmentation(Table& t, const std::string& tier, const char* step, const AllocatorSummary& memory) {
  const auto row = [&](const char* instant, const AllocatorState& state) {
    // In CSV a row is known by its first cell alone.
    Cell name{tier, fmt::format("{}/{}/{}", tier, step, instant), false};
    t.rows.push_back({std::move(name), cell(step), cell(instant), bytes_cell(state.usage.requested),
                      bytes_cell(state.usage.allocated), bytes_cell(state.usage.reserved), bytes_cell(state.internal()),
                      bytes_cell(state.external()), count_cell(memory.events.device_mallocs),
                      count_cell(memory.events.retries), count_cell(memory.ooms)});
  };
  row("peak", memory.at_peak_allocated);
  if (memory.at_peak_reserved) row("most reserved", *memory.at_peak_reserved);
}

Table fragmentation_table(const RunSummary& s) {
  const bool changed = !s.policies.empty() || !s.pager.empty();
  Table t{
      .name = "fragmentation",
      .title = fmt::format(
          "Fragmentation, allocator {}{} (internal: blocks less what was requested; external: reserved less blocks{})",
          s.allocator, s.allocator_settings.empty() ? "" : fmt::format(" ({})", s.allocator_settings),
          changed ? "; unchanged: the step without policies, whose requests come in another order" : ""),
      .columns = {"tier", "step", "at", "requested_bytes", "allocated_bytes", "reserved_bytes", "internal_bytes",
                  "external_bytes", "device_mallocs", "retries", "ooms"},
      .headings = {"tier", "step", "at", "requested", "blocks", "reserved", "internal", "external", "mallocs",
                   "retries", "OOMs"},
      .rows = {},
      .wrap = true};
  for (const TierSummary& tier : s.tiers) {
    if (!can_fragment(tier)) continue;
    add_fragmentation(t, tier.name, "as run", tier.memory);
    if (tier.unchanged) add_fragmentation(t, tier.name, "unchanged", *tier.unchanged);
  }
  return t;
}

std::string fallback(const std::string& text, const char* other) { return text.empty() ? other : text; }

Table peak_table(const TierSummary& tier) {
  Table t{.name = "largest_at_peak." + tier.name,
          .title = fmt::format("The storages that make the peak of {} (at {} by the allocator's (host) clock)",
                               tier.name, human_time(tier.peak.time)),
          .columns = {"storage", "bytes", "kind", "made_in", "label", "module"},
          .headings = {"storage", "bytes", "kind", "made in", "label", "module"},
          .rows = {},
          .wrap = true};
  for (const PeakStorage& p : tier.peak.largest)
    t.rows.push_back({number_cell(std::to_string(p.storage), std::to_string(p.storage)), bytes_cell(p.bytes),
                      cell(std::string(to_string(p.kind))), cell(std::string(to_string(p.phase))),
                      cell(fallback(p.label, "-")), cell(fallback(p.module, "-"))});
  return t;
}

Table link_table(const RunSummary& s) {
  Table t{.name = "links",
          .title = "Links (bytes carried, ranks of one node together; utilization of what it could carry in the run)",
          .columns = {"link", "bytes", "busy_s", "utilization", "bandwidth_bytes_per_s"},
          .headings = {"link", "carried", "busy", "utilization", "bandwidth"},
          .rows = {}};
  for (const LinkSummary& l : s.links)
    if (l.bytes > 0)
      t.rows.push_back({cell(l.name), bytes_cell(l.bytes), time_cell(l.busy), share_cell(l.utilization),
                        number_cell(human_rate(l.bandwidth), plain_number(l.bandwidth))});
  return t;
}

Table origin_table(const RunSummary& s) {
  Table t{.name = "origin",
          .title = "Where the times on the device come from",
          .columns = {"origin", "share", "meaning"},
          .headings = {"", "", ""},
          .rows = {}};
  const auto row = [&](const char* name, Duration part, const char* meaning) {
    t.rows.push_back({cell(name), share_cell(s.origin.share(part)), cell(meaning)});
  };
  row("measured", s.origin.measured, "captured on this machine");
  row("transferred", s.origin.transferred, "measured elsewhere or at another size, scaled by a model");
  row("modelled", s.origin.modelled, "from FLOPs, bytes and the machine file alone");
  return t;
}

Table note_table(const RunSummary& s) {
  Table t{.name = "notes", .title = "Notes", .columns = {"note"}, .headings = {""}, .rows = {}, .prose = true};
  for (const std::string& line : s.notes) t.rows.push_back({cell(line)});
  return t;
}

Cell signed_time(Duration d) { return number_cell((d.count() > 0 ? "+" : "") + human_time(d), plain_seconds(d)); }
Cell signed_bytes(Bytes b) { return number_cell((b > 0 ? "+" : "") + human_bytes(b), std::to_string(b)); }

std::string run_text(const std::string& machine, const std::vector<std::string>& policies, bool fits) {
  return fmt::format("{}, {}{}", machine,
                     policies.empty() ? "no policy" : fmt::format("{}", fmt::join(policies, " + ")),
                     fits ? "" : ", does not fit");
}

Table waterfall_table(const Comparison& c) {
  Table t{.name = "time",
          .title = fmt::format("base:  {}\nother: {}\n\nTime (all steps; the differences add up exactly)",
                               run_text(c.base_machine, c.base_policies, c.base_fits),
                               run_text(c.other_machine, c.other_policies, c.other_fits)),
          .columns = {"class", "base_s", "other_s", "difference_s"},
          .headings = {"", "base", "other", "difference"},
          .rows = {}};
  for (int k = 0; k < kTimeClasses; ++k) {
    const auto time_class = static_cast<TimeClass>(k);
    if (c.base_classes[time_class].count() == 0 && c.other_classes[time_class].count() == 0) continue;
    t.rows.push_back({cell(std::string(to_string(time_class))), time_cell(c.base_classes[time_class]),
                      time_cell(c.other_classes[time_class]), signed_time(c.waterfall[time_class])});
  }
  t.rows.push_back(
      {cell("total"), time_cell(c.base_time), time_cell(c.other_time), signed_time(c.other_time - c.base_time)});
  return t;
}

Table tier_differences(const Comparison& c) {
  Table t{.name = "tiers",
          .title = "Peak memory (blocks in use, by the allocator's (host) clock)",
          .columns = {"tier", "base_bytes", "other_bytes", "difference_bytes", "by_kind"},
          .headings = {"tier", "base", "other", "difference", "by kind"},
          .rows = {}};
  for (const TierDifference& d : c.tiers) {
    if (d.base_allocated == 0 && d.other_allocated == 0) continue;
    std::string kinds;
    for (int k = 0; k < kStorageKinds; ++k)
      if (const Bytes b = d.by_kind[static_cast<std::size_t>(k)]; b != 0)
        kinds += fmt::format("{}{} {}{}", kinds.empty() ? "" : ", ", to_string(static_cast<StorageKind>(k)),
                             b > 0 ? "+" : "", human_bytes(b));
    t.rows.push_back({cell(d.name), bytes_cell(d.base_allocated), bytes_cell(d.other_allocated),
                      signed_bytes(d.other_allocated - d.base_allocated), cell(kinds)});
  }
  return t;
}

Table link_differences(const Comparison& c) {
  Table t{.name = "links",
          .title = "Links",
          .columns = {"link", "base_bytes", "other_bytes", "difference_bytes"},
          .headings = {"link", "base", "other", "difference"},
          .rows = {}};
  for (const LinkDifference& d : c.links)
    if (d.base_bytes != 0 || d.other_bytes != 0)
      t.rows.push_back({cell(d.name), bytes_cell(d.base_bytes), bytes_cell(d.other_bytes),
                        signed_bytes(d.other_bytes - d.base_bytes)});
  return t;
}

Table op_differences(const Comparison& c) {
  Table t{.name = "ops",
          .title = fmt::format("Ops: {} equal, {} changed, {} added, {} removed; the groups that differ most",
                               grouped_text(c.ops_equal), grouped_text(c.ops_changed), grouped_text(c.ops_added),
                               grouped_text(c.ops_removed)),
          .columns = {"name", "change", "phase", "count", "base_s", "other_s", "difference_s"},
          .headings = {"name", "", "phase", "ops", "base", "other", "difference"},
          .rows = {}};
  constexpr std::size_t kShown = 20, kLongestName = 60;
  for (const OpDifference& d : c.ops) {
    if (t.rows.size() == kShown) break;
    std::string name = d.operator_name.empty() ? d.name : d.operator_name + ": " + d.name;
    const Cell shown = cell(name.size() > kLongestName ? name.substr(0, kLongestName) + "..." : name, name);
    t.rows.push_back({shown, cell(std::string(to_string(d.change))), cell(std::string(to_string(d.phase))),
                      count_cell(d.count), time_cell(d.base_time), time_cell(d.other_time),
                      signed_time(d.difference())});
  }
  return t;
}

}  // namespace

std::vector<Table> summary_tables(const RunSummary& s) {
  std::vector<Table> tables{overview(s)};
  if (!s.by_rank.empty()) tables.push_back(rank_table(s));
  if (s.steps.size() > 1) tables.push_back(step_table(s));
  tables.push_back(time_table(s));
  tables.push_back(tier_table(s));
  if (Table t = fragmentation_table(s); !t.rows.empty()) tables.push_back(std::move(t));
  for (const TierSummary& tier : s.tiers)
    if (tier.name == "hbm" && !tier.peak.largest.empty()) tables.push_back(peak_table(tier));
  for (Table& t : std::vector<Table>{device_clock_table(s), link_table(s), energy_table(s), capacity_price_table(s),
                                     wait_table(s)})
    if (!t.rows.empty()) tables.push_back(std::move(t));
  tables.push_back(origin_table(s));
  if (!s.notes.empty()) tables.push_back(note_table(s));
  return tables;
}

std::vector<Table> comparison_tables(const Comparison& c) {
  std::vector<Table> tables;
  for (Table& t : std::vector<Table>{waterfall_table(c), energy_price_differences(c), tier_differences(c),
                                     link_differences(c), op_differences(c)})
    if (!t.rows.empty()) tables.push_back(std::move(t));
  return tables;
}

std::string missing_sentence(const RunSummary& s) {
  std::string text;
  for (const TierSummary& tier : s.tiers)
    if (tier.missing > 0)
      text += fmt::format("{}{} bytes ({}) are missing in tier {}, which has {} usable", text.empty() ? "" : "; ",
                          tier.missing, human_bytes(tier.missing), tier.name, human_bytes(tier.usable));
  return text;
}

}  // namespace memwall
