// What a program and its cluster do to the times that the cost model gives: the few numbers that are fitted to the
// first half of a published table, and judged by the second (judged_tables.h).
#pragma once

#include <cstdint>
#include <string>

#include "sim/machine/machine.h"

namespace memwall {

// Multiples of what machine file and cost model say. 1 = as they say.
struct FrameworkConstants {
  // Time of kernels: libraries of another year, clocks under a power limit, kernels that the generator does not write.
  double kernels = 1;
  // Bus bandwidth of collectives, of every fabric: protocol, topology and congestion of the cluster.
  double network = 1;
  // Time of the host's calls and of what the framework does between them: processor, interpreter, hooks.
  double host = 1;
  bool operator==(const FrameworkConstants&) const = default;
};

// Which of its generations a job's fused attention is; machine files have the second.
enum class FlashAttention : std::uint8_t { first, second, third };

// The machine with that attention instead: its share of the peak rate times what the generation reached beside the
// second on one GPU, of causal attention of 2,048 keys and more. Source: flashattention_tflops_a100_h100.csv, medians:
// forward and backward of the first on A100 and H100 (0.554 with heads of 64, 0.439 with heads of 128), forward of the
// third on H100 (1.519, 1.811).
Machine with_attention(Machine machine, FlashAttention generation);

// The machine with `network` applied. Links that collectives cross keep their bandwidth.
Machine with_network(Machine machine, double network);

// As Scenario::scale takes it: "kernels=1.1,host=1,collectives=1".
std::string scale_text(const FrameworkConstants& constants);

// Those that were fitted to the rows on this GPU in the first half of this table by `memwall validate --published
// FOLDER
// --fit`; all 1 where there are none: a computer that nothing was fitted to is as its machine file has it.
FrameworkConstants fitted_constants(const std::string& table, const std::string& gpu);

}  // namespace memwall
