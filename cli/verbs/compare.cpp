// memwall compare: what changed from one run to another, or from one memory plan to another.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <memory>

#include "cli/large_arrays.h"
#include "cli/print/comparison_tables.h"
#include "cli/print/plan_tables.h"
#include "cli/print/screen.h"
#include "cli/progress.h"
#include "cli/verbs/verbs.h"
#include "sim/error.h"
#include "sim/files/input_file.h"
#include "traces/plan/plan_compare.h"
#include "traces/run/analysis/compared_run.h"
#include "traces/run/file/run_file.h"

namespace memwall {
namespace {

struct CompareOptions {
  std::string base, other, format = "table";
  bool full = false;
};

// A run is large, and what is compared of it is not: its memory goes back before the next one is read.
ComparedRun read(const std::string& path) {
  ComparedRun run = [&] {
    ProgressBar bar("reading");
    return compared(read_run_ops(path, [&](double share) {
      bar.update(share);
      return true;
    }));
  }();
  give_back_freed_memory();
  return run;
}

int compare_plans(const CompareOptions& o, Format format) {
  const PlanComparison comparison = compare(read_plan_document(o.base), read_plan_document(o.other), o.base, o.other);
  print(format == Format::json ? plan_comparison_json(comparison)
                               : screen_text(plan_comparison_tables(comparison), format, o.full));
  return 0;
}

int compare_files(const CompareOptions& o) {
  const Format format = parse_format(o.format);
  const bool base_is_plan = is_plan(o.base), other_is_plan = is_plan(o.other);
  if (base_is_plan && other_is_plan) return compare_plans(o, format);
  if (base_is_plan) (void)readable_path(o.other, "a memory plan");
  if (other_is_plan) (void)readable_path(o.base, "a memory plan");
  if (base_is_plan || other_is_plan)
    throw UsageError(fmt::format("{} is a memory plan, {} is none; expected two runs, or two plans.",
                                 base_is_plan ? o.base : o.other, base_is_plan ? o.other : o.base));
  const ComparedRun base = read(o.base), other = read(o.other);
  const Comparison comparison = compare(base, other);
  print(format == Format::json ? to_json(comparison) : screen_text(comparison_tables(comparison), format, o.full));
  return 0;
}

}  // namespace

Verb add_compare(CLI::App& parent) {
  auto o = std::make_shared<CompareOptions>();
  CLI::App* app = parent.add_subcommand(
      "compare", "Say what changed from one run to another, op by op, or from one memory plan to another");
  app->add_option("base", o->base,
                  "The run to compare with (.h5, from `memwall run -o`); or a memory plan (from `memwall run "
                  "--plan-out`), told by its content")
      ->required();
  app->add_option("other", o->other, "The run, or plan, that differs")->required();
  app->add_option("--format", o->format, "table, json, csv or md")->capture_default_str();
  app->add_flag("--full", o->full, "Print every table and every row; json and csv hold all of them anyway");
  app->footer(
      "Time is a waterfall: the differences of its classes add up to the difference of the runs exactly.\n"
      "Positive differences mean that the other run has more. Plans are compared storage by storage, by module\n"
      "and kind; they must be for one program.\n\n"
      "Examples:\n"
      "  memwall run step.mwt -o base.h5\n"
      "  memwall run step.mwt --policy checkpoint:mode=full -o run.h5\n"
      "  memwall compare base.h5 run.h5\n"
      "  memwall compare checkpoint.plan offload.plan");
  return {app, [o] { return compare_files(*o); }};
}

}  // namespace memwall
