// Linear layers of a bf16 step that can be computed in fp8: products with a parameter that lies as nn.Linear has it.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "policies/recipe/backward_nodes.h"
#include "policies/trace/dataflow.h"
#include "sim/trace/trace.h"

namespace memwall {

// x [rows, k] times weight [n, k], and what backward runs for it.
struct LinearLayer {
  OpId product = kNoOp;
  StorageId x = kNoStorage, weight = kNoStorage, bias = kNoStorage;  // bias: kNoStorage: none
  std::int64_t rows = 0, n = 0, k = 0;
  BackwardNode node{};               // no ops: nothing of it runs in backward
  std::vector<BackwardNode> sums{};  // right behind it: of its gradients with others
};

class LinearLayers {
 public:
  static constexpr std::int64_t kMultiple = 16;  // of all sizes of torch._scaled_mm (ATen/native/cuda/Blas.cpp)

  // `trace` must outlive it.
  explicit LinearLayers(const Trace& trace);

  // In order, of all passes, but the output layer (the last product of a forward) and those of other widths.
  const std::vector<LinearLayer>& layers() const { return layers_; }
  std::size_t left() const { return left_; }  // that stay in bf16 for their widths
  const Dataflow& flow() const { return flow_; }
  // Why they cannot be converted, "" if they can.
  std::string obstacle() const;

 private:
  std::string name_of(OpId id) const;
  void find(const Pass& pass);
  LinearLayer layer_of(OpId id) const;
  bool is_parameter(StorageId id, const Shape& shape) const;

  const Trace& t_;
  const Dataflow flow_;
  std::set<StorageId> trained_;
  std::vector<LinearLayer> layers_;
  std::size_t left_ = 0;
};

}  // namespace memwall
