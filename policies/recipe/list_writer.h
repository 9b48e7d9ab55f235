// Writes calls of operators into a trace, one behind the other, at one place: as PyTorch issues them on tensors or
// lists of tensors, with the storages that they make and drop.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <vector>

#include "policies/trace/trace_edit.h"
#include "sim/machine/pricer.h"

namespace memwall {

// A tensor, all of its storage.
struct ListedTensor {
  StorageId storage = kNoStorage;
  std::int64_t elements = 0;
  DataType type = DataType::unknown;
};
using TensorList = std::vector<ListedTensor>;

// One call of a list operator.
struct ListCall {
  std::string_view name;  // "aten::_foreach_mul_"
  OperatorClass operator_class = OperatorClass::optimizer;
  double flops_per_element = 1;  // of the first list
  // That a kernel is handed, results included: fewer tensors fit the more there are. 0: one kernel, always.
  int lists = 1;
  Bytes bytes = -1;  // < 0: all that its lists have
};

class ListWriter {
 public:
  // What is written takes thread, stream, module and phase of `like`. All must outlive it.
  ListWriter(TraceEdit& edit, InsertionPoint point, const Op& like, const Pricer& pricer)
      : edit_(edit), point_(point), like_(like), pricer_(pricer) {}

  // The lists read and written; one that is read twice counts twice, as its kernel loads it twice. The first says how
  // much work it is. REQUIRES: `reads` or `writes` is not empty, nor the first list.
  void call(const ListCall& call, std::initializer_list<const TensorList*> reads,
            std::initializer_list<const TensorList*> writes);
  // Framework calls without a kernel, that the next op is going to stand for besides its own.
  void count_calls(std::size_t calls) { calls_ += calls; }
  // cudaDeviceSynchronize; WaitFor::stream where what other streams do is not waited for.
  void synchronize(WaitFor what = WaitFor::device);
  // cudaMemPrefetchAsync of all of `moved`'s bytes, between the places of both storages.
  void prefetch(std::uint16_t stream, const ListedTensor& from, const ListedTensor& to, const ListedTensor& moved);
  // `stream` goes on once all that was written so far is done.
  void let_follow(std::uint16_t stream);

  // A new tensor of the same shape and type: its alloc here.
  ListedTensor make(std::string_view label, const ListedTensor& like);
  void drop(const ListedTensor& tensor);

 private:
  Op common(OpKind kind, std::string_view name);

  TraceEdit& edit_;
  const InsertionPoint point_;
  const Op& like_;
  const Pricer& pricer_;
  std::size_t calls_ = 0;
};

}  // namespace memwall
