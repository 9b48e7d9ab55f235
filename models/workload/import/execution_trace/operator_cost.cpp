#include "models/workload/import/execution_trace/operator_cost.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "models/workload/flops.h"
#include "models/workload/import/execution_trace/operator_schema.h"
#include "models/workload/import/timed/name_text.h"
#include "models/workload/operator_class.h"

namespace memwall {
namespace {

using Extents = std::span<const std::int64_t>;

// The tensors of a node by the names that its schema gives its arguments.
class NamedArguments {
 public:
  NamedArguments(const ExecutionTrace& execution, const ExecutionNode& node)
      : execution_(execution), node_(node), schema_(parse_schema(execution.strings[node.schema])) {}

  // The shape of the argument called one of `names` (tried in order), else of that at `position`.
  Extents shape(std::initializer_list<std::string_view> names, std::size_t position) const {
    for (const std::string_view name : names)
      if (const std::size_t found = schema_.position(name); found < schema_.arguments.size()) return at(found);
    return schema_.arguments.empty() ? at(position) : Extents();
  }
  // The shape of the output at `position` among the outputs; empty if it is undefined.
  Extents output(std::size_t position) const {
    for (const TensorUse& t : execution_.outputs(node_))
      if (t.argument == position && t.defined()) return execution_.shape(t);
    return {};
  }
  bool is_true(std::string_view name) const {
    const std::size_t found = schema_.position(name);
    return found < schema_.arguments.size() && execution_.value(node_, found) == "true";
  }

 private:
  Extents at(std::size_t position) const {
    for (const TensorUse& t : execution_.inputs(node_))
      if (t.argument == position && t.defined()) return execution_.shape(t);
    return {};
  }
  const ExecutionTrace& execution_;
  const ExecutionNode& node_;
  OperatorSchema schema_;
};

double product(Extents shape) {
  double result = 1;
  for (const std::int64_t size : shape) result *= static_cast<double>(size);
  return result;
}

// [..., m, k] times [..., k, n] or a vector.
double matrix_flops(Extents a, Extents b) {
  if (a.empty() || b.empty()) return 0;
  const double columns = b.size() == 1 ? 1 : static_cast<double>(b.back());
  return gemm_flops(product(a), columns, 1);  // the product of a's sizes is batch * m * k
}

double gemm_flops_of(std::string_view name, const NamedArguments& a) {
  if (name == "mm" || name == "bmm") return matrix_flops(a.shape({"self"}, 0), a.shape({"mat2"}, 1));
  if (name == "addmm" || name == "_addmm_activation") return matrix_flops(a.shape({"mat1"}, 1), a.shape({"mat2"}, 2));
  if (name == "baddbmm") return matrix_flops(a.shape({"batch1"}, 1), a.shape({"batch2"}, 2));
  if (name == "addmv") return matrix_flops(a.shape({"mat"}, 1), a.shape({"vec"}, 2));
  if (name == "mv") return matrix_flops(a.shape({"self"}, 0), a.shape({"vec"}, 1));
  if (name == "dot") return matrix_flops(a.shape({"self"}, 0), a.shape({"tensor"}, 1));
  // x [.., in] times weight [out, in], transposed.
  if (name == "linear") {
    const Extents weight = a.shape({"weight"}, 1);
    return weight.empty() ? 0 : gemm_flops(product(a.shape({"input"}, 0)), static_cast<double>(weight[0]), 1);
  }
  return 0;
}

double convolution_flops_of(std::string_view name, const NamedArguments& a) {
  const Extents weight = a.shape({"weight"}, 1);
  const bool transposed = contains(name, "transpose") || a.is_true("transposed");
  const Extents input = a.shape({"input", "self"}, 0);
  if (!contains(name, "backward")) return convolution_flops(transposed ? input : a.output(0), weight);
  const Extents gradient = a.shape({"grad_output"}, 0);
  const int wanted = !a.output(0).empty() + !a.output(1).empty();  // of input, of weight
  return wanted * convolution_flops(transposed ? a.shape({"input", "self"}, 1) : gradient, a.shape({"weight"}, 2));
}

double attention_flops_of(std::string_view name, const NamedArguments& a) {
  const Extents q = a.shape({"query", "q"}, 0), k = a.shape({"key", "k"}, 1), v = a.shape({"value", "v"}, 2);
  if (q.size() != 4 || k.size() != 4 || v.size() != 4) return 0;
  // scaled_dot_product_*: [batch, heads, sequence, width]; the kernels below it swap the middle two.
  const std::size_t sequence = contains(name, "scaled_dot_product") ? 2 : 1;
  const auto d = [](Extents s, std::size_t i) { return static_cast<double>(s[i]); };
  const double heads = d(q, 0) * d(q, 3 - sequence);
  return contains(name, "backward") ? attention_backward_flops(heads, d(q, sequence), d(k, sequence), d(q, 3), d(v, 3))
                                    : attention_flops(heads, d(q, sequence), d(k, sequence), d(q, 3), d(v, 3));
}

double flops_of(std::string_view name, OperatorClass kind, const NamedArguments& arguments) {
  switch (kind) {
    case OperatorClass::gemm:
      return gemm_flops_of(name, arguments);
    case OperatorClass::convolution:
      return convolution_flops_of(name, arguments);
    case OperatorClass::attention:
      return attention_flops_of(name, arguments);
    default:
      return 0;
  }
}

// Every distinct piece of device memory once per direction; an operator on rows of a table reads only
// as much of it as it returns.
Bytes bytes_of(const ExecutionTrace& execution, const ExecutionNode& node, OperatorClass kind) {
  const auto sum = [](std::span<const TensorUse> tensors, Bytes most) {
    std::vector<std::array<std::int64_t, 3>> pieces;  // storage, offset, bytes
    for (const TensorUse& t : tensors)
      if (t.on_device && t.defined()) pieces.push_back({t.storage, t.offset, t.bytes()});
    std::sort(pieces.begin(), pieces.end());
    Bytes total = 0;
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      const bool again = i + 1 < pieces.size() && pieces[i + 1][0] == pieces[i][0] && pieces[i + 1][1] == pieces[i][1];
      if (!again) total += std::min(pieces[i][2], most);  // the largest of a piece comes last
    }
    return total;
  };
  constexpr Bytes kAll = std::numeric_limits<Bytes>::max();
  const Bytes returned = sum(execution.outputs(node), kAll);
  const bool table = kind == OperatorClass::embedding && returned > 0;
  return returned + sum(execution.inputs(node), table ? returned : kAll);
}

DataType data_type_of(const ExecutionTrace& execution, const ExecutionNode& node) {
  std::optional<DataType> first;
  for (const auto& tensors : {execution.inputs(node), execution.outputs(node)})
    for (const TensorUse& t : tensors) {
      if (!t.on_device || !t.defined()) continue;
      if (!first) first = t.type;
      if (t.type >= DataType::fp64 && t.type <= DataType::fp8) return t.type;
    }
  return first.value_or(DataType::unknown);
}

}  // namespace

OperatorCost cost_of(const ExecutionTrace& execution, const ExecutionNode& node) {
  const std::string& name = execution.name(node);
  const OperatorClass kind = operator_class(name, "");
  OperatorCost cost;
  cost.flops = flops_of(base_name(name), kind, NamedArguments(execution, node));
  cost.bytes = bytes_of(execution, node, kind);
  cost.data_type = data_type_of(execution, node);
  return cost;
}

}  // namespace memwall
