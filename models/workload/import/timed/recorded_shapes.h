// What record_shapes wrote of operators' inputs, as the cost and shape of the kernels they launched.
//
// torch.profiler(record_shapes=True) gives "Input Dims" and "Input type" of every operator, since 2022 "Concrete
// Inputs" with its numbers too; it never gives outputs. They follow from the inputs where the operator's rule is known:
// products of matrices, convolutions (their stride from the concrete inputs, or their result from the gradient that the
// same layer's backward received), attention, normalization, what works element by element (broadcast). Shapes are then
// those of work_shape.h, FLOPs those of models/workload/flops.h. The bytes are those of all tensors, each once per
// direction; of a table only the rows looked up. A tensor that is passed twice counts twice: the file does not say that
// it is one.
#pragma once

#include <cstdint>

#include "models/workload/import/timed/timed_import.h"

namespace memwall {

struct RecordedShapes {
  std::uint64_t operators = 0, with_inputs = 0;  // of the capture; that list their inputs
  std::uint64_t kernels = 0;                     // of the trace, collectives not among them
  std::uint64_t with_bytes = 0, with_shape = 0;
  std::uint64_t products = 0, with_flops = 0;  // kernels of matrix products, convolutions and attention
  Duration time{}, time_with_bytes{};          // of the kernels
  double flops = 0;
};

// Sets flops, bytes, data_type and shape of kernels; an operator of several shares its FLOPs and bytes among them by
// duration; a kernel that only changes a layout beside those that compute is a copy, without FLOPs. Knowledge::shapes
// is set where nine tenths of the kernels' time have bytes.
RecordedShapes add_recorded_shapes(const TimedCapture& capture, ImportedTrace& imported);

}  // namespace memwall
