// Sources: torchtitan 0.2.2, distributed/pipeline_parallel.py (pipeline_llm, build_pipeline_schedule,
// generate_llm_fqn_per_model_part).
#include "models/workload/frameworks/torchtitan_pipeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <vector>

#include "models/workload/frameworks/framework_files.h"
#include "models/workload/generate/configuration/workload_file.h"
#include "sim/error.h"

namespace memwall {
namespace {

constexpr const char* kSchedule = "parallelism.pipeline_parallel_schedule";
constexpr const char* kCsv = "parallelism.pipeline_parallel_schedule_csv";
constexpr const char* kMicroBatch = "parallelism.pipeline_parallel_microbatch_size";
constexpr const char* kFirstLess = "parallelism.pipeline_parallel_first_stage_less_layers";
constexpr const char* kLastLess = "parallelism.pipeline_parallel_last_stage_less_layers";
constexpr const char* kLayersPerStage = "parallelism.pipeline_parallel_layers_per_stage";
constexpr const char* kModules = "parallelism.module_fqns_per_model_part";
constexpr std::int64_t kMostLayers = 10000;

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

// "t*7", "" of none.
std::string layers_text(std::int64_t count) { return count == 0 ? "" : count == 1 ? "t" : fmt::format("t*{}", count); }

// Names within a list that the file writes within a list: ["tok_embeddings", 'layers.0'].
std::vector<std::string> names_in(const std::string& list) {
  std::vector<std::string> names;
  std::string name;
  for (const char c : list + ",") {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '_') {
      name += c;
      continue;
    }
    if (!name.empty()) names.push_back(name);
    name.clear();
  }
  return names;
}

class PipelineReader {
 public:
  PipelineReader(const ConfigurationFile& file, std::int64_t ranks, std::int64_t batch, const std::string& network)
      : file_(file), ranks_(ranks), batch_(batch), network_(network) {}

  TorchtitanPipeline run() {
    const std::string schedule = file_.text(kSchedule, "1F1B");
    pipeline_.micro_batch = file_.integer(kMicroBatch, 1, 1, kMostSamples);
    first_less_ = file_.integer(kFirstLess, 1, 0, kMostLayers);
    last_less_ = file_.integer(kLastLess, 1, 0, kMostLayers);
    const std::int64_t per_stage = file_.integer(kLayersPerStage, 0, 0, kMostLayers);
    const std::vector<std::string> modules = file_.list(kModules);
    const bool has_csv = file_.has_any(kCsv);
    file_.pass_over(kCsv);
    if (ranks_ == 1) return pipeline_;
    if (has_csv) throw UsageError(fmt::format("{}: {} is not implemented.", file_.name(), kCsv));
    read_schedule(schedule);
    if (batch_ % pipeline_.micro_batch != 0)
      file_.refuse(
          fmt::format("torchtitan refuses it: training.local_batch_size={} must be divisible by "
                      "pipeline_parallel_microbatch_size, {}",
                      batch_, pipeline_.micro_batch));
    if (per_stage > 0) read_layers_per_stage(per_stage);
    if (!modules.empty())
      pipeline_.stage_layout = layout_of(modules);
    else if (first_less_ != 1 || last_less_ != 1)
      pipeline_.stage_layout = layout_of(layers(first_less_ != 1 ? kFirstLess : kLastLess));
    return pipeline_;
  }

 private:
  void read_schedule(const std::string& schedule) {
    const std::string name = lower(schedule);  // get_schedule_class
    is_single_ = name == "1f1b" || name == "gpipe";
    if (!is_single_ && name != "interleaved1f1b")
      throw UsageError(fmt::format("{}: {}={} is not implemented; expected 1F1B, GPipe or Interleaved1F1B.",
                                   file_.name(), kSchedule, schedule));
    pipeline_.gpipe = name == "gpipe";
    pipeline_.stages_per_rank = is_single_ ? 1 : 2;
  }

  std::int64_t stages() const { return ranks_ * pipeline_.stages_per_rank; }

  std::int64_t layers(const char* key) const {
    if (network_.empty())
      throw UsageError(
          fmt::format("{}: {} counts layers of model.name and model.flavor, which name no network that memwall knows.",
                      file_.name(), key));
    return load_training_job(network_).model.layers;
  }

  void read_layers_per_stage(std::int64_t per_stage) {
    const std::int64_t all = layers(kLayersPerStage) + first_less_ + last_less_;
    const std::int64_t stages = (all + per_stage - 1) / per_stage;
    const auto refuse = [&](const std::string& why) {
      file_.refuse(
          fmt::format("torchtitan refuses it: {}={} makes {} stages of {} layers, embedding and output counted, {}",
                      kLayersPerStage, per_stage, stages, all, why));
    };
    if (stages % ranks_ != 0) refuse(fmt::format("no multiple of pipeline_parallel_degree={}", ranks_));
    pipeline_.stages_per_rank = stages / ranks_;
    if (is_single_ && pipeline_.stages_per_rank != 1) refuse("and this schedule has one stage on each GPU");
    if (!is_single_ && pipeline_.stages_per_rank < 2) refuse("and this schedule has at least two on each GPU");
  }

  // generate_llm_fqn_per_model_part: the first stages have one layer more where they do not divide.
  std::string layout_of(std::int64_t layers) const {
    const std::int64_t all = layers + first_less_ + last_less_, each = all / stages(), more = all % stages();
    if (each == 0)
      file_.refuse(fmt::format("torchtitan refuses it: {} stages cannot be more than {} layers, with {}={} and {}={}",
                               stages(), all, kFirstLess, first_less_, kLastLess, last_less_));
    for (const auto& [key, weight] : {std::pair(kFirstLess, first_less_), {kLastLess, last_less_}})
      if (weight > each)
        file_.refuse(fmt::format("torchtitan refuses it: {}={} exceeds the {} layers of a stage", key, weight, each));
    std::string text;
    for (std::int64_t stage = 0; stage < stages(); ++stage) {
      const bool first = stage == 0, last = stage + 1 == stages();
      const std::int64_t count = each + (stage < more ? 1 : 0) - (first ? first_less_ : 0) - (last ? last_less_ : 0);
      text += (first ? "E" : "|") + layers_text(count) + (last ? "L" : "");
    }
    return text;
  }

  // Stages as the file lists them: layers in their order, norm and output together.
  std::string layout_of(const std::vector<std::string>& modules) {
    const auto count = static_cast<std::int64_t>(modules.size());
    const std::int64_t wanted = is_single_ ? ranks_ : count;
    if (count % ranks_ != 0 || count != wanted || (!is_single_ && count < 2 * ranks_))
      file_.refuse(fmt::format("torchtitan refuses it: {} lists {} stages; expected {} pipeline_parallel_degree={}",
                               kModules, count, is_single_ ? "as many as" : "a multiple, at least twice, of", ranks_));
    pipeline_.stages_per_rank = count / ranks_;
    std::int64_t next = 0;
    std::string text;
    for (std::size_t stage = 0; stage < modules.size(); ++stage)
      text += (stage > 0 ? "|" : "") + letters(modules[stage], next);
    return text;
  }

  std::string letters(const std::string& modules, std::int64_t& next) const {
    bool embedding = false, norm = false, output = false;
    const std::int64_t first = next;
    for (const std::string& name : names_in(modules)) {
      embedding = embedding || name == "tok_embeddings";
      norm = norm || name == "norm";
      output = output || name == "output";
      if (name == "tok_embeddings" || name == "norm" || name == "output") continue;
      if (name != fmt::format("layers.{}", next))
        throw UsageError(
            fmt::format("{}: {} has \"{}\" where layers.{} comes; other orders and modules are not implemented.",
                        file_.name(), kModules, name, next));
      ++next;
    }
    if (norm != output)
      throw UsageError(
          fmt::format("{}: {} has norm and output in two stages, which is not implemented.", file_.name(), kModules));
    return std::string(embedding ? "E" : "") + layers_text(next - first) + (output ? "L" : "");
  }

  const ConfigurationFile& file_;
  std::int64_t ranks_, batch_;
  const std::string& network_;
  TorchtitanPipeline pipeline_;
  bool is_single_ = true;
  std::int64_t first_less_ = 1, last_less_ = 1;
};

}  // namespace

TorchtitanPipeline read_torchtitan_pipeline(const ConfigurationFile& file, std::int64_t ranks, std::int64_t batch,
                                            const std::string& network) {
  return PipelineReader(file, ranks, batch, network).run();
}

}  // namespace memwall
