#include "cli/print/advice_tables.h"

#include <fmt/format.h>

#include "cli/print/answer.h"
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

std::vector<std::string> answer(const StepAdvice& a) {
  const AdvisedPlan& best = a.plans.front();
  const PlanCertificate& c = a.certificate;
  const double unlimited = to_seconds(a.unlimited);
  std::vector<std::string> sentences;
  if (!best.fits) {
    sentences.push_back(fmt::format("No plan that was tried fits into {}. {} comes nearest: {} are missing.",
                                    human_bytes(a.budget), policies_text(best), human_bytes(best.missing)));
  } else {
    sentences.push_back(fmt::format("Take --policy {}: the step takes {}, {} against unlimited memory ({}), within {}.",
                                    policies_text(best), human_time(best.step_time),
                                    change_text(slower(best.step_time, unlimited)), human_time(a.unlimited),
                                    human_bytes(a.budget)));
    if (c.joint_seconds > 0)
      sentences.push_back(fmt::format("No plan is faster than {}: this one is within {:.2f} % of that bound.",
                                      human_time(c.joint_seconds),
                                      100 * std::max(0.0, slower(best.step_time, c.joint_seconds))));
  }
  if (c.least_budget > a.budget)
    sentences.push_back(fmt::format("One op alone touches {}: no plan of whole storages keeps to less.",
                                    human_bytes(c.least_budget)));
  return sentences;
}

Table plan_table(const StepAdvice& a) {
  Table t{.name = "plans",
          .title = "The recommended plan, and others, each simulated",
          .columns = {"policy", "fits", "step_time_s", "against_unlimited", "peak_reserved_bytes", "missing_bytes",
                      "copied_out_bytes", "copied_back_bytes", "rerun_time_s"},
          .headings = {"plan", "fits", "step time", "against unlimited", "reserved", "missing", "out", "back",
                       "run again"},
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
          .title = "What no plan can beat, and what more would be worth (of a step in a row of steps)",
          .columns = {"quantity", "seconds"},
          .headings = {"", "time"},
          .rows = {}};
  const auto row = [&](const char* what, double seconds) { t.rows.push_back({cell(what), seconds_cell(seconds)}); };
  row("least with unlimited memory", c.ideal_seconds);
  row("least of plans that only move", c.moves_seconds);
  row("least of plans that move and compute again", c.joint_seconds);
  if (best > 0) {
    row("the recommended plan", best);
    row("its distance from the least", best - c.joint_seconds);
    if (a.untouched.fits) row("regret against doing nothing", to_seconds(a.untouched.step_time) - best);
    if (a.full_checkpointing.fits)
      row("regret of full checkpointing", to_seconds(a.full_checkpointing.step_time) - best);
  }
  row("worth of 1 GB more device memory, moves only", c.moves_per_gigabyte);
  row("worth of 1 GB more device memory", c.joint_per_gigabyte);
  row("worth of 1 GB/s more out of the device, moves only", c.moves_per_out_rate);
  row("worth of 1 GB/s more out of the device", c.joint_per_out_rate);
  row("worth of 1 GB/s more into the device, moves only", c.moves_per_in_rate);
  row("worth of 1 GB/s more into the device", c.joint_per_in_rate);
  return t;
}

Table peak_table(const StepAdvice& a) {
  Table t{.name = "peaks",
          .title = "What holds the peak, and which waits behind it",
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

Table refused_table(const StepAdvice& a) {
  Table t{.name = "refused", .title = "Plans that could not be made", .columns = {"reason"}, .headings = {""}, .rows = {},
          .prose = true};
  for (const std::string& reason : a.refused) t.rows.push_back({cell(reason)});
  return t;
}

}  // namespace

std::vector<Table> advice_tables(const StepAdvice& advice) {
  std::vector<Table> tables{answer_table("", answer(advice)), plan_table(advice), why_table(advice),
                            certificate_table(advice),
                            peak_table(advice)};
  if (!advice.refused.empty()) tables.push_back(refused_table(advice));
  return tables;
}

}  // namespace memwall
