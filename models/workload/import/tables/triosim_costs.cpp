#include "models/workload/import/tables/triosim_costs.h"

#include <algorithm>
#include <cctype>
#include <unordered_map>

#include "models/workload/import/execution_trace/execution_trace.h"
#include "models/workload/import/execution_trace/operator_cost.h"
#include "models/workload/import/timed/work_shape.h"
#include "models/workload/operator_class.h"

namespace memwall {
namespace {

using std::string_view;

constexpr string_view kNode = "autograd::engine::evaluate_function: ";

// "max_pool2d_with_indices" of "MaxPool2DWithIndices": a word begins at a capital letter that follows a small one, or
// that a small one follows.
std::string snake_case(string_view name) {
  const auto upper = [&](std::size_t i) {
    return i < name.size() && std::isupper(static_cast<unsigned char>(name[i]));
  };
  const auto small = [&](std::size_t i) {
    return i < name.size() && std::islower(static_cast<unsigned char>(name[i]));
  };
  std::string text;
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (i > 0 && upper(i) && (small(i - 1) || small(i + 1)) && name[i - 1] != '_') text += '_';
    text += static_cast<char>(std::tolower(static_cast<unsigned char>(name[i])));
  }
  return text;
}

// The type of numbers is not in the tables, only how long one is.
DataType type_of(const TrioSimTensor& tensor) {
  switch (tensor.element_bytes) {
    case 8:
      return DataType::int64;  // steps, targets, indices; double precision is not trained in
    case 4:
      return tensor.counts ? DataType::int32 : DataType::fp32;
    case 2:
      return DataType::fp16;  // or bf16
    default:
      return DataType::unknown;
  }
}

class Costs {
 public:
  explicit Costs(const TrioSimTables& tables) : tables_(tables) {}

  TrioSimCosts run() {
    for (const TrioSimOperator& op : tables_.operators) result_.of_operator.push_back(cost(op));
    for (std::size_t i = 0; i < tables_.operators.size(); ++i) infer_product(i);
    return std::move(result_);
  }

 private:
  TrioSimCost cost(const TrioSimOperator& op) {
    const std::string name = operator_name(op.name);
    TrioSimCost cost;
    cost.operator_class = operator_class(name, "");
    // The loss as one operator: a softmax and the choice of one logarithm per row.
    if (name == "aten::cross_entropy_loss") cost.operator_class = OperatorClass::reduction;
    ExecutionTrace node;
    fill(op, name, node);
    const OperatorCost by_tensors = cost_of(node, node.nodes.front());
    cost.flops = by_tensors.flops;
    cost.bytes = by_tensors.bytes;
    cost.data_type = by_tensors.data_type;
    cost.shape = shape(op, name, cost);
    result_.halves += cost.data_type == DataType::fp16;
    return cost;
  }

  // The operator as the only node of an ExecutionTrace.
  void fill(const TrioSimOperator& op, const std::string& name, ExecutionTrace& trace) const {
    ExecutionNode node;
    node.name = trace.strings.intern(name);
    const auto add = [&](const std::vector<std::uint32_t>& list) {
      for (std::size_t i = 0; i < list.size(); ++i) {
        const TrioSimTensor& tensor = tables_.tensors[list[i]];
        TensorUse use;
        use.tensor = tensor.id;
        use.storage = tensor.storage;
        use.offset = tensor.id;  // no offsets are known: tensors of one storage count as different pieces of it
        use.element_bytes = tensor.element_bytes;
        use.elements = tensor.element_bytes == 0 ? 0 : tensor.bytes / tensor.element_bytes;
        use.type = type_of(tensor);
        use.on_device = true;
        use.argument = static_cast<std::uint16_t>(i);
        use.dimensions = static_cast<std::uint16_t>(tensor.shape.size());
        use.first_dimension = static_cast<std::uint32_t>(trace.dimensions.size());
        trace.dimensions.insert(trace.dimensions.end(), tensor.shape.begin(), tensor.shape.end());
        trace.tensors.push_back(use);
      }
    };
    add(op.inputs);
    node.input_count = static_cast<std::uint32_t>(op.inputs.size());
    node.first_output = node.input_count;
    add(op.outputs);
    node.output_count = static_cast<std::uint32_t>(op.outputs.size());
    trace.nodes.push_back(node);
  }

  Shape shape(const TrioSimOperator& op, const std::string& name, const TrioSimCost& cost) const {
    OperatorCall record;
    record.name = name;
    record.operator_class = cost.operator_class;
    record.flops = cost.flops;
    const auto add = [&](const std::vector<std::uint32_t>& list, std::vector<CapturedTensor>& to) {
      for (const std::uint32_t index : list) {
        const TrioSimTensor& tensor = tables_.tensors[index];
        if (tensor.storage == 0) continue;
        // A shape that does not count up to the elements is none.
        if (known_elements(tensor.shape) != (tensor.element_bytes == 0 ? 0 : tensor.bytes / tensor.element_bytes) &&
            !tensor.shape.empty())
          return false;
        CapturedTensor& captured = to.emplace_back();
        captured.shape = tensor.shape;
        captured.element_bytes = static_cast<int>(tensor.element_bytes);
        captured.storage = index;
      }
      return true;
    };
    if (!add(op.inputs, record.inputs) || !add(op.outputs, record.outputs)) return {};
    if (name.find("_foreach_") != std::string::npos && name.ends_with('_')) {
      std::int64_t elements = 0;
      for (std::size_t i = 0; i < std::min(first_list(op, tables_.operators), record.inputs.size()); ++i)
        elements = std::min(elements + elements_of(record.inputs[i].shape), std::int64_t{1} << 50);
      return elements > 0 ? Shape{elements} : Shape{};
    }
    if (name.ends_with('_') && !record.inputs.empty()) record.writes.push_back(record.inputs.front().storage);
    return work_shape(record);
  }

  void infer_product(std::size_t index) {
    const TrioSimOperator& op = tables_.operators[index];
    TrioSimCost& cost = result_.of_operator[index];
    if (cost.operator_class != OperatorClass::gemm) return;
    if (op.name.find("Backward") == std::string::npos) {
      for (const std::uint32_t input : op.inputs) product_of_[tables_.tensors[input].storage] = index;
      return;
    }
    if (cost.flops > 0) return;
    const TrioSimCost* forward = nullptr;
    for (const std::uint32_t input : op.inputs) {
      const auto found = product_of_.find(tables_.tensors[input].storage);
      if (found != product_of_.end() && tables_.tensors[input].storage != 0)
        forward = &result_.of_operator[found->second];
    }
    if (forward == nullptr) {
      ++result_.products_without_forward;
      return;
    }
    cost.flops = 2 * forward->flops;
    cost.bytes = std::min(2 * forward->bytes, Bytes{1} << 50);
    cost.data_type = forward->data_type;
    cost.inferred = true;
  }

  const TrioSimTables& tables_;
  TrioSimCosts result_;
  std::unordered_map<std::int64_t, std::size_t> product_of_;  // by storage: the forward product that read it last
};

}  // namespace

TrioSimCosts costs_of(const TrioSimTables& tables) { return Costs(tables).run(); }

std::string operator_name(string_view row_name) {
  if (!row_name.starts_with(kNode)) return std::string(row_name);
  string_view node = row_name.substr(kNode.size());
  if (node.starts_with("torch::")) return std::string(node);
  node = node.substr(0, node.find_last_not_of("0123456789") + 1);
  constexpr string_view kBackward = "Backward";
  if (!node.ends_with(kBackward)) return std::string(node);
  node.remove_suffix(kBackward.size());
  return "aten::" + snake_case(node) + "_backward";
}

std::size_t first_list(const TrioSimOperator& op, const std::vector<TrioSimOperator>& operators) {
  const auto on_three = [](const TrioSimOperator& o) { return o.name.find("_foreach_addc") != std::string::npos; };
  std::size_t length = op.inputs.size();
  if (on_three(op)) return length / 3;
  for (const TrioSimOperator& other : operators)
    if (on_three(other) && other.inputs.size() % 3 == 0 && !other.inputs.empty()) {
      const std::size_t list = other.inputs.size() / 3;
      if (length % list == 0) return list;
    }
  return op.name.find("_foreach_lerp") != std::string::npos ? length / 2 : length;
}

}  // namespace memwall
