// Which nodes of an ExecutionTrace put work on a device by themselves.
//
// The observer writes every operator, those inside it, and nothing about kernels. What is known of PyTorch decides:
//
// - an operator that writes device memory (outputs that it did not receive, inputs that its schema marks) runs a
//   kernel, unless operators inside it wrote all of that;
// - what was merely filled inside (zeros for a gradient that is then added to) counts as not written, if the operator
//   received something on the device that nobody inside read;
// - operators that only allocate, or whose outputs are views of their inputs, run nothing;
// - copy_ between host and device is a copy, and so is what reads a number on the host (_local_scalar_dense);
// - a collective stands at the innermost of c10d::..., record_param_comms and nccl:... that lists its tensors;
// - a node with a kernel_backend is the kernel of a compiler. It lists no outputs: by the order in which compilers
//   write arguments the last tensor is taken as what it writes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "models/workload/import/execution_trace/execution_order.h"

namespace memwall {

enum class NodeDeviceWork : std::uint8_t { none, kernel, copy_to_device, copy_to_host, copy_between_devices, collective };

struct NodeDeviceWorks {
  std::vector<NodeDeviceWork> work;         // by node
  std::vector<bool> dispatched;       // by node: does the framework dispatch it for its own sake (a view, a kernel)?
  std::size_t host_operators = 0;     // operators that have no tensor on a device
  std::size_t compiled_kernels = 0;   // whose written argument is assumed
  std::vector<std::int16_t> devices;  // in use, ascending
};

NodeDeviceWorks device_work_of_nodes(const ExecutionTrace& execution, const ExecutionOrder& order);

// Writes down what device_work_of_nodes assumes of compiled kernels: an argument that nobody had before becomes an output, one that
// is known is marked as written in a schema made for it.
void mark_compiled_outputs(ExecutionTrace& execution);

}  // namespace memwall
