#include <simdjson.h>

#include <algorithm>
#include <utility>

#include "models/workload/import/timed/name_text.h"
#include "models/workload/import/timed/recorded_call.h"

namespace memwall {
namespace {

using std::string_view;

bool read_shape(simdjson::dom::array list, Shape& shape) {
  for (const simdjson::dom::element extent : list) {
    std::int64_t n = 0;
    if (extent.get(n) || n < 0) return false;
    shape.push_back(n);
  }
  return element_count(shape) < kMostCountable;
}

bool read_tensors(simdjson::dom::array list, RecordedArgument& argument) {
  double sum = 0;
  for (const simdjson::dom::element inner : list) {
    simdjson::dom::array extents;
    Shape shape;
    if (inner.get(extents) || !read_shape(extents, shape)) return false;
    sum += element_count(shape);
    argument.tensors.push_back(std::move(shape));
  }
  return sum < kMostCountable;
}

bool is_nested(simdjson::dom::array list) {
  const auto first = list.begin();
  return first != list.end() && (*first).is_array();
}

bool parse(simdjson::dom::parser& parser, const std::string& text, simdjson::dom::array& list) {
  return !text.empty() && !parser.parse(text).get(list);
}

}  // namespace

std::optional<TensorType> tensor_type(string_view name) {
  static constexpr std::pair<string_view, TensorType> kTypes[] = {{"float", {DataType::fp32, 4}},
                                                                  {"double", {DataType::fp64, 8}},
                                                                  {"c10::Half", {DataType::fp16, 2}},
                                                                  {"c10::BFloat16", {DataType::bf16, 2}},
                                                                  {"long int", {DataType::int64, 8}},
                                                                  {"long", {DataType::int64, 8}},
                                                                  {"int", {DataType::int32, 4}},
                                                                  {"short int", {DataType::unknown, 2}},
                                                                  {"short", {DataType::unknown, 2}},
                                                                  {"signed char", {DataType::int8, 1}},
                                                                  {"unsigned char", {DataType::int8, 1}},
                                                                  {"char", {DataType::int8, 1}},
                                                                  {"bool", {DataType::boolean, 1}},
                                                                  {"c10::complex<float>", {DataType::unknown, 8}},
                                                                  {"c10::complex<double>", {DataType::unknown, 16}}};
  for (const auto& [known, type] : kTypes)
    if (known == name) return type;
  if (name.starts_with("c10::Float8")) return TensorType{DataType::fp8, 1};
  return std::nullopt;
}

TensorType type_in_kernel_name(string_view name) {
  static constexpr std::pair<string_view, TensorType> kTypes[] = {{"BFloat16", {DataType::bf16, 2}},
                                                                  {"Half", {DataType::fp16, 2}},
                                                                  {"<float", {DataType::fp32, 4}},
                                                                  {"<double", {DataType::fp64, 8}}};
  TensorType found;
  for (const auto& [part, type] : kTypes) {
    if (!contains(name, part)) continue;
    if (found.bytes != 0 && found.bytes != type.bytes) return {};  // several
    if (found.bytes == 0) found = type;
  }
  return found;
}

namespace {

// Without types a tensor is told by its extents: "[]" is a value, or a tensor of one element, which costs nothing.
std::optional<TensorType> untyped_tensor(simdjson::dom::array extents) {
  return extents.size() == 0 ? std::nullopt : std::optional(TensorType{});
}

}  // namespace

std::vector<RecordedArgument> recorded_arguments(const std::string& dims, const std::string& types,
                                                 const std::string& values) {
  simdjson::dom::parser dims_parser, types_parser, values_parser;
  simdjson::dom::array shapes, names, concrete;
  if (!parse(dims_parser, dims, shapes)) return {};
  const bool typed = !types.empty();  // ranges of emit_nvtx have shapes alone
  if (typed && !parse(types_parser, types, names)) return {};
  const bool has_values = parse(values_parser, values, concrete);
  std::vector<RecordedArgument> arguments;
  auto name = typed ? names.begin() : simdjson::dom::array::iterator();
  auto value = has_values ? concrete.begin() : simdjson::dom::array::iterator();
  for (const simdjson::dom::element shape : shapes) {
    RecordedArgument a;
    simdjson::dom::array extents;
    string_view type, text;
    if (shape.get(extents)) return {};
    if (typed && name != names.end()) {
      if ((*name).get(type)) type = "";
      ++name;
    }
    if (has_values && value != concrete.end()) {
      if (!(*value).get(text)) a.value = std::string(text);
      ++value;
    }
    if (type == "TensorList" || is_nested(extents)) {
      a.list = true;
      if (!read_tensors(extents, a)) return {};
    } else if (const auto known = typed ? tensor_type(type) : untyped_tensor(extents)) {
      a.type = *known;
      a.tensors.emplace_back();
      if (!read_shape(extents, a.tensors.back())) return {};
    }
    arguments.push_back(std::move(a));
  }
  return arguments;
}

void ConvolutionResults::learn(const RecordedCall& call) {
  const string_view name = call.name.substr(call.name.rfind(':') + 1);
  if (call.arguments.size() < 3 || !contains(name, "convolution_backward")) return;
  // aten::cudnn_convolution_backward of 2021 had the input first.
  const std::size_t gradient = name == "convolution_backward" ? 0 : 1;
  for (std::size_t i = 0; i < 3; ++i)
    if (call.arguments[i].tensors.size() != 1 || call.arguments[i].list) return;
  const Shape &result = call.arguments[gradient].tensors[0], &input = call.arguments[1 - gradient].tensors[0],
              &weight = call.arguments[2].tensors[0];
  const auto [at, added] = results_.try_emplace({input, weight}, result);
  if (!added && at->second != result) at->second.clear();
}

Shape ConvolutionResults::result(const Shape& input, const Shape& weight) const {
  const auto found = results_.find({input, weight});
  return found == results_.end() ? Shape{} : found->second;
}

}  // namespace memwall
