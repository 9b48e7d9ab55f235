#include "cli/print/plan_tables.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "cli/print/answer.h"
#include "cli/print/numbered_modules.h"
#include "cli/print/table_cells.h"

namespace memwall {
namespace {

constexpr std::size_t kModulesOfPlans = 12;
constexpr int kPlanComparisonSchema = 1;
constexpr std::array kDecided{StorageFate::copied, StorageFate::rerun, StorageFate::dropped};
constexpr std::array kDecidedWords{"copied", "made again", "dropped"};

std::size_t index_of(StorageFate fate) { return static_cast<std::size_t>(fate); }

std::string difference_sentence(const PlanComparison& c, const PlanModuleDifference& all) {
  if (c.different == 0 && c.rescheduled == 0 && c.same_reruns) return "They decide the same.";
  std::string text =
      c.different == 0
          ? std::string("They decide the same of every storage")
          : fmt::format("They decide otherwise about {} of {}: base alone decides about {}, other alone about {}",
                        counted_text(c.different, "storage"), human_bytes(all.different_bytes), all.only_in_base,
                        all.only_in_other);
  if (c.rescheduled > 0)
    text += fmt::format("; {} {} to the same place, at other points or in another way",
                        counted_text(c.rescheduled, "storage"), by_number(c.rescheduled, "goes", "go"));
  if (!c.same_reruns)
    text += c.base_ops() == c.other_ops() ? "; ops are run again at other points, or other ones"
                                          : fmt::format("; base runs {} again, other {}", c.base_ops(), c.other_ops());
  return text + ".";
}

// "a step of 128.2 ms instead of 49.95 ms (+157 %)"; where they are equal, "the same step time".
std::string expected_figure(const char* what, const char* same, double base, double other, const std::string& base_text,
                            const std::string& other_text) {
  if (base == other) return fmt::format("the same {}", same);
  const double change = base > 0 ? 100 * (other / base - 1) : 0;
  return fmt::format("{} {} instead of {}{}", what, other_text, base_text,
                     base > 0 ? fmt::format(" ({:+.{}f} %)", change, std::abs(change) < 10 ? 1 : 0) : "");
}

std::string expected_sentence(const PlanComparison& c) {
  if (!c.base_expected || !c.other_expected)
    return c.base_expected || c.other_expected ? "Only one of them says what is expected of it."
                                               : "Neither says what is expected of it.";
  const PlanExpectation &base = *c.base_expected, &other = *c.other_expected;
  const std::string where = base.machine == other.machine
                                ? fmt::format("on {}", base.machine)
                                : fmt::format("on {}, where base was made for {}", other.machine, base.machine);
  return fmt::format("Expected of other, {}: {}, {}.", where,
                     expected_figure("a step of", "step time", static_cast<double>(base.step_time.count()),
                                     static_cast<double>(other.step_time.count()), human_time(base.step_time),
                                     human_time(other.step_time)),
                     expected_figure("a peak of", "peak", static_cast<double>(base.peak_requested),
                                     static_cast<double>(other.peak_requested), human_bytes(base.peak_requested),
                                     human_bytes(other.peak_requested)));
}

Table plan_answer(const PlanComparison& c, const PlanModuleDifference& all) {
  return answer_table(
      fmt::format("Two plans for {}\nbase:  {}\nother: {}", c.trace, c.base_made_by, c.other_made_by),
      {fmt::format("Base decides {}.", plan_decisions_text(all.base_storages, all.base_bytes, c.base_ops())),
       fmt::format("Other decides {}.", plan_decisions_text(all.other_storages, all.other_bytes, c.other_ops())),
       difference_sentence(c, all), expected_sentence(c),
       c.unknown_bytes > 0
           ? fmt::format("The files do not say how large {} {}: they count with 0 bytes.",
                         counted_text(c.unknown_bytes, "storage"), by_number(c.unknown_bytes, "is", "are"))
           : ""});
}

Cell difference_of_bytes(Bytes b) { return number_cell((b > 0 ? "+" : "") + human_bytes(b), std::to_string(b)); }

Table expected_table(const PlanComparison& c) {
  Table t{.name = "expected",
          .title = "Expected, as the files say",
          .columns = {"what", "base", "other", "difference"},
          .headings = {"", "base", "other", "difference"},
          .rows = {}};
  if (!c.base_expected && !c.other_expected) return t;
  const auto row = [&](const std::string& what, auto figure, auto shown, auto differing) {
    const auto of = [&](const std::optional<PlanExpectation>& expected) {
      return expected ? shown(figure(*expected)) : unrecorded_cell("not said");
    };
    t.rows.push_back({cell(what), of(c.base_expected), of(c.other_expected),
                      c.base_expected && c.other_expected
                          ? differing(figure(*c.other_expected) - figure(*c.base_expected))
                          : unrecorded_cell("")});
  };
  const auto bytes_row = [&](const std::string& what, auto figure) {
    row(what, figure, bytes_cell, difference_of_bytes);
  };
  const auto shown_time = [](Duration d) { return time_cell(d); };
  const auto differing_time = [](Duration d) {
    return number_cell((d.count() > 0 ? "+" : "") + human_time(d), plain_seconds(d));
  };
  const auto shown_count = [](std::int64_t n) { return count_cell(static_cast<std::uint64_t>(n)); };
  const auto differing_count = [](std::int64_t n) { return number_cell(fmt::format("{:+}", n), std::to_string(n)); };
  row(
      "step time", [](const PlanExpectation& e) { return e.step_time; }, shown_time, differing_time);
  bytes_row("peak as requested", [](const PlanExpectation& e) { return e.peak_requested; });
  bytes_row("peak reserved", [](const PlanExpectation& e) { return e.peak_reserved; });
  row(
      "ops run again", [](const PlanExpectation& e) { return static_cast<std::int64_t>(e.recomputed_ops); },
      shown_count, differing_count);
  row(
      "time run again", [](const PlanExpectation& e) { return e.recompute_time; }, shown_time, differing_time);
  std::map<std::pair<std::string, std::string>, bool> ways;
  for (const auto* expected : {&c.base_expected, &c.other_expected})
    if (*expected)
      for (const ExpectedCopies& copies : (*expected)->copies) ways[{copies.from, copies.to}] = true;
  for (const auto& [way, known] : ways)
    bytes_row(fmt::format("{} to {}", way.first, way.second), [&, way = way](const PlanExpectation& e) {
      Bytes bytes = 0;
      for (const ExpectedCopies& copies : e.copies)
        bytes += copies.from == way.first && copies.to == way.second ? copies.bytes : 0;
      return bytes;
    });
  return t;
}

Table difference_table(const char* name, std::string title, const std::vector<PlanModuleDifference>& modules,
                       const PlanModuleDifference& all) {
  Table t{.name = name,
          .title = std::move(title),
          .columns = {"module", "kind", "different", "different_bytes"},
          .headings = {"", "kind", "storages", "bytes"},
          .rows = {}};
  std::vector<std::size_t> fates;
  for (std::size_t f = 0; f < kDecided.size(); ++f) {
    const std::size_t fate = index_of(kDecided[f]);
    if (all.base_storages[fate] + all.other_storages[fate] == 0) continue;
    fates.push_back(fate);
    for (const char* side : {"base", "other"}) {
      t.columns.push_back(fmt::format("{}_{}_bytes", side, to_string(kDecided[f])));
      t.headings.push_back(fmt::format("{} {}", side, kDecidedWords[f]));
    }
  }
  for (const char* column : {"only_in_base", "only_in_other"}) t.columns.emplace_back(column);
  for (const char* heading : {"only base", "only other"}) t.headings.emplace_back(heading);
  for (const PlanModuleDifference& row : modules) {
    std::vector<Cell> cells{cell(row.module.empty() ? "outside of modules" : row.module, row.module),
                            cell(row.kind.empty() ? "-" : row.kind, row.kind), count_cell(row.different),
                            bytes_cell(row.different_bytes)};
    for (const std::size_t fate : fates)
      for (const Bytes bytes : {row.base_bytes[fate], row.other_bytes[fate]}) cells.push_back(bytes_cell(bytes));
    cells.push_back(count_cell(row.only_in_base));
    cells.push_back(count_cell(row.only_in_other));
    t.rows.push_back(std::move(cells));
  }
  return t;
}

Table rerun_table(const PlanComparison& c) {
  Table t{.name = "reruns",
          .title = "Ops that are run again, by module",
          .columns = {"module", "base_ops", "other_ops"},
          .headings = {"", "base", "other"},
          .rows = {}};
  t.detail = true;
  for (const PlanRerunDifference& row : c.reruns)
    t.rows.push_back({cell(row.module.empty() ? "outside of modules" : row.module, row.module),
                      count_cell(row.base_ops), count_cell(row.other_ops)});
  return t;
}

}  // namespace

std::string plan_decisions_text(const std::array<std::uint64_t, kStorageFates>& storages,
                                const std::array<Bytes, kStorageFates>& bytes, std::uint64_t ops) {
  std::uint64_t count = 0;
  std::vector<std::string> parts;
  for (std::size_t f = 0; f < kDecided.size(); ++f) {
    count += storages[index_of(kDecided[f])];
    if (storages[index_of(kDecided[f])] > 0)
      parts.push_back(fmt::format("{} {}", human_bytes(bytes[index_of(kDecided[f])]), kDecidedWords[f]));
  }
  if (ops > 0) parts.push_back(fmt::format("{} run again", counted_text(ops, "op")));
  if (count == 0) return "nothing";
  return fmt::format("about {}: {}", counted_text(count, "storage"), fmt::join(parts, ", "));
}

std::vector<PlanModuleDifference> modules_alike(const std::vector<PlanModuleDifference>& modules) {
  std::map<std::pair<std::string, std::string>, std::vector<PlanModuleDifference>> groups;
  for (const PlanModuleDifference& module : modules)
    groups[{without_numbers(module.module), module.kind}].push_back(module);
  std::vector<PlanModuleDifference> rows;
  for (auto& [key, members] : groups) {
    PlanComparison group;
    const std::string name = members.size() == 1 ? members.front().module : key.first;
    group.modules = std::move(members);
    rows.push_back(group.total());
    rows.back().module = name;
    rows.back().kind = key.second;
  }
  std::stable_sort(rows.begin(), rows.end(), [](const PlanModuleDifference& a, const PlanModuleDifference& b) {
    return std::pair(a.different_bytes, a.different) > std::pair(b.different_bytes, b.different);
  });
  return rows;
}

std::vector<Table> plan_comparison_tables(const PlanComparison& c) {
  const PlanModuleDifference all = c.total();
  std::vector<Table> tables{plan_answer(c, all), expected_table(c)};
  const std::vector<PlanModuleDifference> together = modules_alike(c.modules);
  tables.push_back(difference_table("modules_alike",
                                    "What they decide, by module and kind of storage (storages, bytes: that fare "
                                    "differently; only base, only other: the other plan keeps them)",
                                    together, all));
  tables.back().screen_rows = kModulesOfPlans;
  tables.push_back(difference_table("modules", "The same, module by module", c.modules, all));
  tables.back().detail = true;
  tables.push_back(rerun_table(c));
  std::erase_if(tables, [](const Table& t) { return t.rows.empty(); });
  return tables;
}

std::string plan_comparison_json(const PlanComparison& c) {
  return to_json({{"schema", std::to_string(kPlanComparisonSchema)},
                  text_field("trace", c.trace),
                  text_field("base", c.base_made_by),
                  text_field("other", c.other_made_by),
                  {"alike", std::to_string(c.alike)},
                  {"rescheduled", std::to_string(c.rescheduled)},
                  {"different", std::to_string(c.different)}},
                 plan_comparison_tables(c));
}

}  // namespace memwall
