#include "models/workload/generate/multi_tensor.h"

#include <algorithm>
#include <cassert>

namespace memwall {

int list_kernel_count(const Tensors& first, int lists) {
  constexpr std::int64_t kChunk = 65536, kMostBlocks = 320;
  constexpr int kMostTensors[] = {110, 64, 48, 36, 30};
  const int limit = kMostTensors[std::clamp(lists, 1, 5) - 1];
  std::int64_t launches = 0, blocks = 0;
  int tensors = 0;
  for (const Tensor& t : first) {
    ++tensors;
    blocks += (t.elements() + kChunk - 1) / kChunk;
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

OpId list_kernel(Tape& tape, const ListWork& list, std::initializer_list<const Tensors*> reads,
                 std::initializer_list<const Tensors*> writes) {
  const auto pointers = [](std::initializer_list<const Tensors*> lists) {
    std::vector<const Tensor*> all;
    for (const Tensors* l : lists)
      for (const Tensor& t : *l) all.push_back(&t);
    return all;
  };
  const std::vector<const Tensor*> read = pointers(reads), written = pointers(writes);
  const Tensors& first = reads.size() > 0 ? **reads.begin() : **writes.begin();
  assert(!first.empty());
  std::int64_t elements = 0;
  for (const Tensor& t : first) elements += t.elements();
  TapeKernel work;
  work.name = list.name;
  work.operator_class = list.operator_class;
  work.type = first.front().type;
  work.flops = list.flops_per_element * static_cast<double>(elements);
  work.shape = {elements};
  work.kernels = list_kernel_count(first, list.lists);
  return tape.kernel(work, read, written);
}

}  // namespace memwall
