#include "models/workload/generate/multi_tensor.h"

#include <cassert>
#include <numeric>

#include "sim/trace/multi_tensor_launches.h"

namespace memwall {

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
  std::vector<std::int64_t> elements;
  for (const Tensor& t : first) elements.push_back(t.elements());
  const std::int64_t all = std::accumulate(elements.begin(), elements.end(), std::int64_t{0});
  TapeKernel work;
  work.name = list.name;
  work.operator_class = list.operator_class;
  work.type = first.front().type;
  work.flops = list.flops_per_element * static_cast<double>(all);
  work.shape = {all};
  work.kernels = multi_tensor_launches(elements, list.lists);
  return tape.kernel(work, read, written);
}

}  // namespace memwall
