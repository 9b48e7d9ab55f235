#include "cli/verbs/plan_layouts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <sstream>
#include <string_view>
#include <thread>

#include "cli/print/answer.h"
#include "cli/print/screen.h"
#include "cli/print/table_cells.h"
#include "cli/progress.h"
#include "cli/terminal.h"
#include "models/hw/machine_file.h"
#include "models/workload/generate/configuration/workload_file.h"
#include "models/workload/generate/parallel/parallel_job.h"
#include "sim/error.h"
#include "sim/human_text.h"
#include "study/device_budget.h"
#include "study/layout/layout_search.h"
#include "study/step_setting.h"
#include "study/step_text.h"
#include "study/workload_file.h"

namespace memwall {
namespace {

std::string counted(std::size_t n, const char* one) { return counted_text(n, one); }

std::string with_settings(const std::string& workload, const std::string& settings) {
  return fmt::format("{}{}{}", workload, workload.find(':') == std::string::npos ? ":" : ",", settings);
}

// What comes of the best layouts with PyTorch's allocator.
std::string reserved_sentence(const LayoutSearch& s, const LayoutRequest& request) {
  const Layout* const recommended = s.recommended();
  const auto shorter = static_cast<std::size_t>(recommended ? recommended - s.best.data() : 0);
  const ReservedMemory& first = *s.best.front().reserved;
  const std::string lacks =
      fmt::format("with its rounding, cache and fragmentation {} are missing in stage {} of the shortest",
                  human_bytes(first.missing), first.stage);
  if (!recommended)
    return fmt::format(
        "None of the best {} fits with PyTorch's allocator: {}. Ask for fewer bytes with --budget, as "
        "{}, or try allocator settings (memwall run --alloc-conf).",
        s.best.size(), lacks, human_bytes(request.budget - first.missing));
  const ReservedMemory& reserved = *recommended->reserved;
  std::string sentence = fmt::format("With PyTorch's allocator {} of {} are reserved in stage {}, the fullest",
                                     human_bytes(reserved.reserved), human_bytes(request.budget), reserved.stage);
  if (reserved.microbatches < recommended->outcome.microbatches)
    sentence += fmt::format(" (in its first {} micro-batches)", reserved.microbatches);
  if (shorter > 0)
    sentence += fmt::format("; {} with a shorter step {} not fit: {}", counted(shorter, "layout"),
                            shorter == 1 ? "does" : "do", lacks);
  return sentence + ".";
}

// As it is typed: what stands behind the workload's name, and the policy beside it.
std::string typed(const std::string& settings, const Layout& l) {
  return l.policy.empty() ? settings : fmt::format("{} --policy {}", settings, l.policy);
}

std::string interval_text(const Layout& l) {
  if (!l.interval) return "";
  return fmt::format("80 % interval {} to {}, ", human_time(l.interval->low), human_time(l.interval->high));
}

std::vector<std::string> layout_answer(const LayoutSearch& s, const LayoutRequest& request,
                                       const std::string& workload) {
  if (s.best.empty() && s.least_missing == 0)
    return {fmt::format("No layout of {} over {} can be run: {} refused by the framework or not implemented.", workload,
                        counted(request.gpus, "GPU"), by_number(s.refused.layouts(), "the only one is", "all are"))};
  if (s.best.empty())
    return {fmt::format("No layout of {} over {} fits: {} {} looked at, and {} are missing at least in each GPU.",
                        workload, counted(request.gpus, "GPU"), counted(s.layouts, "layout"),
                        by_number(s.layouts, "was", "were"), human_bytes(s.least_missing))};
  const Layout* const recommended = s.recommended();
  const Layout& best = recommended ? *recommended : s.best.front();
  const double step = to_seconds(best.outcome.step_time);
  const std::int64_t sequence = request.job.recipe.sequence ? request.job.recipe.sequence : request.job.model.longest;
  const double tokens = static_cast<double>(request.global_batch * sequence) / step;
  std::vector<std::string> sentences{
      fmt::format("The shortest step{} takes {} ({}{} tokens/s, MFU {}): {}.",
                  recommended == &s.best.front() ? ""
                  : recommended                  ? " that fits"
                                                 : " whose bytes fit",
                  human_time(best.outcome.step_time), interval_text(best), amount_words(tokens),
                  percent_text(best.model_flops_share),
                  typed(with_settings(workload, layout_settings(best, request.fixed)), best)),
      reserved_sentence(s, request),
      fmt::format("{} divide {} and a batch of {}: {} do not fit in {} of a GPU, {} cannot be among the best {} even "
                  "with no wait between passes, {} were simulated{}{}.",
                  counted(s.layouts, "layout"), counted(request.gpus, "GPU"), request.global_batch, s.too_large,
                  human_bytes(request.budget), s.slower, request.best, s.simulated,
                  s.simulated_too_large > 0 ? fmt::format(" ({} of them do not fit)", s.simulated_too_large) : "",
                  s.refused.reasons.empty()
                      ? ""
                      : fmt::format(", {} are refused by the framework or are not implemented", s.refused.layouts()))};
  return sentences;
}

Cell number(std::int64_t n) { return count_cell(static_cast<std::uint64_t>(n)); }

Table best_table(const LayoutSearch& s) {
  Table t{
      .name = "layouts",
      .title =
          "The best layouts (TP, PP, DP: tensor-, pipeline- and data-parallel ranks; VP: chunks of layers per rank; "
          "micro: sequences of a micro-batch; passes: micro-batches; from, to: 80 % interval of the step; waiting: "
          "the slowest stage runs no pass; peak: of the fullest stage, in bytes, without the allocator's rounding and "
          "cache)",
      .columns = {"number", "tensor", "pipeline", "interleave", "data_parallel", "micro_batch", "microbatches",
                  "checkpoint", "step_time_s", "step_time_low_s", "step_time_high_s", "mfu", "waiting_share",
                  "peak_bytes", "fullest_stage"},
      .headings = {"", "TP", "PP", "VP", "DP", "micro", "passes", "checkpoint", "step time", "from", "to", "MFU",
                   "waiting", "peak", "stage"},
      .rows = {}};
  const char* const again[] = {"none", "full", "selective"};
  for (const Layout& l : s.best) {
    const ModelParallel& p = l.recipe.parallel;
    const FoldedStage& fullest = l.outcome.stages[l.outcome.fullest()];
    t.rows.push_back({count_cell(t.rows.size() + 1), number(p.tensor), number(p.pipeline), number(p.interleave),
                      number(l.recipe.data_parallel), number(p.micro_batch), number(l.outcome.microbatches),
                      cell(again[static_cast<std::size_t>(l.recipe.checkpoint)]), time_cell(l.outcome.step_time),
                      l.interval ? time_cell(l.interval->low) : unrecorded_cell("-"),
                      l.interval ? time_cell(l.interval->high) : unrecorded_cell("-"), share_cell(l.model_flops_share),
                      share_cell(l.waiting_share), bytes_cell(fullest.peak), count_cell(l.outcome.fullest())});
  }
  return t;
}

Table reserved_table(const LayoutSearch& s) {
  Table t{
      .name = "reserved",
      .title = "What PyTorch's allocator reserves, of the layouts that it was asked of: the first ones until one fits",
      .columns = {"number", "stage", "reserved_bytes", "missing_bytes"},
      .headings = {"", "stage", "reserved", "missing"},
      .rows = {}};
  for (std::size_t i = 0; i < s.best.size(); ++i)
    if (const auto& reserved = s.best[i].reserved)
      t.rows.push_back({count_cell(i + 1), count_cell(reserved->stage), bytes_cell(reserved->reserved),
                        bytes_cell(reserved->missing)});
  return t;
}

std::vector<std::string> setting_words(const Layout& l, const LayoutRequest& request) {
  std::vector<std::string> words;
  std::istringstream text(layout_settings(l, request.fixed));
  for (std::string word; std::getline(text, word, ',');) words.push_back(word);
  return words;
}

// What is the same in all layouts is said once.
std::vector<std::string> settings_of_all(const LayoutSearch& s, const LayoutRequest& request) {
  if (s.best.size() < 2) return {};
  std::vector<std::string> common = setting_words(s.best.front(), request);
  for (const Layout& l : s.best) {
    const std::vector<std::string> own = setting_words(l, request);
    std::erase_if(common, [&](const std::string& word) { return std::ranges::find(own, word) == own.end(); });
  }
  return common;
}

Table common_table(const std::vector<std::string>& common) {
  Table t{.name = "common_settings",
          .title = "Settings of all of them, as they go behind the workload's name",
          .columns = {"settings"},
          .headings = {},
          .rows = {},
          .prose = true};
  if (!common.empty()) t.rows.push_back({cell(fmt::format("{}", fmt::join(common, ",")))});
  return t;
}

Table reason_table(const LayoutSearch& s, const LayoutRequest& request, const std::vector<std::string>& common) {
  Table t{.name = "reasons",
          .title = common.empty() ? "Why, and the settings of each, as they go behind the workload's name"
                                  : "Why, and the further settings of each",
          .columns = {"reason"},
          .headings = {},
          .rows = {},
          .prose = true};
  for (const Layout& l : s.best) {
    std::vector<std::string> own = setting_words(l, request);
    std::erase_if(own, [&](const std::string& word) { return std::ranges::find(common, word) != common.end(); });
    t.rows.push_back(
        {cell(fmt::format("{}: {}. {}", t.rows.size() + 1, l.why, typed(fmt::format("{}", fmt::join(own, ",")), l)))});
  }
  return t;
}

Table refusal_table(const LayoutSearch& s) {
  Table t{
      .name = "refused",
      .title = "Why layouts are refused, the most common reason first; numbers are those of the first of its layouts",
      .columns = {"reason"},
      .headings = {},
      .rows = {},
      .prose = true};
  std::vector<LayoutRefusals::Reason> reasons = s.refused.reasons;
  std::ranges::stable_sort(reasons, std::ranges::greater{}, &LayoutRefusals::Reason::layouts);
  for (const LayoutRefusals::Reason& reason : reasons)
    t.rows.push_back({cell(fmt::format("{}: {}", counted(reason.layouts, "layout"), reason.sentence))});
  return t;
}

std::vector<Table> layout_tables(const LayoutSearch& search, const LayoutRequest& request,
                                 const std::string& workload) {
  std::vector<Table> tables{answer_table("", layout_answer(search, request, workload))};
  if (search.best.empty()) {
    if (!search.refused.reasons.empty()) tables.push_back(refusal_table(search));
    return tables;
  }
  tables.push_back(best_table(search));
  tables.push_back(reserved_table(search));
  const std::vector<std::string> common = settings_of_all(search, request);
  if (!common.empty()) tables.push_back(common_table(common));
  tables.push_back(reason_table(search, request, common));
  if (!search.refused.reasons.empty()) tables.push_back(refusal_table(search));
  return tables;
}

constexpr int kNothingFits = 3;

// What `--global-batch` says in their place.
constexpr std::array<std::string_view, 3> kOfBatch = {"global_batch", "batch", "accumulation"};

void require_workload(const std::vector<std::string>& files) {
  if (files.size() == 1 && (names_workload(files.front()) || is_generated_step(files.front()))) return;
  const bool is_name = files.size() == 1 && !std::filesystem::exists(files.front()) &&
                       files.front().find('/') == std::string::npos && !files.front().ends_with(".json");
  if (is_name) load_training_job(files.front());  // says what is near it
  throw UsageError(
      "--gpus without a framework's configuration looks for the layout of a generated job; expected the name of one "
      "workload, such as gpt3-175b (memwall generate --list), or one network's config.json or .textproto.");
}

// What the search may use of each GPU's memory, of `whole`.
Bytes budget_of(const LayoutOptions& o, Bytes whole) {
  if (o.budget.empty()) return whole;
  const Bytes budget = parse_device_budget(o.budget).of(whole);
  if (budget > whole)
    throw UsageError(
        fmt::format("--budget {}: a GPU of {} has {} for a step; expected at most that, or a machine with "
                    "more memory (--set gpu.hbm.capacity=...).",
                    o.budget, o.machine, human_bytes(whole)));
  return budget;
}

LayoutRequest request_of(const LayoutOptions& o) {
  require_workload(o.files);
  if (o.machine.empty()) throw UsageError("--gpus needs --machine, the GPU and its network.");
  if (o.global_batch == 0) throw UsageError("--gpus needs --global-batch, the sequences of one step of the whole job.");
  LayoutRequest request;
  request.job = load_training_job(o.files.front());
  request.fixed = settings_said(o.files.front());  // those are not searched
  for (const std::string_view said : kOfBatch)
    if (std::find(request.fixed.begin(), request.fixed.end(), said) != request.fixed.end())
      throw UsageError(
          fmt::format("{} behind the workload's name and --global-batch say the same; expected the latter.", said));
  require_no_step_setting(o.settings, o.files.front());
  request.machine = std::make_shared<const Machine>(load_machine(o.machine, o.settings));
  request.gpus = o.gpus;
  request.global_batch = o.global_batch;
  const int tier = request.machine->tier("hbm");
  if (tier < 0) throw UsageError(fmt::format("Machine '{}' has no memory 'hbm'.", request.machine->name));
  request.budget = budget_of(o, request.machine->tiers[static_cast<std::size_t>(tier)].holds());
  request.jobs = o.jobs > 0 ? o.jobs : std::max(1u, std::thread::hardware_concurrency());
  return request;
}

}  // namespace

std::string layout_hint(const std::string& step, const std::string& machine, const std::vector<std::string>& settings) {
  if (!names_workload(step)) return "";
  TrainingJob job = load_training_job(step);
  if (is_parallel(job.recipe) || job.recipe.data_parallel > 1) return "";
  job.recipe.parallel.pipeline = 2;  // as some of what is searched has
  job.recipe.accumulation = 2;
  job.model.layers += job.model.layers % 2;
  try {
    parallel_job(job.model, job.recipe);
  } catch (const UsageError&) {
    return "";
  }
  std::string command = fmt::format("memwall plan {} --machine {}", without_settings(step, kOfBatch), machine);
  for (const std::string& setting : settings) command += fmt::format(" --set '{}'", setting);
  return fmt::format(
      "memwall run: divided over several GPUs it may fit. The best layout for 64 GPUs and 64 sequences in each step, "
      "say: {} --gpus 64 --global-batch 64\n",
      command);
}

int plan_layouts(const LayoutOptions& o) {
  const Format format = parse_format(o.format);
  const LayoutRequest request = request_of(o);
  LayoutSearch found;
  {
    TerminalWatch watch("layouts");
    found = search_layouts(request, &watch);
  }
  const std::string workload = o.files.front().substr(0, o.files.front().find(':'));
  std::string settings;
  for (const std::string& setting : o.settings) settings += fmt::format(" --set '{}'", setting);
  if (!o.one_line)
    print(screen_text(layout_tables(found, request, o.files.front()), format, o.full));
  else if (found.recommended())
    print(fmt::format(
        "memwall run {}{}{} --machine {}{}\n", o.files.front(), workload.size() == o.files.front().size() ? ":" : ",",
        typed(layout_settings(*found.recommended(), request.fixed), *found.recommended()), o.machine, settings));
  else
    print_error("memwall plan: {}\n", layout_answer(found, request, o.files.front()).front());
  return found.recommended() ? 0 : kNothingFits;
}

}  // namespace memwall
