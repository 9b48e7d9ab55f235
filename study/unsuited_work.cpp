#include "study/unsuited_work.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "sim/trace/attention_kernel.h"

namespace memwall {
namespace {

// Is it generated, so that its recipe is settings? Else it was captured, and policies change it.
bool is_generated(const Trace& trace) {
  return std::ranges::any_of(trace.recipe, [](const RecipeItem& item) { return !item.setting.empty(); });
}

// A type that the GPU's matrix units do not take is slow there, and another fast: the step may not mean it.
void note_slow_types(Trace& trace, const Machine& machine) {
  const auto has_peak = [&](DataType type) {
    return std::ranges::any_of(machine.gpu.peaks, [&](const PeakRate& peak) { return peak.data_type == type; });
  };
  const auto has_products_in = [&](DataType type) {
    return std::ranges::any_of(trace.ops, [&](const Op& op) {
      return op.data_type == type &&
             (op.operator_class == OperatorClass::gemm || op.operator_class == OperatorClass::convolution);
    });
  };
  // torch._scaled_mm and Transformer Engine ask for compute capability 8.9.
  if (!has_peak(DataType::fp8) && has_products_in(DataType::fp8))
    trace.notes.push_back(
        fmt::format("{} has no matrix units for fp8 (Ada, Hopper and later GPUs have): PyTorch and Transformer Engine "
                    "refuse to run this step there, and its times mean nothing.",
                    machine.name));
  if (has_peak(DataType::bf16) || !has_peak(DataType::fp16) || !has_products_in(DataType::bf16)) return;
  trace.notes.push_back(fmt::format(
      "Products in bf16 run without matrix units on {}, which has them for fp16: {}.", machine.name,
      is_generated(trace) ? "a step that is generated with precision=amp_fp16 (or fp16) uses them"
                          : "a step that was captured in fp16 uses them, or one captured in fp32 with --policy "
                            "precision:amp_fp16"));
}

// The least compute capability of NVIDIA's GPUs that a fused kernel runs on; 0.0 = any.
// FlashAttention-2 and cuDNN's: PyTorch, aten/src/ATen/native/transformers/cuda/sdp_utils.cpp. FlashAttention-1, -3 and
// -4: their READMEs.
std::pair<int, int> least_capability(AttentionKernel kernel) {
  switch (kernel) {
    case AttentionKernel::flash_attention_2:
    case AttentionKernel::cudnn:
      return {8, 0};
    case AttentionKernel::flash_attention_1:
      return {7, 5};
    case AttentionKernel::flash_attention_3:
    case AttentionKernel::flash_attention_4:
      return {9, 0};
    case AttentionKernel::memory_efficient:
    case AttentionKernel::triton:
      break;
  }
  return {0, 0};
}

// Of shapes that say which kernel it is.
std::set<AttentionKernel> attention_kernels(const Trace& trace) {
  constexpr std::size_t kExtents = 7;
  std::set<AttentionKernel> kernels;
  for (const Op& op : trace.ops)
    if (op.operator_class == OperatorClass::attention && trace.shapes[op.shape].size() >= kExtents)
      kernels.insert(attention_kernel(trace.shapes[op.shape]));
  return kernels;
}

// A machine without a GPU has the capability 0.0, and is not asked.
void note_kernels_of_newer_gpus(Trace& trace, const Machine& machine) {
  const std::pair own{machine.gpu.compute_major, machine.gpu.compute_minor};
  if (own.first == 0) return;
  for (const AttentionKernel kernel : attention_kernels(trace)) {
    const std::pair least = least_capability(kernel);
    if (own >= least) continue;
    trace.notes.push_back(fmt::format(
        "{} does not run on {}, whose compute capability is {}.{}: it needs {}.{}. PyTorch takes another kernel there, "
        "and what is said of attention is not that one's; {}.",
        to_string(kernel), machine.name, own.first, own.second, least.first, least.second,
        is_generated(trace) ? "a step that is generated with attention=memory_efficient (or plain) has one that runs"
                            : "--policy attention:efficient (or attention:math) computes it by one that runs"));
  }
}

// Attention by a kernel that is made for other GPUs is priced as FlashAttention-2 (models/hw/attention_cost.h), where
// the machine's file lists kernels.
void note_unlisted_kernels(Trace& trace, const Machine& machine) {
  const auto& listed = machine.gpu.attention;
  if (listed.empty()) return;
  for (const AttentionKernel kernel : attention_kernels(trace)) {
    if (kernel != AttentionKernel::flash_attention_3 && kernel != AttentionKernel::flash_attention_4) continue;
    if (std::ranges::any_of(listed, [&](const AttentionCost& c) { return c.kernel == kernel; })) continue;
    trace.notes.push_back(fmt::format(
        "The machine file of {} lists no attention by {}, which is made for other GPUs: it takes what FlashAttention-2 "
        "does.",
        machine.name, to_string(kernel)));
  }
}

}  // namespace

void note_unsuited_work(Trace& trace, const Machine& machine) {
  note_slow_types(trace, machine);
  machine.gpu.attention.empty() ? note_kernels_of_newer_gpus(trace, machine) : note_unlisted_kernels(trace, machine);
}

}  // namespace memwall
