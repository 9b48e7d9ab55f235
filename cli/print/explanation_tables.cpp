#include "cli/print/explanation_tables.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "cli/print/answer.h"
#include "cli/print/table_cells.h"

namespace memwall {
namespace {

constexpr std::size_t kScreenRows = 12, kNamedGroups = 8;

Cell elasticity_cell(const std::optional<double>& e) {
  return e ? number_cell(fmt::format("{:+.4f}", *e == 0 ? 0.0 : *e), plain_number(*e)) : number_cell("-", "");
}

std::vector<Cell> number_cells(const VariedNumber& number) {
  return {cell(number.name), cell(std::string(to_string(number.kind))),
          number_cell(amount_text(number.value, ""), plain_number(number.value)), cell(number.unit)};
}

void append_elasticity(std::vector<Cell>& row, const Elasticity& e) {
  for (const auto& value : {e.central, e.below, e.above}) row.push_back(elasticity_cell(value));
}

Table step_time_table(const Explanation& e) {
  Table t{.name = "step_time_elasticities",
          .title = fmt::format("Step time: percent for one percent of a number, by simulating {} less and more of it",
                               percent_text(e.share)),
          .columns = {"number", "kind", "value", "unit", "elasticity", "below", "above"},
          .headings = {},
          .rows = {}};
  for (const Sensitivity& s : e.sensitivities) {
    if (s.step_time.is_zero()) continue;
    std::vector<Cell> row = number_cells(s.number);
    append_elasticity(row, s.step_time);
    t.rows.push_back(std::move(row));
  }
  t.screen_rows = kScreenRows;
  return t;
}

Table peak_table(const Explanation& e) {
  Table t{.name = "peak_elasticities",
          .title = "Peak of GPU memory, likewise: reserved by the allocator, and allocated of it",
          .columns = {"number", "kind", "value", "unit", "reserved", "reserved_below", "reserved_above", "allocated",
                      "allocated_below", "allocated_above"},
          .headings = {"number", "kind", "value", "unit", "reserved", "below", "above", "allocated", "below", "above"},
          .rows = {}};
  for (const Sensitivity& s : e.sensitivities) {
    if (s.peak_reserved.is_zero() && s.peak_allocated.is_zero()) continue;
    std::vector<Cell> row = number_cells(s.number);
    append_elasticity(row, s.peak_reserved);
    append_elasticity(row, s.peak_allocated);
    t.rows.push_back(std::move(row));
  }
  t.screen_rows = kScreenRows;
  return t;
}

Cell yes_cell(bool yes) { return cell(yes ? "yes" : "no"); }

// What the elasticities are worked out from.
Table simulation_table(const Explanation& e) {
  Table t{.name = "simulations",
          .title = "Each simulation with one number varied",
          .columns = {"number", "side", "value", "unit", "step_time_s", "peak_reserved_bytes", "peak_allocated_bytes",
                      "fits", "refusal"},
          .headings = {},
          .rows = {},
          .detail = true};
  for (const Sensitivity& s : e.sensitivities)
    for (const auto& [name, side] : {std::pair("below", &s.lower), std::pair("above", &s.upper)}) {
      std::vector<Cell> row{cell(s.number.name), cell(name),
                            number_cell(fmt::format("{:.6g}", side->value), plain_number(side->value)),
                            cell(s.number.unit)};
      if (side->figures) {
        row.push_back(time_cell(side->figures->step_time));
        row.push_back(bytes_cell(static_cast<Bytes>(side->figures->peak_reserved)));
        row.push_back(bytes_cell(static_cast<Bytes>(side->figures->peak_allocated)));
        row.push_back(yes_cell(side->figures->fits));
      } else {
        row.resize(t.columns.size() - 1, unrecorded_cell("-"));
      }
      row.push_back(cell(side->refusal));
      t.rows.push_back(std::move(row));
    }
  return t;
}

Table path_table(const Explanation& e) {
  Table t{.name = "critical_path",
          .title = "What the run waits for: the critical path of all its steps",
          .columns = {"reason", "time_s", "share"},
          .headings = {},
          .rows = {}};
  Duration all{};
  for (const auto& [reason, time] : e.path) all += time;
  for (const auto& [reason, time] : e.path)
    t.rows.push_back(
        {cell(std::string(to_string(reason))), time_cell(time), share_cell(to_seconds(time), to_seconds(all))});
  return t;
}

const char* words_of(StopReason stop) {
  switch (stop) {
    case StopReason::other_reason:
      return "something else binds";
    case StopReason::little_left:
      return "little is left to gain";
    case StopReason::not_within:
      return "no end was found";
    case StopReason::not_allowed:
      return "the number goes no further";
  }
  return "";
}

Table next_table(const Explanation& e) {
  Table t{.name = "next",
          .title = "What binds next: how far more or less of a number helps",
          .columns = {"number", "direction", "value", "elasticity", "reason", "until", "unit", "step_time_s", "stop",
                      "reason_then"},
          .headings = {"number", "turned", "now", "elasticity", "bound by", "until", "unit", "step time", "because",
                       "then bound by"},
          .rows = {}};
  for (const NextBound& b : e.next)
    t.rows.push_back(
        {cell(b.number.name), cell(b.more ? "more" : "less"),
         number_cell(amount_text(b.number.value, ""), plain_number(b.number.value)), elasticity_cell(b.elasticity),
         cell(b.reason_now), number_cell(amount_text(b.value, ""), plain_number(b.value)), cell(b.number.unit),
         time_cell(b.step_time), cell(words_of(b.stop), std::string(to_string(b.stop))), cell(b.reason_then)});
  return t;
}

Table overtaken_table(const Explanation& e) {
  Table t{.name = "overtaken",
          .title = "From which value on another number of the machine counts for more",
          .columns = {"number", "value", "unit", "by"},
          .headings = {"number", "from", "unit", "what counts for more"},
          .rows = {},
          .detail = true};
  for (const NextBound& b : e.next)
    if (b.overtaken_at)
      t.rows.push_back({cell(b.number.name),
                        number_cell(amount_text(*b.overtaken_at, ""), plain_number(*b.overtaken_at)),
                        cell(b.number.unit), cell(b.overtaken_by)});
  return t;
}

Cell price_cell(const std::optional<double>& seconds) {
  if (!seconds) return number_cell("-", "");
  if (*seconds == 0) return number_cell("0", "0");
  return number_cell((*seconds < 0 ? "-" : "") + human_time(std::abs(*seconds)), plain_number(*seconds));
}

std::vector<Cell> price_row(const ShadowPrice& p) {
  std::vector<std::string> names;
  for (const VariedNumber& part : p.resource.number.parts) names.push_back(part.name);
  return {cell(p.resource.number.name),
          number_cell(amount_text(p.resource.amount, ""), plain_number(p.resource.amount)),
          cell(p.resource.unit),
          price_cell(p.seconds),
          price_cell(p.below),
          price_cell(p.above),
          p.dollars
              ? number_cell(fmt::format("{:.3g}", *p.dollars == 0 ? 0.0 : *p.dollars * 1e6), plain_number(*p.dollars))
              : number_cell("-", ""),
          cell(fmt::format("{}", fmt::join(names, ", ")))};
}

// The dual price of the budget of those policies that were compared.
std::vector<Cell> bound_row(const PolicyRegret& regret) {
  const double amount = static_cast<double>(regret.comparison.budgets.front().bytes) / 1e9;
  const Cell price = price_cell(*regret.bound_seconds_per_byte * 1e9);
  return {cell("GPU memory, lower bound of any plan"),
          number_cell(amount_text(amount, ""), plain_number(amount)),
          cell("GB"),
          price,
          price,
          number_cell("-", ""),
          number_cell("-", ""),
          cell("")};
}

// What has a price stands first, and is all that is shown.
Table price_table(const Explanation& e) {
  Table t{
      .name = "shadow_prices",
      .title = "Shadow prices: by how much a step gets shorter for one unit more",
      .columns = {"resource", "amount", "unit", "seconds_per_unit", "below", "above", "dollars_per_unit", "of"},
      .headings = {"resource", "amount", "unit", "shorter by", "below", "above", "$ per 1e6 steps", "numbers of a way"},
      .rows = {}};
  for (const ShadowPrice& p : e.prices)
    if (!p.is_zero()) t.rows.push_back(price_row(p));
  const bool is_bounded = e.regret && e.regret->bound_seconds_per_byte;
  if (is_bounded && *e.regret->bound_seconds_per_byte != 0) t.rows.push_back(bound_row(*e.regret));
  t.screen_rows = std::max<std::size_t>(1, t.rows.size());
  for (const ShadowPrice& p : e.prices)
    if (p.is_zero()) t.rows.push_back(price_row(p));
  if (is_bounded && *e.regret->bound_seconds_per_byte == 0) t.rows.push_back(bound_row(*e.regret));
  return t;
}

Table peak_kind_table(const Explanation& e) {
  Table t{.name = "peak",
          .title = "What makes the peak of GPU memory, and the peak without it",
          .columns = {"storages", "at_peak_bytes", "peak_without_bytes", "time_s", "largest_then"},
          .headings = {"storages", "at the peak", "peak without", "which is at", "and mostly"},
          .rows = {}};
  for (const PeakWithoutKind& kind : e.peak.kinds)
    t.rows.push_back({cell(std::string(to_string(kind.kind))), bytes_cell(kind.at_peak), bytes_cell(kind.peak_without),
                      time_cell(kind.time), cell(std::string(to_string(kind.then)))});
  return t;
}

Cell change_cell_of(double share) { return number_cell(fmt::format("{:+.1f} %", 100 * share), plain_number(share)); }

std::vector<Cell> regret_row(const PolicyRegret& regret, std::size_t policy) {
  const PolicyComparison& c = regret.comparison;
  const PolicyCell& one = c.cell(0, policy);
  std::vector<Cell> row{cell(c.policies[policy]), cell(c.policies[policy] == regret.own ? "yes" : "")};
  if (!one.refusal.empty()) {
    row.push_back(cell("refused"));
    row.resize(8, unrecorded_cell("-"));
    row.push_back(cell(one.refusal));
    return row;
  }
  row.push_back(yes_cell(one.fits));
  row.push_back(bytes_cell(one.missing));
  row.push_back(time_cell(one.step_time));
  const int best = c.fastest(0);
  if (best >= 0 && one.fits) {
    const double least = to_seconds(c.cell(0, static_cast<std::size_t>(best)).step_time);
    row.push_back(time_cell(regret.regret(policy)));
    row.push_back(change_cell_of(least > 0 ? regret.regret(policy) / least : 0));
  } else {
    row.resize(row.size() + 2, unrecorded_cell("-"));
  }
  const bool bounded = one.fits && one.keeps_work && !c.bounds.at.empty() && c.bounds.at.front().is_possible &&
                       c.bounds.at.front().step_time.count() > 0;
  row.push_back(bounded ? change_cell_of(to_seconds(one.step_time) / to_seconds(c.bounds.at.front().step_time) - 1)
                        : unrecorded_cell("-"));
  row.push_back(cell(""));
  return row;
}

Table regret_table(const PolicyRegret& regret) {
  const PolicyComparison& c = regret.comparison;
  std::string title =
      fmt::format("Regret of each policy within {} of GPU memory", human_bytes(c.budgets.front().bytes));
  if (!c.bounds.at.empty() && c.bounds.at.front().is_possible)
    title += fmt::format("; no plan takes less than {}", human_time(c.bounds.at.front().step_time));
  Table t{
      .name = "regret",
      .title = std::move(title),
      .columns = {"policy", "own", "fits", "missing_bytes", "step_time_s", "regret_s", "regret", "above_bound",
                  "refusal"},
      .headings = {"policy", "asked", "fits", "missing", "step time", "regret", "", "above bound", "refused because"},
      .rows = {}};
  for (std::size_t p = 0; p < c.policies.size(); ++p) t.rows.push_back(regret_row(regret, p));
  return t;
}

Table curve_table(const BreakEvenCurve& curve) {
  Table t{.name = "curve." + curve.axis.name,
          .title = fmt::format("Keep, recompute ({}) and offload ({}) over {}", kChoicePolicies[1], kChoicePolicies[2],
                               curve.axis.name),
          .columns = {curve.axis.name},
          .headings = {curve.axis.name},
          .rows = {}};
  for (const char* choice : kChoices)
    for (const auto& [field, heading] :
         {std::pair("step_time_s", ""), std::pair("peak_reserved_bytes", " reserved"), std::pair("fits", " fits")}) {
      t.columns.push_back(fmt::format("{}_{}", choice, field));
      t.headings.push_back(fmt::format("{}{}", choice, heading));
    }
  for (const CurvePoint& point : curve.points) {
    std::vector<Cell> row{cell(point.value)};
    for (const PointRecord& record : point.choices) {
      const std::optional<PointFigures> figures = figures_of(record);
      row.push_back(figures ? time_cell(figures->step_time) : unrecorded_cell("refused"));
      row.push_back(figures ? bytes_cell(static_cast<Bytes>(figures->peak_reserved)) : unrecorded_cell("-"));
      row.push_back(figures ? yes_cell(figures->fits) : cell("-", ""));
    }
    t.rows.push_back(std::move(row));
  }
  return t;
}

Table crossing_table(const Explanation& e) {
  Table t{.name = "break_even",
          .title = "",
          .columns = {"axis", "before", "after", "at", "event", "choice", "other"},
          .headings = {},
          .rows = {},
          .detail = true};
  for (const BreakEvenCurve& curve : e.curves)
    for (const BreakEven& b : curve.crossings)
      t.rows.push_back({cell(curve.axis.name), cell(b.before), cell(b.after),
                        b.at ? number_cell(fmt::format("{:.5g}", *b.at), plain_number(*b.at)) : number_cell("-", ""),
                        cell(b.choice != b.other ? "faster"
                             : b.fits_after      ? "fits"
                                                 : "no_longer_fits"),
                        cell(kChoices[b.choice]), cell(b.choice == b.other ? "" : kChoices[b.other])});
  return t;
}

// "gpu.mig_profile.* (25), price": names by their first two words, the largest groups first.
std::string grouped_names(const std::vector<std::string>& names) {
  std::map<std::string, std::vector<std::string>> groups;
  for (const std::string& name : names) {
    const std::size_t first = name.find('.'), second = first == name.npos ? first : name.find('.', first + 1);
    groups[name.substr(0, second)].push_back(name);
  }
  std::vector<std::pair<std::string, std::size_t>> order;
  for (const auto& [group, members] : groups)
    order.emplace_back(members.size() == 1 ? members.front() : fmt::format("{}.* ({})", group, members.size()),
                       members.size());
  std::ranges::stable_sort(order, std::greater{}, &std::pair<std::string, std::size_t>::second);
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < order.size() && i < kNamedGroups; ++i) texts.push_back(order[i].first);
  std::size_t others = 0;
  for (std::size_t i = kNamedGroups; i < order.size(); ++i) others += order[i].second;
  return fmt::format("{}{}", fmt::join(texts, ", "), others > 0 ? fmt::format(" and {} more", others) : "");
}

Table names_table(const char* name, const char* title, const std::vector<std::string>& names) {
  Table t{.name = name, .title = title, .columns = {"number"}, .headings = {}, .rows = {}, .detail = true};
  for (const std::string& one : names) t.rows.push_back({cell(one)});
  return t;
}

Table notes_table(const Explanation& e) {
  Table t{.name = "notes", .title = "Notes", .columns = {"note"}, .headings = {""}, .rows = {}, .prose = true};
  const auto note = [&](std::string text) { t.rows.push_back({cell(std::move(text))}); };
  if (!e.idle.empty())
    note(fmt::format("{}, varied by {}, change{} neither step time nor peak: {}.",
                     counted_text(e.idle.size(), "number"), percent_text(e.share), e.idle.size() == 1 ? "s" : "",
                     grouped_names(e.idle)));
  if (!e.fixed.empty())
    note(fmt::format("{} not varied, for {} 0, not set, or a curve: {}.",
                     counted_text(e.fixed.size(), "number was", "numbers were"),
                     by_number(e.fixed.size(), "it is", "they are"), grouped_names(e.fixed)));
  if (std::ranges::any_of(e.sensitivities, [](const Sensitivity& s) { return s.number.name == "gpu.multiprocessors"; }))
    note("Counts go by 1 while the rates of the whole GPU stay: more multiprocessors share the same peak rate.");
  for (const auto& [name, sentence] : e.refused) note(fmt::format("{} cannot be varied: {}", name, sentence));
  const bool has_jump = std::ranges::any_of(e.sensitivities, [](const Sensitivity& s) {
    return (s.lower.figures && !s.lower.figures->fits) || (s.upper.figures && !s.upper.figures->fits);
  });
  if (has_jump && e.here.fits)
    note(
        "With some of these values the step no longer fits; its time there takes memory as unlimited (table "
        "simulations).");
  if (!e.journal_failure.empty()) note(e.journal_failure);
  return t;
}

std::string title_of(const Explanation& e) {
  std::string title = fmt::format("{} on {}", e.step, e.machine);
  for (const std::string& policy : e.scenario.policies) title += ", " + policy;
  if (!e.scenario.pager.empty()) title += ", pager " + e.scenario.pager;
  if (!e.scenario.budget.empty()) title += ", budget " + e.scenario.budget;
  return title;
}

}  // namespace

std::vector<Table> explanation_tables(const Explanation& e, const std::vector<Table>& beside) {
  std::vector<Table> tables{answer_table(title_of(e), explanation_sentences(e)), path_table(e), step_time_table(e),
                            next_table(e), price_table(e)};
  tables.insert(tables.begin() + 3, beside.begin(), beside.end());
  if (e.memory_recorded) {
    tables.push_back(peak_kind_table(e));
    tables.push_back(peak_table(e));
  }
  if (e.regret && e.regret->why_none.empty()) tables.push_back(regret_table(*e.regret));
  for (const BreakEvenCurve& curve : e.curves) tables.push_back(curve_table(curve));
  if (!e.curves.empty()) tables.push_back(crossing_table(e));
  tables.push_back(overtaken_table(e));
  tables.push_back(simulation_table(e));
  tables.push_back(names_table("unchanged", "Numbers that change nothing", e.idle));
  tables.push_back(names_table("not_varied", "Numbers that are 0, not set, or a curve", e.fixed));
  tables.push_back(notes_table(e));
  for (Table& table : tables) table.detail = table.detail || table.rows.empty();
  return tables;
}

std::string explanation_json(const Explanation& e, const std::vector<Table>& beside) {
  const auto number = [](const char* key, double value) { return JsonField{key, plain_number(value)}; };
  return to_json(
      {text_field("scenario", to_text(e.scenario)), text_field("step", e.step), text_field("machine", e.machine),
       number("share", e.share), JsonField{"fits", e.here.fits ? "true" : "false"},
       number("step_time_s", e.here.step_time), number("peak_reserved_bytes", e.here.peak_reserved),
       number("peak_allocated_bytes", e.here.peak_allocated)},
      explanation_tables(e, beside));
}

}  // namespace memwall
