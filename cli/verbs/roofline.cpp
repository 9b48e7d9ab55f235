// memwall roofline: what each operator of a step reaches of what the machine offers, and what holds it.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <filesystem>
#include <memory>
#include <ostream>

#include "cli/output_file.h"
#include "cli/print/roofline_tables.h"
#include "cli/print/screen.h"
#include "cli/print/table.h"
#include "cli/print/work_tables.h"
#include "cli/progress.h"
#include "cli/verbs/verbs.h"
#include "models/hw/modelled_step.h"
#include "models/hw/roofline.h"
#include "sim/error.h"
#include "sim/policy/registry.h"
#include "study/fusion_effect.h"
#include "study/overrides/idle_settings.h"
#include "study/study.h"
#include "traces/figure/svg.h"
#include "traces/run/run.h"

namespace memwall {
namespace {

struct RooflineOptions {
  std::vector<std::string> execution_traces;
  std::string step, machine, measured_on, picture, fusion = policy_of(PolicyKind::fusion).name, format = "table";
  std::vector<std::string> settings, policies;
  std::size_t most = 20;
  bool json = false, csv = false, full = false;
};

Format format_of(const RooflineOptions& o) {
  if (o.json && o.csv) throw UsageError("--json and --csv are both given; choose one.");
  return parse_format(o.json ? "json" : o.csv ? "csv" : o.format);
}

void check_picture(const std::string& path) {
  if (path.empty() || path == "-" || std::filesystem::path(path).extension() == ".svg") return;
  throw UsageError(fmt::format("--svg {}: the picture is written as .svg; give it that ending.", path));
}

// Of a capture that does not say its GPU: whose times these are; else "".
std::string whose_times(const LoadedStep& loaded) {
  if (!loaded.trace->machine.empty() || measured_nowhere(*loaded.trace)) return "";
  return fmt::format(
      "The capture does not say which GPU it was measured on, so its times are taken as {0}'s, which they need not "
      "be. --measured-on NAME says whose they are, and transfers them to {0}.",
      loaded.machine->name);
}

// Overrides without which every figure is the same.
void tell_idle_settings(const RooflineOptions& o, const Scenario& scenario, const std::vector<Table>& tables,
                        const std::string& stranger, Study& study) {
  const auto figures_under = [&](const std::vector<std::string>& settings) {
    Scenario other = scenario;
    other.settings = settings;
    const PreparedStep step = study.prepare(other);
    return to_text(roofline_tables(roofline(step.trace, *step.machine),
                                   fusion_effect(step.trace, *step.machine, o.fusion), o.most, "", stranger),
                   Format::json);
  };
  std::vector<Table> untitled = tables;
  untitled.front().title.clear();
  for (const std::string& sentence :
       idle_settings(o.settings, to_text(untitled, Format::json), "every figure", figures_under))
    print_error("memwall roofline: {}\n", sentence);
}

int show(const RooflineOptions& o) {
  const Format format = format_of(o);
  check_picture(o.picture);
  const Scenario scenario{.step = {o.step},
                          .execution_traces = o.execution_traces,
                          .measured_on = o.measured_on,
                          .machine = o.machine,
                          .settings = o.settings,
                          .policies = o.policies};
  TerminalWatch watch;
  Study study(&watch);
  const LoadedStep loaded = study.load(scenario);
  require_harmless(o.picture, loaded.files);
  const std::string stranger = whose_times(loaded);
  const PreparedStep step = study.prepare(scenario);
  const Roofline analysis = roofline(step.trace, *step.machine);
  const FusionEffect fusion = fusion_effect(step.trace, *step.machine, o.fusion);
  if (!o.picture.empty()) {
    const Figure figure =
        draw_roofline(roofline_chart(analysis, step.trace->name, machine_text(step.machine->name, o.settings)));
    write_output(o.picture, [&](std::ostream& out) { write_svg(figure, out); });
    if (o.picture == "-") return 0;  // stdout is the picture
  }
  std::string title = fmt::format("{} on {}", step.trace->name, machine_text(step.machine->name, o.settings));
  for (const std::string& policy : o.policies) title += ", " + policy;
  std::vector<Table> tables = roofline_tables(analysis, fusion, o.most, title, stranger);
  tell_idle_settings(o, scenario, tables, stranger, study);
  if (!o.policies.empty()) tables.insert(tables.begin() + 1, class_effect_table(*step.base, *step.trace));
  print(format == Format::json ? to_json({text_field("trace", step.trace->name),
                                          text_field("machine", step.machine->name), bound_field(analysis)},
                                         tables)
                               : screen_text(std::move(tables), format, o.full));
  return 0;
}

void add_roofline_options(CLI::App& app, RooflineOptions& o) {
  app.add_option("step", o.step, "A trace file (.mwt), or a capture, as for `memwall run`")->required();
  app.add_option("--et", o.execution_traces, "ExecutionTrace of the same run, beside a Kineto capture")->expected(1);
  app.add_option("--machine", o.machine, "A machine's name or file; default: the one the step was measured on");
  app.add_option("--measured-on", o.measured_on,
                 "The machine of the durations, a name or a file, where a capture does not say its GPU");
  app.add_option("--set", o.settings, "Override a number of the machine: gpu.hbm.bandwidth=4TB/s; repeatable")
      ->allow_extra_args(false);
  app.add_option("--policy", o.policies, "Rewrite the step beforehand: NAME:key=value; repeatable, they compose")
      ->allow_extra_args(false);
  app.add_option("--top", o.most, "Operators in the table")->check(CLI::Range(1, 100000))->capture_default_str();
  app.add_option("--fusion", o.fusion, "The fusion whose saving is told: fusion:what=all,epilogues=gemm")
      ->capture_default_str();
  app.add_option("--svg", o.picture, "Write the picture here (.svg); \"-\" prints it instead of the tables");
  app.add_option("--format", o.format, "table, json, csv or md")->capture_default_str();
  app.add_flag("--full", o.full, "Print every table and every row; json and csv hold all of them anyway");
  app.add_flag("--json", o.json, "The same as --format json");
  app.add_flag("--csv", o.csv, "The same as --format csv");
}

}  // namespace

Verb add_roofline(CLI::App& parent) {
  auto o = std::make_shared<RooflineOptions>();
  CLI::App* app =
      parent.add_subcommand("roofline", "Operators by arithmetic intensity: what bounds them, what fusion saves");
  add_roofline_options(*app, *o);
  app->footer(
      "Each kernel is held against the roofs of the machine: the peak of its data type, and its FLOPs per byte times\n"
      "the bandwidth of L2 and of HBM. The method is described in docs/roofline.md.\n\n"
      "Examples:\n"
      "  memwall roofline step.mwt                                       # the machine it was measured on\n"
      "  memwall roofline llama.mwc.gz --machine h100-sxm-80gb --svg roofline.svg\n"
      "  memwall roofline step.mwt --policy fusion --top 50              # after fusion\n"
      "  memwall roofline step.mwt --fusion fusion:epilogues=gemm --json");
  return {app, [o] { return show(*o); }};
}

}  // namespace memwall
