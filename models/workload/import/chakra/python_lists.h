// Tensors that stand in text as Python prints lists: "[[4, 5, 0, 64, 4, 'cuda:0'], '<Object>', True]".
//
// Chakra's nodes hold an operator's values, shapes and types so, three lists side by side. A tensor is
// [tensor id, storage id, offset, elements, bytes per element, device], lists of tensors are nested.
#pragma once

#include <string_view>

#include "models/workload/import/execution_trace/execution_trace.h"

namespace memwall {

// Appends the tensors in `values` to trace.tensors, and for inputs their texts to trace.values, and sets `node`'s
// ranges. What cannot be read is left out; false if any of the three is no list, or a tensor in it is none.
bool read_python_arguments(std::string_view values, std::string_view shapes, std::string_view types, bool inputs,
                           ExecutionTrace& trace, ExecutionNode& node);

}  // namespace memwall
