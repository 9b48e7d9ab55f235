// The sum of gradients over data-parallel ranks: overlapped with backward in buckets, as PyTorch's
// DistributedDataParallel does it (torch/csrc/distributed/c10d/reducer.cpp), or once after it, as Megatron-LM's local
// one. Ranks run the same program; the trace is that of one of them.
#pragma once

#include <memory>
#include <vector>

#include "models/workload/generate/configuration/model.h"
#include "models/workload/generate/configuration/recipe.h"
#include "models/workload/generate/operators/tape.h"

namespace memwall {

class GradientReduction {
 public:
  // Nothing is done for one rank. `order`: numbers of Tape::parameters() in the order in which their gradients come in
  // backward, which buckets are filled by. Before begin_step(). Throws UsageError where settings cannot be combined.
  GradientReduction(Tape& tape, const Recipe& recipe, const std::vector<std::size_t>& order);
  ~GradientReduction();

  // Around each backward; only in the last of an accumulation gradients are reduced (no_sync).
  void begin(bool last);
  void end();

 private:
  struct Bucket {
    std::vector<Parameter*> parameters;
    Tensor buffer;
    Tensors views;
    std::size_t pending = 0;
  };
  void make_buckets(const std::vector<std::size_t>& order);
  void add_bucket(const std::vector<Parameter*>& parameters);
  void arrived(Parameter& parameter, Bucket& bucket, const Tensor& view);
  void reduce(const Tensor& buffer);
  void wait_for_reduction();
  void reduce_at_once();

  Tape& tape_;
  const Recipe& recipe_;
  std::uint16_t stream_ = 0;
  std::vector<std::unique_ptr<Bucket>> buckets_;
  std::size_t next_ = 0;  // the bucket that is reduced next
  bool active_ = false;
};

// The order in which gradients come, found by writing one pass on a tape that is thrown away.
std::vector<std::size_t> gradient_order(const Model& model, const Recipe& recipe);

}  // namespace memwall
