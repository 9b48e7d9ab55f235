// Which storages of a step grow with its batch, and which extent of a shape holds the batch.
//
// Two things must come together. Dataflow: the storage is made, directly or not, from an input.
// Shape: the operator that makes it keeps the batch. An extent that happens to equal the batch (128
// channels at 128 images) decides nothing by itself, and a gradient of a parameter depends on the
// inputs but has no batch in it. So each operator class says what of its results grows:
//
//   gemm           grows with one growing operand; of two, the batch is either contracted (a weight's
//                  gradient: shaped like a parameter) or it is the batch of the product
//   convolution    everything but what is shaped like a parameter in backward
//   attention      all that has at least an element per query (not the state of the random generator)
//   normalization  what has an element per element, or per row; never the statistics of a batch
//   reduction      what keeps the extent that holds the batch
//   embedding      forward only
//   elementwise, memory, other   what is as large as a growing operand, or as several together, or has its batch extent
//
// Constants that meet a growing storage of exactly their shape (zeros_like) grow with it.
// Parameters, their gradients and optimizer states never grow, nor does what is only copied into those.
#pragma once

#include <optional>
#include <set>
#include <vector>

#include "sim/trace/trace.h"

namespace memwall {

// Of one forward pass. `tokens`: 0 = unknown.
struct BatchSize {
  std::int64_t samples = 1, tokens = 0;
};

// The index of the extent that holds the batch: the first extent of all if it is a multiple of the samples (but where
// the length stands before them), else the one that is the samples, or the tokens, or a multiple of the samples.
// Nothing where there is none.
std::optional<std::size_t> batch_extent(const Shape& shape, const BatchSize& size);

class BatchAnalysis {
 public:
  // REQUIRES: check(trace) is empty; trace.knowledge.dataflow; size.samples >= 1. `trace` must outlive it.
  BatchAnalysis(const Trace& trace, const BatchSize& size);

  bool grows(StorageId storage) const { return grows_[storage]; }
  bool any() const;
  // Storages made from growing ones of which neither operator nor shape says whether they grow.
  const std::set<StorageId>& guessed() const { return guessed_; }
  // Parameters of unknown shape that an element-wise op reads beside something that grows and is as large: they have
  // an element for each of it, so the batch is in them too (G10's broadcast constants), and what else it is in cannot
  // be told. Not asked of a batch of one, where position embeddings are as large as the activations.
  std::set<StorageId> parameters_that_hold_the_batch() const;
  // Does the op read or write anything that grows?
  bool touches_growing(const Op& op) const;
  // The extent of `op.shape` that holds the batch; nothing if no extent can.
  std::optional<std::size_t> extent_of_work(const Op& op) const;

 private:
  enum class Growth : std::uint8_t { no, yes, guessed_no, guessed_yes };
  void find_parameters();
  void find_gradient_feeders();
  void seed_inputs();
  bool analyze_op(const Op& op);
  void gather_reads(const Op& op);
  bool mark(StorageId storage, Growth growth);
  bool unify_shapes(const Op& op);
  bool unify_concatenation(const Op& op);
  bool unify_indices(const Op& op);

  Growth result(const Op& op, StorageId storage) const;
  Growth of_product(const Op& op, StorageId storage) const;
  Growth of_attention(const Op& op, StorageId storage) const;
  Growth of_normalization(const Op& op, StorageId storage) const;
  Growth of_reduction(const Op& op, StorageId storage) const;
  Growth of_movement(StorageId storage, Phase phase) const;
  bool as_large_as_a_read(StorageId storage) const;
  bool as_large_as_reads_together(StorageId storage) const;
  bool is_weight_operand(const Op& op, StorageId storage) const;

  std::optional<std::size_t> extent_of_product(const Op& op, bool result_grows) const;
  bool has_result(const Op& op, std::int64_t elements) const;
  bool is_batch_norm(const Op& op) const;
  bool may_grow(StorageId storage) const;
  bool shaped_like_parameter(StorageId storage) const;
  std::int64_t elements(StorageId storage) const { return elements_[storage]; }  // 0 = unknown
  const Shape& shape(StorageId storage) const { return t_.shapes[t_.storages[storage].shape]; }

  const Trace& t_;
  BatchSize size_;
  std::vector<bool> grows_, feeds_gradient_;
  std::vector<std::int64_t> elements_;
  std::set<Shape> parameter_shapes_;  // without extents of 1, and transposed
  std::set<Shape> exact_parameter_shapes_;
  std::set<StorageId> guessed_;
  // Of the op at hand.
  std::vector<StorageId> growing_reads_, other_reads_;
  std::vector<std::int64_t> growing_amounts_;  // elements, where known, else bytes; sorted
};

}  // namespace memwall
