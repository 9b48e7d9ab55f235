#include "models/workload/import/inference/operator_rules.h"

#include <algorithm>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "models/workload/import/execution_trace/operator_schema.h"
#include "models/workload/import/timed/number_list.h"

namespace memwall {
namespace {

using std::string_view;

// Names of arguments by position; of fused optimizers what they write, too.
const std::unordered_map<string_view, string_view>& schemas() {
  static const std::unordered_map<string_view, string_view> kSchemas{
      {"aten::linear", "f(Tensor input, Tensor weight, Tensor bias)"},
      {"aten::conv1d", "f(Tensor input, Tensor weight, Tensor bias)"},
      {"aten::conv2d", "f(Tensor input, Tensor weight, Tensor bias)"},
      {"aten::conv3d", "f(Tensor input, Tensor weight, Tensor bias)"},
      {"aten::conv_transpose2d", "f(Tensor input, Tensor weight, Tensor bias)"},
      {"aten::convolution", "f(Tensor input, Tensor weight, Tensor bias)"},
      {"aten::_convolution", "f(Tensor input, Tensor weight, Tensor bias)"},
      {"aten::cudnn_convolution", "f(Tensor self, Tensor weight)"},
      {"aten::miopen_convolution", "f(Tensor self, Tensor weight, Tensor bias)"},
      {"aten::batch_norm", "f(Tensor input, Tensor weight, Tensor bias, Tensor running_mean, Tensor running_var)"},
      {"aten::_batch_norm_impl_index",
       "f(Tensor input, Tensor weight, Tensor bias, Tensor running_mean, Tensor running_var)"},
      {"aten::cudnn_batch_norm",
       "f(Tensor input, Tensor weight, Tensor bias, Tensor(a!) running_mean, Tensor(b!) running_var)"},
      {"aten::miopen_batch_norm",
       "f(Tensor input, Tensor weight, Tensor bias, Tensor(a!) running_mean, Tensor(b!) running_var)"},
      {"aten::native_batch_norm",
       "f(Tensor input, Tensor weight, Tensor bias, Tensor(a!) running_mean, Tensor(b!) running_var)"},
      {"aten::layer_norm", "f(Tensor input, int[] normalized_shape, Tensor weight, Tensor bias)"},
      {"aten::native_layer_norm", "f(Tensor input, int[] normalized_shape, Tensor weight, Tensor bias)"},
      {"aten::group_norm", "f(Tensor input, int num_groups, Tensor weight, Tensor bias)"},
      {"aten::native_group_norm", "f(Tensor input, Tensor weight, Tensor bias)"},
      {"aten::embedding", "f(Tensor weight, Tensor indices)"},
      {"aten::embedding_bag", "f(Tensor weight, Tensor indices, Tensor offsets)"},
      {"aten::_fused_adam_",
       "f(Tensor(a!)[] self, Tensor[] grads, Tensor(c!)[] exp_avgs, Tensor(d!)[] exp_avg_sqs, Tensor(e!)[] "
       "max_exp_avg_sqs, Tensor[] state_steps)"},
      {"aten::_fused_adamw_",
       "f(Tensor(a!)[] self, Tensor[] grads, Tensor(c!)[] exp_avgs, Tensor(d!)[] exp_avg_sqs, Tensor(e!)[] "
       "max_exp_avg_sqs, Tensor[] state_steps)"},
      {"aten::_fused_sgd_", "f(Tensor(a!)[] self, Tensor[] grads, Tensor(c!)[] momentum_buffer_list)"},
      {"aten::mse_loss_backward", "f(Tensor grad_output, Tensor self, Tensor target, int reduction, Tensor(a!) out)"},
  };
  return kSchemas;
}

bool one_of(string_view name, const std::unordered_set<string_view>& names) {
  if (name.starts_with("aten::")) name.remove_prefix(6);
  return names.contains(name);
}

// "[2, -1]" or "2"; nothing where it is no list of numbers.
std::optional<Shape> numbers_in(const RecordedCall& call, std::size_t position) {
  if (position >= call.arguments.size() || call.arguments[position].value.empty()) return std::nullopt;
  return number_list(call.arguments[position].value);
}

const Shape* tensor_at(const RecordedCall& call, std::size_t position) {
  if (position >= call.arguments.size()) return nullptr;
  const RecordedArgument& a = call.arguments[position];
  return a.list || a.tensors.size() != 1 ? nullptr : &a.tensors.front();
}

bool valid(const Shape& shape) {
  return std::all_of(shape.begin(), shape.end(), [](std::int64_t n) { return n >= 0; }) &&
         element_count(shape) < kMostCountable;
}

// One -1 stands for what is left over.
std::optional<Shape> viewed(const Shape& from, Shape to) {
  const auto rest = std::find(to.begin(), to.end(), -1);
  if (rest == to.end()) return valid(to) ? std::optional(to) : std::nullopt;
  *rest = 1;
  if (!valid(to) || element_count(to) == 0) return std::nullopt;
  *rest = static_cast<std::int64_t>(element_count(from) / element_count(to));
  return valid(to) ? std::optional(to) : std::nullopt;
}

std::optional<Shape> expanded(const Shape& from, Shape to) {
  if (to.size() < from.size()) return std::nullopt;
  for (std::size_t i = 0; i < to.size(); ++i)
    if (to[i] == -1) {
      if (i + from.size() < to.size()) return std::nullopt;
      to[i] = from[i + from.size() - to.size()];
    }
  return valid(to) ? std::optional(to) : std::nullopt;
}

std::optional<Shape> swapped(Shape shape, std::int64_t a, std::int64_t b) {
  const auto rank = static_cast<std::int64_t>(shape.size());
  if (a < 0) a += rank;
  if (b < 0) b += rank;
  if (a < 0 || b < 0 || a >= rank || b >= rank) return std::nullopt;
  std::swap(shape[static_cast<std::size_t>(a)], shape[static_cast<std::size_t>(b)]);
  return shape;
}

std::optional<Shape> permuted(const Shape& from, const Shape& order) {
  if (order.size() != from.size()) return std::nullopt;
  Shape result;
  for (std::int64_t d : order) {
    if (d < 0) d += static_cast<std::int64_t>(from.size());
    if (d < 0 || d >= static_cast<std::int64_t>(from.size())) return std::nullopt;
    result.push_back(from[static_cast<std::size_t>(d)]);
  }
  return result;
}

std::optional<Shape> view_shape(string_view name, const RecordedCall& call, const Shape& from) {
  const auto list = [&](std::size_t i) { return numbers_in(call, i); };
  if (name == "t") return from.size() == 2 ? swapped(from, 0, 1) : std::optional(from);
  if (name == "transpose") {
    const auto a = list(1), b = list(2);
    if (a && b && a->size() == 1 && b->size() == 1) return swapped(from, (*a)[0], (*b)[0]);
    return std::nullopt;
  }
  if (name == "permute") return list(1) ? permuted(from, *list(1)) : std::nullopt;
  if (name == "expand") return list(1) ? expanded(from, *list(1)) : std::nullopt;
  if (name == "as_strided") return list(1) && valid(*list(1)) ? list(1) : std::nullopt;
  if (name == "view" || name == "_unsafe_view" || name == "reshape" || name == "_reshape_alias")
    return list(1) ? viewed(from, *list(1)) : std::nullopt;
  if (name == "detach" || name == "detach_" || name == "alias" || name == "lift_fresh" || name == "contiguous" ||
      name == "to" || name == "view_as_real")
    return from;
  if (name == "unsqueeze") {
    const auto at = list(1);
    if (!at || at->size() != 1) return std::nullopt;
    const std::int64_t d = (*at)[0] < 0 ? (*at)[0] + static_cast<std::int64_t>(from.size()) + 1 : (*at)[0];
    if (d < 0 || d > static_cast<std::int64_t>(from.size())) return std::nullopt;
    Shape result = from;
    result.insert(result.begin() + d, 1);
    return result;
  }
  return std::nullopt;
}

}  // namespace

std::string_view known_schema(string_view name) {
  const auto found = schemas().find(name);
  return found == schemas().end() ? string_view() : found->second;
}

bool is_parameter_argument(string_view name, std::size_t position) {
  const string_view schema = known_schema(name);
  if (schema.empty()) return false;
  const OperatorSchema parsed = parse_schema(schema);
  const string_view argument = parsed.name(position);
  return argument == "weight" || argument == "bias" || argument == "running_mean" || argument == "running_var";
}

bool is_view(string_view name) {
  static const std::unordered_set<string_view> kViews{
      "t",      "transpose", "permute", "expand",       "as_strided",        "view",    "_unsafe_view",
      "detach", "detach_",   "alias",   "lift_fresh",   "unsqueeze",         "squeeze", "select",
      "slice",  "narrow",    "unfold",  "expand_as",    "_reshape_alias",    "split",   "split_with_sizes",
      "chunk",  "unbind",    "view_as", "broadcast_to", "broadcast_tensors", "movedim", "diagonal"};
  return one_of(name, kViews) || name == "detach";
}

bool may_be_view(string_view name) {
  static const std::unordered_set<string_view> kBoth{"reshape", "contiguous", "to", "flatten", "type_as"};
  return one_of(name, kBoth);
}

bool is_in_place(string_view name) { return name.size() > 1 && name.ends_with('_') && !name.ends_with("__"); }

bool saves_result(string_view function) {
  static constexpr string_view kResults[] = {"Relu",  "Sigmoid", "Tanh", "Softmax",    "Exp",  "Sqrt",
                                             "Rsqrt", "Elu",     "Celu", "Reciprocal", "Norm", "Cumprod"};
  return std::any_of(std::begin(kResults), std::end(kResults),
                     [&](string_view part) { return function.find(part) != string_view::npos; });
}

std::optional<Shape> result_shape(const RecordedCall& call) {
  string_view name = call.name;
  if (name.starts_with("aten::")) name.remove_prefix(6);
  if (name == "empty" || name == "empty_strided" || name == "zeros" || name == "ones" || name == "full" ||
      name == "randn" || name == "rand") {
    const auto list = numbers_in(call, 0);
    return list && valid(*list) ? list : std::nullopt;
  }
  const Shape* first = tensor_at(call, 0);
  if (first == nullptr) return std::nullopt;
  if (is_view(call.name) || may_be_view(call.name)) return view_shape(name, call, *first);
  if (name.ends_with("_like") || is_in_place(name)) return *first;
  const Shape* second = tensor_at(call, 1);
  if (name == "mm" && second != nullptr && first->size() == 2 && second->size() == 2)
    return Shape{(*first)[0], (*second)[1]};
  if (name == "bmm" && second != nullptr && first->size() == 3 && second->size() == 3)
    return Shape{(*first)[0], (*first)[1], (*second)[2]};
  const Shape* third = tensor_at(call, 2);
  if (name == "addmm" && second != nullptr && third != nullptr && second->size() == 2 && third->size() == 2)
    return Shape{(*second)[0], (*third)[1]};
  return std::nullopt;
}

}  // namespace memwall
