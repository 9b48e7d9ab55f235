#include "cli/option_values.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <map>

#include "cli/print/table.h"
#include "models/hw/machine_file.h"
#include "models/workload/generate/configuration/workload_file.h"
#include "sim/error.h"
#include "sim/files/input_file.h"
#include "sim/memory/allocator.h"
#include "sim/policy/registry.h"
#include "study/executable.h"
#include "study/study.h"
#include "study/sweep/study_file.h"
#include "traces/emit/emit.h"

namespace memwall {
namespace {

using Words = std::vector<std::string>;

Words names_of_policies(bool rewriters, bool pagers) {
  Words names;
  for (const auto& [name, info] : policies())
    if (info.make_rewriter ? rewriters : pagers) names.push_back(name);
  return names;
}

Words names_of_machines() {
  static const Words names = [] {  // many options take machines, and to list them is to read their files
    Words all;
    for (const MachineSummary& machine : list_machines()) all.push_back(machine.name);
    return all;
  }();
  return names;
}

struct KnownOption {
  ValueKind kind = ValueKind::other;
  Words (*words)() = nullptr;  // asked for by completion alone: some read folders
};

// What an option takes whose name says so in every verb, or in one: "run --allocator" before "--allocator". What is not
// here is `other`.
const std::map<std::string, KnownOption>& known_options() {
  using enum ValueKind;
  static const std::map<std::string, KnownOption> known{
      {"--allocator", {word, [] { return allocator_names(); }}},
      {"run --allocator", {word, [] { return run_allocator_names(); }}},
      {"--objective",
       {word,
        [] {
          return Words{"time", "batch"};
        }}},
      {"--at",
       {word,
        [] {
          return Words{"peak", "start", "end"};
        }}},
      {"sweep --objective",
       {word,
        [] {
          return Words{"step_time", "peak", "throughput", "price_dollars"};
        }}},
      {"--show",
       {word,
        [] {
          return Words{"fits", "step_time", "peak", "throughput"};
        }}},
      {"--where",
       {word,
        [] {
          return Words{"fits", "fits_device"};
        }}},
      {"--preset", {word, [] { return study_presets(); }}},
      {"--axis",
       {word,
        [] {
          return Words{"events", "time"};
        }}},
      {"--backend",
       {word,
        [] {
          return Words{"host", "cuda"};
        }}},
      {"--for", {word, [] { return emitted_frameworks(); }}},
      {"--gradient-dtype",
       {word,
        [] {
          return Words{"bf16", "fp16", "fp32"};
        }}},
      {"--clock",
       {word,
        [] {
          return Words{"host", "device"};
        }}},
      {"--theme",
       {word,
        [] {
          return Words{"light", "dark"};
        }}},
      {"--color",
       {word,
        [] {
          return Words{"auto", "always", "never"};
        }}},
      {"--format", {word, [] { return format_names(); }}},
      {"--executable", {word, [] { return executor_names(); }}},
      {"--to", {word, [] { return Words{"perfetto", "chrome", "kineto", "memory_viz", "csv", "json"}; }}},
      {"--view",
       {word,
        [] {
          return Words{"timeline", "memory", "links", "tiers", "ranks", "pipeline", "compare", "blocks", "segments"};
        }}},
      {"shell",
       {word,
        [] {
          return Words{"bash", "zsh", "fish"};
        }}},

      {"base", {input}},
      {"capture", {input}},
      {"file", {input}},
      {"files", {input}},
      {"other", {input}},
      {"results", {input}},
      {"export run", {input}},
      {"plan", {input}},
      {"snapshot", {input}},
      {"step", {input, known_workloads}},
      {"workload", {input, known_workloads}},
      {"--accelerate", {input}},
      {"--deepspeed", {input}},
      {"--torchtitan", {input}},
      {"--transformers", {input}},
      {"--et", {input}},
      {"--observed", {input}},
      {"--onto", {input, known_workloads}},
      {"--second-size", {input}},
      {"--share", {input}},
      {"--workload", {input, known_workloads}},
      {"watch --csv", {input}},
      {"--nvml", {input}},

      {"machine", {machine, names_of_machines}},
      {"machines", {machine, names_of_machines}},
      {"--machine", {machine, names_of_machines}},
      {"--measured-on", {machine, names_of_machines}},
      {"--base", {machine, names_of_machines}},

      {"policy", {policy, [] { return names_of_policies(true, true); }}},
      {"--policy", {policy, [] { return names_of_policies(true, false); }}},
      {"--with", {policy, [] { return names_of_policies(true, false); }}},
      {"--fusion", {policy, [] { return Words{policy_of(PolicyKind::fusion).name}; }}},
      {"--pager", {policy, [] { return names_of_policies(false, true); }}},

      {"--output", {output_file}},
      {"--plan", {input}},
      {"--plan-out", {output_file}},
      {"compare-policies --csv", {output_file}},
      {"compare-policies --json", {output_file}},
      {"sweep --csv", {output_file}},
      {"sweep --ndjson", {output_file}},
      {"sweep --json", {output_file}},
      {"merge --csv", {output_file}},
      {"merge --ndjson", {output_file}},
      {"merge --json", {output_file}},
      {"merge journals", {input}},
      {"--slurm-script", {output_file}},
      {"sweep --figure", {output_file}},
      {"--journal", {output_file}},
      {"--svg", {output_file}},
      {"--timeline", {output_file}},

      {"manual --all", {folder}},
      {"validate --output", {folder}},
      {"folder", {folder}},
      {"--published", {folder}},
      {"--runs", {folder}},
      {"--scratch", {folder}},
      {"--tables", {folder}},
      {"--transfer", {folder}},
  };
  return known;
}

// Of an option with a value.
KnownOption known_option(const CLI::App& verb, const CLI::Option& option) {
  if (option.get_items_expected_max() == 0) return {};  // a flag
  const std::string name = name_of(option);
  for (const std::string& key : {verb.get_name() + " " + name, name})
    if (const auto found = known_options().find(key); found != known_options().end()) return found->second;
  return {};
}

bool reads_standard_input(const CLI::App& verb, const CLI::Option& option) {
  // A log is followed as it comes, which `watch` does itself; a window reads its runs again and again.
  if (verb.get_name() == "watch" || verb.get_name() == "view") return false;
  const ValueKind kind = known_option(verb, option).kind;
  return kind == ValueKind::input || kind == ValueKind::machine;
}

void find_standard_input(const CLI::App& app, Words& found) {
  for (const CLI::Option* option : app.get_options()) {
    if (!reads_standard_input(app, *option)) continue;
    const auto& given = option->results();
    for (auto i = std::count(given.begin(), given.end(), kStandardInput); i > 0; --i) found.push_back(name_of(*option));
  }
  for (const CLI::App* sub : app.get_subcommands()) find_standard_input(*sub, found);
}

}  // namespace

std::string name_of(const CLI::Option& option) {
  if (!option.get_lnames().empty()) return "--" + option.get_lnames().front();
  if (!option.get_snames().empty()) return "-" + option.get_snames().front();
  return option.get_name(true);
}

OptionValues values_of(const CLI::App& verb, const CLI::Option& option) {
  const KnownOption known = known_option(verb, option);
  return {known.kind, known.words == nullptr ? Words{} : known.words()};
}

void take_standard_input(CLI::App& app) {
  for (CLI::Option* option : app.get_options())
    if (reads_standard_input(app, *option))
      option->transform([](const std::string& given) { return given == "-" ? kStandardInput : given; });
  for (CLI::App* sub : app.get_subcommands([](CLI::App*) { return true; })) take_standard_input(*sub);
}

void require_one_standard_input(const CLI::App& app) {
  Words found;
  find_standard_input(app, found);
  if (found.size() > 1)
    throw UsageError(
        fmt::format("standard input is named {} times ({}), and its bytes come once; write what comes to a "
                    "file first.",
                    found.size(), listed(found)));
}

}  // namespace memwall
