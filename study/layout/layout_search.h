// Which way of dividing a model over a number of GPUs makes its step shortest: tensor, pipeline and data parallelism,
// interleaving, micro-batch and recomputation.
//
// Layouts that divisibility forbids are not looked at. Of the others memory is known before anything is simulated
// (weights, gradients and optimizer states; then what passes in flight keep); what does not fit is left out, and so is
// what could not be among the best even if its passes followed each other without a gap. The rest is simulated
// (study/layout/folded_job.h).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "models/workload/generate/configuration/workload_file.h"
#include "study/layout/folded_job.h"
#include "study/watch.h"
#include "traces/run/analysis/step_interval.h"

namespace memwall {

struct LayoutRequest {
  TrainingJob job;                // what layouts do not change: network, precision, attention
  std::vector<std::string> fixed{};  // settings that are said and so not searched: "tensor", "checkpoint"
  std::shared_ptr<const Machine> machine{};
  std::uint32_t gpus = 1;
  std::int64_t global_batch = 1;  // sequences of a step, of all replicas
  Bytes budget = 0;               // of a GPU's memory for the step
  std::size_t best = 10;
  unsigned jobs = 1;
};

// What PyTorch's allocator hands out: with rounding, cached blocks and fragmentation.
struct ReservedMemory {
  bool fits = true;
  std::size_t stage = 0;  // that reserves most, or lacks most
  Bytes reserved = 0, missing = 0;
  std::int64_t microbatches = 1;  // of which it is true: all, or the first ones
};

struct Layout {
  Recipe recipe;  // tensor, pipeline, data_parallel, micro_batch, global_batch, ... as a workload's settings say them
  FoldedJob outcome;
  double model_flops_share = 0;  // MFU: model FLOPs over the GPU's peak, without what is computed again
  double waiting_share = 0;      // of the step in which the slowest stage runs no pass: bubble, messages, update
  std::string why;               // a sentence
  bool of_plain_file = true;     // the workload says nothing of what is searched
  std::optional<ReservedMemory> reserved{};  // where it was looked at: see LayoutSearch::best
  std::optional<StepInterval> interval{};    // of the step: 80 % by the errors of prices and of programs of this kind
  // Of torchtitan's layouts without a pipeline the replicas are a policy's, beside a job of one: then data_parallel
  // says how many there are, and `policy` makes them ("fsdp:ranks=32,..."). Else "".
  std::string policy{};
};

// Why layouts are refused, in the words of the first of them: reasons that differ in numbers alone are one.
struct LayoutRefusals {
  struct Reason {
    std::string sentence;
    std::size_t layouts = 0;
  };
  std::vector<Reason> reasons;  // in the order in which they were met

  void add(const std::string& sentence);
  std::size_t layouts() const;
};

struct LayoutSearch {
  // The shortest step first, of those whose bytes fit. Of the first ones it was looked at what PyTorch's allocator
  // reserves, until one fits so, too.
  std::vector<Layout> best;
  std::size_t layouts = 0;  // that divisibility allows
  // What became of them: each is one of these. `too_large`: by a bound of their memory.
  std::size_t too_large = 0, slower = 0, simulated = 0;
  LayoutRefusals refused{};
  std::size_t simulated_too_large = 0;  // of those that were simulated
  Bytes least_missing = 0;              // where none fits; 0: none was too large, all are refused

  // The first of `best` that fits with PyTorch's allocator, too; null: none does.
  const Layout* recommended() const;
};

// The settings of a layout, as behind a workload's name: "tensor=8,pipeline=16,...". `said`: those that stand there
// already, which are left out. Layout::policy comes beside them.
std::string layout_settings(const Layout& layout, const std::vector<std::string>& said = {});

// The result is the same for any number of threads. Throws UsageError where nothing divides.
LayoutSearch search_layouts(const LayoutRequest& request, Watch* watch);

}  // namespace memwall
