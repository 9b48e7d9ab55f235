#include "models/workload/import/chakra/chakra_graph.h"

#include <fmt/format.h>

#include <limits>

#include "models/workload/import/bytes/quote_for_message.h"
#include "models/workload/import/chakra/python_lists.h"
#include "sim/error.h"

namespace memwall {
namespace {

constexpr std::int64_t kLongest = 100LL * 86'400 * 1'000'000;  // microseconds, of all nodes together
constexpr std::int64_t kLargest = std::int64_t{1} << 50;       // bytes
constexpr std::size_t kMostNodes = std::size_t{1} << 30, kMostDependencies = std::size_t{1} << 31;
}  // namespace

ChakraGraphBuilder::ChakraGraphBuilder(const std::filesystem::path& path) {
  graph_.path = path;
  graph_.tensors.path = path;
}

void ChakraGraphBuilder::fail(const std::string& sentence) const {
  throw InputError(fmt::format("{}: {}", graph_.path.string(), sentence));
}

void ChakraGraphBuilder::fail_node(const std::string& sentence) const {
  const ChakraNode& n = graph_.nodes.back();
  fail(fmt::format("node number {} (id {}{}): {}", graph_.nodes.size(), n.id,
                   n.name != 0 ? ", " + quote_for_message(graph_.tensors.strings[n.name]) : "", sentence));
}

ChakraNode& ChakraGraphBuilder::begin_node() {
  if (graph_.nodes.size() == kMostNodes) fail(fmt::format("holds more than {} nodes.", kMostNodes));
  return graph_.nodes.emplace_back();
}

void ChakraGraphBuilder::depend(std::uint64_t id, bool data) {
  ChakraNode& n = node();
  if (graph_.dependencies.size() == kMostDependencies)
    fail(fmt::format("holds more than {} dependencies.", kMostDependencies));
  std::uint32_t& count = data ? n.data_count : n.control_count;
  if (count == 0) (data ? n.first_data : n.first_control) = static_cast<std::uint32_t>(graph_.dependencies.size());
  ++count;
  graph_.dependencies.push_back(id);
}

void ChakraGraphBuilder::set_duration(std::uint64_t microseconds) {
  if (microseconds > static_cast<std::uint64_t>(kLongest) ||
      (total_ += static_cast<std::int64_t>(microseconds)) > kLongest)
    fail_node(
        fmt::format("it took {} microseconds; expected no more than 100 days for all nodes together.", microseconds));
  node().duration = static_cast<std::int64_t>(microseconds);
}

void ChakraGraphBuilder::set_attribute(std::string_view name, std::int64_t value) {
  static constexpr std::pair<std::string_view, std::int64_t ChakraNode::*> kNumbers[] = {
      {"stream", &ChakraNode::stream},           {"tid", &ChakraNode::thread},
      {"rf_id", &ChakraNode::record_function},   {"seq_id", &ChakraNode::sequence},
      {"fw_tid", &ChakraNode::forward_thread},   {"scope", &ChakraNode::scope},
      {"num_ops", &ChakraNode::operations},      {"tensor_size", &ChakraNode::tensor_bytes},
      {"comm_type", &ChakraNode::communication}, {"comm_size", &ChakraNode::message},
      {"comm_src", &ChakraNode::source},         {"comm_dst", &ChakraNode::destination}};
  if (name == "is_cpu_op") {
    node().host_stated = true;
    node().on_host = value != 0;
    return;
  }
  for (const auto& [known, member] : kNumbers)
    if (known == name) {
      const bool size = name == "tensor_size" || name == "comm_size";
      if (size && (value < 0 || value > kLargest))
        fail_node(fmt::format("\"{}\" is {}; expected 0 to 2^50.", name, value));
      node().*member = value;
      return;
    }
  if (name == "pg_name") return set_attribute(name, std::string_view(std::to_string(value)));
  if (name != "fw_parent" && name != "comm_priority" && name != "comm_tag" && name != "tensor_loc") skip_attribute();
}

void ChakraGraphBuilder::set_attribute(std::string_view name, std::string_view value) {
  if (name == "pg_name")
    node().group = graph_.tensors.strings.intern(value);
  else if (name == "op_schema")
    node().schema = graph_.tensors.strings.intern(value);
  else
    skip_attribute();
}

void ChakraGraphBuilder::set_arguments(std::string_view values, std::string_view shapes, std::string_view types,
                                       bool inputs) {
  if (values.empty()) return;
  ExecutionTrace& t = graph_.tensors;
  if (node().arguments == ChakraNode::kNoArguments) {
    node().arguments = static_cast<std::uint32_t>(t.nodes.size());
    t.nodes.emplace_back();
  }
  if (t.tensors.size() > std::numeric_limits<std::int32_t>::max()) fail("holds more tensors than can be numbered.");
  if (!read_python_arguments(values, shapes, types, inputs, t, t.nodes[node().arguments])) ++graph_.lists_unread;
}

ChakraGraph ChakraGraphBuilder::finish() && {
  if (graph_.nodes.empty()) fail("holds no node; expected a Chakra execution trace.");
  return std::move(graph_);
}

}  // namespace memwall
