// A PyTorch ExecutionTrace: which operator used which tensors, in the order of one process.
//
// Written by torch.profiler.ExecutionTraceObserver (torch/csrc/profiler/standalone/
// execution_trace_observer.cpp). It has dataflow and shapes but no times and no frees; joined
// with a Kineto capture of the same run (execution_trace_join.h) it tells what each storage is
// for; alone it is a step that a model prices (execution_step.h). Schemas 1.0.1 (flat nodes) to
// 1.1.1-chakra.0.0.4 (attributes as a list) are read, newer ones as far as they are alike.
//
// Ids are made from pointers by the observer. A storage id can therefore come back for another
// storage once the first is freed, and 0 means "no storage" (an undefined tensor).
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/trace/op.h"
#include "sim/trace/trace.h"

namespace memwall {

// One tensor among the inputs or outputs of an operator.
struct TensorUse {
  std::int64_t tensor = 0, storage = 0;
  std::int64_t offset = 0;  // into the storage; bytes or elements, by version of the observer
  std::int64_t elements = 0;
  std::uint32_t element_bytes = 0;
  DataType type = DataType::unknown;
  bool on_device = false;      // a CUDA or HIP device; otherwise host memory
  std::int16_t device = -1;    // number of that device; -1 = host memory
  std::uint16_t argument = 0;  // position among the inputs (or outputs); a list shares one
  std::uint16_t dimensions = 0;
  std::uint32_t first_dimension = 0;  // index into ExecutionTrace::dimensions
  Bytes bytes() const { return elements * element_bytes; }
  bool defined() const { return storage != 0; }
};

struct ExecutionNode {
  std::int64_t id = 0, parent = 0;
  std::int64_t record_function_id = 0;  // rf_id: counts operators in host order, over all threads
  std::int64_t forward_parent = 0;
  std::int64_t sequence_number = -1;
  std::int64_t thread = 0, forward_thread = 0;
  std::int64_t scope = 0;                           // 0 operator, 1 backward function, 7 a named range
  StringId name = 0, schema = 0;                    // in ExecutionTrace::strings; schema "" if not recorded
  StringId kernel_backend = 0;                      // "triton" of a compiled kernel; "" of an operator
  std::uint32_t first_input = 0, first_output = 0;  // indices into ExecutionTrace::tensors
  std::uint32_t input_count = 0, output_count = 0;
  std::uint32_t first_value = 0, value_count = 0;  // indices into ExecutionTrace::values, one per input
};

// What newer observers say about a collective (attributes of record_param_comms). -1 or "": not said.
struct CollectiveAttributes {
  std::uint32_t node = 0;                   // index into ExecutionTrace::nodes
  StringId name = 0, data_type = 0;         // "allreduce"; "Float"
  StringId group = 0, group_meaning = 0;    // pg_name, pg_desc
  std::int64_t sent = -1, received = -1;    // elements
  std::int64_t ranks = -1;                  // of the group
  std::int64_t first_rank = -1, step = -1;  // its members, where they are evenly spaced
};

// Owns its strings. Nodes are sorted by record_function_id (ties: order of the file), which is
// host order within a thread.
struct ExecutionTrace {
  std::filesystem::path path;  // for messages
  std::string schema;
  bool newer = false;                  // than the schemas that are known
  std::size_t attributes_skipped = 0;  // of nodes, with names that are not known
  std::int64_t process = 0;
  StringTable strings;
  std::vector<ExecutionNode> nodes;
  std::vector<TensorUse> tensors;
  std::vector<std::int64_t> dimensions;
  std::vector<StringId> values;  // arguments that are no tensors, as JSON text of up to 80 characters (of process
                                 // groups 64 KiB); else ""
  std::vector<CollectiveAttributes> collectives;  // by node

  std::span<const TensorUse> inputs(const ExecutionNode& n) const {
    return {tensors.data() + n.first_input, n.input_count};
  }
  std::span<const TensorUse> outputs(const ExecutionNode& n) const {
    return {tensors.data() + n.first_output, n.output_count};
  }
  std::span<const std::int64_t> shape(const TensorUse& t) const {
    return {dimensions.data() + t.first_dimension, t.dimensions};
  }
  const std::string& name(const ExecutionNode& n) const { return strings[n.name]; }
  // The text of input number `position`, "" if it is a tensor, too long, or not there.
  const std::string& value(const ExecutionNode& n, std::size_t position) const {
    return strings[position < n.value_count ? values[n.first_value + position] : 0];
  }
};

// Reads an ExecutionTrace, .json or .json.gz (told by content). Throws InputError naming file,
// node, what was found and expected: not JSON, cut off, another format or an older schema, an id that is no
// number, a tensor with negative sizes.
ExecutionTrace read_execution_trace(const std::filesystem::path& path);

// The element type in "Tensor(float)", or of the first tensor in a list's type.
DataType tensor_data_type(std::string_view type);
// Sets where the tensor is, from "cuda:0", "hip:1", "cpu".
void place_on_device(TensorUse& tensor, std::string_view device);

// The same from text in memory; `path` is for messages.
ExecutionTrace parse_execution_trace(std::string_view text, const std::filesystem::path& path);

}  // namespace memwall
