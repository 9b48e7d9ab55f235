#include "cli/print/summary_tables.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "cli/print/decision_tables.h"
#include "cli/print/device_clock_table.h"
#include "cli/print/device_memory_table.h"
#include "cli/print/drive_table.h"
#include "cli/print/energy_price_tables.h"
#include "cli/print/host_use_tables.h"
#include "cli/print/job_table.h"
#include "cli/print/missing_memory.h"
#include "cli/print/rank_tables.h"
#include "cli/print/recipe_text.h"
#include "cli/print/route_tables.h"
#include "cli/print/stage_tables.h"
#include "cli/print/table_cells.h"
#include "cli/print/tried_table.h"
#include "cli/print/wait_table.h"
#include "cli/print/work_tables.h"
#include "traces/run/analysis/interval_text.h"

namespace memwall {
namespace {

double share_of(Duration part, Duration whole) {
  return whole.count() > 0 ? static_cast<double>(part.count()) / static_cast<double>(whole.count()) : 0;
}

// A policy stands in for what the recipe says: zero takes over the step's own data parallelism.
bool is_replaced(const RecipeItem& item, const RunSummary& s) {
  const std::string policy = item.what == "data_parallel" ? "zero" : item.what;
  return (policy == "zero" || policy == "checkpoint") &&
         std::any_of(s.policies.begin(), s.policies.end(),
                     [&](const std::string& given) { return given.starts_with(policy); });
}

std::string machine_line(const RunSummary& s) {
  std::string line = fmt::format("{} on {}", s.trace, machine_text(s.machine, s.changes.overrides));
  if (s.ranks > 1) line += fmt::format(", {} ranks", s.ranks);
  if (s.policies.empty() && s.pager.empty()) line += ", no policy";
  if (!s.policies.empty()) line += fmt::format(", {}", fmt::join(s.policies, " + "));
  for (const std::string& setting : settings_text(s.changes, s.pager, s.allocator, s.allocator_settings))
    line += ", " + setting;
  if (!s.fits) line += ", memory taken as unlimited";
  std::vector<RecipeItem> recipe = s.recipe;
  std::erase_if(recipe, [&](const RecipeItem& item) { return is_replaced(item, s); });
  return line + (recipe.empty() ? "" : ";\n" + recipe_text(recipe));
}

Table verdict_table(const RunSummary& s) {
  Table t{
      .name = "verdict", .title = machine_line(s), .columns = {"answer"}, .headings = {""}, .rows = {}, .prose = true};
  t.wrap = true;
  t.bullets = false;
  for (const std::string& sentence : s.verdict.sentences) t.rows.push_back({cell(sentence)});
  return t;
}

// Adds a row of a table of three columns: what, how much, and what that includes.
void add_figure(Table& t, const char* what, Cell value, std::string includes) {
  value.right = true;
  t.rows.push_back({cell(what), std::move(value), cell(std::move(includes))});
}

// As study/base_step.cpp notes it.
bool is_of_unknown_machine(const RunSummary& s) {
  return std::any_of(s.notes.begin(), s.notes.end(), [](const std::string& note) {
    return note.starts_with("The file does not say where it was measured");
  });
}

// Where they say more than the step time does: one is a tenth longer, or the GPU begins behind.
void add_periods(Table& t, const RunSummary& s) {
  const Duration host = s.periods.host, gpu = s.periods.gpu;
  if (gpu == Duration{} || (s.behind <= s.step_time / 100 && std::chrono::abs(host - gpu) <= s.step_time / 10)) return;
  const bool is_gpus = std::chrono::abs(s.step_time - gpu) <= std::chrono::abs(s.step_time - host);
  add_figure(t, "of host, GPU", cell(fmt::format("{}, {}", human_time(host), human_time(gpu))),
             fmt::format("per step from the first work of each to its last, waits included; the step time is that of "
                         "the {}",
                         is_gpus ? "GPU" : "host"));
}

Table overview(const RunSummary& s) {
  Table t{.name = "overview",
          .title = "",
          .columns = {"what", "value", "includes"},
          .headings = {"", "", ""},
          .rows = {},
          .wrap = true};
  const std::string left_out = s.behind > s.step_time / 100 ? "; without what is left out" : "";
  add_figure(t, "step time", time_cell(s.step_time),
             s.step_count > 1
                 ? fmt::format("from one step's start to the next; mean of {} steps{}; the last goes on to the end of "
                               "all work{}",
                               s.step_count, s.by_rank.size() > 1 ? fmt::format(" of {} ranks", s.by_rank.size()) : "",
                               left_out)
                 : "from the step's start to the end of all its work" + left_out);
  add_periods(t, s);
  for (HostFigure& figure : host_figures(s)) add_figure(t, figure.what, std::move(figure.value), figure.includes);
  if (s.behind > s.step_time / 100)
    add_figure(t, "left out", time_cell(s.behind),
               "the GPU is behind the host by this when the capture begins: work of the steps before");
  if (s.step_interval)
    add_figure(t, "80 % interval",
               cell(fmt::format("{} to {}", human_time(s.step_interval->low), human_time(s.step_interval->high))),
               interval_text(*s.step_interval, s.step_time));
  else if (s.origin.measured < s.origin.total())
    add_figure(t, "80 % interval", cell("not known"),
               "not all was measured on this machine, but the step hangs on what has no known error: the host, waits");
  if (const auto& use = s.top.flops)
    add_figure(t, "MFU", share_cell(use->mfu),
               use->mfu <= 1
                   ? fmt::format("model FLOPs utilization: {} TFLOPs per step and rank against the peak of {}; what "
                                 "is computed again does not count, of attention what a mask hides does",
                                 amount_words(use->flops / static_cast<double>(s.step_count) / 1e12),
                                 to_string(use->arithmetic))
               : is_of_unknown_machine(s)
                   ? std::string("above 100 %: the capture does not name its GPU, and its times are not this one's")
                   : fmt::format("above 100 %: not all of it ran in {}, as the types of its tensors say",
                                 to_string(use->arithmetic)));
  if (const auto& use = s.top.flops; use && use->recomputed > 0 && use->hfu <= 1)
    add_figure(t, "HFU", share_cell(use->hfu), "hardware FLOPs utilization: the same with what is computed again");
  return t;
}

Table whole_run(const RunSummary& s) {
  Table t{.name = "whole_run",
          .title = "The whole run",
          .columns = {"what", "value", "includes"},
          .headings = {"", "", ""},
          .rows = {},
          .wrap = true};
  t.detail = true;
  add_figure(t, "GPU span", time_cell(s.gpu_span), "first GPU start to last GPU end");
  add_figure(t, "total", time_cell(s.total), "start of the host program to the end of everything");
  if (s.samples_per_second > 0)
    add_figure(t, "samples",
               number_cell(fmt::format("{:.1f} /s", s.samples_per_second), plain_number(s.samples_per_second)),
               "all ranks together");
  if (s.tokens_per_second > 0)
    add_figure(t, "tokens",
               number_cell(fmt::format("{:.0f} /s", s.tokens_per_second), plain_number(s.tokens_per_second)),
               "all ranks together");
  add_energy_price_rows(s, t);
  add_figure(t, "ops", count_cell(s.ops),
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
      return "no kernel runs; waiting for a copy, between tiers or within the GPU";
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
          .title =
              "Where the time of a step goes (adds up to the step), and what the critical path is made of: the chain "
              "of work "
              "and waits that decides when the whole run ends, of all steps together",
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

// Why a card of 80 GB has 84.35 GB: its size is binary, and not all of it is for tensors.
std::string usable_meaning(const RunSummary& s) {
  constexpr Bytes kGibibyte = Bytes{1} << 30;
  for (const TierSummary& tier : s.tiers)
    if (tier.tier_class == TierClass::device && tier.usable < tier.capacity && tier.compression == 1)
      return fmt::format("usable: {}'s {}{} less what driver and context take; ", tier.name, human_bytes(tier.capacity),
                         tier.capacity % kGibibyte == 0 ? fmt::format(" ({} GiB)", tier.capacity / kGibibyte) : "");
  return "";
}

Table tier_table(const RunSummary& s) {
  Table t{.name = "tiers",
          .title =
              fmt::format("Memory by the allocator's (host) clock ({}peak: blocks in use, rounding included; reserved: "
                          "with the allocator's cache; by kind: as requested{}{})",
                          usable_meaning(s), missing_meaning(s),
                          s.lives_recorded ? "" : "; at least: the capture does not say how long storages live"),
          .columns = {"tier", "usable_bytes", "peak_allocated_bytes", "share", "peak_reserved_bytes", "missing_bytes",
                      "by_kind"},
          .headings = {"tier", "usable", "peak", "of it", "reserved", "missing", "by kind at the peak"},
          .rows = {},
          .wrap = true};
  const auto in_use = [](const TierSummary* tier) { return tier->peak_reserved > 0 || tier->missing > 0; };
  std::vector<const TierSummary*> tiers;
  for (const TierSummary& tier : s.tiers) tiers.push_back(&tier);
  const auto unused = std::stable_partition(tiers.begin(), tiers.end(), in_use);
  t.screen_rows = std::max<std::size_t>(1, static_cast<std::size_t>(unused - tiers.begin()));
  for (const TierSummary* tier : tiers) {
    if (!s.memory_recorded) {
      t.rows.push_back({cell(tier->name), bytes_cell(tier->usable), unrecorded_cell(), unrecorded_cell("-"),
                        unrecorded_cell("-"), unrecorded_cell("-"), cell("-", "")});
      continue;
    }
    const double share =
        tier->usable > 0 ? static_cast<double>(tier->peak_allocated) / static_cast<double>(tier->usable) : 0;
    t.rows.push_back({cell(tier->name), bytes_cell(tier->usable), bytes_cell(tier->peak_allocated), share_cell(share),
                      bytes_cell(tier->peak_reserved), bytes_cell(tier->missing), cell(kinds_text(tier->peak))});
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

// What the user changed in vain stands first, then what policies did and rest on, then what names the machine (on whose
// word, from where durations were carried), then what else the capture or generator says of itself.
std::vector<std::string> ordered_notes(const RunSummary& s) {
  std::vector<std::string> notes = s.notes;
  const auto of_a_policy = [&](const std::string& note) {
    const bool basis = !s.policies.empty() && note.starts_with("Dataflow is inferred");
    return basis || std::any_of(s.policies.begin(), s.policies.end(), [&](const std::string& policy) {
             return note.starts_with(policy.substr(0, policy.find(':')) + ":");
           });
  };
  const auto rest =
      std::stable_partition(notes.begin() + static_cast<std::ptrdiff_t>(s.warnings), notes.end(), of_a_policy);
  std::stable_partition(rest, notes.end(),
                        [&](const std::string& note) { return note.find(s.machine) != std::string::npos; });
  return notes;
}

Table note_table(const RunSummary& s) {
  Table t{.name = "notes", .title = "Notes", .columns = {"note"}, .headings = {""}, .rows = {}, .prose = true};
  t.screen_rows = 7;
  for (const std::string& line : ordered_notes(s)) t.rows.push_back({cell(line)});
  return t;
}

}  // namespace

std::vector<Table> summary_tables(const RunSummary& s) {
  std::vector<Table> tables{verdict_table(s), tried_table(s), overview(s)};
  tables.push_back(training_table(s));
  tables.push_back(job_table(s));
  tables.push_back(stage_table(s));
  tables.push_back(stage_memory_table(s));
  const bool by_stage = s.pipeline && s.pipeline->has_several();  // then these say what others would rank by rank
  if (!s.by_rank.empty()) tables.push_back(rank_table(s));
  tables.back().detail = by_stage;
  tables.push_back(time_table(s));
  for (Table& t : std::vector<Table>{tier_table(s), drive_table(s)}) tables.push_back(std::move(t));
  tables[tables.size() - 2].detail = by_stage;
  tables.push_back(host_memory_table(s));
  std::vector<Table> decisions = decision_tables(s);
  tables.push_back(std::move(decisions.front()));
  tables.push_back(operator_table(s));
  tables.push_back(host_table(s));
  if (!s.notes.empty()) tables.push_back(note_table(s));
  const std::size_t first_detail = tables.size();
  tables.push_back(whole_run(s));
  if (s.steps.size() > 1) tables.push_back(step_table(s));
  tables.push_back(device_memory_table(s));
  tables.push_back(fragmentation_table(s));
  for (const TierSummary& tier : s.tiers)
    if (tier.name == "hbm") tables.push_back(peak_table(tier));
  tables.push_back(std::move(decisions.back()));
  tables.push_back(kernel_table(s));
  for (Table& t : std::vector<Table>{device_clock_table(s), link_table(s), run_route_table(s), energy_table(s),
                                     capacity_price_table(s), wait_table(s)})
    tables.push_back(std::move(t));
  tables.push_back(origin_table(s));
  for (std::size_t i = first_detail; i < tables.size(); ++i) tables[i].detail = true;
  std::erase_if(tables, [](const Table& t) { return t.rows.empty(); });
  return tables;
}

}  // namespace memwall
