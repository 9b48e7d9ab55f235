#include "models/workload/import/execution_trace/operator_shape.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>

#include "models/workload/import/execution_trace/operator_schema.h"
#include "models/workload/import/timed/work_shape.h"
#include "models/workload/operator_class.h"

namespace memwall {
namespace {

class Record {
 public:
  Record(const ExecutionTrace& execution, const ExecutionNode& node)
      : execution_(execution), node_(node), schema_(parse_schema(execution.strings[node.schema])) {}

  OperatorCall make(const OperatorCost& cost) {
    OperatorCall r;
    r.name = execution_.name(node_);
    r.operator_class = operator_class(r.name, "");
    r.flops = cost.flops;
    for (const TensorUse& t : execution_.inputs(node_)) {
      if (!t.on_device || !t.defined()) continue;
      r.inputs.push_back(tensor(t));
      if (writes_argument(schema_, r.name, t.argument)) r.writes.push_back(number(t.storage));
    }
    for (const TensorUse& t : execution_.outputs(node_))
      if (t.on_device && t.defined()) r.outputs.push_back(tensor(t));
    r.causal = is_causal();
    r.elements = first_list_elements();
    return r;
  }

 private:
  std::uint32_t number(std::int64_t storage) {
    return numbers_.try_emplace(storage, static_cast<std::uint32_t>(numbers_.size())).first->second;
  }

  CapturedTensor tensor(const TensorUse& t) {
    const std::span<const std::int64_t> extents = execution_.shape(t);
    return {Shape(extents.begin(), extents.end()), {}, static_cast<int>(t.element_bytes), number(t.storage)};
  }

  bool is_causal() const {
    const std::size_t position = schema_.position("is_causal");
    return position < schema_.arguments.size() && execution_.value(node_, position) == "true";
  }

  // Of operators on lists the elements of the first; 0 of others.
  std::int64_t first_list_elements() const {
    const std::span<const TensorUse> inputs = execution_.inputs(node_);
    const std::string& name = execution_.name(node_);
    if (name.find("_foreach_") == std::string::npos && name.find("_fused_") == std::string::npos) return 0;
    std::int64_t elements = 0;
    for (const TensorUse& t : inputs)
      if (t.argument == inputs.front().argument) elements = std::min(elements + t.elements, std::int64_t{1} << 53);
    return elements;
  }

  const ExecutionTrace& execution_;
  const ExecutionNode& node_;
  OperatorSchema schema_;
  std::unordered_map<std::int64_t, std::uint32_t> numbers_;  // looked up only
};

// A shape whose elements cannot be counted is none.
bool countable(const Shape& shape) {
  for (const std::int64_t extent : shape)
    if (extent < 0 || extent > (std::int64_t{1} << 53)) return false;
  return true;
}

bool countable(const OperatorCall& r) {
  const auto fits = [](const CapturedTensor& t) {
    double product = 1;
    for (const std::int64_t extent : t.shape) product *= static_cast<double>(extent);
    return product < 9e15;  // 2^53
  };
  return std::all_of(r.inputs.begin(), r.inputs.end(), fits) && std::all_of(r.outputs.begin(), r.outputs.end(), fits);
}

}  // namespace

Shape shape_of(const ExecutionTrace& execution, const ExecutionNode& node, const OperatorCost& cost) {
  const OperatorCall record = Record(execution, node).make(cost);
  if (!countable(record)) return {};
  Shape shape = work_shape(record);
  return countable(shape) ? shape : Shape{};
}

std::uint16_t kernels_of(const ExecutionTrace& execution, const ExecutionNode& node) {
  const std::string& name = execution.name(node);
  if (name.find("convolution_backward") == std::string::npos) return 1;
  std::uint16_t wanted = 0;
  for (const TensorUse& t : execution.outputs(node)) wanted += t.argument < 2 && t.on_device && t.defined();
  return std::max<std::uint16_t>(wanted, 1);
}

}  // namespace memwall
