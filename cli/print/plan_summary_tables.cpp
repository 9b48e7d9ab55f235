#include "cli/print/plan_summary_tables.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>

#include "cli/print/answer.h"
#include "cli/print/numbered_modules.h"
#include "cli/print/plan_tables.h"
#include "cli/print/table_cells.h"
#include "traces/plan/plan_summary.h"

namespace memwall {
namespace {

constexpr std::size_t kModulesOfAPlan = 12, kMostNames = 6;

std::string executable_sentence(const PlanDocument& d) {
  if (!d.realization) return "The file does not say what a program can execute of it.";
  std::uint64_t storages = 0;
  for (const UnnamedDecisions& unnamed : d.realization->unnamed) storages += unnamed.storages;
  if (d.realization->unnamed.empty()) return "A program can execute all of it by names of modules and operators.";
  return fmt::format("Decisions about {} have no name that a program could act on: {}",
                     counted_text(storages, "storage"), d.realization->unnamed.front().reason);
}

std::string expected_sentence(const PlanDocument& d) {
  if (!d.expected) return "The file does not say what is expected of it.";
  const PlanExpectation& e = *d.expected;
  return fmt::format("Expected on {}: a step of {}, a peak of {} as requested ({} reserved){}{}.", e.machine,
                     human_time(e.step_time), human_bytes(e.peak_requested), human_bytes(e.peak_reserved),
                     e.over_budget > 0 ? "; over the budget it was made for by " + human_bytes(e.over_budget) : "",
                     e.fits ? "" : "; it does not fit, these take memory as unlimited");
}

Table plan_answer(const PlanDocument& d, const PlanSummary& summary, const std::string& name) {
  const PlanModuleDifference all = summary.decided.total();
  return answer_table(
      fmt::format("{}: a memory plan for {}{}", name, d.trace, d.made_by.empty() ? "" : ", made by " + d.made_by),
      {fmt::format("It decides {}.",
                   plan_decisions_text(all.other_storages, all.other_bytes, summary.decided.other_ops())),
       expected_sentence(d), executable_sentence(d),
       summary.decided.unknown_bytes > 0
           ? fmt::format("The file does not say how large {} {}: they count with 0 bytes.",
                         counted_text(summary.decided.unknown_bytes, "storage"),
                         by_number(summary.decided.unknown_bytes, "is", "are"))
           : ""});
}

Table overview(const PlanDocument& d, const PlanSummary& summary) {
  Table t{.name = "plan", .title = "", .columns = {"what", "value"}, .headings = {"", ""}, .rows = {}};
  const auto row = [&](const char* what, Cell value) { t.rows.push_back({cell(what), std::move(value)}); };
  const auto count = [&](const char* what, std::uint64_t number) { row(what, count_cell(number)); };
  row("trace", cell(d.trace));
  row("fingerprint of its program", cell(d.fingerprint));
  count("ops of the trace", d.ops);
  count("storages of the trace", d.storages);
  row("made by", cell(d.made_by.empty() ? "not said" : d.made_by, d.made_by));
  std::uint64_t copies = 0, fetches = 0;
  for (const PlanTraffic& traffic : summary.traffic) {
    copies += traffic.copies;
    fetches += traffic.fetches;
  }
  count("storages decided about", d.plan.storages.size());
  count("copies", copies);
  count("drops", summary.drops);
  count("fetches", fetches);
  if (summary.allocations > 0) count("allocated again without content", summary.allocations);
  count("re-runs", summary.reruns);
  count("ops run again", summary.decided.other_ops());
  if (summary.called > 0) count("ops called again without work", summary.called);
  if (summary.keeps > 0) count("storages kept longer", summary.keeps);
  return t;
}

Table tier_table(const PlanSummary& summary) {
  Table t{
      .name = "tiers",
      .title = "Where it sends storages",
      .columns = {"tier", "through", "pinned", "side_streams", "homes", "copies", "out_bytes", "fetches", "back_bytes"},
      .headings = {"tier", "through", "pinned", "own streams", "live there", "copies", "out", "fetches", "back"},
      .rows = {}};
  const auto yes = [](bool flag) { return cell(flag ? "yes" : "no"); };
  for (const PlanTraffic& tier : summary.traffic)
    t.rows.push_back(
        {cell(tier.style.tier), cell(tier.style.through.empty() ? "-" : tier.style.through, tier.style.through),
         yes(tier.style.pinned), yes(tier.style.side_streams), count_cell(tier.homes), count_cell(tier.copies),
         bytes_cell(tier.bytes_out), count_cell(tier.fetches), bytes_cell(tier.bytes_back)});
  return t;
}

Table module_table(const char* name, std::string title, const std::vector<PlanModuleDifference>& modules) {
  Table t{.name = name,
          .title = std::move(title),
          .columns = {"module", "kind", "storages", "copied_bytes", "rerun_bytes", "dropped_bytes"},
          .headings = {"", "kind", "storages", "copied", "made again", "dropped"},
          .rows = {}};
  const auto of = [](StorageFate fate) { return static_cast<std::size_t>(fate); };
  for (const PlanModuleDifference& row : modules)
    t.rows.push_back({cell(row.module.empty() ? "outside of modules" : row.module, row.module),
                      cell(row.kind.empty() ? "-" : row.kind, row.kind), count_cell(row.only_in_other),
                      bytes_cell(row.other_bytes[of(StorageFate::copied)]),
                      bytes_cell(row.other_bytes[of(StorageFate::rerun)]),
                      bytes_cell(row.other_bytes[of(StorageFate::dropped)])});
  return t;
}

Table rerun_table(const PlanSummary& summary) {
  Table t{.name = "reruns",
          .title = "Ops that are run again, by module",
          .columns = {"module", "ops"},
          .headings = {"", "ops"},
          .rows = {}};
  t.detail = true;
  for (const PlanRerunDifference& row : summary.decided.reruns)
    t.rows.push_back(
        {cell(row.module.empty() ? "outside of modules" : row.module, row.module), count_cell(row.other_ops)});
  return t;
}

Table expected_table(const PlanDocument& d) {
  Table t{.name = "expected",
          .title = "Expected, as the file says",
          .columns = {"what", "value"},
          .headings = {"", ""},
          .rows = {}};
  if (!d.expected) return t;
  const PlanExpectation& e = *d.expected;
  const auto row = [&](std::string what, Cell value) { t.rows.push_back({cell(std::move(what)), std::move(value)}); };
  row("machine", cell(e.machine));
  row("allocator", cell(e.allocator));
  row("fits", cell(e.fits ? "yes" : "no"));
  if (e.over_budget > 0) row("over its budget", bytes_cell(e.over_budget));
  row("step time", time_cell(e.step_time));
  row("peak as requested", bytes_cell(e.peak_requested));
  row("peak reserved", bytes_cell(e.peak_reserved));
  row("ops run again on the device", count_cell(e.recomputed_ops));
  row("time run again", time_cell(e.recompute_time));
  for (const ExpectedCopies& copies : e.copies)
    row(fmt::format("{} to {}", copies.from, copies.to), bytes_cell(copies.bytes));
  return t;
}

// "h.* (12), ln_f": modules that differ in numbers alone as one.
std::string names_text(const std::vector<std::string>& names) {
  std::map<std::string, std::pair<std::size_t, std::string>> groups;
  for (const std::string& name : names) {
    auto& [number, only] = groups[without_numbers(name)];
    ++number;
    only = name;
  }
  std::vector<std::string> parts;
  for (const auto& [pattern, group] : groups)
    parts.push_back(group.first == 1 ? group.second : fmt::format("{} ({})", pattern, group.first));
  const std::size_t all = parts.size();
  if (all > kMostNames) parts.resize(kMostNames);
  return fmt::format("{}{}", fmt::join(parts, ", "),
                     all > kMostNames ? fmt::format(" and {} more", all - kMostNames) : "");
}

std::string operator_text(const NamedOperator& named) {
  return named.module.empty() ? named.name : named.name + " in " + named.module;
}

std::string recompute_text(const ModuleRecompute& recompute) {
  std::vector<std::string> units;
  for (const std::vector<std::string>& modules : recompute.units)
    if (!modules.empty())
      units.push_back(modules.size() == 1 ? modules.front() : fmt::format("{}..{}", modules.front(), modules.back()));
  return fmt::format(
      "{}: {}; {}{}{}", counted_text(units.size(), "unit"), names_text(units),
      recompute.early_stop ? "up to what backward needs last" : "to the end",
      recompute.save_operators.empty() ? "" : fmt::format(", but for {}", fmt::join(recompute.save_operators, ", ")),
      recompute.preserve_rng ? "; draws random numbers" : "");
}

std::string offload_text(const NamedOffload& offload, const std::string& tier) {
  std::vector<std::string> operators;
  for (const NamedStorages& saved : offload.saved) operators.push_back(operator_text(saved.made_by));
  return fmt::format("to {}: {}; at most {} under way out, {} fetched ahead; made by {}", tier,
                     offload.first
                         ? fmt::format("the first {} of at least {}", *offload.first, human_bytes(offload.min_bytes))
                         : "those listed",
                     offload.buffers, offload.ahead, names_text(operators));
}

std::string home_text(const NamedHome& home, const std::string& tier) {
  return fmt::format("{} {} {}: {}", to_string(home.kind), home.lives_there ? "live on" : "rest on", tier,
                     home.all ? "all" : names_text(home.names));
}

Table realization_table(const PlanDocument& d) {
  Table t{.name = "realization",
          .title = "What a program can execute, in each forward and its backward",
          .columns = {"what", "storages", "bytes", "how"},
          .headings = {"", "storages", "bytes", ""},
          .rows = {}};
  if (!d.realization) return t;
  const PlanRealization& r = *d.realization;
  const auto uncounted = [] { return unrecorded_cell("-"); };
  for (const ModuleRecompute& recompute : r.recompute)
    t.rows.push_back(
        {cell("modules run again", "recompute"), uncounted(), uncounted(), cell(recompute_text(recompute))});
  for (const OperatorRecompute& lazy : r.lazy_operators) {
    std::vector<std::string> operators;
    for (const NamedOperator& named : lazy.operators) operators.push_back(operator_text(named));
    t.rows.push_back({cell("operators run again", "lazy_ops"), uncounted(), uncounted(), cell(names_text(operators))});
  }
  for (const NamedOffload& offload : r.offload)
    t.rows.push_back({cell("saved tensors sent", "offload"), count_cell(offload.storages), bytes_cell(offload.bytes),
                      cell(offload_text(offload, d.plan.tiers[offload.tier].tier))});
  for (const NamedHome& home : r.homes)
    t.rows.push_back({cell("kept elsewhere", "homes"), count_cell(home.storages), bytes_cell(home.bytes),
                      cell(home_text(home, d.plan.tiers[home.tier].tier))});
  return t;
}

Table unnamed_table(const PlanDocument& d) {
  Table t{.name = "not_executable",
          .title = "What has no name that a program could act on",
          .columns = {"what", "storages", "bytes", "reason"},
          .headings = {"", "storages", "bytes", "why"},
          .rows = {}};
  if (!d.realization) return t;
  for (const UnnamedDecisions& unnamed : d.realization->unnamed)
    t.rows.push_back(
        {cell(unnamed.what), count_cell(unnamed.storages), bytes_cell(unnamed.bytes), cell(unnamed.reason)});
  return t;
}

}  // namespace

std::vector<Table> plan_summary_tables(const PlanDocument& d, const std::string& name) {
  const PlanSummary summary = summary_of(d);
  std::vector<Table> tables{plan_answer(d, summary, name), overview(d, summary), tier_table(summary),
                            expected_table(d)};
  tables.push_back(module_table("modules_alike", "What it decides, by module and kind of storage",
                                modules_alike(summary.decided.modules)));
  tables.back().screen_rows = kModulesOfAPlan;
  tables.push_back(module_table("modules", "The same, module by module", summary.decided.modules));
  tables.back().detail = true;
  for (Table& table : std::vector<Table>{rerun_table(summary), realization_table(d), unnamed_table(d)})
    tables.push_back(std::move(table));
  std::erase_if(tables, [](const Table& t) { return t.rows.empty(); });
  return tables;
}

}  // namespace memwall
