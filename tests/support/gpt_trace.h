// A generated trace: training steps of a GPT as PyTorch eager issues them. For tests,
// which need a trace whose bytes and times can be worked out by hand.
//
// A layer keeps for backward exactly the storages of Korthikanti et al. 2022, "Reducing Activation
// Recomputation in Large Transformer Models", section 4.1: sequence x batch x hidden x
// (34 + 5 heads x sequence / hidden) bytes. Parameters are 16-bit, with an fp32 master copy and
// two Adam moments (12 bytes per parameter). Word embedding and output layer share one weight.
//
// Two host threads: "main" (forward, optimizer, zero_grad) and "autograd" (backward), with a
// hand-over each way per step. Every kernel lasts flops / flops_per_second + bytes /
// bytes_per_second, where bytes = all storages that it uses. With the defaults, one of either is 1 ps.
//
// Modules: "embedding", "layers.N", "layers.N.norm1", ".attention", ".norm2", ".mlp", "head".
// Backward and optimizer ops carry the module of their forward. Storage kinds: what forward makes is
// `activation`; what backward makes and drops again is `workspace`; parameters' gradients `gradient`.
#pragma once

#include <cstdint>

#include "sim/trace/trace.h"

namespace memwall {

struct GptShape {
  int layers = 2, hidden = 8, heads = 2, sequence = 4, batch = 2, vocabulary = 16;
  bool flash_attention = false;        // keeps no attention matrix, only 4 bytes per row and head
  std::int64_t extra_parameters = 0;   // an unused block that makes up a round number of parameters
  bool preexisting_gradients = false;  // zero_grad(set_to_none=False): they live from step to step
  int steps = 1;
  Origin origin = Origin::measured;
  double flops_per_second = 1e12;
  double bytes_per_second = 1e12;
  Duration host_gap{};        // before every call
  Duration launch_cost{};     // of every kernel launch
  Duration allocator_cost{};  // of every alloc
};

// 7.0e9 parameters (32 layers of 4096), 2048 tokens, on about an A100's rates, 5 us per launch.
GptShape seven_billion_gpt();

std::int64_t parameter_count(const GptShape& shape);
// What one layer keeps for backward, its input included.
Bytes layer_activation_bytes(const GptShape& shape);

// Passes check(). REQUIRES: heads divides hidden; all sizes >= 1.
Trace gpt_step(const GptShape& shape);

}  // namespace memwall
