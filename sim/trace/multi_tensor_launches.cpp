#include "sim/trace/multi_tensor_launches.h"

#include <algorithm>

namespace memwall {

int multi_tensor_launches(std::span<const std::int64_t> elements, int lists) {
  constexpr std::int64_t kChunk = 65536, kMostBlocks = 320;
  constexpr int kMostTensors[] = {110, 64, 48, 36, 30};
  const int limit = kMostTensors[std::clamp(lists, 1, 5) - 1];
  std::int64_t launches = 0, blocks = 0;
  int tensors = 0;
  for (const std::int64_t of_tensor : elements) {
    ++tensors;
    blocks += (of_tensor + kChunk - 1) / kChunk;
    if (blocks >= kMostBlocks) {
      launches += blocks / kMostBlocks;
      blocks %= kMostBlocks;
      tensors = blocks > 0 ? 1 : 0;  // the one that was cut
    }
    if (tensors == limit) {
      launches += blocks > 0 ? 1 : 0;
      blocks = tensors = 0;
    }
  }
  return static_cast<int>(std::clamp<std::int64_t>(launches + (blocks > 0 ? 1 : 0), 1, 0xffff));
}

}  // namespace memwall
