#include "models/workload/generate/parallel/stage_layers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <string>
#include <string_view>

#include "sim/error.h"
#include "sim/human_text.h"

namespace memwall {
namespace {

constexpr std::size_t kLongestLayout = 100000;

[[noreturn]] void refuse(const std::string& sentence) { throw UsageError(sentence); }

// A layout written out: "*n" repeats the letter or the bracket before it, commas mean nothing.
class LayoutText {
 public:
  explicit LayoutText(std::string_view text) : text_(text) {}
  std::string written_out() {
    const std::string all = sequence();
    if (at_ != text_.size()) wrong("a bracket closes that was not opened");
    return all;
  }

 private:
  [[noreturn]] void wrong(const char* what) const {
    refuse(fmt::format(
        "stage_layout \"{}\": {} at character {}; expected E (embedding), t (layer), L (loss), | (next stage), "
        "( ) and *n (repeat).",
        text_, what, at_ + 1));
  }
  std::string sequence() {
    std::string all;
    while (at_ < text_.size() && text_[at_] != ')') {
      std::string piece = this->piece();
      const std::size_t times = repetitions();
      if (piece.size() * times + all.size() > kLongestLayout) wrong("the layout grows too long");
      for (std::size_t i = 0; i < times; ++i) all += piece;
    }
    return all;
  }
  std::string piece() {
    const char letter = text_[at_++];
    if (letter == ',') return "";
    if (letter == '(') {
      if (++depth_ > 20) wrong("too many brackets open");
      std::string inside = sequence();
      if (at_ == text_.size()) wrong("a bracket stays open");
      ++at_;
      --depth_;
      return inside;
    }
    if (letter == 'm') refuse(fmt::format("stage_layout \"{}\": multi-token prediction (m) is not implemented.", text_));
    if (letter != 'E' && letter != 't' && letter != 'L' && letter != '|') {
      --at_;
      wrong("an unknown letter stands");
    }
    return std::string(1, letter);
  }
  std::size_t repetitions() {
    if (at_ == text_.size() || text_[at_] != '*') return 1;
    ++at_;
    std::size_t number = 0, digits = 0;
    for (; at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_])) && digits < 6; ++at_, ++digits)
      number = 10 * number + static_cast<std::size_t>(text_[at_] - '0');
    if (digits == 0) wrong("no number follows *");
    return number;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

std::vector<StageLayers> from_layout(const ModelParallel& p, std::int64_t layers) {
  const std::string all = LayoutText(p.stage_layout).written_out();
  std::vector<StageLayers> stages(1);
  std::int64_t next = 0;
  for (const char letter : all) {
    if (letter == '|') stages.push_back({next, 0});
    if (letter == 'E') stages.back().embedding = true;
    if (letter == 'L') stages.back().loss = true;
    if (letter == 't') ++stages.back().count, ++next;
  }
  const auto wanted = static_cast<std::size_t>(p.pipeline * p.interleave);
  if (stages.size() != wanted)
    refuse(fmt::format("stage_layout has {} stages; expected {} (pipeline {} x interleave {}).", stages.size(), wanted,
                       p.pipeline, p.interleave));
  if (next != layers) refuse(fmt::format("stage_layout has {} layers; expected the model's {}.", next, layers));
  if (std::count(all.begin(), all.end(), 'E') != 1 || std::count(all.begin(), all.end(), 'L') != 1 ||
      !stages.front().embedding || !stages.back().loss)
    refuse("stage_layout: expected E in the first stage and L in the last, once each.");
  return stages;
}

std::string counted(std::int64_t n, const char* one) { return counted_text(static_cast<std::uint64_t>(n), one); }

// torchtitan: embedding and loss weigh a layer each; what does not divide goes to the first stages.
std::vector<std::int64_t> torchtitan_counts(std::int64_t stages, std::int64_t layers) {
  std::vector<std::int64_t> counts;
  const std::int64_t all = layers + 2;
  if (stages > 1 && all / stages < 1) refuse(fmt::format("{} layers are too few for {} stages.", layers, stages));
  for (std::int64_t s = 0; s < stages; ++s) counts.push_back(all / stages + (s < all % stages ? 1 : 0));
  --counts.front();
  --counts.back();
  return counts;
}

// Layers of the first and the last rank with which all others have equally many, in whole chunks: fewer where that is
// possible, as embedding and loss take time, too. "": there are none.
std::string ends_that_divide(const ModelParallel& p, std::int64_t layers) {
  const std::int64_t inner = p.pipeline - 2, chunks = p.interleave;
  if (inner < 1 || layers % chunks != 0) return "";
  const std::int64_t all = layers / chunks;  // counted in layers of all chunks of a rank
  for (const std::int64_t each : {(all + p.pipeline - 1) / p.pipeline, all / p.pipeline}) {
    const std::int64_t ends = all - each * inner;
    if (each < 1 || ends < 2) continue;
    const std::int64_t first = ends / 2 * chunks, last = (ends - ends / 2) * chunks;
    return fmt::format(" (with {} and {} each other GPU has {})", first, last, each * chunks);
  }
  return "";
}

// Layers of each rank, its chunks together.
std::vector<std::int64_t> megatron_rank_counts(const ModelParallel& p, std::int64_t layers) {
  std::int64_t rest = layers, ranks = p.pipeline;
  for (const std::int64_t fixed : {p.first_stage_layers, p.last_stage_layers}) {
    if (fixed == 0) continue;
    rest -= fixed;
    --ranks;
  }
  const bool are_said = p.first_stage_layers != 0 || p.last_stage_layers != 0;
  if (layers < p.pipeline && !are_said)
    refuse(fmt::format("{} {} too few for {} in a pipeline; expected a layer for each.", counted(layers, "layer"),
                       layers == 1 ? "is" : "are", counted(p.pipeline, "GPU")));
  if (ranks < 0 || rest < 0)
    refuse(
        fmt::format("first_stage_layers {} and last_stage_layers {} are more than {} over {}; expected fewer, or a "
                    "longer pipeline.",
                    p.first_stage_layers, p.last_stage_layers, counted(layers, "layer"), counted(p.pipeline, "GPU")));
  if ((ranks == 0 ? rest != 0 : rest % ranks != 0))
    refuse(fmt::format(
        "{} cannot be divided over {}{}: {} are left for {}; expected a multiple. Choose first_stage_layers and "
        "last_stage_layers{}, or a stage_layout.",
        counted(layers, "layer"), counted(p.pipeline, "GPU"), are_said ? " with these first and last stages" : "", rest,
        ranks, ends_that_divide(p, layers)));
  std::vector<std::int64_t> counts(static_cast<std::size_t>(p.pipeline), ranks > 0 ? rest / ranks : 0);
  if (p.first_stage_layers != 0) counts.front() = p.first_stage_layers;
  if (p.last_stage_layers != 0) counts.back() = p.last_stage_layers;
  return counts;
}

std::vector<std::int64_t> megatron_counts(const ModelParallel& p, std::int64_t layers) {
  const std::int64_t counted = layers + (p.embedding_in_split ? 1 : 0) + (p.loss_in_split ? 1 : 0);
  const std::vector<std::int64_t> of_rank = megatron_rank_counts(p, counted);
  std::vector<std::int64_t> counts;
  for (std::int64_t chunk = 0; chunk < p.interleave; ++chunk)
    for (const std::int64_t count : of_rank) {
      if (count % p.interleave != 0)
        refuse(fmt::format("{} layers of a GPU cannot be divided into {} chunks (interleave); expected a multiple.",
                           count, p.interleave));
      counts.push_back(count / p.interleave);
    }
  if (p.embedding_in_split) --counts.front();
  if (p.loss_in_split) --counts.back();
  return counts;
}

// PipelineModule's `uniform` over its layers alone: stages that come first take what does not divide
// (deepspeed/runtime/utils.py, partition_uniform, gives what is left to the first).
std::vector<std::int64_t> deepspeed_counts(std::int64_t stages, std::int64_t layers) {
  if (layers < stages) refuse(fmt::format("{} layers are too few for {} stages.", layers, stages));
  std::vector<std::int64_t> counts;
  for (std::int64_t s = 0; s < stages; ++s) counts.push_back(layers / stages + (s < layers % stages ? 1 : 0));
  return counts;
}

std::vector<std::int64_t> counts_of(const ModelParallel& p, std::int64_t layers) {
  const bool chosen = p.first_stage_layers != 0 || p.last_stage_layers != 0 || p.embedding_in_split || p.loss_in_split;
  if (p.framework == ParallelFramework::torchtitan && !chosen) return torchtitan_counts(p.pipeline * p.interleave, layers);
  if (p.framework == ParallelFramework::deepspeed && !chosen) return deepspeed_counts(p.pipeline, layers);
  return megatron_counts(p, layers);
}

}  // namespace

std::vector<StageLayers> stage_layers(const ModelParallel& parallel, std::int64_t layers) {
  if (!parallel.stage_layout.empty()) {
    if (parallel.first_stage_layers != 0 || parallel.last_stage_layers != 0 || parallel.embedding_in_split ||
        parallel.loss_in_split)
      refuse("stage_layout with first_stage_layers, last_stage_layers, embedding_in_split or loss_in_split: Megatron-LM "
             "refuses both; expected one of them.");
    return from_layout(parallel, layers);
  }
  std::vector<StageLayers> stages;
  std::int64_t next = 0;
  for (const std::int64_t count : counts_of(parallel, layers)) {
    if (count < 0) refuse("A stage would have fewer layers than none; expected more layers or fewer stages.");
    stages.push_back({next, count});
    next += count;
  }
  stages.front().embedding = stages.back().loss = true;
  return stages;
}

}  // namespace memwall
