// One call of an operator as record_shapes gives it, completed to what the rules for captured steps ask for.
// Internal to the importers of timed captures.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/workload/import/timed/operator_call.h"

namespace memwall {

inline constexpr double kMostCountable = 9007199254740992;  // 2^53: what can be counted exactly anywhere

// Product of extents, of which a file may list more than 64 bits can count.
inline double element_count(const Shape& shape) {
  double product = 1;
  for (const std::int64_t extent : shape) product *= static_cast<double>(extent);
  return product;
}

// The type of a tensor by the name that the profiler gives it ("float", "long int", "c10::BFloat16"); nothing for what
// is no tensor ("Scalar", "Int", "GenericList", "").
struct TensorType {
  DataType type = DataType::unknown;
  int bytes = 0;  // of one element
};
std::optional<TensorType> tensor_type(std::string_view name);

// An argument: a tensor, a list of tensors, or a value.
struct RecordedArgument {
  std::vector<Shape> tensors;  // one of a tensor; of a list all; none of a value
  bool list = false;
  TensorType type;    // of the tensors; of a list not recorded
  std::string value;  // "Concrete Inputs": "[2, 2]", "True"; "" = not recorded
};

struct RecordedCall {
  std::string_view name;  // "aten::mm"
  OperatorClass operator_class = OperatorClass::other;
  std::vector<RecordedArgument> arguments;
};

// The arguments from the three texts of the file; empty where they are damaged or count more than 2^53 elements. Types
// may be absent (""): what has extents is then a tensor of unknown type, and its bytes are unknown.
std::vector<RecordedArgument> recorded_arguments(const std::string& dims, const std::string& types,
                                                 const std::string& values);

// Of a convolution's result, by its stride, padding and dilation; {} where the call does not say them.
Shape convolution_shape(const RecordedCall& call);

// Shapes of a convolution's result by input and weight, as the backward passes of the file tell them.
class ConvolutionResults {
 public:
  // Of a call of aten::convolution_backward: (gradient, input, weight).
  void learn(const RecordedCall& call);
  // {} where no backward told it, or several did differently.
  Shape result(const Shape& input, const Shape& weight) const;

 private:
  std::map<std::pair<Shape, Shape>, Shape> results_;
};

struct RecordedWork {
  OperatorCost cost;
  Shape shape;
};
// Zero and {} = unknown. `list_type`: of the elements of lists, by the kernel's name.
RecordedWork work_of(const RecordedCall& call, TensorType list_type, const ConvolutionResults& convolutions);

// The type that a kernel's name gives its elements ("...<float, ...>", "c10::BFloat16"); unknown = none, or several.
TensorType type_in_kernel_name(std::string_view name);

}  // namespace memwall
