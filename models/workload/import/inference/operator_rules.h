// What is known of PyTorch's operators beyond the shapes that a profile lists: what their arguments are called, which
// of them return a view, and of what shape.
// Source: aten/src/ATen/native/native_functions.yaml and tools/autograd/derivatives.yaml of PyTorch.
#pragma once

#include <optional>
#include <string_view>

#include "models/workload/import/timed/recorded_call.h"

namespace memwall {

// "aten::conv2d" of "aten::conv2d": the schema up to the arguments that matter, as an ExecutionTrace would give it;
// "" where the names of the arguments are not known. What is written is then told by the name alone.
std::string_view known_schema(std::string_view name);

// Does the argument hold a trained value or its running statistics?
bool is_parameter_argument(std::string_view name, std::size_t position);

// Returns its first tensor under another shape, without a kernel.
bool is_view(std::string_view name);

// May return its first tensor as it is, or a copy.
bool may_be_view(std::string_view name);

// Writes its first tensor: the name ends in one '_'.
bool is_in_place(std::string_view name);

// Does the backward function need the forward operator's result rather than its inputs (relu, softmax)?
bool saves_result(std::string_view backward_function);

// The shape of the first result, where name, inputs and concrete values tell it: of views, of operators that make a
// tensor of a stated size, of products, and of what works element by element.
std::optional<Shape> result_shape(const RecordedCall& call);

}  // namespace memwall
