#include "cli/print/comparison_tables.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/print/energy_price_tables.h"
#include "cli/print/table_cells.h"

namespace memwall {
namespace {

Cell signed_time(Duration d) { return number_cell((d.count() > 0 ? "+" : "") + human_time(d), plain_seconds(d)); }
Cell signed_bytes(Bytes b) { return number_cell((b > 0 ? "+" : "") + human_bytes(b), std::to_string(b)); }

std::string run_text(const std::string& machine, const std::vector<std::string>& policies,
                     const std::vector<std::string>& settings, bool fits) {
  return fmt::format("{}, {}{}{}{}", machine,
                     policies.empty() ? "no policy" : fmt::format("{}", fmt::join(policies, " + ")),
                     settings.empty() ? "" : ", ", fmt::join(settings, ", "), fits ? "" : ", does not fit");
}

Table comparison_answer(const Comparison& c) {
  Table t{
      .name = "verdict",
      .title = fmt::format(
          "base:  {}\nother: {}",
          run_text(machine_text(c.base_machine, c.base_overrides), c.base_policies, c.base_settings, c.base_fits),
          run_text(machine_text(c.other_machine, c.other_overrides), c.other_policies, c.other_settings, c.other_fits)),
      .columns = {"answer"},
      .headings = {""},
      .rows = {},
      .prose = true};
  t.bullets = false;
  for (const std::string& sentence : verdict_of(c)) t.rows.push_back({cell(sentence)});
  return t;
}

Table waterfall_table(const Comparison& c) {
  Table t{.name = "time",
          .title = "Time (all steps; the differences add up exactly)",
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
    const bool both = c.base_memory_recorded && c.other_memory_recorded;
    t.rows.push_back({cell(d.name), c.base_memory_recorded ? bytes_cell(d.base_allocated) : unrecorded_cell(),
                      c.other_memory_recorded ? bytes_cell(d.other_allocated) : unrecorded_cell(),
                      both ? signed_bytes(d.other_allocated - d.base_allocated) : unrecorded_cell("-"),
                      cell(both ? kinds : "")});
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
  t.screen_rows = 10;
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

std::vector<Table> comparison_tables(const Comparison& c) {
  std::vector<Table> tables{comparison_answer(c)};
  for (Table& t : std::vector<Table>{waterfall_table(c), energy_price_differences(c), tier_differences(c),
                                     link_differences(c), op_differences(c)}) {
    t.detail = t.name == "links" || t.name == "energy_price";
    if (!t.rows.empty()) tables.push_back(std::move(t));
  }
  return tables;
}

}  // namespace memwall
