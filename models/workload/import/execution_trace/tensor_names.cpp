// Types and devices of tensors, as the observer of ExecutionTraces names them.
#include <array>
#include <charconv>
#include <string_view>
#include <utility>

#include "models/workload/import/execution_trace/execution_trace.h"

namespace memwall {
namespace {

constexpr int kMostDevices = 1024;

// "cuda:1"; "cuda" alone is the first.
std::int16_t device_number(std::string_view device) {
  const std::size_t colon = device.find(':');
  int number = 0;
  if (colon != std::string_view::npos)
    std::from_chars(device.data() + colon + 1, device.data() + device.size(), number);
  return number >= 0 && number < kMostDevices ? static_cast<std::int16_t>(number) : std::int16_t{0};
}

}  // namespace

// c10::ScalarType as the observer prints it: "float" and "long int" in 2023, "c10::Half", ...
DataType tensor_data_type(std::string_view type) {
  static constexpr std::pair<std::string_view, DataType> kTypes[] = {{"float", DataType::fp32},
                                                                     {"double", DataType::fp64},
                                                                     {"c10::Half", DataType::fp16},
                                                                     {"c10::BFloat16", DataType::bf16},
                                                                     {"c10::Float8_e4m3fn", DataType::fp8},
                                                                     {"c10::Float8_e5m2", DataType::fp8},
                                                                     {"long int", DataType::int64},
                                                                     {"long", DataType::int64},
                                                                     {"int", DataType::int32},
                                                                     {"signed char", DataType::int8},
                                                                     {"unsigned char", DataType::int8},
                                                                     {"bool", DataType::boolean}};
  const std::size_t open = type.find("Tensor(");
  if (open == std::string_view::npos) return DataType::unknown;
  type.remove_prefix(open + 7);
  type = type.substr(0, type.find(')'));
  for (const auto& [text, value] : kTypes)
    if (text == type) return value;
  return DataType::unknown;
}

void place_on_device(TensorUse& tensor, std::string_view device) {
  tensor.on_device = device.starts_with("cuda") || device.starts_with("hip");
  tensor.device = tensor.on_device ? device_number(device) : std::int16_t{-1};
}

}  // namespace memwall
