// memwall run: replays a step on a machine under policies.
#include <fmt/format.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <chrono>
#include <ctime>
#include <exception>
#include <memory>
#include <optional>

#include "cli/allocator_options.h"
#include "cli/framework_options.h"
#include "cli/gaps_option.h"
#include "cli/one_line.h"
#include "cli/onto_option.h"
#include "cli/output_file.h"
#include "cli/print/largest_batch_tables.h"
#include "cli/print/screen.h"
#include "cli/print/summary_tables.h"
#include "cli/print/table.h"
#include "cli/progress.h"
#include "cli/verbs/plan_layouts.h"
#include "cli/verbs/verbs.h"
#include "policies/trace/dataflow.h"
#include "sim/error.h"
#include "sim/files/file_writer.h"
#include "sim/human_text.h"
#include "sim/policy/registry.h"
#include "study/base_step.h"
#include "study/batch_search.h"
#include "study/overrides/idle_settings.h"
#include "study/plan_outcome.h"
#include "study/study.h"
#include "traces/run/analysis/summary.h"
#include "traces/run/analysis/training_cost.h"
#include "traces/run/analysis/verdict.h"
#include "traces/run/file/run_file.h"
#include "traces/run/run.h"

namespace memwall {
namespace {

struct RunVerbOptions {
  std::vector<std::string> files, execution_traces;
  std::string step, onto, second_size, machine, measured_on, plan, plan_output, executable, pager,
      allocator = "pytorch", allocator_settings, budget, output, format = "table", train_tokens;
  std::optional<double> price_per_gpu_hour;
  std::vector<std::string> settings, policies, scales;
  std::uint32_t steps = 1;
  bool no_provenance = false, accept_gaps = false, find_largest_batch = false, transfer_host = false, full = false,
       one_line = false;
  FrameworkOptions framework;
  std::string command_line;  // for provenance
};

Provenance provenance_now(std::chrono::steady_clock::time_point start, const std::string& command_line,
                          const Scenario& scenario) {
  Provenance p;
  p.wall_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  char host[256] = "";
  if (::gethostname(host, sizeof host - 1) == 0) p.host = host;
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  ::gmtime_r(&now, &utc);
  char date[32];
  p.date.assign(date, std::strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", &utc));
  p.command_line = command_line;
  p.version = MEMWALL_VERSION;
  p.scenario = to_text(with_whole_paths(scenario));
  return p;
}

// What is wrong with the words is told before a long simulation.
void check_training(const RunVerbOptions& o) {
  if (!o.train_tokens.empty()) parse_tokens(o.train_tokens, "--train-tokens");
  if (!o.price_per_gpu_hour) return;
  if (o.train_tokens.empty())
    throw UsageError("--price-per-gpu-hour is the price of a training run; expected --train-tokens beside it.");
  if (!(*o.price_per_gpu_hour >= 0))
    throw UsageError(fmt::format("--price-per-gpu-hour {}: expected dollars, 0 or more.", *o.price_per_gpu_hour));
}

void add_training(const RunVerbOptions& o, RunSummary& summary) {
  if (o.train_tokens.empty()) return;
  summary.training =
      training_cost(summary, parse_tokens(o.train_tokens, "--train-tokens"), o.price_per_gpu_hour);
  if (!summary.training)
    throw UsageError(fmt::format("--train-tokens: {} does not say how many tokens a step has.", summary.trace));
}

int report(const RunVerbOptions& o, const Run& run, Format format) {
  RunSummary summary = summarize(run);
  add_training(o, summary);
  if (!o.plan.empty())
    if (std::string difference = plan_difference(o.plan, run); !difference.empty())
      summary.notes.push_back(std::move(difference));
  print_beside(o.plan_output == "-" ? o.plan_output : o.output,
               format == Format::json ? to_json(summary) : screen_text(summary_tables(summary), format, o.full));
  if (summary.fits && run.trace->keeps_to_budgets()) return 0;
  if (!summary.fits)
    print_error("memwall run: {} does not fit: {}. The result takes memory as unlimited.\n", o.step,
                missing_sentence(summary));
  if (!summary.fits && o.policies.empty() && o.files.size() == 1)
    print_error("{}", layout_hint(o.files.front(), o.machine, o.settings));
  for (const MemoryBudget& budget : summary.budgets)
    if (budget.over > 0)
      print_error("memwall run: {} does not fit into the budget of policy '{}', {}: {} more are needed.\n", o.step,
                  budget.policy, human_bytes(budget.bytes), human_bytes(budget.over));
  return 3;
}

Scenario scenario_of(const RunVerbOptions& o) {
  return {.step = o.files,
          .execution_traces = o.execution_traces,
          .onto = o.onto,
          .second_size = o.second_size,
          .measured_on = o.measured_on,
          .machine = o.machine,
          .settings = o.settings,
          .budget = o.budget,
          .transfer_host = o.transfer_host,
          .scale = o.scales,
          .repeat = o.steps,
          .policies = o.policies,
          .plan = o.plan,
          .executable = o.executable,
          .pager = o.pager,
          .allocator = o.allocator,
          .allocator_settings = o.allocator_settings};
}

// A step that is the line of a whole scenario, as `memwall sweep` writes it for each point.
RunVerbOptions with_scenario(RunVerbOptions o) {
  if (o.files.size() != 1 || !o.files.front().starts_with("step=")) return o;
  if (o.framework.any())
    throw UsageError("The line of a scenario is the whole question; leave out the configuration of a framework.");
  const Scenario given = parse_scenario(o.files.front());
  o.files.clear();
  if (!(scenario_of(o) == Scenario{}))
    throw UsageError(
        "The line of a scenario is the whole question; leave out the other options that change the step, "
        "or put them into the line.");
  o.files = given.step;
  o.execution_traces = given.execution_traces;
  o.onto = given.onto;
  o.second_size = given.second_size;
  o.measured_on = given.measured_on;
  o.machine = given.machine;
  o.settings = given.settings;
  o.budget = given.budget;
  o.transfer_host = given.transfer_host;
  o.scales = given.scale;
  o.steps = given.repeat;
  o.policies = given.policies;
  o.plan = given.plan;
  o.executable = given.executable;
  o.pager = given.pager;
  o.allocator = given.allocator;
  o.allocator_settings = given.allocator_settings;
  return o;
}

const char* const kFindLargest = "--find-largest-batch";

// What is said of the largest size that fits and of the smallest that does not, under other overrides.
std::string edge_of(const RunVerbOptions& o, const LargestBatch& found, Study& study, TerminalWatch& watch) {
  BatchSearch search(scenario_of(o), kFindLargest, study, &watch);
  LargestBatch edge;
  for (const std::int64_t samples : {found.largest, found.refused})
    if (samples > 0) edge.probes.push_back(search(samples, &edge.limit));
  return to_text(largest_batch_tables(edge, ""), Format::json);
}

std::vector<std::string> idle_settings_of(const RunVerbOptions& o, const LargestBatch& found, Study& study,
                                          TerminalWatch& watch) {
  if (o.settings.empty()) return {};
  return idle_settings(o.settings, edge_of(o, found, study, watch), "the result of the search",
                       [&](const std::vector<std::string>& settings) {
                         RunVerbOptions other = o;
                         other.settings = settings;
                         return edge_of(other, found, study, watch);
                       });
}

int find_largest(const RunVerbOptions& o, Format format) {
  if (!o.output.empty())
    throw UsageError("--find-largest-batch makes many runs and writes none; leave out -o, and run the size it finds.");
  if (!o.plan_output.empty())
    throw UsageError(
        "--find-largest-batch makes many plans and writes none; leave out --plan-out, and run the size it finds.");
  constexpr std::int64_t kMostSamples = std::int64_t{1} << 30;
  LargestBatch found;
  LoadedStep loaded;
  std::vector<std::string> idle;
  {
    TerminalWatch watch;
    Study study(&watch);
    loaded = study.load(scenario_of(o));
    BatchSearch search(scenario_of(o), kFindLargest, study, &watch);
    search.require_samples(*loaded.trace);
    found = find_largest_batch(passes_per_step(loaded.trace), kMostSamples, std::ref(search));
    idle = idle_settings_of(o, found, study, watch);
  }
  for (const std::string& sentence : idle) print_error("memwall run: {}\n", sentence);
  std::string title = fmt::format("{} on {}", loaded.trace->name, machine_text(loaded.machine->name, o.settings));
  for (const std::string& policy : o.policies) title += ", " + policy;
  const RunChanges changes{o.settings, o.scales, o.transfer_host};
  for (const std::string& setting : settings_text(changes, o.pager, Scenario{}.allocator, o.allocator_settings))
    title += ", " + setting;
  const std::vector<Table> tables = largest_batch_tables(found, fmt::format("{}, allocator {}", title, o.allocator));
  print(format == Format::json
            ? to_json({text_field("trace", loaded.trace->name), text_field("machine", loaded.machine->name),
                       texts_field("overrides", o.settings), texts_field("policies", o.policies),
                       text_field("allocator", o.allocator)},
                      tables)
            : to_text(tables, format));
  if (found.largest > 0) return 0;
  print_error("memwall run: {} does not fit with {} either, the smallest size; {} bytes of {} are missing.\n", o.step,
              counted_text(static_cast<std::uint64_t>(found.refused), "sample"), found.limit->missing,
              found.limit->tier);
  return 3;
}

// What the last policy decides; what is wrong with that, or with the place of the file, is told before a long
// simulation.
std::optional<PlannedStep> plan_to_write(const RunVerbOptions& o, Study& study, const Scenario& scenario) {
  if (o.plan_output.empty()) return std::nullopt;
  if (!o.plan.empty())
    throw UsageError("--plan-out writes what a policy decides; leave out --plan, whose file holds the plan already.");
  if (o.plan_output == o.output)
    throw UsageError("--plan-out and -o both name \"" + o.output + "\"; expected two files.");
  require_harmless(o.plan_output, study.load(scenario).files);
  if (o.plan_output != "-") (void)FileWriter(o.plan_output);
  return study.plan(scenario);
}

// Nothing runs; what is wrong with the words is told all the same.
int print_one_line(const RunVerbOptions& o) {
  if (o.find_largest_batch || !o.output.empty() || !o.plan_output.empty())
    throw UsageError(
        "--one-line prints a command and runs nothing; leave out -o, --plan-out and --find-largest-batch.");
  const Scenario scenario = scenario_of(o);
  Study().check(scenario);
  const std::string line = one_line(scenario, o.accept_gaps);  // refuses pipes, which are not opened here
  require_step(scenario);
  print(line + "\n");
  return 0;
}

int run(const RunVerbOptions& o) {
  const auto start = std::chrono::steady_clock::now();
  const Format format = parse_format(o.format);
  check_training(o);
  if (o.one_line) return print_one_line(o);
  if (o.find_largest_batch) return find_largest(o, format);
  const Scenario scenario = scenario_of(o);
  TerminalWatch watch;
  // With overrides the step is also run without them, from the step as it was loaded.
  const bool is_changed = !(o.settings.empty() && o.scales.empty());
  Study study(&watch, is_changed ? StudyMemory::everything : StudyMemory::base_steps);
  const LoadedStep loaded = study.load(scenario);
  require_harmless(o.output, loaded.files);
  require_replay(o.step, *loaded.trace, o.accept_gaps);
  if (!o.output.empty()) (void)FileWriter(o.output);  // a place that cannot be written is told before a long simulation
  const std::optional<PlannedStep> planned = plan_to_write(o, study, scenario);
  SimulationProgress progress;
  const RunOptions options{.compare_to_base = true,
                           .bound_step = true,
                           .try_remedies = true,
                           .try_speedups = true,
                           .settle_writes = true,
                           .try_alone = true,
                           .try_first_step = true,
                           .observer = &progress};
  Run result = study.run(scenario, options).run;
  if (!o.no_provenance) result.provenance = provenance_now(start, o.command_line, scenario);
  std::exception_ptr not_written;  // a full disk: the result is told all the same
  try {
    if (!o.output.empty()) write_run(result, o.output);
    if (planned) {
      const std::string text = plan_text(*planned, result);
      write_output(o.plan_output, [&](std::ostream& out) { out << text; });
    }
  } catch (const UsageError&) {
    not_written = std::current_exception();
  }
  for (const std::string& warning : result.warnings) print_error("memwall run: {}\n", warning);
  if (const std::string gaps = completeness_sentence(result.trace->completeness, result.trace->completeness_reason);
      !gaps.empty())
    print_error("memwall run: {}\n", gaps);
  const int code = report(o, result, format);
  if (not_written) std::rethrow_exception(not_written);
  return code;
}

void add_run_options(CLI::App& app, RunVerbOptions& o) {
  app.add_option(
         "step", o.files,
         "A trace file (.mwt), or a capture directly, as for `memwall import`; told apart by content. Several "
         "captures, or a folder: the ranks of one job. Or the line of a scenario, as memwall sweep writes it for "
         "each point: 'step=gpt.mwt policy=checkpoint machine=h100-sxm-80gb'");
  add_framework_options(app, o.framework);
  app.add_option("--et", o.execution_traces,
                 "ExecutionTrace of the same run, beside a Kineto capture; repeatable, or a folder of them")
      ->allow_extra_args(false);
  add_onto_option(app, o.onto);
  add_gaps_option(app, o.accept_gaps);
  app.add_option("--budget", o.budget,
                 "GPU memory that the step's storages may take, in place of what the machine has: 24GiB, or a share of "
                 "that, 60%; policies plan for it");
  app.add_option("--second-size", o.second_size,
                 "A capture of the same program at another size: the step at any third lies on a line through both; "
                 "with --policy batch:N (samples) or batch:tokens=N (another length)");
  app.add_option("--machine", o.machine, "A machine's name or file; default: the one the step was measured on");
  app.add_option("--measured-on", o.measured_on,
                 "The machine of the step's durations, a name or a file, where its capture does not say its GPU; with "
                 "--machine they are transferred from the one to the other");
  app.add_option(
         "--set", o.settings,
         "Override a number of the machine: gpu.hbm.bandwidth=4TB/s; or its bus: pcie=gen3|gen4|gen5|gen6 (x16: "
         "links, uplinks and fabrics over them), nvlink=off; of one rank rank[7].gpu.clock=0.9, a factor on its kernels; "
         "repeatable. One that can change nothing is told")
      ->allow_extra_args(false);
  app.add_option("--policy", o.policies,
                 "Rewrite the step beforehand: NAME:key=value,key=value; repeatable, they compose")
      ->allow_extra_args(false);
  app.add_option("--plan", o.plan,
                 "Carry out the memory plan of this file, made for the step after its policies; by --plan-out, or by "
                 "another program (traces/plan/FORMAT.md)");
  app.add_option("--plan-out", o.plan_output,
                 "Write here (JSON) what the last policy decides: when which storage leaves and what brings it back");
  app.add_option("--executable", o.executable,
                 "torch: memory plans, of policies or --plan, do what PyTorch executes exactly: checkpointed modules, "
                 "operators run again, saved-tensor hooks; a note says what was moved or left out");
  app.add_option("--pager", o.pager, "Decide online what leaves a full GPU: NAME:key=value; at most one");
  add_allocator_options(app, o.allocator, o.allocator_settings);
  app.add_option(
         "--scale", o.scales,
         "Multiply durations: kernels=1.1,copies=1,host=0.5,collectives=1 (as kernels where it is not said); of "
         "one rank of several with rank=2; repeatable, they multiply")
      ->allow_extra_args(false);
  app.add_flag(
      "--transfer-host", o.transfer_host,
      "On another machine than the capture's: calls of the host too, by what both machine files say of them; the "
      "framework's time between calls stays as it was measured, as by default all of it does");
  app.add_flag("--find-largest-batch", o.find_largest_batch,
               "Try ever more samples per step under these policies and this allocator: which fit, and what stops the "
               "next");
  app.add_option("--train-tokens", o.train_tokens,
                 "Say also what it takes to train on so many tokens, as 15T or 300B: days, GPU hours, dollars, energy");
  app.add_option("--price-per-gpu-hour", o.price_per_gpu_hour,
                 "Dollars, for --train-tokens; default: the machine file's price");
  app.add_option("--steps", o.steps, "Run the whole step this many times in a row")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  app.add_option("-o,--output", o.output,
                 "Write the run here (.h5), for compare, export and render; \"-\" for stdout, the report then goes to "
                 "stderr");
  app.add_option("--format", o.format, "table, json, csv or md")->capture_default_str();
  app.add_flag("--full", o.full, "Print every table and every note; json and csv hold all of them anyway");
  add_one_line_option(app, o.one_line, "this result");
  app.add_flag("--no-provenance", o.no_provenance,
               "Leave out wall time, host, date and command line: equal inputs, equal bytes");
}

}  // namespace

Verb add_run(CLI::App& parent, const std::string& command_line) {
  auto o = std::make_shared<RunVerbOptions>();
  o->command_line = command_line;
  CLI::App* app = parent.add_subcommand("run", "Replay a step on a machine under policies, and explain the result");
  add_run_options(*app, *o);
  app->footer(
      "Policies are listed by `memwall policies`, machines by `memwall machines`. The JSON is described in\n"
      "docs/run_json.md. Exit code 3 means: does not fit; the full result is still printed, with memory taken\n"
      "as unlimited, and stderr says how many bytes are missing where.\n\n"
      "Examples:\n"
      "  memwall run step.mwt                                             # the machine it was measured on\n"
      "  memwall run step.mwt --machine h100-sxm-80gb --policy checkpoint:mode=full\n"
      "  memwall run step.mwt --policy offload:what=optimizer,to=host -o run.h5\n"
      "  memwall run step.mwt --set pcie=gen5 --format json               # a faster bus\n"
      "  memwall run step.mwt --alloc-conf expandable_segments:True\n"
      "  memwall run step.mwt --policy batch:32                           # another batch\n"
      "  memwall run step.mwt --policy checkpoint --find-largest-batch\n"
      "  memwall run BERT-256.kernels.csv --pager lru                     # more than fits\n"
      "  memwall run llama3-8b --machine h200-sxm-141gb --deepspeed ds_config.json --gpus 8\n"
      "  memwall run trace.csv --measured-on h100-sxm-80gb --machine v100-sxm2-32gb\n"
      "  memwall run rank0.json.gz rank1.json.gz                          # two ranks of one job: they wait for each "
      "other");
  return {app, [o] {
            RunVerbOptions asked = with_scenario(*o);
            take_framework(asked.framework, "run", asked.files, asked.policies);
            asked.step = asked.files.front();
            return run(asked);
          }};
}

}  // namespace memwall
