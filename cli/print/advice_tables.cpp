#include "cli/print/advice_tables.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/print/answer.h"
#include "cli/print/given_size.h"
#include "cli/print/table_cells.h"
#include "sim/human_text.h"

namespace memwall {
namespace {

std::string policies_text(const AdvisedPlan& plan) {
  std::string text;
  for (const std::string& policy : plan.policies) text += (text.empty() ? "" : " ") + policy;
  return text.empty() ? "none" : text;
}

double slower(Duration step, double than) { return than > 0 ? to_seconds(step) / than - 1 : 0; }

std::string change_text(double ratio) { return fmt::format("{:+.1f} %", 100 * ratio); }

// How the step is laid out over GPUs, as one types it.
std::string layout_text(const StepLayout& layout) {
  std::string text = layout.scenario.step.front();
  for (const std::string& policy : layout.scenario.policies) text += " --policy " + policy;
  return text;
}

// In seconds, for plans as they were asked for; 0: there is none, as no plan keeps to the budget.
double bound_of(const StepAdvice& a) {
  if (a.certificate.least_budget > a.budget) return 0;
  return a.moves_only ? a.certificate.moves_seconds : a.certificate.joint_seconds;
}

// What the bound of plans that only move speaks of (policies/cycle/whole_moves.h).
const char* const kMovesAlike = "that only moves whole storages, alike in every step,";

std::string smallest_sentence(const StepAdvice& a) {
  if (a.is_too_long) return "The smallest budget was not looked for: of more than 50,000 ops that takes too long.";
  if (a.smallest.bytes == 0) return "";
  const std::string size = human_bytes(a.smallest.bytes);
  if (a.smallest_policy.empty())
    return fmt::format("No smaller budget was found that fits than the {} of the step as it is.", size);
  return fmt::format("The smallest budget that a plan was found for: {} (--policy {}{}).", size, a.smallest_policy,
                     a.smallest_policy.find("search=0") == std::string::npos
                         ? ""
                         : "; search=0: the first plan that keeps to it, no faster one was looked for");
}

// A reserved size may be above the budget.
std::string beside_sentence(const StepAdvice& a) {
  if (a.beside == 0) return "";
  return fmt::format("The budget is for the step's storages: beside it {} of the GPU's memory are taken before the step "
                     "begins and are no storage of it, which makes {} in all; reserved sizes below have them.",
                     human_bytes(a.beside), human_bytes(a.budget + a.beside));
}

// A larger GPU is asked about.
std::string device_sentence(const StepAdvice& a) {
  if (a.budget <= a.device) return "";
  return fmt::format(
      "The budget is more than the {} that this machine's GPU has for the step: all of the answer is for a GPU with "
      "{} for it, be the step left as it is or planned.",
      human_bytes(a.device), human_bytes(a.budget));
}

std::string missing_sentence(const StepAdvice& a) {
  if (std::ranges::none_of(a.plans, [](const AdvisedPlan& plan) { return plan.missing > 0; })) return "";
  return "Missing is what a GPU of the budget's size lacks at worst: what is allocated beyond it or, where enough is "
         "free but "
         "in pieces, all of the block that finds no place. Reserved is what the allocator takes where it is given "
         "that: the "
         "one is no difference of the other from the budget.";
}

std::string largest_sentence(const StepAdvice& a) {
  std::string text = fmt::format("Alone {} touches {}: no plan of whole storages keeps to less.", a.largest_op,
                                 human_bytes(a.certificate.least_budget));
  if (a.largest_updates)
    text +=
        " It is of the optimizer's step: ask again with --policy offload:what=optimizer, which the CPU then computes.";
  return text;
}

std::string settings_sentence(const StepAdvice& a) {
  if (!a.with_other_settings) return "";
  const AdvisedPlan& best = a.plans.front();
  const Duration other = a.with_other_settings->step_time;
  return fmt::format("With --alloc-conf {} a first plan takes {}{}: ask again with it.", kOtherSettings,
                     human_time(other),
                     best.fits ? fmt::format(" instead of {}", human_time(best.step_time)) : " and fits");
}

// "7.338GB", as --budget takes it. REQUIRES: `given` is a number and "%".
std::string budget_of_step(const std::string& given, Bytes reserved) {
  std::string size = human_bytes(static_cast<Bytes>(std::stod(given) / 100 * static_cast<double>(reserved)));
  std::erase(size, ' ');
  return size;
}

std::vector<std::string> answer(const StepAdvice& a) {
  const AdvisedPlan& best = a.plans.front();
  const PlanCertificate& c = a.certificate;
  const double unlimited = to_seconds(a.unlimited);
  std::vector<std::string> sentences;
  if (!a.layouts.empty())
    sentences.push_back(fmt::format("Of {} that were compared, {} is the best.",
                                    counted_text(a.layouts.size(), "layout"), layout_text(a.layouts.front())));
  if (!best.fits) {
    sentences.push_back(fmt::format("No plan that was tried fits into {}. {} comes nearest: {} are missing.",
                                    given_size(a.given_budget, a.budget), policies_text(best),
                                    human_bytes(best.missing)));
  } else if (best.policies.empty()) {
    sentences.push_back(fmt::format("The step fits into {} as it is, in {}: no plan is needed.",
                                    given_size(a.given_budget, a.budget), human_time(a.unlimited)));
    if (a.given_budget.ends_with('%'))
      sentences.push_back(fmt::format("{} is of the GPU's memory; of what the step reserves it is --budget {}.",
                                      a.given_budget, budget_of_step(a.given_budget, best.peak_reserved)));
  } else {
    sentences.push_back(
        fmt::format("Take --policy {}: the step takes {}, {} against unlimited memory ({}), on a GPU with {} for it.",
                    policies_text(best), human_time(best.step_time), change_text(slower(best.step_time, unlimited)),
                    human_time(a.unlimited), given_size(a.given_budget, a.budget)));
    if (bound_of(a) > 0)
      sentences.push_back(fmt::format("No plan {} is faster than {}: this one takes {:.1f} % longer than that bound.",
                                      a.moves_only ? kMovesAlike : "that moves or computes again",
                                      human_time(bound_of(a)),
                                      100 * std::max(0.0, slower(best.step_time, bound_of(a)))));
  }
  if (!best.lives_recorded)
    sentences.push_back(
        "The capture does not say how long storages live: bytes are lower bounds, and what fits here may not.");
  if (c.least_budget > a.budget) sentences.push_back(largest_sentence(a));
  sentences.push_back(device_sentence(a));
  sentences.push_back(beside_sentence(a));
  sentences.push_back(missing_sentence(a));
  sentences.push_back(settings_sentence(a));
  sentences.push_back(smallest_sentence(a));
  return sentences;
}

Table plan_table(const StepAdvice& a) {
  Table t{
      .name = "plans",
      .title = a.plans.front().fits ? "The recommended plan, and others, each simulated"
                                    : "Plans that were tried, each simulated, the nearest first: none fits",
      .columns = {"policy", "fits", "step_time_s", "against_unlimited", "peak_reserved_bytes", "missing_bytes",
                  "copied_out_bytes", "copied_back_bytes", "rerun_time_s"},
      .headings = {"plan", "fits", "step time", "against unlimited", "reserved", "missing", "out", "back", "run again"},
      .rows = {},
      .wrap = true};
  for (const AdvisedPlan& plan : a.plans) {
    const double ratio = slower(plan.step_time, to_seconds(a.unlimited));
    t.rows.push_back({cell(policies_text(plan)), cell(plan.fits ? "yes" : "no"), time_cell(plan.step_time),
                      number_cell(change_text(ratio), plain_number(ratio)), bytes_cell(plan.peak_reserved),
                      bytes_cell(plan.missing), bytes_cell(plan.bytes_out), bytes_cell(plan.bytes_in),
                      time_cell(plan.rerun_time)});
  }
  return t;
}

Table why_table(const StepAdvice& a) {
  Table t{.name = "why", .title = "Why", .columns = {"reason"}, .headings = {""}, .rows = {}, .prose = true};
  for (const AdvisedPlan& plan : a.plans) t.rows.push_back({cell(policies_text(plan) + ": " + plan.why + ".")});
  return t;
}

Cell seconds_cell(double seconds) { return number_cell(human_time(seconds), plain_number(seconds)); }

Table certificate_table(const StepAdvice& a) {
  const PlanCertificate& c = a.certificate;
  const double best = a.plans.front().fits ? to_seconds(a.plans.front().step_time) : 0;
  Table t{.name = "certificate",
          .title =
              "What no plan can beat (of a step in a row of steps), and prices: what 1 GB (10^9 bytes) more of memory, "
              "or 1 GB/s "
              "more of the links, takes off it",
          .columns = {"quantity", "seconds"},
          .headings = {"", "time"},
          .rows = {}};
  const auto row = [&](const char* what, double seconds) { t.rows.push_back({cell(what), seconds_cell(seconds)}); };
  row("least with unlimited memory", c.ideal_seconds);
  if (c.least_budget > a.budget) return t;  // no plan keeps to it
  row("least of plans that move whole storages, steps alike", c.moves_seconds);
  if (a.moves_only)
    row("least of plans that compute again, too", c.joint_seconds);
  else
    row("least of plans that move and compute again", c.joint_seconds);
  if (best > 0) {
    row("the recommended plan", best);
    row("its distance from the least", best - bound_of(a));
  }
  row("worth of 1 GB more device memory, moves only", c.moves_per_gigabyte);
  row("worth of 1 GB more device memory", c.joint_per_gigabyte);
  row("worth of 1 GB/s more out of the device, moves only", c.moves_per_out_rate);
  row("worth of 1 GB/s more out of the device", c.joint_per_out_rate);
  row("worth of 1 GB/s more into the device, moves only", c.moves_per_in_rate);
  row("worth of 1 GB/s more into the device", c.joint_per_in_rate);
  row("worth of 1 GB/s more both ways, moves only", c.moves_per_rate);
  row("worth of 1 GB/s more both ways", c.joint_per_rate);
  return t;
}

Table peak_table(const StepAdvice& a) {
  Table t{.name = "peaks",
          .title = "What holds the peak: of the step, and where each kind of storage is away between its uses",
          .columns = {"lever", "peak_bytes", "at_s", "op"},
          .headings = {"", "peak", "at", "op"},
          .rows = {}};
  const auto row = [&](const std::string& what, const PeakInstant& peak, const std::string& op) {
    t.rows.push_back({cell(what), bytes_cell(peak.bytes), time_cell(peak.at), cell(op)});
  };
  row("the step as it is", a.certificate.peak, a.peak_op);
  for (std::size_t i = 0; i < a.certificate.levers.size(); ++i)
    row(a.certificate.levers[i].name, a.certificate.levers[i].peak, a.lever_ops[i]);
  return t;
}

// What doing nothing and what frameworks do by one switch would cost beside the recommended plan.
Table regret_table(const StepAdvice& a) {
  const AdvisedPlan& best = a.plans.front();
  Table t{.name = "regret",
          .title = "What others would cost against the recommended plan",
          .columns = {"instead", "fits", "missing_bytes", "longer_s", "meaning"},
          .headings = {"instead", "fits", "missing", "longer", ""},
          .rows = {}};
  const auto row = [&](const char* what, const AdvisedPlan& other) {
    const double longer = to_seconds(other.step_time) - to_seconds(best.step_time);
    std::string meaning = other.fits ? "" : "it does not fit: " + human_bytes(other.missing) + " are missing";
    if (other.fits && best.fits)
      meaning = longer >= 0 ? fmt::format("the step takes {} more", human_time(longer))
                            : fmt::format("the step takes {} less", human_time(-longer));
    const bool timed = other.fits && best.fits;
    t.rows.push_back({cell(what), cell(other.fits ? "yes" : "no"), bytes_cell(other.missing),
                      timed ? number_cell(human_time(longer), plain_number(longer)) : unrecorded_cell("-"),
                      cell(std::move(meaning))});
  };
  if (best.policies.empty())
    t.rows.push_back(
        {cell("doing nothing"), cell("yes"), bytes_cell(0), time_cell(Duration{}), cell("it is the best")});
  else
    row("doing nothing", a.untouched);
  if (!a.full_checkpointing.policies.empty())
    row("full checkpointing", a.full_checkpointing);
  else
    t.rows.push_back({cell("full checkpointing"), cell("-"), unrecorded_cell("-"), unrecorded_cell("-"),
                      cell("it cannot be applied to this step")});
  return t;
}

Table smallest_table(const StepAdvice& a) {
  Table t{.name = "smallest_budget",
          .title = "The smallest budget that a plan was found for, to a hundredth of what the step needs",
          .columns = {"bytes", "policy", "needed_bytes", "plans_tried"},
          .headings = {"budget", "plan", "the step as it is needs", "plans tried"},
          .rows = {}};
  t.rows.push_back({bytes_cell(a.smallest.bytes), cell(a.smallest_policy.empty() ? "none" : a.smallest_policy),
                    bytes_cell(a.needed), count_cell(a.smallest.tries)});
  return t;
}

// What a layout that was refused or not planned has in the columns of its plan.
std::string layout_remark(const StepLayout& layout) {
  if (!layout.refusal.empty()) return layout.refusal;
  if (layout.planned) return "planned";
  return layout.unplanned.fits ? "needs no plan" : "not planned: no plan of it is faster than the best";
}

Table layout_table(const StepAdvice& a) {
  Table t{.name = "layouts",
          .title =
              "The same step over the GPUs in other ways, each with the first plan that keeps to the budget "
              "(search=0: no faster one is looked for)",
          .columns = {"zero_stage", "micro_batch", "passes", "fits", "step_time_s", "unlimited_step_time_s",
                      "missing_bytes", "remark"},
          .headings = {"ZeRO", "samples a pass", "passes", "fits", "step time", "unlimited", "missing", ""},
          .rows = {}};
  for (const StepLayout& layout : a.layouts) {
    const bool known = layout.refusal.empty(), counted = layout.micro_batch > 0;
    const AdvisedPlan& best = layout.best();
    const bool timed = known && best.fits;
    t.rows.push_back(
        {layout.zero_stage ? count_cell(static_cast<std::uint64_t>(*layout.zero_stage)) : unrecorded_cell("-"),
         counted ? count_cell(static_cast<std::uint64_t>(layout.micro_batch)) : unrecorded_cell("-"),
         counted ? count_cell(static_cast<std::uint64_t>(layout.passes)) : unrecorded_cell("-"),
         cell(timed ? "yes" : "no"), timed ? time_cell(best.step_time) : unrecorded_cell("-"),
         known ? time_cell(layout.unplanned.step_time) : unrecorded_cell("-"),
         known ? bytes_cell(best.missing) : unrecorded_cell("-"), cell(layout_remark(layout))});
  }
  return t;
}

Table refused_table(const StepAdvice& a) {
  Table t{.name = "refused",
          .title = "Plans that could not be made",
          .columns = {"reason"},
          .headings = {""},
          .rows = {},
          .prose = true};
  for (const std::string& reason : a.refused) t.rows.push_back({cell(reason)});
  return t;
}

}  // namespace

std::vector<Table> advice_tables(const StepAdvice& advice) {
  std::vector<Table> tables{answer_table("", answer(advice))};
  if (!advice.layouts.empty()) tables.push_back(layout_table(advice));
  tables.push_back(plan_table(advice));
  tables.push_back(why_table(advice));
  tables.push_back(regret_table(advice));
  if (advice.smallest.bytes > 0) tables.push_back(smallest_table(advice));
  tables.push_back(certificate_table(advice));
  tables.push_back(peak_table(advice));
  if (!advice.refused.empty()) tables.push_back(refused_table(advice));
  return tables;
}

}  // namespace memwall
