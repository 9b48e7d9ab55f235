// What the lists of an optimizer's operators are: parameters, their gradients, states.
//
// torch.optim works on lists (_foreach_, _fused_), of which a profile before 2024 does not even say the shapes. The
// order of operators and of their arguments is that of torch/optim/adam.py, adamw.py and sgd.py (_multi_tensor_*,
// _fused_*), by which each list has a role. The elements of a list are told by their shapes (of the list itself, or of
// the operators inside) and by order: parameters in the order in which the forward pass first used them. A gradient
// belongs to the parameter that the forward operator of its backward function read.
// Internal to the inference.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/workload/import/inference/input_search.h"
#include "models/workload/import/inference/profile_facts.h"
#include "models/workload/import/inference/tensor_table.h"
#include "models/workload/import/inference/walk_frame.h"

namespace memwall {

struct ListOperator {
  std::vector<std::pair<TensorId, std::uint16_t>> inputs;  // and the argument that each is an element of
  std::uint64_t unknown = 0;                               // lists whose role or elements are not known
};

class OptimizerLists {
 public:
  // References outlive this.
  OptimizerLists(const TimedCapture& capture, ProfileFacts& facts, TensorTable& table, InputSearch& search);

  bool is_list_operator(std::uint32_t op) const;
  // REQUIRES: is_list_operator(op); asked in host order, once each.
  ListOperator take(std::uint32_t op);
  // An operator on one parameter after the other (foreach=False), directly in the optimizer's step.
  bool is_single_operator(std::uint32_t op) const;
  // REQUIRES: is_single_operator(op); asked in host order, once each. `unknown` is not 0 where it has no role.
  ListOperator take_single(std::uint32_t op);
  // AccumulateGrad got this.
  void accumulate(TensorId gradient);
  // What AccumulateGrad adds `wanted` to, whose input is `gradient`: that of the parameter, from this step or before
  // the window; kNoTensor where the parameter is not known.
  TensorId gradient_so_far(const WantedTensor& wanted, TensorId gradient);
  // What Optimizer.zero_grad (set_to_none=False) fills with zeros: the gradient of the next parameter of that shape.
  TensorId zeroed(const WantedTensor& wanted);
  void end_step();
  // Storages of the table, by first use.
  std::vector<std::uint32_t> parameters_with_gradient() const;

 private:
  enum class Role : std::uint8_t { unknown, parameter, gradient, state, made };
  struct List {
    Role role = Role::unknown;
    std::uint64_t state = 0;  // which
  };

  std::vector<List> roles(std::uint32_t op);
  List role_of_scaled(std::uint32_t op) const;
  std::vector<List> roles_of_sum(std::uint32_t op);
  std::size_t lists_of(std::uint32_t op) const;
  std::string list_name(std::uint32_t op) const;
  std::string_view plain_name(std::uint32_t op) const;
  std::uint32_t next(std::uint32_t op) const;
  std::vector<Shape> elements(std::uint32_t op);
  void match_elements(const std::vector<Shape>& shapes);
  TensorId element(const List& list, std::size_t e, const std::vector<Shape>& shapes);
  std::uint32_t parameter_of(TensorId gradient) const;
  TensorId zeroed_before(std::uint32_t parameter) const;
  std::size_t tensors_of(std::uint32_t op) const;
  bool begin_parameter(const Shape& shape);

  const TimedCapture& c_;
  ProfileFacts& facts_;
  TensorTable& table_;
  InputSearch& search_;
  std::vector<std::uint32_t> list_operators_;    // of the file, in host order
  std::map<std::uint32_t, TensorId> gradients_;  // by storage of the parameter; of this step, then the last known
  std::map<TensorId, std::uint32_t> parameter_of_gradient_;
  std::vector<std::uint32_t> this_step_;  // parameters with a gradient in this step
  std::vector<Shape> shapes_;             // of the lists of this step, as last seen
  std::vector<std::uint32_t> matched_;    // by element of the lists: a parameter, kNoIndex = unknown
  std::vector<TensorId> made_;            // by element: what an operator on lists returned
  std::uint32_t maker_ = kNoIndex;
  std::size_t made_from_ = 0;
  std::map<Shape, std::vector<TensorId>> zeroed_;  // of the first step: gradients whose parameter is not known yet
  std::map<Shape, std::size_t> zeroed_in_this_step_;
  std::uint64_t zeroed_count_ = 0;
  std::vector<std::uint32_t> done_;  // parameters of this step, where the optimizer takes one after the other
  bool scaled_momentum_ = false, momentum_ = false;
};

}  // namespace memwall
