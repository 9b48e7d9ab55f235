#include "models/workload/import/timed/recorded_call.h"

#include <algorithm>
#include <array>
#include <utility>

#include "models/workload/flops.h"
#include "models/workload/import/timed/name_text.h"
#include "models/workload/import/timed/number_list.h"
#include "models/workload/import/timed/work_shape.h"

namespace memwall {
namespace {

using std::string_view;
using Arguments = std::vector<RecordedArgument>;

// "[2, 2]" or "2": the numbers; empty where the text is not all numbers.
std::vector<std::int64_t> numbers(string_view text) {
  return number_list(text).value_or(std::vector<std::int64_t>{});
}

const RecordedArgument* argument(const Arguments& arguments, std::size_t i) {
  return i < arguments.size() ? &arguments[i] : nullptr;
}

std::vector<std::int64_t> numbers_at(const Arguments& arguments, std::size_t i) {
  const RecordedArgument* a = argument(arguments, i);
  return a == nullptr ? std::vector<std::int64_t>{} : numbers(a->value);
}

std::size_t count_true(const Arguments& arguments, std::size_t i) {
  const RecordedArgument* a = argument(arguments, i);
  std::size_t count = 0;
  for (std::size_t at = 0; a != nullptr && (at = a->value.find("True", at)) != std::string::npos; ++at) ++count;
  return count;
}

// --- results

// Positions of stride, padding and dilation by operator (native_functions.yaml).
struct ConvolutionArguments {
  string_view name;
  std::size_t stride, padding, dilation, transposed;
};
constexpr std::size_t kNoPosition = 99;
constexpr std::array<ConvolutionArguments, 8> kConvolutions{{
    {"convolution", 3, 4, 5, 6},
    {"_convolution", 3, 4, 5, 6},
    {"convolution_overrideable", 3, 4, 5, 6},
    {"cudnn_convolution", 3, 2, 4, kNoPosition},
    {"miopen_convolution", 4, 3, 5, kNoPosition},
    {"miopen_depthwise_convolution", 4, 3, 5, kNoPosition},
    {"_conv_depthwise2d", 4, 5, 6, kNoPosition},
    {"conv_depthwise3d", 4, 5, 6, kNoPosition},
}};

Shape convolution_result(string_view name, const Arguments& a, const Shape& input, const Shape& weight) {
  const auto known =
      std::find_if(kConvolutions.begin(), kConvolutions.end(), [&](const auto& c) { return c.name == name; });
  if (known == kConvolutions.end() || input.size() < 3 || weight.size() != input.size()) return {};
  if (known->transposed != kNoPosition && count_true(a, known->transposed) > 0) return {};
  const auto stride = numbers_at(a, known->stride), padding = numbers_at(a, known->padding),
             dilation = numbers_at(a, known->dilation);
  if (stride.empty() || padding.empty() || dilation.empty()) return {};
  Shape result{input[0], weight[0]};
  for (std::size_t i = 2; i < input.size(); ++i) {
    const auto of = [&](const std::vector<std::int64_t>& list) { return list[std::min(i - 2, list.size() - 1)]; };
    const std::int64_t s = of(stride), p = of(padding), d = of(dilation);
    constexpr std::int64_t kMost = 1 << 24;
    if (s < 1 || s > kMost || p < 0 || p > kMost || d < 1 || d > kMost || weight[i] > kMost) return {};
    result.push_back(std::max<std::int64_t>(0, (input[i] + 2 * p - d * (weight[i] - 1) - 1) / s + 1));
  }
  return result;
}

// By PyTorch's rule: extents from the last one on, 1 goes with any.
Shape broadcast(const std::vector<CapturedTensor>& tensors) {
  Shape result;
  for (const CapturedTensor& t : tensors) {
    if (t.shape.size() > result.size()) result.insert(result.begin(), t.shape.size() - result.size(), 1);
    for (std::size_t i = 0; i < t.shape.size(); ++i) {
      std::int64_t& extent = result[result.size() - t.shape.size() + i];
      if (extent == 1)
        extent = t.shape[i];
      else if (t.shape[i] != 1 && t.shape[i] != extent)
        return {};
    }
  }
  return result;
}

// --- one call

class Completed {
 public:
  Completed(const RecordedCall& call, TensorType list_type, const ConvolutionResults& convolutions)
      : call_(call), name_(base_name(call.name)), list_type_(list_type), convolutions_(convolutions) {
    in_place_ = name_.size() > 1 && name_.back() == '_';
    record_.name = call.name;
    record_.operator_class = call.operator_class;
    for (std::size_t i = 0; i < call.arguments.size(); ++i) take(call.arguments[i], i);
    // Only of PyTorch's own operators is it known what their arguments mean.
    if (!call.name.starts_with("aten::") && !call.name.starts_with("flash_attn::")) record_.inputs.clear();
    if (!record_.inputs.empty()) add_outputs();
  }

  RecordedWork work() {
    RecordedWork work;
    if (record_.inputs.empty()) return work;
    work.shape = work_shape(record_);
    for (const std::int64_t extent : work.shape)
      if (extent < 0 || static_cast<double>(extent) >= kMostCountable) work.shape.clear();
    if (work.shape.size() > 1 && element_count(work.shape) > 1e30) work.shape.clear();
    work.cost.flops = flops(work.shape);
    work.cost.bytes = bytes(work.shape);
    work.cost.data_type = data_type();
    return work;
  }

 private:
  void take(const RecordedArgument& a, std::size_t position) {
    const TensorType type = a.list ? list_type_ : a.type;
    for (const Shape& shape : a.tensors) {
      const auto storage = static_cast<std::uint32_t>(record_.inputs.size());
      record_.inputs.push_back({shape, {}, type.bytes, storage});
      types_.push_back(type.type);
      if (writes(a, position)) record_.writes.push_back(storage);
      if (a.list && position == first_list_) record_.elements += static_cast<std::int64_t>(element_count(shape));
    }
    if (a.list && !a.tensors.empty() && first_list_ == kNoPosition) {
      first_list_ = position;
      for (const Shape& shape : a.tensors) record_.elements += static_cast<std::int64_t>(element_count(shape));
    }
  }

  // Of an operator in place the first argument; of a fused optimizer parameters and both moments.
  bool writes(const RecordedArgument&, std::size_t position) const {
    if (name_.starts_with("_fused_")) return position == 0 || position == 2 || position == 3;
    return in_place_ && position == 0;
  }

  bool is_backward() const { return contains(name_, "backward"); }
  const Shape& input(std::size_t i) const { return record_.inputs[i].shape; }
  void output(Shape shape) {
    if (element_count(shape) < kMostCountable)
      record_.outputs.push_back({std::move(shape), {}, record_.inputs.front().element_bytes, kNoStorage});
  }

  void add_outputs() {
    known_ = true;
    switch (call_.operator_class) {
      case OperatorClass::gemm:
        return;  // by the shape of the product
      case OperatorClass::convolution:
        return add_convolution();
      case OperatorClass::attention:
        return add_attention();
      case OperatorClass::normalization:
        return add_normalization();
      case OperatorClass::reduction:
        return add_reduction();
      case OperatorClass::embedding:
        return add_embedding();
      default:
        return add_elements();
    }
  }

  void add_convolution() {
    if (is_backward()) {
      if (record_.inputs.size() < 3) known_ = false;
      return;
    }
    if (record_.inputs.size() < 2) return void(known_ = false);
    Shape result = convolution_result(name_, call_.arguments, input(0), input(1));
    if (result.empty()) result = convolutions_.result(input(0), input(1));
    if (result.empty()) return void(known_ = false);
    output(std::move(result));
  }

  void add_attention() {
    for (const RecordedArgument& a : call_.arguments) record_.causal |= a.value == "True" && is_causal_argument(a);
    if (is_backward() && record_.inputs.size() >= 4)
      for (std::size_t i = 1; i < 4; ++i) output(input(i));
    else
      output(input(0));
  }

  // is_causal follows dropout_p in every variant; return_debug_mask and the like come behind it.
  bool is_causal_argument(const RecordedArgument& a) const {
    for (const RecordedArgument& other : call_.arguments)
      if (other.value == "True" || other.value == "False") return &other == &a || contains(name_, "efficient");
    return false;
  }

  void add_normalization() {
    const std::size_t of = is_backward() ? 1 : 0;
    if (record_.inputs.size() <= of) return void(known_ = false);
    output(input(of));
    if (is_backward() || contains(name_, "batch_norm")) return;
    double width = 1;
    for (const std::int64_t extent : numbers_at(call_.arguments, 1))
      width *= static_cast<double>(std::max<std::int64_t>(extent, 0));
    if (width <= 1 && record_.inputs.size() > 1 && contains(name_, "layer_norm")) width = element_count(input(1));
    if (contains(name_, "layer_norm") && width >= 1 && width < kMostCountable)
      output({static_cast<std::int64_t>(element_count(input(0)) / width)});
  }

  void add_reduction() {
    if (name_.starts_with("_foreach_")) return;
    if (is_backward()) {  // of what came in, second behind the gradient
      if (record_.inputs.size() < 2) return void(known_ = false);
      return output(input(1));
    }
    if (contains(name_, "softmax")) {
      output(input(0));
      const auto dimension = numbers_at(call_.arguments, 1);
      if (dimension.size() == 1) record_.width = extent_at(dimension[0]);
      return;
    }
    if (contains(name_, "loss") || contains(name_, "pool")) return;
    Shape result = input(0);
    const auto dimensions = numbers_at(call_.arguments, 1);
    const bool named = call_.arguments.size() > 1 && !call_.arguments[1].value.empty();
    if (!named && call_.arguments.size() > 2) return;  // over which extents is not recorded
    if (dimensions.empty()) result.clear();
    for (const std::int64_t d : dimensions) {
      const std::int64_t i = d < 0 ? d + static_cast<std::int64_t>(result.size()) : d;
      if (i < 0 || i >= static_cast<std::int64_t>(result.size())) return;
      result[static_cast<std::size_t>(i)] = 1;
    }
    output(std::move(result));
  }

  std::int64_t extent_at(std::int64_t dimension) const {
    const auto rank = static_cast<std::int64_t>(input(0).size());
    if (dimension < 0) dimension += rank;
    return dimension < 0 || dimension >= rank ? 0 : input(0)[static_cast<std::size_t>(dimension)];
  }

  void add_embedding() {
    if (record_.inputs.size() < 2) return void(known_ = false);
    if (is_backward()) {
      const auto rows = numbers_at(call_.arguments, 2);
      if (rows.size() != 1 || rows[0] < 0 || input(0).empty()) return void(known_ = false);
      return output({rows[0], input(0).back()});
    }
    if (input(0).size() != 2) return void(known_ = false);
    Shape result = input(1);
    result.push_back(input(0)[1]);
    output(std::move(result));
  }

  void add_elements() {
    if (in_place_ || name_.starts_with("_fused_")) return;
    if (is_backward() && record_.inputs.size() > 1) return output(input(1));
    if (first_list_ != kNoPosition) return output({record_.elements});
    if (contains(name_, "index") || contains(name_, "gather") || call_.operator_class == OperatorClass::other)
      return void(known_ = false);
    Shape result = broadcast(record_.inputs);
    if (result.empty() && !input(0).empty()) return void(known_ = false);
    output(std::move(result));
  }

  double flops(const Shape& s) const {
    const auto d = [&](std::size_t i) { return static_cast<double>(s[i]); };
    if (call_.operator_class == OperatorClass::gemm) return s.size() == 4 ? gemm_flops(d(1), d(2), d(3), d(0)) : 0;
    if (call_.operator_class == OperatorClass::convolution && s.size() == 6)
      return gradients() * 2 * d(0) * d(1) * d(2) * d(3) * d(4) / d(5);
    if (call_.operator_class == OperatorClass::attention && s.size() >= 7) {
      const std::size_t v = is_backward() ? 3 : 2;
      const double value = v < record_.inputs.size() && !input(v).empty() ? static_cast<double>(input(v).back()) : d(5);
      return is_backward() ? attention_backward_flops(d(0) * d(1), d(3), d(4), d(5), value)
                           : attention_flops(d(0) * d(1), d(3), d(4), d(5), value);
    }
    return 0;
  }

  // That a convolution's backward makes, of input and weight: its output_mask says it.
  double gradients() const {
    if (!is_backward()) return 1;
    if (name_.ends_with("_input") || name_.ends_with("_weight")) return 1;
    const RecordedArgument* mask = call_.arguments.empty() ? nullptr : &call_.arguments.back();
    if (mask == nullptr || !mask->value.starts_with("[")) return 2;
    const std::size_t bias = std::min(mask->value.rfind(','), mask->value.size());
    std::size_t count = 0;
    for (std::size_t at = 0; (at = mask->value.find("True", at)) < bias; ++at) ++count;
    return static_cast<double>(count);
  }

  Bytes bytes(const Shape& shape) const {
    if (!known_) return 0;
    double sum = 0, returned = 0;
    for (const CapturedTensor& t : record_.outputs) returned += element_count(t.shape) * t.element_bytes;
    if (call_.operator_class == OperatorClass::gemm) {
      if (shape.size() != 4) return 0;
      returned = element_count({shape[0], shape[1], shape[2]}) * record_.inputs.back().element_bytes;
    }
    if (call_.operator_class == OperatorClass::convolution && is_backward())
      returned = gradients() >= 2 ? element_count(input(1)) * record_.inputs[1].element_bytes : 0;
    const bool table = call_.operator_class == OperatorClass::embedding && !is_backward();
    const bool fills = name_ == "fill_" || name_ == "zero_" || name_ == "copy_";
    for (std::size_t i = 0; i < record_.inputs.size(); ++i) {
      const CapturedTensor& t = record_.inputs[i];
      if (t.element_bytes == 0) return 0;
      const double size = element_count(t.shape) * t.element_bytes;
      const bool written = std::find(record_.writes.begin(), record_.writes.end(), t.storage) != record_.writes.end();
      if (!(fills && i == 0)) sum += table && i == 0 ? std::min(size, returned) : size;
      if (written) sum += size;
    }
    sum += returned;
    return sum < kMostCountable ? static_cast<Bytes>(sum) : 0;
  }

  DataType data_type() const {
    for (const DataType type : types_)
      if (type >= DataType::fp64 && type <= DataType::fp8) return type;
    return types_.front();
  }

  const RecordedCall& call_;
  string_view name_;
  TensorType list_type_;
  const ConvolutionResults& convolutions_;
  OperatorCall record_;
  std::vector<DataType> types_;  // of record_.inputs
  std::size_t first_list_ = kNoPosition;
  bool in_place_ = false, known_ = false;  // the latter: what it returns
};

}  // namespace

Shape convolution_shape(const RecordedCall& call) {
  std::vector<const Shape*> tensors;
  for (const RecordedArgument& a : call.arguments)
    if (!a.list && a.tensors.size() == 1) tensors.push_back(&a.tensors.front());
  return tensors.size() < 2 ? Shape{}
                            : convolution_result(base_name(call.name), call.arguments, *tensors[0], *tensors[1]);
}

RecordedWork work_of(const RecordedCall& call, TensorType list_type, const ConvolutionResults& convolutions) {
  return Completed(call, list_type, convolutions).work();
}

}  // namespace memwall
