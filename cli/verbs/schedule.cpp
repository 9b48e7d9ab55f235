// memwall schedule: a rewritten step as a program without times, for memwall-replay.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <ostream>

#include "cli/output_file.h"
#include "cli/print/schedule_tables.h"
#include "cli/print/table.h"
#include "cli/progress.h"
#include "cli/verbs/verbs.h"
#include "sim/engine/simulation.h"
#include "sim/error.h"
#include "sim/trace/ranks.h"
#include "study/overrides/idle_settings.h"
#include "study/study.h"
#include "validate/replay/recorded_moves.h"
#include "validate/replay/schedule.h"

namespace memwall {
namespace {

struct ScheduleOptions {
  std::vector<std::string> execution_traces;
  std::string step, machine, plan, pager, scale, output, format = "table";
  std::vector<std::string> settings, policies;
  std::uint32_t steps = 1;
  std::optional<std::uint32_t> rank;
};

// "0.001", "1/32"
std::optional<double> fraction(const std::string& text) {
  const std::size_t slash = text.find('/');
  double above = 0, below = 1;
  if (!CLI::detail::lexical_cast(text.substr(0, slash), above)) return std::nullopt;
  if (slash != std::string::npos && !CLI::detail::lexical_cast(text.substr(slash + 1), below)) return std::nullopt;
  const double value = above / below;
  return std::isfinite(value) && value > 0 && value <= 1e6 ? std::optional(value) : std::nullopt;
}

// "bytes=1/32,flops=0.001"
ScheduleScale parse_scale(const std::string& text) {
  ScheduleScale scale;
  std::map<std::string, double*> known{{"bytes", &scale.bytes}, {"flops", &scale.flops}};
  if (text.empty()) return scale;
  for (const std::string& item : CLI::detail::split(text, ',')) {
    const std::size_t equals = item.find('=');
    std::vector<std::string> names;
    for (const auto& [name, value] : known) names.push_back(name);
    const auto found = known.find(item.substr(0, equals));
    if (found == known.end())
      throw UsageError(
          fmt::format("--scale {}: \"{}\" cannot be scaled, or is given twice; expected bytes or flops, as in "
                      "bytes=1/32,flops=0.001.{}",
                      text, item.substr(0, equals), did_you_mean(item.substr(0, equals), names)));
    const auto value = equals == std::string::npos ? std::nullopt : fraction(item.substr(equals + 1));
    if (!value)
      throw UsageError(fmt::format(
          "--scale {}: \"{}\" has no factor; expected a number above 0 up to 1e6, as in bytes=1/32.", text, item));
    *found->second = *value;
    known.erase(found);
  }
  return scale;
}

// Of a step of several ranks the program of one: what one GPU does.
class ChosenRank {
 public:
  // Throws UsageError where it is not said which, or there is none of that number.
  ChosenRank(const Trace& trace, const std::string& name, std::optional<std::uint32_t> number) {
    if (rank_count(trace) == 1 && !number) return;
    std::vector<std::string> known;
    for (const Rank& rank : trace.rank_table) {
      if (number == rank.number) index_ = static_cast<std::uint16_t>(known.size());
      known.push_back(std::to_string(rank.number));
    }
    if (known.empty()) throw UsageError(fmt::format("--rank {}: {} holds one program.", *number, name));
    if (!number)
      throw UsageError(
          fmt::format("{}: it holds {} ranks, and a schedule is what one GPU does; expected --rank with one of {}.",
                      name, known.size(), listed(known)));
    if (!index_)
      throw UsageError(
          fmt::format("--rank {}: {} has no such rank; expected one of {}.", *number, name, listed(known)));
  }

  Trace of(const Trace& trace) const { return index_ ? one_rank(trace, *index_) : trace; }

  // Storages and ops by their numbers in its own program, tiers as one GPU has them.
  std::vector<MoveRecord> moves(const Run& run) const {
    if (!index_) return run.result.moves;
    const std::vector<std::uint16_t> ranks = storage_ranks(run.trace);
    const std::vector<std::uint16_t>& tiers = run.machine.views[*index_].tier;
    const auto of_one = [&](std::uint16_t tier) {
      return static_cast<std::uint16_t>(std::find(tiers.begin(), tiers.end(), tier) - tiers.begin());
    };
    std::vector<MoveRecord> own;
    for (MoveRecord move : run.result.moves) {
      if (ranks[move.storage] != *index_) continue;
      move.storage = static_cast<StorageId>(std::count(ranks.begin(), ranks.begin() + move.storage, *index_));
      if (move.for_op != kNoOp) move.for_op = op_of(run.trace, move.for_op);
      move.from = of_one(move.from);
      move.to = of_one(move.to);
      own.push_back(move);
    }
    return own;
  }

 private:
  OpId op_of(const Trace& trace, OpId op) const {
    OpId own = 0;
    for (OpId id = 0; id < op; ++id) own += rank_of(trace, trace.ops[id]) == *index_;
    return own;
  }

  std::optional<std::uint16_t> index_;
};

// What the pager did while the step was simulated, as ops.
Trace with_moves_of(const Outcome& outcome, const Machine& machine, const ChosenRank& rank) {
  const Run& run = outcome.run;
  if (!run.result.fits)
    throw InfeasibleError(
        fmt::format("--pager {}: trace \"{}\" does not fit {} even so.", run.pager, run.trace->name, machine.name));
  const std::vector<MoveRecord> moves = rank.moves(run);
  Trace trace = with_recorded_moves(rank.of(run.trace), machine, moves);
  trace.notes.push_back(fmt::format("pager {}: {} moves written down.", run.pager, moves.size()));
  return trace;
}

struct WrittenSchedule {
  Trace trace;
  StepContents contents;
  std::string text() const { return schedule_text(trace, contents); }
};

// What a collective takes of the multiprocessors.
double collective_share(const Machine& machine) {
  const double all = machine.gpu.multiprocessors;
  return all > 0 ? std::min(1.0, machine.gpu.collective_multiprocessors / all) : 0;
}

// What each op of the schedule must find: known where a plan, or policies, leave every computation of the step as it
// is. A note says where they do not.
StepContents contents_of(Trace& schedule, const Scenario& scenario, const PreparedStep& step, const ChosenRank& rank,
                         const ScheduleScale& scale, Study& study) {
  SharedTrace shared = step.base;
  if (!scenario.plan.empty()) {
    Scenario unplanned = scenario;
    unplanned.plan.clear();
    shared = study.prepare(unplanned).trace;
  } else if (scenario.policies.empty() && scenario.pager.empty()) {
    return {};
  }
  const Trace before = rank.of(shared);
  const auto contents =
      step_contents(schedule, schedule_of(before, scale, collective_share(*step.machine)), before.storages.size());
  if (contents) return *contents;
  schedule.notes.push_back(
      "schedule: contents have no numbers, as the step computes something else than before its policies.");
  return {};
}

WrittenSchedule schedule_under(const Scenario& scenario, const ScheduleOptions& o, const ScheduleScale& scale,
                               Study& study) {
  PreparedStep step = study.prepare(scenario);
  const ChosenRank rank(step.trace, o.step, o.rank);
  if (step.pager) {
    SimulationProgress progress;
    const RunOptions options{.record = false, .observer = &progress};
    step.trace = with_moves_of(study.run(scenario, options), *step.machine, rank);
  } else {
    step.trace = rank.of(step.trace);
  }
  WrittenSchedule written{schedule_of(step.trace, scale, collective_share(*step.machine)), {}};
  written.contents = contents_of(written.trace, scenario, step, rank, scale, study);
  return written;
}

int write(const ScheduleOptions& o) {
  const Format format = parse_format(o.format);
  const ScheduleScale scale = parse_scale(o.scale);
  const Scenario scenario{.step = {o.step},
                          .execution_traces = o.execution_traces,
                          .machine = o.machine,
                          .settings = o.settings,
                          .repeat = o.steps,
                          .policies = o.policies,
                          .plan = o.plan,
                          .pager = o.pager};
  TerminalWatch watch;
  Study study(&watch);
  const LoadedStep loaded = study.load(scenario);
  require_harmless(o.output, loaded.files);
  const WrittenSchedule schedule = schedule_under(scenario, o, scale, study);
  const std::string shortage = device_shortage(schedule.trace, *loaded.machine);
  const std::string text = schedule.text(), report = to_text(schedule_tables(schedule.trace, shortage), format);
  write_output(o.output, [&](std::ostream& out) { out << text; });
  const auto text_under = [&](const std::vector<std::string>& settings) {
    Scenario other = scenario;
    other.settings = settings;
    return schedule_under(other, o, scale, study).text();
  };
  for (const std::string& sentence : idle_settings(o.settings, text, "the schedule", text_under))
    print_error("memwall schedule: {}\n", sentence);
  if (!shortage.empty()) print_error("memwall schedule: {}\n", shortage);
  print_beside(o.output, report);
  return 0;
}

}  // namespace

Verb add_schedule(CLI::App& parent) {
  auto o = std::make_shared<ScheduleOptions>();
  CLI::App* app = parent.add_subcommand("schedule", "Write a step as a program without times, for memwall-replay");
  app->add_option("step", o->step, "A trace file (.mwt), or a capture, as for `memwall run`")->required();
  app->add_option("--et", o->execution_traces, "ExecutionTrace of the same run, beside a Kineto capture")->expected(1);
  app->add_option("--machine", o->machine, "On which policies plan; default: the one the step was measured on");
  app->add_option("--set", o->settings, "Override a number of the machine; repeatable")->allow_extra_args(false);
  app->add_option("--policy", o->policies, "Rewrite the step beforehand: NAME:key=value; repeatable, they compose")
      ->allow_extra_args(false);
  app->add_option("--plan", o->plan,
                  "Carry out the memory plan of this file, made for the step after its policies: `memwall run "
                  "--plan-out` writes one");
  app->add_option("--pager", o->pager, "Simulate under this pager and write its moves down: NAME:key=value");
  app->add_option("--steps", o->steps, "The whole step this many times in a row")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  app->add_option("--rank", o->rank, "Of a step of several ranks: whose program, by its number in the job");
  app->add_option("--scale", o->scale, "Multiply sizes and work, to fit a smaller machine: bytes=1/32,flops=0.001");
  app->add_option("-o,--output", o->output, "Where the schedule goes (.schedule), a text; \"-\" prints it")->required();
  app->add_option("--format", o->format, "table, json, csv or md: of what is printed about it")->capture_default_str();
  app->footer(
      "A schedule holds no time: what executes it finds out how long things take. Collectives of several ranks are "
      "the\n"
      "exception: on one GPU a kernel that lasts as long stands in for each. The format is described in\n"
      "docs/schedule_format.md.\n\n"
      "Examples:\n"
      "  memwall schedule step.mwt --policy offload:what=activations,to=host -o offload.schedule\n"
      "  memwall schedule step.mwt --plan step.plan -o planned.schedule\n"
      "  memwall schedule step.mwt --scale bytes=1/32,flops=0.001 -o small.schedule\n"
      "  memwall-replay small.schedule --backend host -o small.execution.csv");
  return {app, [o] { return write(*o); }};
}

}  // namespace memwall
