// memwall emit: a memory plan as settings of a training framework.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <filesystem>
#include <memory>
#include <ostream>

#include "cli/output_file.h"
#include "cli/verbs/verbs.h"
#include "sim/error.h"
#include "traces/emit/emit.h"
#include "traces/plan/plan_document.h"

namespace memwall {
namespace {

struct EmitOptions {
  std::string plan, framework, gradient_dtype, output;
  bool partial = false;
};

constexpr int kNotExpressed = 2;

int emit_plan(const EmitOptions& o) {
  const PlanDocument document = read_plan_document(o.plan);
  require_harmless(o.output, {o.plan});
  const std::string name = std::filesystem::path(o.plan).filename().string();
  const Emission emission = emit(document, {o.framework, name, o.gradient_dtype});
  for (const LeftOut& each : emission.left_out)
    print_error("memwall emit: {}: not said ({}).\n", each.decision, each.reason);
  if (!emission.carries_out_the_plan() && !o.partial) {
    print_error("memwall emit: {} cannot carry out {}; nothing is written. With --partial the rest is.\n", o.framework,
                name);
    return kNotExpressed;
  }
  for (const std::string& note : emission.notes) print_error("memwall emit: {}\n", note);
  write_output(o.output, [&](std::ostream& out) { out << emission.text; });
  return 0;
}

}  // namespace

Verb add_emit(CLI::App& parent) {
  auto o = std::make_shared<EmitOptions>();
  CLI::App* app = parent.add_subcommand("emit", "Write a memory plan as settings of a training framework");
  app->add_option("plan", o->plan, "The memory plan (from `memwall run --plan-out`)")->required();
  app->add_option("--for", o->framework,
                  "The framework: deepspeed (JSON), fsdp2 (Python), torchtitan-0.2.2 (TOML), megatron (flags), "
                  "transformers (TrainingArguments, JSON), accelerate (YAML) or torchtune (YAML)")
      ->required();
  app->add_option("--gradient-dtype", o->gradient_dtype,
                  "Of gradients: bf16, fp16 or fp32; where the plan does not say it. Frameworks that count a bucket's "
                  "elements need it");
  app->add_flag("--partial", o->partial,
                "Write what the framework can express, where it cannot express all of the plan");
  app->add_option("-o,--output", o->output, "Where to; default: stdout");
  app->footer(
      "Only choices of the whole model are written: blocks run again, what leaves the GPU, the ZeRO stage, batch and\n"
      "types. What the framework cannot express is said on stderr, with the reason. Where that is a decision of the\n"
      "plan, nothing is written and the exit code is 2, unless --partial is given.\n\n"
      "Examples:\n"
      "  memwall run step.mwt --policy zero:stage=3,ranks=8 --policy checkpoint:mode=full --plan-out step.plan\n"
      "  memwall emit step.plan --for torchtitan-0.2.2 -o job.toml\n"
      "  memwall emit step.plan --for deepspeed --partial");
  return {app, [o] { return emit_plan(*o); }};
}

}  // namespace memwall
