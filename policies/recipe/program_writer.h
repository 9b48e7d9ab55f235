// Writes a piece of the program that a changed step runs, call by call, at one place of the captured one: tensors come
// and go, kernels read and write them, each with the work that PyTorch's operator has.
#pragma once

#include <initializer_list>
#include <string_view>

#include "policies/trace/trace_edit.h"
#include "sim/machine/pricer.h"

namespace memwall {

// A tensor, or a part of one: what a kernel touches of the storage.
struct WrittenTensor {
  StorageId storage = kNoStorage;
  Shape shape;
  DataType type = DataType::unknown;

  std::int64_t elements() const { return elements_of(shape); }
  Bytes bytes() const { return elements() * bytes_of(type); }
  explicit operator bool() const { return storage != kNoStorage; }
};

struct OperatorWork {
  std::string_view name;  // "aten::mm"
  OperatorClass operator_class = OperatorClass::other;
  DataType type = DataType::unknown;
  double flops = 0;
  Shape shape{};     // by operator class, see Op::shape
  Bytes bytes = -1;  // < 0: all that its tensors have
  int kernels = 1;
  const Op* instead_of = nullptr;  // of the captured step: where its time was measured, this one's is scaled from it
};

// One operation per element.
OperatorWork elementwise_work(std::string_view name, DataType type, std::int64_t elements);
// Moves elements and computes nothing: a copy, a cast, a fill.
OperatorWork memory_work(std::string_view name, DataType type, std::int64_t elements);
// aten::mm of m x k with k x n.
OperatorWork product_work(DataType type, std::int64_t m, std::int64_t n, std::int64_t k);

class ProgramWriter {
 public:
  // Both must outlive it. Call `move_to` first.
  ProgramWriter(TraceEdit& edit, const Pricer& pricer) : edit_(edit), pricer_(pricer) {}

  // What is written from now on stands there, behind what was put there before, with thread, stream and phase of
  // `like`.
  void move_to(InsertionPoint point, const Op& like);
  void in_module(StringId module) { like_.module = module; }
  // The op of the captured step in whose node of backward the ones from now on run; kNoOp: not told.
  void in_node_of(OpId source) { source_ = source; }

  // A new tensor: its alloc here.
  WrittenTensor make(std::string_view label, const Shape& shape, DataType type);
  // An alloc of a storage that the captured step has, too, whose own was removed.
  void alloc(StorageId storage);
  void free(StorageId storage);
  void free(const WrittenTensor& tensor) { free(tensor.storage); }
  // Empty tensors are left out; what is read twice is one use and counts twice in `bytes`.
  void kernel(const OperatorWork& work, std::initializer_list<const WrittenTensor*> reads,
              std::initializer_list<const WrittenTensor*> writes);
  // The same in the place of an op of the captured step, wherever the writer stands.
  void kernel_in_place(OpId op, const OperatorWork& work, std::initializer_list<const WrittenTensor*> reads,
                       std::initializer_list<const WrittenTensor*> writes);
  // The next kernel's reads are kept for backward by the framework.
  void save_next() { saves_ = true; }
  // Tensor.item(): the number is copied to the host, which waits for it.
  void read_on_host(const WrittenTensor& number);
  // Framework calls without a kernel (views), that the next op is going to stand for besides its own.
  void count_calls(int calls) { calls_ += calls; }

 private:
  Op named(OpKind kind, std::string_view name);
  Op kernel_op(const OperatorWork& work, std::initializer_list<const WrittenTensor*> reads,
               std::initializer_list<const WrittenTensor*> writes);
  void lifetime(OpKind kind, StorageId storage);
  void set_calls(Op& op);

  TraceEdit& edit_;
  const Pricer& pricer_;
  InsertionPoint point_;
  Op like_;
  OpId source_ = kNoOp;
  int calls_ = 0;
  bool saves_ = false;
};

}  // namespace memwall
