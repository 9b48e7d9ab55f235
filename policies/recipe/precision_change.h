// An fp32 step as it is in another precision: what each storage then holds, the casts that PyTorch puts between, what
// is kept for backward instead, and when each storage goes.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "policies/recipe/backward_nodes.h"
#include "policies/recipe/list_writer.h"
#include "policies/recipe/typed_storages.h"
#include "policies/trace/dataflow.h"
#include "policies/trace/trace_edit.h"
#include "sim/machine/machine.h"
#include "sim/machine/pricer.h"

namespace memwall {

struct PrecisionTarget {
  DataType low = DataType::bf16;
  bool autocast = false;      // false: parameters, gradients and optimizer states are of the low type, too
  bool loss_in_fp32 = false;  // the program casts the logits up before its loss
};

class PrecisionChange {
 public:
  // `trace`'s numbers are fp32. All must outlive it.
  PrecisionChange(const Trace& trace, const Machine& machine, const Pricer& pricer, PrecisionTarget target);
  // Throws UsageError where the step has a form for which the casts are not known.
  Trace apply() &&;

  std::size_t casts() const { return casts_.size(); }

 private:
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);
  // A value in another type, made for an op of forward.
  struct Cast {
    StorageId from = kNoStorage, to = kNoStorage;
    OpId reader = kNoOp;            // of forward, that it is made for
    OpId last_reader = kNoOp;       // of forward
    bool of_program = false;        // the program's own, which holds it as long as it held what is cast
    bool shared = false;            // of a normalization in parts: two ops of forward read it
    bool concatenated = false;      // a parameter's, that the program makes before it concatenates it
    bool cached = false;            // of a parameter: autocast holds it until forward ends
    bool copy = false;              // in the place of a copy, with its life
    std::size_t last_node = kNone;  // of backward, that reads it
    std::size_t pass = 0;
    std::vector<OpId> readers{};  // of forward, where it is cached: all of them
  };
  using Replaced = std::vector<std::pair<StorageId, StorageId>>;  // what an op uses: instead of what

  // --- forward (precision_forward.cpp)
  void change_forward(const Pass& pass);
  void change_forward_op(OpId id);
  void cast_tables(OpId id);
  void cast_operand(OpId reader, StorageId operand, DataType to, bool of_program = false);
  OpId first_of_call(OpId reader, StorageId operand) const;
  OpId copy_for(OpId reader, StorageId operand) const;
  void cast_copy(OpId reader, StorageId operand, DataType to);
  std::vector<StorageId> operands_as_cast(OpId id) const;
  std::int64_t operand_elements(OpId id, StorageId operand) const;
  void type_results(OpId id);
  std::int64_t part_of_result(OpId id, StorageId operand) const;
  DataType widest_activation(OpId id) const;
  DataType result_type(OpId id, bool main) const;
  StorageId main_result(OpId id) const;

  // --- backward (precision_backward.cpp)
  void change_backward(const Pass& pass);
  void find_last_nodes(const Pass& pass);
  void change_node(std::size_t index, const Pass& pass);
  void read_as_kept(const BackwardNode& node, OpId id, const Pass& pass);
  void fit_gradients(const BackwardNode& node, OpId id, const Pass& pass);
  DataType expected_type(const BackwardNode& node) const;
  OpId maker_before(StorageId storage, OpId id) const;
  StringId module_of_meeting(OpId forward) const;
  StorageId fitted_gradient(OpId made, StorageId gradient);
  const BackwardNode* node_of(OpId id) const;
  OpId behind_accumulation(OpId id) const;
  OpId end_of_nodes(std::size_t first, std::size_t last) const;
  bool is_sum_of(std::size_t index, const std::set<StorageId>& gradients) const;
  void accumulate_behind(InsertionPoint point, std::size_t index, StorageId gradient);
  bool is_of_cast_parameter(const BackwardNode& node) const;
  bool becomes_gradient_of(StorageId storage, StorageId parameter) const;
  const Cast* cast_of_parameter(const BackwardNode& node) const;
  void sum_of_cast_parameter(const BackwardNode& node);
  bool is_wanted(OpId id, StorageId gradient) const;
  void type_gradients(const BackwardNode& node, OpId id);
  StorageId operand_of_gradient(const BackwardNode& node, OpId id, std::size_t number) const;
  StorageId only_activation(const std::vector<StorageId>& operands, const std::set<StorageId>& taken) const;
  StorageId other_operand(OpId forward, OpId id) const;
  bool is_read_again(const BackwardNode& node, OpId id, StorageId storage) const;
  void end_node(std::size_t index);
  void cast_gradient(InsertionPoint point, const Op& like, StorageId low, StorageId gradient);

  // --- parameters that several products read (precision_shared.cpp)
  struct SharedGradient {  // of a cast that several nodes have gradients of, which meet in its type
    OpId first_reader = kNoOp;
    StorageId operand = kNoStorage, sum = kNoStorage, low = kNoStorage;  // low: what `sum` is before it is cast
  };
  void join_cast_gradients(const Pass& pass);
  StorageId gradient_of(const BackwardNode& node, StorageId operand) const;
  void share_gradient(const Cast& cast, const std::set<StorageId>& gradients);
  bool take_shared_gradient(const BackwardNode& node, OpId id, StorageId made);

  // --- normalizations in parts (precision_norms.cpp)
  struct Norm {
    OpId power, end;  // ops of forward: the first, and the product that ends it
    StorageId operand;
  };
  OpId next_in_forward(OpId id, const char* name) const;
  OpId end_of_normalization(OpId power) const;
  void widen_normalization(OpId power);
  void narrow_normalized(OpId id);
  StorageId gradient_in(const BackwardNode& node, StorageId operand) const;
  const BackwardNode* sum_that_reads(StorageId gradient) const;
  void join_normalized_gradients(const Pass& pass);
  void cast_sum(const BackwardNode& sum, const Norm& norm);
  void reorder_sums(const BackwardNode& sum1, const BackwardNode& sum2, StorageId first, StorageId second,
                    const Norm& norm);

  // --- lifetimes and numbers (precision_change.cpp)
  void end_casts(const Pass& pass);
  void shorten_lives(const Pass& pass);
  OpId referred_until(StorageId storage, const Pass& pass) const;
  InsertionPoint end_of_autocast(const Pass& pass) const;
  OpId end_of_node(OpId id) const;
  void lower_what_lives_before();
  void change_optimizer();
  void change_ops();
  Op changed_op(OpId id);
  void rename_normalization(Op& op);
  Bytes changed_bytes(OpId id);
  DataType arithmetic_type(OpId id) const;

  // What op `id` uses instead of a storage of the trace.
  StorageId used(OpId id, StorageId storage) const;
  StorageId used_before_cast(OpId id, StorageId storage) const;
  void use_instead(OpId id, StorageId storage, StorageId by);
  DataType widest_read(OpId id) const;
  DataType narrowest_read(OpId id) const;
  bool is_parameter(StorageId id) const {
    return t_.storages[id].kind == StorageKind::parameter && t_.storages[id].preexisting;
  }
  std::string name_of(OpId id) const;
  Bytes old_bytes(StorageId id) const { return t_.storages[id].bytes; }
  void free_behind(InsertionPoint point, OpId like, StorageId storage);

  const Trace& t_;
  const Dataflow flow_;
  const Pricer& pricer_;
  const PrecisionTarget target_;
  const bool has_passes_;  // several for one update
  TraceEdit edit_;
  TypedStorages types_;
  std::vector<Cast> casts_;
  std::map<std::pair<OpId, StorageId>, std::size_t> cast_of_;  // by op of forward and its operand
  std::map<StorageId, std::size_t> cached_;                    // casts of parameters in this pass
  std::map<OpId, Replaced> replaced_;
  std::set<StorageId> trained_;
  struct LateCast {  // of a gradient, behind its node
    OpId op;
    StorageId low, gradient, operand;
  };
  std::vector<LateCast> behind_ops_, behind_node_;  // of the node at hand
  std::map<std::pair<StorageId, OpId>, StorageId>
      fitted_;                       // by its last writer; of this pass: gradients in the type of what they are of
  std::vector<BackwardNode> nodes_;  // of this pass
  std::size_t pass_number_ = 0;
  std::vector<Norm> norms_;
  std::vector<SharedGradient> shared_;        // of this pass
  std::map<StorageId, std::size_t> part_of_;  // gradients that meet, and their sums, by number in shared_
  std::set<OpId> joined_sums_;                // sums of backward that are written anew
  std::set<StorageId> dropped_;               // that nothing makes any more
  std::set<OpId> cast_copies_;                // copies that are casts
};

}  // namespace memwall
