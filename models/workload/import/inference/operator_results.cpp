#include "models/workload/import/inference/operator_results.h"

#include <algorithm>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "models/workload/import/inference/operator_rules.h"
#include "models/workload/import/timed/number_list.h"
#include "models/workload/operator_class.h"

namespace memwall {
namespace {

using std::string_view;
using Results = std::optional<std::vector<OperatorResult>>;

constexpr double kMostBytes = 8e12;            // of one result: no memory holds more
constexpr std::int64_t kMostExtent = 1 << 24;  // of a window and its steps
constexpr int kIndexBytes = 8, kMaskBytes = 1, kFloatBytes = 4;

// A call with its tensors in a row, lists left out.
class Call {
 public:
  Call(const RecordedCall& call, const ConvolutionResults& convolutions)
      : call_(call), convolutions_(convolutions), name_(call.name) {
    if (name_.starts_with("aten::")) name_.remove_prefix(6);
    for (const RecordedArgument& a : call.arguments)
      if (!a.list && a.tensors.size() == 1 && a.type.bytes > 0) tensors_.push_back({a.tensors.front(), a.type.bytes});
  }

  Results results() const {
    if (makes_nothing()) return std::vector<OperatorResult>{};
    if (const auto rule = rules().find(name_); rule != rules().end()) return rule->second(*this);
    if (const auto shape = result_shape(call_)) return one(*shape, tensors_.empty() ? filled_bytes() : bytes(0));
    if (is_elementwise()) return elementwise();
    return std::nullopt;
  }

 private:
  using Rule = std::function<Results(const Call&)>;

  bool makes_nothing() const {
    return is_view(call_.name) || is_in_place(name_) || name_ == "_local_scalar_dense" || name_ == "item" ||
           call_.name == "record_param_comms" || call_.name.starts_with("nccl:");
  }

  bool is_elementwise() const {
    static const std::unordered_set<string_view> kNames = {
        "abs",   "ceil",    "clamp", "clamp_max", "clamp_min",  "cos", "eq",  "erf",         "exp",   "floor",
        "ge",    "gt",      "isnan", "isfinite",  "le",         "log", "lt",  "logical_and", "log1p", "logical_not",
        "max",   "maximum", "min",   "minimum",   "nan_to_num", "ne",  "neg", "pow",         "round", "reciprocal",
        "rsqrt", "sign",    "sin",   "sqrt",      "square",     "tanh"};
    if (!call_.name.starts_with("aten::")) return false;
    const bool reduces = (name_ == "max" || name_ == "min") && tensors_.size() != 2;
    return !reduces && (call_.operator_class == OperatorClass::elementwise || kNames.contains(name_));
  }

  bool has(std::size_t tensors) const { return tensors_.size() >= tensors; }
  const Shape& shape(std::size_t i) const { return tensors_[i].shape; }
  int bytes(std::size_t i) const { return tensors_[i].element_bytes; }
  std::optional<std::vector<std::int64_t>> numbers(std::size_t position) const {
    if (position >= call_.arguments.size() || call_.arguments[position].value.empty()) return std::nullopt;
    return number_list(call_.arguments[position].value);
  }
  std::string_view value(std::size_t position) const {
    return position < call_.arguments.size() ? string_view(call_.arguments[position].value) : string_view();
  }

  static Results one(Shape shape, int element_bytes) {
    return std::vector<OperatorResult>{{std::move(shape), element_bytes}};
  }
  // As the inputs of these numbers, each that is there.
  Results like(std::initializer_list<std::size_t> inputs) const {
    std::vector<OperatorResult> all;
    for (const std::size_t i : inputs) {
      if (!has(i + 1)) return std::nullopt;
      all.push_back(tensors_[i]);
    }
    return all;
  }

  // Of what is filled without an input the type is an argument; PyTorch's default is float.
  int filled_bytes() const {
    const bool behind_two = name_ == "empty_strided" || name_ == "full";
    const auto type = numbers(behind_two ? 2 : 1);
    if (!type || type->size() != 1) return kFloatBytes;
    static constexpr int kBytes[] = {1, 1, 2, 4, 8, 2, 4, 8, 4, 8, 16, 1, 1, 1, 4, 2};  // c10::ScalarType
    return (*type)[0] >= 0 && (*type)[0] < 16 ? kBytes[(*type)[0]] : 0;
  }

  Results elementwise() const {
    if (tensors_.empty()) return std::nullopt;
    if (name_.find("backward") != string_view::npos) return like({has(2) ? 1U : 0U});
    Shape result;
    int element_bytes = 0;
    for (const OperatorResult& t : tensors_) {
      if (t.shape.size() > result.size()) result.insert(result.begin(), t.shape.size() - result.size(), 1);
      for (std::size_t i = 0; i < t.shape.size(); ++i) {
        std::int64_t& extent = result[result.size() - t.shape.size() + i];
        if (extent != 1 && t.shape[i] != 1 && extent != t.shape[i]) return std::nullopt;
        extent = std::max(extent, t.shape[i]);
      }
      if (!t.shape.empty() || element_bytes == 0) element_bytes = std::max(element_bytes, t.element_bytes);
    }
    static constexpr string_view kAsks[] = {"eq", "ne", "lt", "le", "gt", "ge", "isnan", "isfinite", "logical_not"};
    if (std::ranges::find(kAsks, name_) != std::end(kAsks)) element_bytes = kMaskBytes;
    return one(std::move(result), element_bytes);
  }

  // Over the extents that are named, or all; mean and sum keep their type.
  Results reduced() const {
    if (!has(1)) return std::nullopt;
    const auto named = numbers(1);
    if (!named && call_.arguments.size() > 2 && !value(1).empty()) return std::nullopt;
    if (call_.arguments.size() > 2 && value(1).empty() && value(2).empty()) return std::nullopt;  // not recorded
    if (!named || named->empty()) return one({}, bytes(0));
    const bool keeps = value(2) == "True";
    Shape result = shape(0);
    for (std::int64_t d : *named) {
      if (d < 0) d += static_cast<std::int64_t>(result.size());
      if (d < 0 || d >= static_cast<std::int64_t>(result.size())) return std::nullopt;
      result[static_cast<std::size_t>(d)] = keeps ? 1 : -1;
    }
    std::erase(result, -1);
    return one(std::move(result), bytes(0));
  }

  // reduction=0 leaves a loss as it is.
  Results loss(std::size_t reduction, std::size_t scalars) const {
    if (!has(1) || value(reduction).empty()) return std::nullopt;
    if (value(reduction) == "0") return like({0});
    return std::vector<OperatorResult>(scalars, {{}, bytes(0)});
  }

  Results convolution() const {
    if (!has(2)) return std::nullopt;
    Shape result = convolution_shape(call_);
    if (result.empty()) result = convolutions_.result(shape(0), shape(1));
    return result.empty() ? Results() : one(std::move(result), bytes(0));
  }

  // The gradients that output_mask, the last argument, asks for.
  Results convolution_backward() const {
    if (!has(3) || call_.arguments.empty()) return std::nullopt;
    std::vector<OperatorResult> wanted = {tensors_[1], tensors_[2], {{shape(2)[0]}, bytes(2)}}, all;
    string_view mask = call_.arguments.back().value;
    if (!mask.starts_with("[") || shape(2).empty()) return std::nullopt;
    for (const OperatorResult& gradient : wanted) {
      const std::size_t yes = mask.find("True"), no = mask.find("False");
      if (yes == no) return std::nullopt;  // neither
      if (yes < no) all.push_back(gradient);
      mask.remove_prefix(std::min(yes, no) + 4);
    }
    return all;
  }

  Results pooled() const {
    if (!has(1)) return std::nullopt;
    const auto kernel = numbers(1), stride = numbers(2), padding = numbers(3), dilation = numbers(4);
    if (!kernel || kernel->empty() || !padding || padding->empty() || !dilation || dilation->empty())
      return std::nullopt;
    const auto at = [](const std::vector<std::int64_t>& list, std::size_t i) {
      return list[std::min(i, list.size() - 1)];
    };
    if (value(5) == "True" || shape(0).size() < 3) return std::nullopt;
    Shape result = shape(0);
    for (std::size_t i = 0; i < 2; ++i) {
      const std::int64_t k = at(*kernel, i), s = stride && !stride->empty() ? at(*stride, i) : k;
      const std::int64_t p = at(*padding, i), d = at(*dilation, i);
      for (const std::int64_t n : {k, s, d})
        if (n < 1 || n > kMostExtent) return std::nullopt;
      std::int64_t& extent = result[result.size() - 2 + i];
      if (p < 0 || p > kMostExtent || extent > kMostExtent * kMostExtent) return std::nullopt;
      extent = (extent + 2 * p - d * (k - 1) - 1) / s + 1;
    }
    return std::vector<OperatorResult>{{result, bytes(0)}, {result, kIndexBytes}};
  }

  Results adaptive_pooled() const {
    const auto size = numbers(1);
    if (!has(1) || !size || size->size() != 2 || shape(0).size() < 3) return std::nullopt;
    Shape result = shape(0);
    std::copy(size->begin(), size->end(), result.end() - 2);
    return one(std::move(result), bytes(0));
  }

  Results layer_norm() const {
    const auto width = numbers(1);
    if (!has(1) || !width || width->size() > shape(0).size()) return std::nullopt;
    Shape rows = shape(0);
    std::fill(rows.end() - static_cast<std::ptrdiff_t>(width->size()), rows.end(), 1);
    return std::vector<OperatorResult>{tensors_[0], {rows, kFloatBytes}, {rows, kFloatBytes}};
  }

  Results embedding() const {
    if (!has(2) || shape(0).size() != 2) return std::nullopt;
    Shape result = shape(1);
    result.push_back(shape(0)[1]);
    return one(std::move(result), bytes(0));
  }
  Results embedding_backward() const {
    const auto rows = numbers(2);
    if (!has(1) || shape(0).empty() || !rows || rows->size() != 1) return std::nullopt;
    return one({(*rows)[0], shape(0).back()}, bytes(0));
  }

  Results product(std::size_t first) const {
    if (!has(first + 2)) return std::nullopt;
    const Shape &a = shape(first), &b = shape(first + 1);
    if (a.size() != b.size() || a.size() < 2) return std::nullopt;
    Shape result = a;
    result.back() = b.back();
    return one(std::move(result), bytes(first));
  }

  static const std::unordered_map<string_view, Rule>& rules() {
    static const std::unordered_map<string_view, Rule> kRules = {
        {"mm", [](const Call& c) { return c.product(0); }},
        {"bmm", [](const Call& c) { return c.product(0); }},
        {"addmm", [](const Call& c) { return c.product(1); }},
        {"baddbmm", [](const Call& c) { return c.product(1); }},
        {"convolution", [](const Call& c) { return c.convolution(); }},
        {"_convolution", [](const Call& c) { return c.convolution(); }},
        {"cudnn_convolution", [](const Call& c) { return c.convolution(); }},
        {"miopen_convolution", [](const Call& c) { return c.convolution(); }},
        {"convolution_backward", [](const Call& c) { return c.convolution_backward(); }},
        {"max_pool2d_with_indices", [](const Call& c) { return c.pooled(); }},
        {"max_pool2d_with_indices_backward", [](const Call& c) { return c.like({1}); }},
        {"_adaptive_avg_pool2d", [](const Call& c) { return c.adaptive_pooled(); }},
        {"_adaptive_avg_pool2d_backward", [](const Call& c) { return c.like({1}); }},
        {"sum", [](const Call& c) { return c.reduced(); }},
        {"mean", [](const Call& c) { return c.reduced(); }},
        {"_softmax", [](const Call& c) { return c.like({0}); }},
        {"_log_softmax", [](const Call& c) { return c.like({0}); }},
        {"_softmax_backward_data", [](const Call& c) { return c.like({0}); }},
        {"_log_softmax_backward_data", [](const Call& c) { return c.like({0}); }},
        {"mse_loss", [](const Call& c) { return c.loss(2, 1); }},
        {"mse_loss_backward", [](const Call& c) { return c.like({1}); }},
        {"nll_loss_forward", [](const Call& c) { return c.loss(3, 2); }},
        {"nll_loss_backward", [](const Call& c) { return c.like({1}); }},
        {"native_dropout",
         [](const Call& c) {
           return c.has(1) ? Results({c.tensors_[0], {c.shape(0), kMaskBytes}}) : Results();
         }},
        {"native_dropout_backward", [](const Call& c) { return c.like({0}); }},
        {"native_layer_norm", [](const Call& c) { return c.layer_norm(); }},
        {"native_layer_norm_backward",
         [](const Call& c) {
           return c.like({1, 4, 5});
         }},
        {"embedding", [](const Call& c) { return c.embedding(); }},
        {"embedding_dense_backward", [](const Call& c) { return c.embedding_backward(); }},
        {"clone", [](const Call& c) { return c.like({0}); }},
    };
    return kRules;
  }

  const RecordedCall& call_;
  const ConvolutionResults& convolutions_;
  string_view name_;
  std::vector<OperatorResult> tensors_;
};

}  // namespace

Results operator_results(const RecordedCall& call, const ConvolutionResults& convolutions) {
  Results found = Call(call, convolutions).results();
  if (!found) return found;
  for (const OperatorResult& result : *found)
    if (result.element_bytes == 0 || element_count(result.shape) * result.element_bytes >= kMostBytes ||
        std::ranges::any_of(result.shape, [](std::int64_t n) { return n < 0; }))
      return std::nullopt;
  return found;
}

}  // namespace memwall
