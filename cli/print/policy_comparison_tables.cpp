#include "cli/print/policy_comparison_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "cli/print/answer.h"
#include "cli/print/table_cells.h"
#include "sim/words.h"

namespace memwall {
namespace {

constexpr std::size_t kMostSentences = 4;  // of the answer, one per budget
constexpr double kAtBound = 0.0005;        // shares nearer to it are at the bound, in words

std::string budget_text(const ComparedBudget& budget) {
  return fmt::format("{} ({})", budget.given, human_bytes(budget.bytes));
}

double share_over(Duration time, Duration least) {
  return least.count() > 0 ? to_seconds(time) / to_seconds(least) - 1 : 0;
}

std::string signed_percent(double share) { return fmt::format("{:+.1f} %", 100 * share); }
Cell change_cell(double share) { return number_cell(signed_percent(share), plain_number(share)); }

// Null where nothing has a bound, or what one op uses is more than the budget.
const BudgetBound* bound_of(const PolicyComparison& c, std::size_t budget) {
  return c.bounds.at.empty() || !c.bounds.at[budget].is_possible ? nullptr : &c.bounds.at[budget];
}

// Null also where the policy changes the step's own work, which the bound is for.
const BudgetBound* bound_for(const PolicyComparison& c, std::size_t budget, std::size_t policy) {
  return c.cell(budget, policy).keeps_work ? bound_of(c, budget) : nullptr;
}

// It changes the step's work within one of the budgets at least.
bool changes_work(const PolicyComparison& c, std::size_t policy) {
  for (std::size_t b = 0; b < c.budgets.size(); ++b)
    if (!c.cell(b, policy).keeps_work) return true;
  return false;
}

// Its name, and whether the bound holds for it.
std::string labelled(const PolicyComparison& c, std::size_t policy) {
  return c.policies[policy] + (changes_work(c, policy) ? " (other work)" : "");
}

std::string against_bound(const PolicyComparison& c, std::size_t budget, std::size_t policy) {
  const PolicyCell& cell = c.cell(budget, policy);
  const BudgetBound* bound = bound_of(c, budget);
  if (bound == nullptr) return cell.keeps_work ? "" : "; it changes the step's own work";
  const std::string least = human_time(bound->step_time);
  if (!cell.keeps_work)
    return fmt::format("; it changes the step's own work, for which the lower bound ({}) does not hold", least);
  const double over = share_over(cell.step_time, bound->step_time);
  if (std::abs(over) < kAtBound) return fmt::format(", at the lower bound ({})", least);
  return fmt::format(", {:.1f} % {} the lower bound ({})", 100 * std::abs(over), over > 0 ? "above" : "below", least);
}

std::string slower_text(double share) {
  if (std::abs(share) < kAtBound) return "as fast as with unlimited memory";
  return fmt::format("{:.1f} % {} than with unlimited memory", 100 * std::abs(share), share > 0 ? "slower" : "faster");
}

std::string who(const PolicyComparison& c, int policy) {
  const std::string& name = c.policies[static_cast<std::size_t>(policy)];
  return name == kNoPolicy ? "the step as it is, without a policy" : name;
}

std::string budget_sentence(const PolicyComparison& c, std::size_t b) {
  const std::string within = "Within " + budget_text(c.budgets[b]);
  if (const int best = c.fastest(b); best >= 0) {
    const auto policy = static_cast<std::size_t>(best);
    const Duration time = c.cell(b, policy).step_time;
    return fmt::format("{} the fastest that fits is {}: {}, {}{}.", within, who(c, best), human_time(time),
                       slower_text(share_over(time, c.unlimited_step)), against_bound(c, b, policy));
  }
  std::string text = within + " nothing fits";
  if (const int near = c.nearest(b); near >= 0) {
    const PolicyCell& cell = c.cell(b, static_cast<std::size_t>(near));
    text += fmt::format(": {} comes nearest, {} are missing in {}", who(c, near), human_bytes(cell.missing),
                        cell.missing_in == "budget" ? "the budget" : cell.missing_in);
  }
  if (!c.bounds.at.empty() && !c.bounds.at[b].is_possible)
    text += fmt::format("; one op alone uses {}", human_bytes(c.bounds.at[b].least_budget));
  return text + ".";
}

std::vector<std::string> answer_sentences(const PolicyComparison& c) {
  std::vector<std::string> sentences;
  std::vector<std::string> none;
  std::vector<std::size_t> fit;
  for (std::size_t b = 0; b < c.budgets.size(); ++b) {
    if (c.fastest(b) >= 0)
      fit.push_back(b);
    else
      none.push_back(c.budgets[b].given);
  }
  if (c.budgets.size() <= kMostSentences) {
    for (std::size_t b = 0; b < c.budgets.size(); ++b) sentences.push_back(budget_sentence(c, b));
    return sentences;
  }
  if (!fit.empty()) sentences.push_back(budget_sentence(c, fit.front()));
  if (fit.size() > 1) sentences.push_back(budget_sentence(c, fit.back()));
  if (none.size() == c.budgets.size())
    sentences.push_back(budget_sentence(c, 0));
  else if (!none.empty())
    sentences.push_back(fmt::format("Nothing fits within {}.", enumerated(none)));
  return sentences;
}

// "budgets": of each the bound, and the fastest that fits.
Table budget_table(const PolicyComparison& c) {
  Table t{.name = "budgets",
          .title = "At each budget the fastest that fits",
          .columns = {"budget", "budget_bytes", "bound_s", "policy", "step_time_s", "slowdown", "above_bound",
                      "peak_reserved_bytes", "moved_bytes", "rerun_s"},
          .headings = {"budget", "bytes", "lower bound", "fastest", "step time", "slower", "above bound", "reserved",
                       "moved", "run again"},
          .rows = {}};
  for (std::size_t b = 0; b < c.budgets.size(); ++b) {
    const BudgetBound* bound = bound_of(c, b);
    const bool impossible = bound == nullptr && !c.bounds.at.empty();
    std::vector<Cell> row{cell(c.budgets[b].given), bytes_cell(c.budgets[b].bytes),
                          bound ? time_cell(bound->step_time) : unrecorded_cell(impossible ? "impossible" : "none")};
    if (const int best = c.fastest(b); best >= 0) {
      const auto policy = static_cast<std::size_t>(best);
      const PolicyCell& one = c.cell(b, policy);
      row.push_back(cell(labelled(c, policy), c.policies[policy]));
      row.push_back(time_cell(one.step_time));
      row.push_back(change_cell(share_over(one.step_time, c.unlimited_step)));
      const BudgetBound* beside = bound_for(c, b, policy);
      row.push_back(beside ? change_cell(share_over(one.step_time, beside->step_time)) : unrecorded_cell("-"));
      row.push_back(bytes_cell(one.peak_reserved));
      row.push_back(bytes_cell(one.moved));
      row.push_back(time_cell(one.rerun));
    } else {
      row.push_back(cell("nothing fits", ""));
      row.resize(t.columns.size(), unrecorded_cell("-"));
    }
    t.rows.push_back(std::move(row));
  }
  return t;
}

// Sentences of refusals, each once, in the order of the cells.
class Footnotes {
 public:
  explicit Footnotes(const PolicyComparison& c) {
    for (std::size_t p = 0; p < c.policies.size(); ++p)
      for (std::size_t b = 0; b < c.budgets.size(); ++b) {
        const std::string& refusal = c.cell(b, p).refusal;
        if (!refusal.empty() && number(p, refusal) == 0) all_.emplace_back(p, refusal);
      }
  }
  // From 1 on; 0 = there is none.
  std::size_t number(std::size_t policy, const std::string& refusal) const {
    const auto found = std::find(all_.begin(), all_.end(), std::pair(policy, refusal));
    return found == all_.end() ? 0 : static_cast<std::size_t>(found - all_.begin()) + 1;
  }
  std::vector<std::string> sentences(const PolicyComparison& c) const {
    std::vector<std::string> texts;
    for (std::size_t i = 0; i < all_.size(); ++i)
      texts.push_back(fmt::format("[{}] {} is refused: {}", i + 1, c.policies[all_[i].first], all_[i].second));
    for (std::size_t b = 0; b < c.budgets.size(); ++b)
      for (std::size_t p = 0; p < c.policies.size(); ++p)
        if (c.cell(b, p).planned_for > 0) texts.push_back(for_less(c, b, p));
    return texts;
  }

 private:
  static std::string for_less(const PolicyComparison& c, std::size_t budget, std::size_t policy) {
    const PolicyCell& cell = c.cell(budget, policy);
    const std::string held = cell.held_to == 0
                                 ? ""
                                 : fmt::format(
                                       " Limit the process to {} (torch.cuda.set_per_process_memory_fraction), as the "
                                       "allocator makes it slower with more.",
                                       human_bytes(cell.held_to));
    return fmt::format("{} at {}: uses the plan made for {}, as none as good was found for all of it.{}",
                       c.policies[policy], c.budgets[budget].given, human_bytes(cell.planned_for), held);
  }

  std::vector<std::pair<std::size_t, std::string>> all_;
};

std::string place_text(const PolicyComparison& c, const PolicyCell& one, std::size_t policy, const Footnotes& notes) {
  if (!one.refusal.empty()) return fmt::format("refused [{}]", notes.number(policy, one.refusal));
  if (!one.fits)
    return fmt::format("{} missing{}", human_bytes(one.missing),
                       one.missing_in == "budget" ? "" : " in " + one.missing_in);
  return fmt::format("{} {}{}", human_time(one.step_time), signed_percent(share_over(one.step_time, c.unlimited_step)),
                     one.is_on_front ? " *" : "  ");
}

Table matrix_table(const PolicyComparison& c, const Footnotes& notes) {
  Table t{
      .name = "times",
      .title = "Step time, and how much slower than with unlimited memory; * on the Pareto front of budget and time",
      .columns = {"policy"},
      .headings = {"policy"},
      .rows = {}};
  for (std::size_t b = 0; b < c.budgets.size(); ++b) {
    t.columns.push_back(fmt::format("budget_{}", b + 1));
    t.headings.push_back(budget_text(c.budgets[b]));
  }
  const auto right = [](std::string text) {
    Cell one = cell(std::move(text));
    one.right = true;
    return one;
  };
  for (std::size_t p = 0; p < c.policies.size(); ++p) {
    t.rows.push_back({cell(labelled(c, p), c.policies[p])});
    for (std::size_t b = 0; b < c.budgets.size(); ++b)
      t.rows.back().push_back(right(place_text(c, c.cell(b, p), p, notes)));
  }
  t.rows.push_back({cell("(lower bound)")});
  for (std::size_t b = 0; b < c.budgets.size(); ++b) {
    const BudgetBound* bound = bound_of(c, b);
    t.rows.back().push_back(right(bound == nullptr
                                      ? (c.bounds.at.empty() ? "none  " : "impossible  ")
                                      : fmt::format("{} {}  ", human_time(bound->step_time),
                                                    signed_percent(share_over(bound->step_time, c.unlimited_step)))));
  }
  return t;
}

bool is_below_bound(const PolicyComparison& c, std::size_t b, std::size_t p) {
  const BudgetBound* bound = bound_for(c, b, p);
  const PolicyCell& one = c.cell(b, p);
  return bound != nullptr && one.fits && share_over(one.step_time, bound->step_time) < -kAtBound;
}

// Which rows the bound holds for.
std::vector<std::string> bound_sentences(const PolicyComparison& c) {
  std::vector<std::string> notes, others, below;
  if (!c.bounds.why_none.empty()) notes.push_back(c.bounds.why_none);
  if (!c.bounds.at.empty())
    notes.push_back(
        fmt::format("Lower bound: in a step that repeats, no plan is faster that keeps storages in the "
                    "GPU's memory, moves them to another one ({}), or computes them again.",
                    enumerated(c.bounds.tiers)));
  for (std::size_t p = 0; p < c.policies.size(); ++p) {
    if (changes_work(c, p)) others.push_back(c.policies[p]);
    for (std::size_t b = 0; b < c.budgets.size(); ++b)
      if (is_below_bound(c, b, p)) below.push_back(fmt::format("{} within {}", c.policies[p], c.budgets[b].given));
  }
  if (!others.empty())
    notes.push_back(
        fmt::format("{} (other work): {} what the GPU computes in a step, which a memory plan never does{}.",
                    enumerated(others), others.size() == 1 ? "it changes" : "they change",
                    c.bounds.at.empty() ? "" : "; the lower bound does not hold there"));
  if (!below.empty())
    notes.push_back(
        fmt::format("Faster than the lower bound: {}. One step alone may be: nothing is on its way when it "
                    "begins, as it is in one of many.",
                    enumerated(below)));
  return notes;
}

std::vector<std::string> note_sentences(const PolicyComparison& c, const Footnotes& footnotes) {
  std::vector<std::string> notes = footnotes.sentences(c);
  for (std::string& note : bound_sentences(c)) notes.push_back(std::move(note));
  const auto lacks = [](const PolicyCell& one) { return !one.fits && one.refusal.empty(); };
  if (std::any_of(c.cells.begin(), c.cells.end(), lacks))
    notes.push_back(
        "Where a plan does not fit, the table has what is missing of the budget, or of another memory of the machine; "
        "its times take memory as unlimited.");
  notes.push_back(
      "Each cell is simulated on a GPU whose memory is the budget: its allocator gives its cache back to the "
      "device where that is full, which takes time.");
  notes.push_back(
      fmt::format("With unlimited memory a step takes {} and reserves {} for its storages; a budget in percent "
                  "(--budget 60%) is of that.",
                  human_time(c.unlimited_step), human_bytes(c.unlimited_peak)));
  return notes;
}

Table note_table(const std::vector<std::string>& notes) {
  Table t{.name = "notes", .title = "Notes", .columns = {"note"}, .headings = {""}, .rows = {}, .prose = true};
  for (const std::string& note : notes) t.rows.push_back({cell(note)});
  return t;
}

std::string title_of(const PolicyComparison& c) {
  std::string title = fmt::format("{} on {}", c.step, machine_text(c.machine, c.overrides));
  for (const std::string& policy : c.beneath) title += ", " + policy;
  return title;
}

std::vector<Cell> cells_of(const PolicyComparison& c, std::size_t b, std::size_t p) {
  const PolicyCell& one = c.cell(b, p);
  const BudgetBound* bound = bound_of(c, b);
  const Cell least = bound ? time_cell(bound->step_time) : unrecorded_cell("-");
  std::vector<Cell> row{cell(c.budgets[b].given), bytes_cell(c.budgets[b].bytes), cell(c.policies[p])};
  if (!one.refusal.empty()) {
    row.push_back(cell("refused"));
    row.resize(13, unrecorded_cell("-"));
    row[6] = cell("-", "");
    row.push_back(cell("no"));
    row.push_back(least);
    row.push_back(unrecorded_cell("-"));
    row.push_back(cell("-", ""));
    row.push_back(cell(one.refusal));
    return row;
  }
  row.push_back(cell(one.fits ? "yes" : "no"));
  row.push_back(time_cell(one.step_time));
  row.push_back(bytes_cell(one.missing));
  row.push_back(cell(one.missing_in.empty() ? "-" : one.missing_in, one.missing_in));
  row.push_back(change_cell(share_over(one.step_time, c.unlimited_step)));
  row.push_back(bytes_cell(one.peak_allocated));
  row.push_back(bytes_cell(one.peak_reserved));
  row.push_back(bytes_cell(one.moved));
  row.push_back(time_cell(one.rerun));
  row.push_back(share_cell(to_seconds(one.rerun), to_seconds(one.step_time)));
  row.push_back(cell(one.is_on_front ? "yes" : "no"));
  row.push_back(least);
  const BudgetBound* beside = one.fits ? bound_for(c, b, p) : nullptr;  // what does not fit is within no budget
  row.push_back(beside ? change_cell(share_over(one.step_time, beside->step_time)) : unrecorded_cell("-"));
  row.push_back(cell(one.keeps_work ? "yes" : "no"));
  row.push_back(cell("-", ""));
  return row;
}

}  // namespace

Table policy_cell_table(const PolicyComparison& c) {
  Table t{.name = "cells",
          .title = "Every policy at every budget",
          .columns = {"budget", "budget_bytes", "policy", "fits", "step_time_s", "missing_bytes", "missing_in",
                      "slowdown", "peak_allocated_bytes", "peak_reserved_bytes", "moved_bytes", "rerun_s",
                      "rerun_share", "pareto", "bound_s", "above_bound", "keeps_work", "refusal"},
          .headings = {"budget", "bytes", "policy", "fits", "step time", "missing", "in", "slower", "in use",
                       "reserved", "moved", "run again", "of it", "Pareto", "bound", "above", "keeps work", "refusal"},
          .rows = {},
          .detail = true};
  for (std::size_t b = 0; b < c.budgets.size(); ++b)
    for (std::size_t p = 0; p < c.policies.size(); ++p) t.rows.push_back(cells_of(c, b, p));
  return t;
}

std::vector<Table> policy_comparison_tables(const PolicyComparison& c, bool for_people) {
  const Footnotes footnotes(c);
  std::vector<Table> tables{answer_table(title_of(c), answer_sentences(c)), budget_table(c)};
  if (for_people) tables.push_back(matrix_table(c, footnotes));
  tables.push_back(policy_cell_table(c));
  tables.push_back(note_table(note_sentences(c, footnotes)));
  return tables;
}

std::string policy_comparison_json(const PolicyComparison& c) {
  return to_json({text_field("trace", c.step),
                  text_field("machine", c.machine),
                  texts_field("overrides", c.overrides),
                  texts_field("policies", c.beneath),
                  {"unlimited_step_time_s", plain_seconds(c.unlimited_step)},
                  {"unlimited_peak_bytes", std::to_string(c.unlimited_peak)}},
                 policy_comparison_tables(c, false));
}

BudgetTimeChart policy_comparison_chart(const PolicyComparison& c) {
  BudgetTimeChart chart{title_of(c), "", to_seconds(c.unlimited_step), {}, {}};
  const Footnotes footnotes(c);
  chart.subtitle = "Step time under policies within budgets of GPU memory" +
                   (c.bounds.why_none.empty() ? "" : ". " + c.bounds.why_none);
  for (std::size_t b = 0; b < c.budgets.size(); ++b) {
    const BudgetBound* bound = bound_of(c, b);
    chart.budgets.push_back(
        {c.budgets[b].given, c.budgets[b].bytes, bound ? std::optional(to_seconds(bound->step_time)) : std::nullopt});
  }
  for (std::size_t p = 0; p < c.policies.size(); ++p) {
    BudgetLine line{labelled(c, p), {}};
    for (std::size_t b = 0; b < c.budgets.size(); ++b) {
      const PolicyCell& one = c.cell(b, p);
      line.points.push_back({!one.refusal.empty() ? BudgetOutcome::refused
                             : one.fits           ? BudgetOutcome::fits
                                                  : BudgetOutcome::does_not_fit,
                             to_seconds(one.step_time), one.is_on_front,
                             one.refusal.empty() ? place_text(c, one, p, footnotes) : one.refusal});
    }
    chart.lines.push_back(std::move(line));
  }
  return chart;
}

}  // namespace memwall
