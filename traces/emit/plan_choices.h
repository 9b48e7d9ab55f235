// What a memory plan chooses for a whole model, in the terms that training frameworks share: which blocks are run
// again, what leaves the device, how a step is split over ranks, batch and types. Read from the plan's file alone.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "traces/emit/emission.h"
#include "traces/plan/plan_document.h"

namespace memwall {

enum class BlockRecompute : std::uint8_t {
  none,
  every_block,   // each alone
  groups,        // `number` in a row, as one
  first_blocks,  // the first `number`, each alone
  every_nth,     // the last of every `number`, alone
  by_name        // anything else: `why` says what
};

struct RecomputeChoice {
  BlockRecompute which = BlockRecompute::none;
  std::string name;  // for sentences: "checkpoint:every=2"
  std::string list;  // of modules that the blocks are children of; "" = the file does not say
  std::uint32_t number = 1;
  bool early_stop = true;
  bool is_named = false;                      // the file lists its modules, so that memwall_apply can carry it out
  std::vector<std::string> save_operators{};  // selective checkpointing: what stays
  std::string why{};                          // of by_name, without a full stop

  bool any() const { return which != BlockRecompute::none; }
  bool every_block_whole() const { return which == BlockRecompute::every_block && save_operators.empty(); }
  bool whole() const { return any() && which != BlockRecompute::by_name && save_operators.empty(); }
};

// One kind of storages that leaves the device.
struct OffloadChoice {
  std::string name;  // "offload:what=optimizer"
  std::string tier;  // "host"
  bool pinned = true, beside_compute = true;
  double fraction = 1;
  bool hides = false;          // as many as leave the step no longer
  std::int64_t min_bytes = 0;  // smaller ones stay
  bool on_cpu = true;          // of the optimizer: it updates there
  bool pipeline = false;
  std::int64_t group = 0;  // parameters per group that travels; 0 = not said
};

struct ShardChoice {
  int stage = 0;
  std::int64_t ranks = 1, bucket_bytes = 0, reuse_distance = 0;
  bool overlap = true, prefetch = true;
};

struct BatchChoice {
  std::int64_t samples = 0;   // of one forward pass of one rank; 0 = unknown
  std::int64_t forwards = 1;  // per step of the optimizer
  std::int64_t tokens = 0;    // of a sample; 0 = unknown
};

struct PlanChoices {
  RecomputeChoice recompute;
  std::optional<OffloadChoice> activations{}, optimizer{}, gradients{}, parameters{};
  std::optional<ShardChoice> shard{};
  BatchChoice batch;
  std::string compute_dtype, gradient_dtype;  // as PlanStep
  std::vector<LeftOut> beyond;                // what no setting of any framework says

  // Of a step of the optimizer; 0 = unknown, or too many to be true.
  std::int64_t samples_of_all_ranks() const;
  // Bytes of one gradient; 0 = unknown.
  std::int64_t gradient_bytes() const;
  // Matrix products in a smaller type than parameters and gradients are held in.
  bool is_autocast() const { return gradient_dtype == "fp32" && (compute_dtype == "bf16" || compute_dtype == "fp16"); }
  bool is_pure(const char* dtype) const { return compute_dtype == dtype && gradient_dtype == dtype; }
  bool moves_model_state() const { return optimizer || gradients || parameters; }
};

// `gradient_dtype`: instead of what the file says; "" = that.
PlanChoices choices_of(const PlanDocument& document, const std::string& gradient_dtype);

}  // namespace memwall
