// memwall generate: a network that exists only as a configuration becomes a trace file.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <memory>

#include "cli/output_file.h"
#include "cli/print/recipe_text.h"
#include "cli/print/table_cells.h"
#include "cli/verbs/verbs.h"
#include "models/workload/generate/configuration/workload_file.h"
#include "sim/error.h"
#include "study/generated_step.h"
#include "traces/trace/trace_file.h"

namespace memwall {
namespace {

struct GenerateOptions {
  std::string workload, output, format = "table";
  std::int64_t batch = 0, sequence = 0;
  std::vector<std::string> settings;
  bool list = false;
};

Table workload_list() {
  Table t{.name = "workloads", .title = "", .columns = {"name", "description"}, .headings = {"", ""}, .rows = {}};
  for (const WorkloadSummary& w : list_workloads()) t.rows.push_back({cell(w.name), cell(w.description)});
  return t;
}

// Why two networks may differ in what nobody asked for.
constexpr const char* kPrecisions =
    "The precision is this network's own: what is small is trained under autocast with fp32 parameters, as its authors "
    "and most since do (GPT-2, BERT, ViT, ResNet, VGG); decoders from a billion parameters on in pure bf16, in which "
    "one GPU holds them; networks that are named after a program as that program does. To compare two, give both the "
    "same: --set precision=bf16.";

bool says_precision(const GenerateOptions& o) {
  const auto says = [](const std::string& text) { return text.find("precision=") != text.npos; };
  return says(o.workload) || std::any_of(o.settings.begin(), o.settings.end(), says);
}

Table note_table(const Trace& trace, bool says_precision) {
  Table t{.name = "notes", .title = "Notes", .columns = {"note"}, .headings = {""}, .rows = {}, .prose = true};
  for (const std::string& line : trace.notes) t.rows.push_back({cell(line)});
  if (!says_precision) t.rows.push_back({cell(kPrecisions)});
  return t;
}

Table figure_table(const GeneratedStep& step) {
  Table t{.name = "step",
          .title = fmt::format("One step of {}", step.trace.name),
          .columns = {"what", "value"},
          .headings = {"", ""},
          .rows = {}};
  const GeneratedFigures& f = step.figures;
  const auto bytes = [&](const char* what, Bytes value) { t.rows.push_back({cell(what), bytes_cell(value)}); };
  const auto number = [&](const char* what, double value) {
    if (value > 0) t.rows.push_back({cell(what), number_cell(fmt::format("{:.0f}", value), plain_number(value))});
  };
  number("samples per step", step.trace.samples_per_step);
  number("tokens per step", step.trace.tokens_per_step);
  t.rows.push_back({cell("parameters"), count_cell(static_cast<std::uint64_t>(f.parameters))});
  if (f.active_parameters != f.parameters)
    t.rows.push_back(
        {cell("parameters that a token meets"), count_cell(static_cast<std::uint64_t>(f.active_parameters))});
  t.rows.push_back(
      {cell("floating-point operations"), number_cell(fmt::format("{:.4g}", f.flops), plain_number(f.flops))});
  bytes("parameters, and buffers", f.parameter_bytes);
  bytes("gradients", f.gradient_bytes);
  bytes("optimizer states", f.optimizer_bytes);
  bytes("activations at the start of backward", f.activation_bytes);
  bytes("most that lives at once", f.peak_bytes);
  t.rows.push_back({cell("operators on the device"), count_cell(f.operators)});
  t.rows.push_back({cell("operators dispatched by the host"), count_cell(f.framework_calls)});
  return t;
}

std::vector<std::string> settings_of(const GenerateOptions& o) {
  std::vector<std::string> settings = o.settings;
  if (o.batch != 0) settings.push_back(fmt::format("batch={}", o.batch));
  if (o.sequence != 0) settings.push_back(fmt::format("sequence={}", o.sequence));
  return settings;
}

int generate(const GenerateOptions& o) {
  const Format format = parse_format(o.format);
  if (o.list) {
    print(to_text(workload_list(), format));
    return 0;
  }
  if (o.workload.empty())
    throw UsageError(
        "a workload is missing; expected the name of one (--list shows them), a .textproto or a config.json.");
  const GeneratedStep step = generated_step(o.workload, settings_of(o));
  if (!o.output.empty()) {
    require_harmless(o.output, step.files);
    write_trace(step.trace, o.output);
  }
  std::vector<Table> tables{figure_table(step), recipe_table(step.trace.recipe)};
  if (Table notes = note_table(step.trace, says_precision(o)); !notes.rows.empty()) tables.push_back(std::move(notes));
  print_beside(o.output, to_text(tables, format));
  if (!o.output.empty())
    print_error("Wrote {}: {} ops, {} storages.\n", o.output, step.trace.ops.size(), step.trace.storages.size());
  return 0;
}

}  // namespace

Verb add_generate(CLI::App& parent) {
  auto o = std::make_shared<GenerateOptions>();
  CLI::App* app =
      parent.add_subcommand("generate", "Write the training step of a network from its configuration alone");
  app->add_option("workload", o->workload,
                  "A known name (--list), a workload file (.textproto) or a Hugging Face config.json; settings may "
                  "follow: llama3-8b:batch=2,precision=bf16");
  app->add_flag("--list", o->list, "List the known workloads");
  app->add_option("--batch", o->batch, "Sequences or images of one forward pass, on one GPU")
      ->check(CLI::PositiveNumber);
  app->add_option("--seq,--sequence", o->sequence, "Tokens of a sequence")->check(CLI::PositiveNumber);
  app->add_option("--set", o->settings,
                  "Change a setting of the model or of the recipe: layers=4, optimizer=adamw_8bit; repeatable")
      ->allow_extra_args(false);
  app->add_option("-o,--output", o->output,
                  "Write the trace here (.mwt); \"-\" for stdout, the tables then go to stderr");
  app->add_option("--format", o->format, "table, json, csv or md")->capture_default_str();
  app->footer(
      "The step is written as PyTorch issues it: operators, storages, what is saved for backward, allocations and\n"
      "frees in host order. Nothing in it is measured; `memwall run` models the times of a machine. Settings are\n"
      "described in models/workload/generate/configuration/model.h and recipe.h. `run`, `inspect` and `schedule` take "
      "a\n"
      "workload's name directly.\n\n"
      "Examples:\n"
      "  memwall generate --list\n"
      "  memwall generate llama3-8b --batch 2 --seq 8192 -o llama.mwt\n"
      "  memwall generate ./config.json --set precision=amp_bf16 --set checkpoint=full -o mine.mwt\n"
      "  memwall run llama3-8b:batch=2,sequence=4096 --machine h100-sxm-80gb");
  return {app, [o] { return generate(*o); }};
}

}  // namespace memwall
