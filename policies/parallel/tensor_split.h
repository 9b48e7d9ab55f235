// What each of `ranks` tensor-parallel ranks has of a step's storages, does of its ops and has to sum with the others:
// concluded from the roles of its linear layers (policies/parallel/tensor_roles.h), the shapes of its products and the
// dataflow. The rules are ../shared/spec/parallelism.md, 2.1 and 10.2.
//
//   a product with a column's weight    its result is split; backward, that for its input is a part of a sum
//   a product with a row's weight       its result is a part of a sum; backward, that for its input is split
//   a weight's gradient                 split as the weight is
//   attention                           by heads
//   an embedding split by vocabulary    its result is a part of a sum
//   anything else                       split if something that it reads (no parameter) is; parts of sums add up
//
// A part of a sum is summed where something else than a sum of such parts reads it. What reduces all that a token has
// of what is split is refused.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "policies/parallel/tensor_roles.h"
#include "sim/trace/trace.h"

namespace memwall {

class TensorSplit {
 public:
  // Throws UsageError where sizes do not divide, or where a layer of unknown role reads what is split.
  // REQUIRES: the trace knows dataflow, modules and shapes; ranks >= 2.
  TensorSplit(const Trace& trace, const TensorRoles& roles, std::int64_t ranks);

  // Summed over ranks behind an op: all of a storage; or so many numbers of a row each, as the loss does.
  struct Sum {
    OpId behind = kNoOp;
    StorageId storage = kNoStorage;
    Bytes bytes = 0;
    DataType type = DataType::unknown;
  };

  bool is_split(StorageId storage) const { return parts_[storage] == Part::split || parts_[storage] == Part::rows; }
  // Does the op work on a part?
  bool is_changed(OpId op) const { return changed_[op]; }
  // The op as a rank runs it, durations not changed. `shapes`: where its shape is put.
  Op part_of(OpId op, ShapeTable& shapes) const;
  const std::vector<Sum>& sums() const { return sums_; }
  std::size_t columns() const { return columns_; }
  std::size_t rows() const { return rows_; }

 private:
  enum class Part : std::uint8_t {
    whole,
    split,    // by outputs, heads or the inner width
    rows,     // of logits: by the vocabulary
    partial,  // whole, but a part of a sum
    unset
  };
  struct Operands {
    std::vector<StorageId> reads, writes;
  };

  void find_parameters();
  void follow(OpId id);
  Operands operands(const Op& op) const;
  void product(OpId id, const Op& op, const Operands& uses);
  void product_of_activations(OpId id, const Op& op, const Operands& uses);
  void attention(const Op& op, const Operands& uses);
  void embedding(OpId id, const Op& op, const Operands& uses);
  void lists(const Operands& uses);
  void anything(OpId id, const Op& op, const Operands& uses);
  void loss(OpId id, const Op& op, const Operands& uses);
  void sum_what_is_partial(const Operands& uses);
  void give(const Operands& uses, Part part);
  bool is_parameter(StorageId storage) const;
  Shape part_of_shape(OpId id, const Op& op, double written) const;
  [[noreturn]] void refuse(const std::string& sentence) const;
  std::string where(const Op& op) const;

  const Trace& trace_;
  const TensorRoles& roles_;
  std::int64_t ranks_;
  std::vector<Part> parts_;
  std::vector<TensorRole> role_;    // of parameters, and of what is cast from one
  std::vector<OpId> last_writer_;
  std::vector<bool> is_copy_;  // of a parameter, in another type
  std::vector<bool> changed_;
  std::vector<signed char> product_extent_;  // of {batch, m, n, k} the one that is divided; -1: none
  std::vector<Sum> sums_;
  std::size_t columns_ = 0, rows_ = 0;
  std::int64_t tokens_ = 0;  // rows of the products of columns
};

}  // namespace memwall
