// A Chakra execution trace as its file gives it: nodes and what each waits for.
//
// Chakra (mlcommons/chakra) writes a graph per rank: operators, communication and memory accesses with durations in
// whole microseconds or with the work to be priced, as protobuf (.et) or JSON. Whoever simulates one starts a node when
// all that it depends on has ended.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "models/workload/import/bytes/file_head.h"
#include "models/workload/import/execution_trace/execution_trace.h"
#include "models/workload/import/timed/imported_step.h"

namespace memwall {

// By the numbers of the format.
enum class ChakraNodeType : std::uint8_t {
  invalid,
  metadata,
  memory_load,
  memory_store,
  compute,
  send,
  receive,
  collective
};

// A number that is not given is -1.
struct ChakraNode {
  static constexpr std::uint32_t kNoArguments = 0xffffffff;

  std::uint64_t id = 0;
  StringId name = 0;  // here and below: in ChakraGraph::tensors.strings
  ChakraNodeType type = ChakraNodeType::invalid;
  bool host_stated = false, on_host = false;           // is_cpu_op
  std::uint32_t first_control = 0, control_count = 0;  // indices into ChakraGraph::dependencies
  std::uint32_t first_data = 0, data_count = 0;
  std::int64_t duration = 0;  // microseconds
  std::int64_t stream = -1, thread = -1, record_function = -1;
  std::int64_t sequence = -1, forward_thread = 0, scope = 0;
  std::int64_t operations = -1, tensor_bytes = -1;  // num_ops, tensor_size
  std::int64_t communication = -1, message = -1;    // comm_type, comm_size
  std::int64_t source = -1, destination = -1;       // comm_src, comm_dst
  StringId group = 0, schema = 0;                   // pg_name, op_schema
  std::uint32_t arguments = kNoArguments;           // index into tensors.nodes
};

struct ChakraGraph {
  std::filesystem::path path;
  std::string version;
  std::vector<ChakraNode> nodes;            // in the order of the file
  std::vector<std::uint64_t> dependencies;  // ids
  ExecutionTrace tensors;                   // owns the strings; its nodes hold arguments, not yet an order
  std::vector<std::pair<std::string, std::string>> metadata;
  std::size_t attributes_skipped = 0;  // with names that are not known
  std::size_t lists_unread = 0;        // arguments that are no lists of tensors
};

// Puts a graph together; readers of the two notations call it node by node. Throws InputError for what cannot be:
// more nodes than a trace can number, durations beyond 100 days, sizes beyond 2^50 bytes.
class ChakraGraphBuilder {
 public:
  explicit ChakraGraphBuilder(const std::filesystem::path& path);

  ChakraNode& begin_node();
  void depend(std::uint64_t id, bool data);  // of the present node; all of one kind in a row
  void set_duration(std::uint64_t microseconds);
  void set_attribute(std::string_view name, std::int64_t value);
  void set_attribute(std::string_view name, std::string_view value);
  void skip_attribute() { ++graph_.attributes_skipped; }
  void set_arguments(std::string_view values, std::string_view shapes, std::string_view types, bool inputs);
  void set_name(std::string_view name) { node().name = graph_.tensors.strings.intern(name); }
  ChakraGraph finish() &&;

  ChakraGraph& graph() { return graph_; }
  [[noreturn]] void fail(const std::string& sentence) const;       // of the file
  [[noreturn]] void fail_node(const std::string& sentence) const;  // of the present node

 private:
  ChakraNode& node() { return graph_.nodes.back(); }
  ChakraGraph graph_;
  std::int64_t total_ = 0;  // microseconds of all nodes
};

// The file as protobuf, and as JSON ({"workload_graph": [...]}, or the protobuf printed object by object). Both stream
// the file. Throw InputError naming file, node or byte, found and expected.
ChakraGraph read_chakra_messages(const std::filesystem::path& path);
ChakraGraph read_chakra_json(const std::filesystem::path& path);

bool recognizes_chakra_messages(const FileHead& head);
bool recognizes_chakra_json(const FileHead& head);

}  // namespace memwall
