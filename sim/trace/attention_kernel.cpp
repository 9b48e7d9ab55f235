#include "sim/trace/attention_kernel.h"

#include <array>
#include <cstddef>

namespace memwall {

std::string_view to_string(AttentionKernel kernel) {
  constexpr std::array<std::string_view, kAttentionKernels> kNames = {"flash_attention_2",
                                                                      "flash_attention_1",
                                                                      "flash_attention_3",
                                                                      "flash_attention_4",
                                                                      "cudnn",
                                                                      "memory_efficient",
                                                                      "triton"};
  return kNames[static_cast<std::size_t>(kernel)];
}

AttentionKernel attention_kernel(const Shape& shape) {
  const bool listed = shape.size() == 8 && shape[7] > 0 && shape[7] < static_cast<std::int64_t>(kAttentionKernels);
  return listed ? static_cast<AttentionKernel>(shape[7]) : AttentionKernel::flash_attention_2;
}

Shape with_attention_kernel(Shape shape, AttentionKernel kernel) {
  if (kernel != AttentionKernel::flash_attention_2) shape.push_back(static_cast<std::int64_t>(kernel));
  return shape;
}

}  // namespace memwall
