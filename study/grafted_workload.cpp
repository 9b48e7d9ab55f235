#include "study/grafted_workload.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "models/hw/machine_file.h"
#include "models/hw/pricer.h"
#include "models/hw/traffic.h"
#include "models/workload/generate/configuration/workload_file.h"
#include "models/workload/graft/graft.h"
#include "policies/batch/batch_request.h"
#include "sim/error.h"
#include "sim/human_text.h"
#include "sim/policy/registry.h"
#include "sim/trace/trace_check.h"
#include "study/complete_step.h"
#include "study/measured_machine.h"

namespace memwall {
namespace {

// Less of it, and it is not the same network.
constexpr double kLeastSure = 0.5;
// More of the products and convolutions without a partner, and it has other layers; of what may be unpaired at all.
constexpr double kProductsOfUnpaired = 0.5;
// So many operators are named, the longest first.
constexpr std::size_t kNamed = 6;

std::string percent(double share) { return fmt::format("{:.1f} %", 100 * share); }

std::string named(const std::vector<GraftedOperator>& operators) {
  std::string text;
  for (std::size_t i = 0; i < std::min(kNamed, operators.size()); ++i)
    text += fmt::format("{}{} ({}, {})", i == 0 ? "" : "; ", operators[i].what,
                        counted_text(operators[i].work.lines, "line"), human_time(operators[i].work.time));
  if (operators.size() > kNamed) text += fmt::format("; and {} more", operators.size() - kNamed);
  return text;
}

void require_same_network(const GraftReport& r, const std::string& profile, const GraftSettings& settings) {
  const auto refuse = [&](const std::string& found, const std::string& expected) {
    throw UsageError(
        fmt::format("{} onto {}: {}; expected {}. Is it the same network, recipe and batch? In the profile alone: {}. "
                    "In the complete "
                    "step alone: {}.",
                    profile, settings.onto, found, expected, r.left_alone.empty() ? "nothing" : named(r.left_alone),
                    r.left_priced.empty() ? "nothing" : named(r.left_priced)));
  };
  if (r.measured.lines == 0) refuse("the profile has no work on a device", "kernels");
  if (r.sure_share() < kLeastSure)
    refuse(fmt::format("{} of the measured device time has a partner by its operator", percent(r.sure_share())),
           "half of it at least");
  const double most_products = kProductsOfUnpaired * settings.most_unpaired;
  if (100 * r.products_alone > most_products)
    refuse(
        fmt::format("{} of the matrix products, convolutions and attentions of one of the two have no partner in the "
                    "other",
                    percent(r.products_alone)),
        fmt::format("at most {:g} %, half of what may be unpaired (--accept-unpaired of memwall import)",
                    most_products));
  if (100 * r.unpaired_share() > settings.most_unpaired)
    refuse(
        fmt::format("{} of the device time of one of the two has no partner in the other", percent(r.unpaired_share())),
        fmt::format("at most {:g} % (--accept-unpaired of memwall import)", settings.most_unpaired));
}

std::uint64_t all_of(const GraftReport& r) { return r.measured.lines; }

std::vector<Decision> decisions_of(const GraftReport& r, const std::string& onto) {
  std::vector<Decision> all;
  const auto share = [&](const GraftedWork& work) {
    return percent(r.measured.time == Duration{} ? 0 : to_seconds(work.time) / to_seconds(r.measured.time));
  };
  all.push_back({"complete step: paired by operator",
                 fmt::format("The profile's times are on the complete step {}: its storages, modules and shapes, the "
                             "profile's kernels, calls and streams. {} of the measured device time has its operator "
                             "there by name, {} by class of work.",
                             onto, share(r.by_name), share(r.by_class)),
                 r.by_name.lines + r.by_class.lines, all_of(r)});
  if (r.repeats > 1)
    all.push_back(
        {"complete step: steps",
         r.steps > 1
             ? fmt::format("The profile has {} steps, the complete step stands in the trace as often.", r.repeats)
             : fmt::format("The profile marks no steps, its operators occur {} times as often as in the "
                           "complete step, which stands in the trace as often.",
                           r.repeats)});
  if (r.by_place.lines > 0)
    all.push_back({"complete step: taken for each other by place",
                   fmt::format("Between the same neighbours in both, other operators of like time: {} of the measured "
                               "device time. {}.",
                               share(r.by_place), named(r.taken_for)),
                   r.by_place.lines, all_of(r)});
  if (r.alone.lines > 0)
    all.push_back({"complete step: in the profile alone",
                   fmt::format("{} of the measured device time has no partner and stays, without storages: {}.",
                               share(r.alone), named(r.left_alone)),
                   r.alone.lines, all_of(r)});
  if (r.workspaces > 0)
    all.push_back(
        {"complete step: workspaces",
         fmt::format("The profile's memory events show {} that one call of an operator took and gave back, the "
                     "largest of {}: they stay.",
                     counted_text(r.workspaces, "piece"), human_bytes(r.largest_workspace))});
  if (r.priced.lines > 0)
    all.push_back({"complete step: in it alone",
                   fmt::format("Nothing was measured of {} of it, {} are modelled: {}.",
                               counted_text(r.priced.lines, "line"), human_time(r.priced.time), named(r.left_priced))});
  if (r.differing > 0 && !r.is_of_other_size)
    all.push_back({"complete step: shapes that differ",
                   "Most shapes agree, so that nothing is scaled; the complete step's are taken.", r.differing,
                   all_of(r)});
  return all;
}

void require_other_batch(const GraftReport& r, const std::string& profile, const GraftSettings& settings) {
  if (r.batch_ratio != 1) return;
  require_same_network(r, profile, settings);  // the better sentence where it is another one
  throw UsageError(fmt::format(
      "{} onto {}: {} differ in shape, and not as another batch makes them. Is it the same length, width and image?",
      profile, settings.onto, counted_text(r.differing, "kernel")));
}

void require_one_size(const GraftReport& r, const std::string& profile, const std::string& onto) {
  if (!r.is_of_other_size) return;
  throw UsageError(
      fmt::format("{} onto {}: {} differ in shape still; give the complete step at the profile's batch, "
                  "length and width.",
                  profile, onto, counted_text(r.differing, "kernel")));
}

// A profile of another batch: what its shapes say of that, and the step that it is grafted onto then.
struct OtherBatch {
  double samples = 0;  // per step, that the complete step was given with
  Decision decision;
};

OtherBatch other_batch(const CompleteStep& asked, const CompleteStep& measured, const GraftReport& r) {
  const double samples = asked.trace.samples_per_step;
  return {samples,
          {"complete step: another batch",
           fmt::format(
               "The profile's kernels are {:.4g} times as large as those of {}: its times are put onto {}, and {:g} "
               "samples per step are predicted of it as --policy {} does.",
               r.batch_ratio, asked.name, measured.name, samples,
               batch_policy({.samples = static_cast<std::int64_t>(samples)})),
           r.of_that_ratio, r.differing}};
}

// Of a network by its name alone, whose batch nobody asked for.
bool takes_profiles_batch(const std::string& onto) {
  return names_workload(onto) && onto.find("batch=") == std::string::npos;
}

void require_priced(const Trace& measured) {
  if (!measured.knowledge.timing)
    throw UsageError(
        fmt::format("{}: nothing in it was measured; --onto takes the times of a profile.", measured.name));
  if (measured.machine.empty())
    throw UsageError(fmt::format(
        "{}: it does not say on which machine it was measured, and what was not measured has no price; give "
        "--measured-on.",
        measured.name));
  if (!has_machine(measured.machine) && !std::filesystem::is_regular_file(measured.machine))
    throw UsageError(fmt::format("{}: {}", measured.name, unknown_gpu_sentence(measured.machine, 0)));
}

}  // namespace

Workload grafted_workload(Workload profile, const GraftSettings& settings, Watch* watch) {
  Trace& measured = profile.trace;
  require_priced(measured);
  const Machine machine = load_machine(measured.machine);
  const std::unique_ptr<Pricer> pricer = make_pricer(machine);
  CompleteStep complete = load_complete_step(settings.onto, measured, machine, watch);
  GraftedTrace grafted = graft(measured, complete.trace, profile.calls);
  std::optional<OtherBatch> other;
  if (grafted.report.is_of_other_size) {
    require_other_batch(grafted.report, measured.name, settings);
    CompleteStep at_batch = at_other_batch(complete, grafted.report.batch_ratio, machine, *pricer, watch);
    other = other_batch(complete, at_batch, grafted.report);
    complete = std::move(at_batch);
    grafted = graft(measured, complete.trace, profile.calls);
    require_one_size(grafted.report, measured.name, complete.name);
  }
  profile.calls = {};
  require_same_network(grafted.report, measured.name, settings);
  require_made_sound(grafted.trace, "graft");
  measured = with_possible_traffic(std::move(grafted.trace), machine);
  std::vector<Decision> decisions = decisions_of(grafted.report, complete.name);
  if (other && takes_profiles_batch(settings.onto)) {
    other->decision.sentence = fmt::format("{} states no batch: the profile's is taken, {}.", settings.onto, complete.name);
    decisions.push_back(std::move(other->decision));
  } else if (other) {
    const std::string policy = batch_policy({.samples = static_cast<std::int64_t>(other->samples)});
    measured = apply_rewriters(measured, {parse_policy(policy)}, machine, *pricer);
    decisions.push_back(std::move(other->decision));
  }
  profile.is_checked = true;
  for (Decision& decision : decisions) {
    measured.notes.insert(measured.notes.begin(), note_of(decision));
    profile.decisions.push_back(std::move(decision));
  }
  for (std::filesystem::path& file : complete.files) profile.files.push_back(std::move(file));
  return profile;
}

Workload complete_workload(const std::vector<std::filesystem::path>& paths,
                           const std::vector<std::filesystem::path>& execution_traces, const JobSettings& job,
                           const GraftSettings& settings, Watch* watch) {
  Workload workload = load_workload(paths, execution_traces, job, watch);
  if (!settings.onto.empty()) return grafted_workload(std::move(workload), settings, watch);
  std::error_code error;
  const bool covers_part = paths.size() == 1 && execution_traces.size() == 1 &&
                           std::filesystem::is_regular_file(execution_traces.front(), error) &&
                           !workload.trace.knowledge.dataflow && workload.trace.rank_table.empty();
  if (!covers_part) return workload;
  try {
    Workload repeated = grafted_workload(load_workload(paths, {}, job, watch),
                                         {execution_traces.front().string(), settings.most_unpaired}, watch);
    Decision decision{"ExecutionTrace of a part of the profile",
                      "It covers less than nine tenths of the device's work, so it is taken as one step, which stands "
                      "for each of the profile's (as with --onto).",
                      0, 0, NoteKind::assumed};
    repeated.note_kinds.insert_or_assign(note_of(decision), decision.kind);
    repeated.trace.notes.insert(repeated.trace.notes.begin(), note_of(decision));
    repeated.decisions.push_back(std::move(decision));
    return repeated;
  } catch (const UsageError& why) {
    workload.trace.notes.push_back(fmt::format("The ExecutionTrace is no step that stands for each: {}", why.what()));
    workload.note_kinds.insert_or_assign(workload.trace.notes.back(), NoteKind::missing);
    return workload;
  }
}

}  // namespace memwall
