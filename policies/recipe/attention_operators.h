// Calls of the operators that attention with its scores in memory is made of, as PyTorch issues them.
#pragma once

#include "policies/recipe/program_writer.h"
#include "policies/trace/dataflow.h"

namespace memwall {

class AttentionOperators {
 public:
  // All must outlive it. What it writes stands where `writer` stands.
  AttentionOperators(const Dataflow& flow, TraceEdit& edit, ProgramWriter& writer)
      : flow_(flow), edit_(edit), writer_(writer) {}

  // `result`: a storage of the captured step that is made here now; kNoStorage: a new one.
  WrittenTensor made(StorageId result, std::string_view label, const Shape& shape, DataType type);

  WrittenTensor elementwise(std::string_view name, const WrittenTensor& x, StorageId result = kNoStorage);
  // A copy or a cast of all of x.
  WrittenTensor moved(std::string_view name, const WrittenTensor& x, DataType type, StorageId result = kNoStorage);
  WrittenTensor wide(const WrittenTensor& x, bool low) { return low ? moved("aten::_to_copy", x, DataType::fp32) : x; }
  WrittenTensor copied(const WrittenTensor& x) { return moved("aten::clone", x, x.type); }
  // Heads copied for all that share them, or, the other way, what these give summed up: into another shape.
  WrittenTensor repeated(const WrittenTensor& x, const Shape& shape);
  WrittenTensor summed(const WrittenTensor& x, const Shape& shape, StorageId result);
  // sizes: {how many products, m, n, k}. `saves`: autograd keeps both factors.
  WrittenTensor bmm(const WrittenTensor& a, const WrittenTensor& b, const Shape& sizes, StorageId result, bool saves);
  // Zeros below the diagonal, minus infinity above.
  WrittenTensor causal_mask(std::int64_t queries, std::int64_t keys);
  // Of rows of which no key is left: zeros. Ends its argument's life, as all below.
  WrittenTensor safe_softmax(const WrittenTensor& scores);
  WrittenTensor softmax_backward(const WrittenTensor& given, const WrittenTensor& weights);
  WrittenTensor scaled(const WrittenTensor& x, StorageId result);

 private:
  WrittenTensor filled(std::string_view name, const Shape& shape, DataType type);

  const Dataflow& flow_;
  TraceEdit& edit_;
  ProgramWriter& writer_;
};

}  // namespace memwall
