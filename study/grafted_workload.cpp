#include "study/grafted_workload.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "models/hw/machine_file.h"
#include "models/hw/modelled_step.h"
#include "models/hw/pricer.h"
#include "models/hw/traffic.h"
#include "models/hw/transfer.h"
#include "models/workload/generate/configuration/workload_file.h"
#include "models/workload/graft/graft.h"
#include "sim/error.h"
#include "sim/human_text.h"
#include "sim/trace/trace_check.h"
#include "study/measured_machine.h"

namespace memwall {
namespace {

// Less of it, and it is not the same network.
constexpr double kLeastSure = 0.5;
// So many operators are named, the longest first.
constexpr std::size_t kNamed = 6;

// The type in which most of the time of matrix products and convolutions is spent; "" = what a network does by itself.
std::string precision_setting(const Trace& profile) {
  std::map<DataType, Duration> times;
  for (const Op& op : profile.ops)
    if (op.kind == OpKind::kernel &&
        (op.operator_class == OperatorClass::gemm || op.operator_class == OperatorClass::convolution))
      times[op.data_type == DataType::tf32 ? DataType::fp32 : op.data_type] += op.duration;
  const auto most = std::ranges::max_element(times, [](const auto& a, const auto& b) { return a.second < b.second; });
  if (most == times.end()) return "";
  if (most->first == DataType::fp32) return "precision=fp32";
  return most->first == DataType::fp16 ? "precision=amp_fp16" : "";
}

// A network's name without a precision is meant in the profile's; programs of their own (execution: native) have one.
std::string with_precision(const std::string& onto, const Trace& profile) {
  const std::string precision = precision_setting(profile);
  if (precision.empty() || !names_workload(onto) || onto.find("precision=") != std::string::npos) return onto;
  if (load_training_job(onto).recipe.execution == ExecutionMode::native) return onto;
  return onto + (onto.find(':') == std::string::npos ? ":" : ",") + precision;
}

Trace priced(Trace complete, const Machine& machine) {
  if (measured_nowhere(complete)) return modelled_on(std::move(complete), machine);
  if (complete.machine == machine.name) return complete;
  if (complete.machine.empty()) return transferred(std::move(complete), nullptr, machine);
  if (!has_machine(complete.machine) && !std::filesystem::is_regular_file(complete.machine))
    throw UsageError(fmt::format("{}: {}", complete.name, unknown_gpu_sentence(complete.machine, 0)));
  const Machine own = load_machine(complete.machine);
  return transferred(std::move(complete), &own, machine);
}

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
  if (100 * r.unpaired_share() > settings.most_unpaired)
    refuse(fmt::format("{} of the device time has no partner in the other program", percent(r.unpaired_share())),
           fmt::format("at most {:g} % (--accept-unpaired of memwall import)", settings.most_unpaired));
  // The ratio of a call of several kernels, and of work without FLOPs or shape, is not known: times would be wrong.
  if (r.scaled > 0)
    throw UsageError(fmt::format(
        "{} onto {}: {} differ in shape: the profile is of another batch or size, which --onto does not scale (not "
        "implemented). Give the complete step at the profile's batch, and then --policy batch:N for another.",
        profile, settings.onto, counted_text(r.scaled, "kernel")));
}

std::uint64_t all_of(const GraftReport& r) { return r.measured.lines; }

std::vector<Decision> decisions_of(const GraftReport& r, const std::string& onto) {
  std::vector<Decision> all;
  const auto share = [&](const GraftedWork& work) {
    return percent(r.measured.time == Duration{} ? 0 : to_seconds(work.time) / to_seconds(r.measured.time));
  };
  all.push_back({"grafted: paired by operator",
                 fmt::format("The profile's times are on the complete step {}: its storages, modules and shapes, the "
                             "profile's kernels, calls and streams. {} of the measured device time has its operator "
                             "there by name, {} by class of work.",
                             onto, share(r.by_name), share(r.by_class)),
                 r.by_name.lines + r.by_class.lines, all_of(r)});
  if (r.repeats > 1)
    all.push_back(
        {"grafted: steps",
         r.steps > 1
             ? fmt::format("The profile has {} steps, the complete step stands in the trace as often.", r.repeats)
             : fmt::format("The profile marks no steps, its operators occur {} times as often as in the "
                           "complete step, which stands in the trace as often.",
                           r.repeats)});
  if (r.by_place.lines > 0)
    all.push_back({"grafted: taken for each other by place",
                   fmt::format("Between the same neighbours in both, other operators of like time: {} of the measured "
                               "device time. {}.",
                               share(r.by_place), named(r.taken_for)),
                   r.by_place.lines, all_of(r)});
  if (r.alone.lines > 0)
    all.push_back({"grafted: in the profile alone",
                   fmt::format("{} of the measured device time has no partner and stays, without storages: {}.",
                               share(r.alone), named(r.left_alone)),
                   r.alone.lines, all_of(r)});
  if (r.workspaces > 0)
    all.push_back(
        {"grafted: workspaces",
         fmt::format("The profile's memory events show {} that one call of an operator took and gave back, the "
                     "largest of {}: they stay.",
                     counted_text(r.workspaces, "piece"), human_bytes(r.largest_workspace))});
  if (r.priced.lines > 0)
    all.push_back({"grafted: in the complete step alone",
                   fmt::format("Nothing was measured of {} of it, {} are modelled: {}.",
                               counted_text(r.priced.lines, "line"), human_time(r.priced.time), named(r.left_priced))});
  if (r.differing > 0)
    all.push_back({"grafted: shapes that differ",
                   "Most shapes agree, so that nothing is scaled; the complete step's are taken.", r.differing,
                   all_of(r)});
  return all;
}

}  // namespace

Workload grafted_workload(Workload profile, const GraftSettings& settings, Watch* watch) {
  Trace& measured = profile.trace;
  if (!measured.knowledge.timing)
    throw UsageError(fmt::format("{}: nothing in it was measured; --onto takes the times of a profile.", measured.name));
  if (measured.machine.empty())
    throw UsageError(fmt::format(
        "{}: it does not say on which machine it was measured, and what was not measured has no price; give "
        "--measured-on.",
        measured.name));
  const std::string onto = with_precision(settings.onto, measured);
  if (!has_machine(measured.machine) && !std::filesystem::is_regular_file(measured.machine))
    throw UsageError(fmt::format("{}: {}", measured.name, unknown_gpu_sentence(measured.machine, 0)));
  Workload complete = load_workload(onto, ImportSettings{}, "", watch);
  const Machine machine = load_machine(measured.machine);
  const std::unique_ptr<Pricer> pricer = make_pricer(machine);
  GraftedTrace grafted = graft(measured, priced(std::move(complete.trace), machine), *pricer, profile.calls);
  profile.calls = {};
  require_same_network(grafted.report, measured.name, settings);
  require_made_sound(grafted.trace, "graft");
  measured = with_possible_traffic(std::move(grafted.trace), machine);
  profile.is_checked = true;
  for (Decision& decision : decisions_of(grafted.report, onto)) {
    measured.notes.insert(measured.notes.begin(), note_of(decision));
    profile.decisions.push_back(std::move(decision));
  }
  for (std::filesystem::path& file : complete.files) profile.files.push_back(std::move(file));
  return profile;
}

}  // namespace memwall
