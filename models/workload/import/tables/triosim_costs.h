// What the operators of a TrioSim workload are: class, shape, FLOPs, bytes and data type, by the rules for other
// captures (operator_cost.h, work_shape.h).
//
// A row of the backward pass names autograd's node ("autograd::engine::evaluate_function: ConvolutionBackward0") and
// lists the tensors of the first operator inside it. Its name becomes the operator's ("aten::convolution_backward").
// Of a matrix product's node that first operator is a transposition: it makes two products as large as the forward
// operator's that reads the same weight, and reads and writes each of that one's tensors, or their gradients, twice.
// Internal to the importer of these files.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "models/workload/import/tables/triosim_tables.h"
#include "sim/trace/op.h"

namespace memwall {

struct TrioSimCost {
  OperatorClass operator_class = OperatorClass::other;
  DataType data_type = DataType::unknown;
  double flops = 0;
  Bytes bytes = 0;
  Shape shape;            // of the work, see Op::shape
  bool inferred = false;  // from the forward operator of the same weight
};

struct TrioSimCosts {
  std::vector<TrioSimCost> of_operator;
  std::uint64_t products_without_forward = 0;  // backward products whose forward operator was not found
  std::uint64_t halves = 0;                    // operators on elements of 2 bytes, taken as fp16
};

TrioSimCosts costs_of(const TrioSimTables& tables);

// "aten::convolution_backward" of "autograd::engine::evaluate_function: ConvolutionBackward0"; other names stay.
std::string operator_name(std::string_view row_name);

// How many tensors an in-place operator on lists of tensors writes: those of its first list. `operators` are all of
// the workload: one on three lists (addcmul, addcdiv) tells how long the optimizer's lists are.
std::size_t first_list(const TrioSimOperator& op, const std::vector<TrioSimOperator>& operators);

}  // namespace memwall
