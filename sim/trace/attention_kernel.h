// Which program computes a fused attention: the eighth extent of its shape (Op::shape).
#pragma once

#include <cstdint>
#include <string_view>

#include "sim/trace/shape.h"

namespace memwall {

// Numbers are kept in traces: new ones go to the end. Machine files list what each reaches (gpu.attention).
enum class AttentionKernel : std::uint8_t {
  flash_attention_2,  // PyTorch's own flash attention, and the package flash-attn 2
  flash_attention_1,  // flash-attn 1
  flash_attention_3,  // for Hopper GPUs
  flash_attention_4,  // for Blackwell GPUs, and Hopper's
  cudnn,
  memory_efficient,  // xFormers' CUTLASS kernels, PyTorch's "efficient attention"
  triton             // flash attention in Triton as of 2022 and 2023 (llm-foundry's attn_impl: triton)
};
inline constexpr std::size_t kAttentionKernels = 7;

// As machine files write it: "flash_attention_2".
std::string_view to_string(AttentionKernel kernel);

// Of a shape of seven extents flash_attention_2; likewise where the eighth is a number that is not listed above.
AttentionKernel attention_kernel(const Shape& shape);

// The shape, of seven extents, with its kernel: as it is of flash_attention_2.
Shape with_attention_kernel(Shape shape, AttentionKernel kernel);

}  // namespace memwall
