#include "models/workload/import/execution_trace/execution_trace.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <limits>
#include <numeric>
#include <utility>

#include "models/workload/import/bytes/file_text.h"
#include "models/workload/import/bytes/quote_for_message.h"
#include "sim/error.h"

namespace memwall {
namespace {

namespace dom = simdjson::dom;

constexpr std::size_t kLongestValue = 80, kLongestGroup = 64 << 10;
constexpr std::int64_t kMostElements = std::int64_t{1} << 48;
constexpr int kDeepestList = 8;

// Inputs or outputs of a node: three lists of equal length.
struct ArgumentLists {
  dom::array values, shapes, types;
};

// Observers before 2025 print a mask's -inf or a nan as a bare word, which is no JSON. Outside of
// strings such words become null, of the same length so that places in messages stay right.
std::string without_bare_words(std::string_view text) {
  static constexpr std::string_view kWords[] = {"-inf", "-nan", "inf", "nan"};
  std::string result(text);
  bool inside = false;
  for (std::size_t i = 0; i < result.size(); ++i) {
    if (result[i] == '\\' && inside) {
      ++i;
    } else if (result[i] == '"') {
      inside = !inside;
    } else if (!inside) {
      for (const std::string_view word : kWords)
        if (result.compare(i, word.size(), word) == 0) {
          result.replace(i, word.size(), word.size() == 4 ? "null" : "0  ");
          i += word.size() - 1;
          break;
        }
    }
  }
  return result;
}

class ExecutionTraceReader {
 public:
  ExecutionTraceReader(std::string_view text, const std::filesystem::path& path) : text_(text) { trace_.path = path; }

  ExecutionTrace read() &&;

 private:
  [[noreturn]] void fail(const std::string& sentence) const {
    throw InputError(fmt::format("{}: {}", trace_.path.string(), sentence));
  }
  [[noreturn]] void fail_node(const std::string& sentence) const {
    fail(fmt::format("node number {} (id {}{}): {}", trace_.nodes.size() + 1, node_.id,
                     node_.name != 0 ? ", " + quote_for_message(trace_.strings[node_.name]) : "", sentence));
  }
  void sort_nodes();
  void read_top(dom::object top);
  void require_schema();
  void read_node(dom::element element);
  void read_flat(dom::object object);
  void read_attributes(dom::object object);
  void set_attribute(std::string_view name, dom::element value);
  bool set_collective_attribute(std::string_view name, dom::element value, std::string_view text);
  std::int64_t number(dom::element element, std::string_view key) const;
  dom::array list(dom::element element, std::string_view key) const;
  ArgumentLists arguments(dom::element element, std::string_view key) const;
  void read_arguments(const ArgumentLists& a, bool inputs);
  std::size_t read_value(dom::element value, dom::element shape, TensorUse like, int depth);
  bool read_tensor(dom::array tuple, dom::element shape, TensorUse tensor);
  void read_shape(dom::element shape, TensorUse& tensor);

  std::string_view text_;
  ExecutionTrace trace_;
  ExecutionNode node_;
};

ExecutionTrace ExecutionTraceReader::read() && {
  dom::parser parser;
  dom::element root;
  auto error = parser.parse(text_.data(), text_.size(), true).get(root);
  const bool has_words = text_.find("nan") != std::string_view::npos || text_.find("inf") != std::string_view::npos;
  if (error != simdjson::SUCCESS && has_words) error = parser.parse(without_bare_words(text_)).get(root);
  if (error != simdjson::SUCCESS)
    fail(fmt::format("not a complete JSON document ({} bytes): {}.", text_.size(), simdjson::error_message(error)));
  dom::object top;
  if (root.get(top) != simdjson::SUCCESS) fail("the document is no JSON object; expected an ExecutionTrace.");
  read_top(top);
  sort_nodes();
  return std::move(trace_);
}

void ExecutionTraceReader::sort_nodes() {
  std::vector<std::uint32_t> order(trace_.nodes.size()), place(trace_.nodes.size());
  std::iota(order.begin(), order.end(), 0U);
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return trace_.nodes[a].record_function_id < trace_.nodes[b].record_function_id;
  });
  std::vector<ExecutionNode> sorted;
  sorted.reserve(order.size());
  for (const std::uint32_t i : order) {
    place[i] = static_cast<std::uint32_t>(sorted.size());
    sorted.push_back(trace_.nodes[i]);
  }
  trace_.nodes = std::move(sorted);
  for (CollectiveAttributes& collective : trace_.collectives) collective.node = place[collective.node];
  std::sort(trace_.collectives.begin(), trace_.collectives.end(),
            [](const CollectiveAttributes& a, const CollectiveAttributes& b) { return a.node < b.node; });
}

void ExecutionTraceReader::read_top(dom::object top) {
  if (std::string_view schema; top["schema"].get(schema) == simdjson::SUCCESS) trace_.schema = schema;
  require_schema();
  if (std::int64_t process; top["pid"].get(process) == simdjson::SUCCESS) trace_.process = process;
  dom::array nodes;
  if (top["nodes"].get(nodes) != simdjson::SUCCESS) fail("there is no list 'nodes'; expected the operators there.");
  for (const dom::element element : nodes) read_node(element);
}

// Schemas are numbered; a suffix ("-chakra.0.0.5") describes the graph around the nodes, not the nodes themselves.
void ExecutionTraceReader::require_schema() {
  static constexpr std::string_view kKnown[] = {"1.0.1", "1.0.2", "1.0.3", "1.1.0", "1.1.1"};
  if (trace_.schema.empty())
    fail(
        "there is no 'schema'; expected an ExecutionTrace of schema 1.0.1 to 1.1.1 or newer (a Kineto capture has "
        "'traceEvents' instead).");
  const std::string base = trace_.schema.substr(0, trace_.schema.find('-'));
  if (std::find(std::begin(kKnown), std::end(kKnown), base) != std::end(kKnown)) return;
  std::array<unsigned, 3> number{};
  int used = 0;
  const bool numbered = std::sscanf(base.c_str(), "%3u.%3u.%3u%n", &number[0], &number[1], &number[2], &used) == 3 &&
                        static_cast<std::size_t>(used) == base.size();
  if (!numbered || number < std::array<unsigned, 3>{1, 0, 1})
    fail(fmt::format("schema {} is not known; expected 1.0.1 to 1.1.1 or newer.", quote_for_message(trace_.schema)));
  trace_.newer = number > std::array<unsigned, 3>{1, 1, 1};
}

void ExecutionTraceReader::read_node(dom::element element) {
  node_ = ExecutionNode{};
  dom::object object;
  if (element.get(object) != simdjson::SUCCESS) fail_node("it is no JSON object.");
  dom::element field;
  if (object["id"].get(field) != simdjson::SUCCESS) fail_node("there is no 'id'.");
  node_.id = number(field, "id");
  std::string_view name;
  if (object["name"].get(name) != simdjson::SUCCESS) fail_node("there is no 'name'.");
  node_.name = trace_.strings.intern(name);
  if (object["attrs"].error() == simdjson::SUCCESS)
    read_attributes(object);
  else
    read_flat(object);
  trace_.nodes.push_back(node_);
}

// Schema 1.0.1: every property is a field of the node.
void ExecutionTraceReader::read_flat(dom::object object) {
  for (const std::string_view key : {"rf_id", "parent", "fw_parent", "seq_id", "scope", "tid", "fw_tid", "op_schema"}) {
    dom::element field;
    if (object[key].get(field) != simdjson::SUCCESS) fail_node(fmt::format("there is no '{}'.", key));
    set_attribute(key, field);
  }
  for (const bool inputs : {true, false}) {
    const std::string side = inputs ? "input" : "output";
    std::array<dom::element, 3> fields;
    std::size_t i = 0;
    for (const std::string& key : {side + "s", side + "_shapes", side + "_types"})
      if (object[key].get(fields[i++]) != simdjson::SUCCESS) fail_node(fmt::format("there is no '{}'.", key));
    read_arguments({list(fields[0], side + "s"), list(fields[1], side + "_shapes"), list(fields[2], side + "_types")},
                   inputs);
  }
}

// Schema 1.0.2 and later: a list of attributes, and arguments as objects.
void ExecutionTraceReader::read_attributes(dom::object object) {
  dom::element field;
  if (object["ctrl_deps"].get(field) == simdjson::SUCCESS) node_.parent = number(field, "ctrl_deps");
  for (const dom::element attribute : list(object["attrs"], "attrs")) {
    std::string_view name;
    if (attribute["name"].get(name) != simdjson::SUCCESS || attribute["value"].get(field) != simdjson::SUCCESS)
      fail_node("an attribute has no 'name' or no 'value'.");
    set_attribute(name, field);
  }
  for (const bool inputs : {true, false}) {
    const std::string_view key = inputs ? "inputs" : "outputs";
    if (object[key].get(field) != simdjson::SUCCESS) fail_node(fmt::format("there is no '{}'.", key));
    read_arguments(arguments(field, key), inputs);
  }
}

void ExecutionTraceReader::set_attribute(std::string_view name, dom::element value) {
  static constexpr std::pair<std::string_view, std::int64_t ExecutionNode::*> kNumbers[] = {
      {"rf_id", &ExecutionNode::record_function_id},
      {"parent", &ExecutionNode::parent},
      {"fw_parent", &ExecutionNode::forward_parent},
      {"seq_id", &ExecutionNode::sequence_number},
      {"scope", &ExecutionNode::scope},
      {"tid", &ExecutionNode::thread},
      {"fw_tid", &ExecutionNode::forward_thread}};
  for (const auto& [known, member] : kNumbers)
    if (known == name) {
      node_.*member = number(value, name);
      return;
    }
  const std::string_view text = value.is_string() ? value.get_string().value() : std::string_view();
  if (name == "op_schema") {
    node_.schema = trace_.strings.intern(text);
  } else if (name == "kernel_backend") {
    node_.kernel_backend = trace_.strings.intern(text);
  } else if (name != "kernel_file" && !set_collective_attribute(name, value, text)) {
    ++trace_.attributes_skipped;
  }
}

// Of record_param_comms (getCommsNodeAttrs of the observer). Sizes of splits are in the arguments too.
bool ExecutionTraceReader::set_collective_attribute(std::string_view name, dom::element value, std::string_view text) {
  using Attributes = CollectiveAttributes;
  static constexpr std::pair<std::string_view, std::int64_t Attributes::*> kNumbers[] = {
      {"in_msg_nelems", &Attributes::sent},
      {"out_msg_nelems", &Attributes::received},
      {"global_rank_start", &Attributes::first_rank},
      {"global_rank_stride", &Attributes::step},
      {"pg_size", &Attributes::ranks}};
  static constexpr std::pair<std::string_view, StringId Attributes::*> kTexts[] = {
      {"collective_name", &Attributes::name},
      {"dtype", &Attributes::data_type},
      {"pg_name", &Attributes::group},
      {"pg_desc", &Attributes::group_meaning}};
  const auto node = static_cast<std::uint32_t>(trace_.nodes.size());
  const auto entry = [&]() -> Attributes& {
    if (trace_.collectives.empty() || trace_.collectives.back().node != node) trace_.collectives.push_back({node});
    return trace_.collectives.back();
  };
  for (const auto& [known, member] : kNumbers)
    if (known == name) {
      std::int64_t n = -1;  // written as a number or as text
      if (value.get(n) != simdjson::SUCCESS) std::from_chars(text.data(), text.data() + text.size(), n);
      entry().*member = n;
      return true;
    }
  for (const auto& [known, member] : kTexts)
    if (known == name) {
      entry().*member = trace_.strings.intern(text);
      return true;
    }
  return name == "in_split_size" || name == "out_split_size" || name == "is_asynchronized_op";
}

// Ids may be written as any integer type; an unsigned one above the signed range wraps, as in C++.
std::int64_t ExecutionTraceReader::number(dom::element element, std::string_view key) const {
  if (std::int64_t value; element.get(value) == simdjson::SUCCESS) return value;
  if (std::uint64_t value; element.get(value) == simdjson::SUCCESS) return static_cast<std::int64_t>(value);
  fail_node(fmt::format("'{}' is {}; expected a whole number.", key, quote_for_message(simdjson::to_string(element))));
}

dom::array ExecutionTraceReader::list(dom::element element, std::string_view key) const {
  dom::array result;
  if (element.get(result) != simdjson::SUCCESS)
    fail_node(fmt::format("'{}' is {}; expected a list.", key, quote_for_message(simdjson::to_string(element))));
  return result;
}

ArgumentLists ExecutionTraceReader::arguments(dom::element element, std::string_view key) const {
  std::array<dom::array, 3> lists;
  std::size_t i = 0;
  for (const std::string_view part : {"values", "shapes", "types"}) {
    dom::element field;
    if (element[part].get(field) != simdjson::SUCCESS) fail_node(fmt::format("'{}' has no '{}'.", key, part));
    lists[i++] = list(field, part);
  }
  return {lists[0], lists[1], lists[2]};
}

void ExecutionTraceReader::read_arguments(const ArgumentLists& a, bool inputs) {
  const std::size_t count = a.values.size();
  if (a.shapes.size() != count || a.types.size() != count)
    fail_node(fmt::format("{} {}, but {} shapes and {} types; expected equally many.", count,
                          inputs ? "inputs" : "outputs", a.shapes.size(), a.types.size()));
  if (count > std::numeric_limits<std::uint16_t>::max())
    fail_node(fmt::format("{} arguments; expected fewer than 65536.", count));
  const auto first = static_cast<std::uint32_t>(trace_.tensors.size());
  if (inputs) node_.first_value = static_cast<std::uint32_t>(trace_.values.size());
  auto shape = a.shapes.begin();
  auto type = a.types.begin();
  TensorUse like;
  const std::string& name = trace_.strings[node_.name];
  const bool of_groups = name == "record_param_comms" || name.find("process_group") != std::string::npos;
  const std::size_t longest = of_groups ? kLongestGroup : kLongestValue;
  for (const dom::element value : a.values) {
    std::string_view type_text;
    if ((*type).get(type_text) != simdjson::SUCCESS) fail_node("a type is no string.");
    like.type = tensor_data_type(type_text);
    const std::size_t found = read_value(value, *shape, like, 0);
    if (inputs) {
      const std::string text = found == 0 ? simdjson::to_string(value) : "";
      trace_.values.push_back(text.size() <= longest ? trace_.strings.intern(text) : 0);
    }
    ++like.argument;
    ++shape;
    ++type;
  }
  (inputs ? node_.first_input : node_.first_output) = first;
  (inputs ? node_.input_count : node_.output_count) = static_cast<std::uint32_t>(trace_.tensors.size()) - first;
  if (inputs) node_.value_count = static_cast<std::uint32_t>(count);
}

// How many tensors `value` is or holds.
std::size_t ExecutionTraceReader::read_value(dom::element value, dom::element shape, TensorUse like, int depth) {
  dom::array elements;
  if (value.get(elements) != simdjson::SUCCESS) return 0;
  if (read_tensor(elements, shape, like)) return 1;
  if (depth == kDeepestList) return 0;
  dom::array shapes;
  const bool shaped = shape.get(shapes) == simdjson::SUCCESS && shapes.size() == elements.size();
  std::size_t count = 0;
  if (!shaped) {
    for (const dom::element element : elements) count += read_value(element, shape, like, depth + 1);
    return count;
  }
  auto inner = shapes.begin();
  for (const dom::element element : elements) {
    count += read_value(element, *inner, like, depth + 1);
    ++inner;
  }
  return count;
}

// A tensor is [tensor id, storage id, offset, elements, bytes per element, device]. False if it is not one.
bool ExecutionTraceReader::read_tensor(dom::array tuple, dom::element shape, TensorUse tensor) {
  if (tuple.size() < 6) return false;
  std::array<dom::element, 6> parts;
  std::size_t i = 0;
  for (const dom::element part : tuple)
    if (i < parts.size()) parts[i++] = part;
  std::string_view device;
  if (parts[5].get(device) != simdjson::SUCCESS || !parts[0].is_number()) return false;
  tensor.tensor = number(parts[0], "tensor id");
  tensor.storage = number(parts[1], "storage id");
  tensor.offset = number(parts[2], "offset");
  tensor.elements = number(parts[3], "elements");
  const std::int64_t element_bytes = number(parts[4], "bytes per element");
  if (tensor.elements < 0 || tensor.offset < 0 || element_bytes < 0 || tensor.elements > kMostElements ||
      element_bytes > 64)
    fail_node(
        fmt::format("tensor {} has {} elements of {} bytes at offset {}; expected no negative number, at most {} "
                    "elements and 64 bytes each.",
                    tensor.tensor, tensor.elements, element_bytes, tensor.offset, kMostElements));
  tensor.element_bytes = static_cast<std::uint32_t>(element_bytes);
  place_on_device(tensor, device);
  read_shape(shape, tensor);
  trace_.tensors.push_back(tensor);
  return true;
}

void ExecutionTraceReader::read_shape(dom::element shape, TensorUse& tensor) {
  dom::array sizes;
  tensor.first_dimension = static_cast<std::uint32_t>(trace_.dimensions.size());
  if (shape.get(sizes) != simdjson::SUCCESS) return;
  for (const dom::element size : sizes) {
    std::int64_t value = 0;
    if (size.get(value) != simdjson::SUCCESS || value < 0 || value > kMostElements)
      fail_node(fmt::format("tensor {} has the shape {}; expected whole numbers from 0 to {}.", tensor.tensor,
                            quote_for_message(simdjson::to_string(shape)), kMostElements));
    trace_.dimensions.push_back(value);
    ++tensor.dimensions;
  }
}

}  // namespace

ExecutionTrace parse_execution_trace(std::string_view text, const std::filesystem::path& path) {
  return ExecutionTraceReader(text, path).read();
}

ExecutionTrace read_execution_trace(const std::filesystem::path& path) {
  return parse_execution_trace(read_file_text(path), path);
}

}  // namespace memwall
