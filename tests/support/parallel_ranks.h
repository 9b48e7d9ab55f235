// A generated job of several pipeline ranks, taken apart again: what a rank runs in which order, what it keeps, what it
// sends. For tests that compare it with the rules of tensor and pipeline parallelism.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/workload/generate/generate.h"
#include "sim/trace/ranks.h"
#include "tests/support/small_networks.h"

namespace memwall {

// Each rank's program of a generated step, in the order of the pipeline.
inline std::vector<Trace> generated_ranks(const Model& model, const Recipe& recipe) {
  const Trace joined = generate_step(model, recipe);
  std::vector<Trace> ranks;
  for (std::size_t i = 0; i < rank_count(joined); ++i) ranks.push_back(one_rank(joined, static_cast<std::uint16_t>(i)));
  return ranks;
}

// GPT-3 of 175 billion parameters; fewer layers where a test asks for one of them.
inline Model gpt3(std::int64_t layers = 96) {
  Model m;
  m.name = "gpt3-175b";
  m.layers = layers, m.width = 12288, m.heads = 96, m.vocabulary = 51200, m.longest = 2048;
  return m;
}

// A small GPT of that many layers, which 2, 4 and 8 tensor-parallel ranks divide.
inline Model small_gpt(std::int64_t layers) {
  Model m = small_words(Architecture::decoder);
  m.layers = layers;
  m.heads = 8;
  return m;
}

// Gradients of parameters in their own type, as without parallelism.
inline Recipe parallel_recipe(std::int64_t tensor, std::int64_t pipeline, std::int64_t interleave = 1,
                              std::int64_t passes = 1) {
  Recipe r;
  r.optimizer = OptimizerKind::adam;
  r.accumulation = passes;
  r.parallel.main_gradients = MainGradients::none;
  r.parallel.tensor = tensor, r.parallel.pipeline = pipeline, r.parallel.interleave = interleave;
  return r;
}

// One forward or backward pass of a chunk of layers, as the program shows it.
struct ProgramPass {
  bool backward = false;
  std::int64_t chunk = 0, microbatch = 0;
  bool operator==(const ProgramPass&) const = default;
};

inline bool starts_with(const std::string& text, std::string_view head) {
  return text.compare(0, head.size(), head) == 0;
}

// Passes in the order of the program. `first_layers`: of each chunk, with a joint product of queries, keys and values:
// it runs one product in forward and two in backward. Passes of one chunk are numbered as they come.
inline std::vector<ProgramPass> passes_of(const Trace& rank, const std::vector<std::int64_t>& first_layers) {
  std::vector<ProgramPass> passes;
  std::vector<std::int64_t> forward(first_layers.size()), products(first_layers.size());
  for (const Op& op : rank.ops) {
    if (op.operator_class != OperatorClass::gemm || op.kind != OpKind::kernel) continue;
    for (std::size_t chunk = 0; chunk < first_layers.size(); ++chunk) {
      if (rank.strings[op.module] != "layers." + std::to_string(first_layers[chunk]) + ".attention.qkv") continue;
      const auto c = static_cast<std::int64_t>(chunk);
      if (op.phase == Phase::forward) passes.push_back({false, c, forward[chunk]++});
      if (op.phase == Phase::backward && products[chunk]++ % 2 == 0) passes.push_back({true, c, products[chunk] / 2});
    }
  }
  return passes;
}

// Collectives of a process group by its name, in order. Op::bytes: what this rank sends.
inline std::vector<Op> collectives_of(const Trace& rank, std::string_view group) {
  std::vector<Op> found;
  for (const Op& op : rank.ops)
    if (op.kind == OpKind::collective && op.group < rank.groups.size() && rank.groups[op.group].name == group)
      found.push_back(op);
  return found;
}

inline Bytes sum_of_bytes(const std::vector<Op>& ops) {
  Bytes sum = 0;
  for (const Op& op : ops) sum += op.bytes;
  return sum;
}

// What has been made in the step and lives before op `at`: where it was made, what is it called, how large it is.
struct KeptTensor {
  std::string module, label;
  Bytes bytes = 0;
  bool operator==(const KeptTensor&) const = default;
  auto operator<=>(const KeptTensor&) const = default;
};

inline std::vector<KeptTensor> kept_before(const Trace& rank, std::size_t at) {
  std::vector<std::pair<StorageId, KeptTensor>> live;
  for (std::size_t i = 0; i < at; ++i) {
    const Op& op = rank.ops[i];
    if (op.kind == OpKind::alloc) {
      const Storage& s = rank.storages[op.target];
      live.push_back({op.target, {rank.strings[op.module], rank.strings[s.label], s.bytes}});
    }
    if (op.kind == OpKind::free) std::erase_if(live, [&](const auto& one) { return one.first == op.target; });
  }
  std::vector<KeptTensor> kept;
  for (auto& [id, storage] : live) kept.push_back(std::move(storage));
  return kept;
}

// Where backward begins: the first kernel of it, or of what it computes again, with what is allocated for that.
inline std::size_t first_backward(const Trace& rank) {
  const auto begins = [](const Op& op) {
    return op.kind == OpKind::kernel && (op.phase == Phase::backward || op.phase == Phase::recompute);
  };
  auto at = static_cast<std::size_t>(std::find_if(rank.ops.begin(), rank.ops.end(), begins) - rank.ops.begin());
  while (at > 0 && rank.ops[at - 1].kind == OpKind::alloc &&
         rank.storages[rank.ops[at - 1].target].kind != StorageKind::communication_buffer)
    --at;
  return at;
}

// Bytes of what lives from before the step on.
inline Bytes preexisting_bytes(const Trace& rank, StorageKind kind) {
  Bytes sum = 0;
  for (const Storage& s : rank.storages)
    if (s.preexisting && s.kind == kind) sum += s.bytes;
  return sum;
}

}  // namespace memwall
