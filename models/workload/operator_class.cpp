#include "models/workload/operator_class.h"

#include <algorithm>
#include <cctype>
#include <string>

namespace memwall {
namespace {

struct Rule {
  std::string_view part;  // in lower case
  OperatorClass operator_class;
};

// The first rule that matches wins, so that "convolution_backward" is not taken for its "add".
constexpr Rule kOperatorRules[] = {
    {"attention", OperatorClass::attention},
    {"flash", OperatorClass::attention},
    {"conv", OperatorClass::convolution},
    {"addmm", OperatorClass::gemm},
    {"bmm", OperatorClass::gemm},
    {"matmul", OperatorClass::gemm},
    {"aten::mm", OperatorClass::gemm},
    {"aten::mv", OperatorClass::gemm},
    {"linear", OperatorClass::gemm},
    {"einsum", OperatorClass::gemm},
    {"norm", OperatorClass::normalization},
    {"embedding", OperatorClass::embedding},
    {"index_select", OperatorClass::embedding},
    {"lookup", OperatorClass::embedding},
    {"optimizer", OperatorClass::optimizer},
    {"_fused_adam", OperatorClass::optimizer},
    {"_fused_sgd", OperatorClass::optimizer},
    {"_foreach", OperatorClass::optimizer},
    {"softmax", OperatorClass::reduction},
    {"nll_loss", OperatorClass::reduction},
    {"aten::sum", OperatorClass::reduction},
    {"aten::mean", OperatorClass::reduction},
    {"aten::max", OperatorClass::reduction},
    {"aten::min", OperatorClass::reduction},
    {"aten::argmax", OperatorClass::reduction},
    {"pool", OperatorClass::reduction},
    {"aten::copy_", OperatorClass::memory},
    {"aten::cat", OperatorClass::memory},
    {"aten::fill_", OperatorClass::memory},
    {"aten::zero_", OperatorClass::memory},
    {"aten::clone", OperatorClass::memory},
    {"aten::index", OperatorClass::memory},
    {"aten::add", OperatorClass::elementwise},
    {"aten::mul", OperatorClass::elementwise},
    {"aten::div", OperatorClass::elementwise},
    {"aten::sub", OperatorClass::elementwise},
    {"relu", OperatorClass::elementwise},
    {"gelu", OperatorClass::elementwise},
    {"silu", OperatorClass::elementwise},
    {"tanh", OperatorClass::elementwise},
    {"sigmoid", OperatorClass::elementwise},
    {"dropout", OperatorClass::elementwise},
    {"threshold", OperatorClass::elementwise},
    {"addcmul", OperatorClass::elementwise},
    {"addcdiv", OperatorClass::elementwise},
    {"sqrt", OperatorClass::elementwise},
};

constexpr Rule kKernelRules[] = {
    {"flash", OperatorClass::attention},
    {"fmha", OperatorClass::attention},
    {"attention", OperatorClass::attention},
    {"multi_tensor_apply", OperatorClass::optimizer},
    {"embedding", OperatorClass::embedding},
    {"indexselect", OperatorClass::embedding},
    {"convolve", OperatorClass::convolution},
    {"conv2d", OperatorClass::convolution},
    {"winograd", OperatorClass::convolution},
    {"dgrad", OperatorClass::convolution},
    {"wgrad", OperatorClass::convolution},
    {"fprop", OperatorClass::convolution},
    {"cudnn", OperatorClass::convolution},
    {"gemm", OperatorClass::gemm},
    {"cutlass", OperatorClass::gemm},
    {"cijk_", OperatorClass::gemm},
    {"nvjet", OperatorClass::gemm},
    {"norm", OperatorClass::normalization},
    {"bn_fw", OperatorClass::normalization},
    {"bn_bw", OperatorClass::normalization},
    {"softmax", OperatorClass::reduction},
    {"reduce", OperatorClass::reduction},
    {"pool", OperatorClass::reduction},
    {"scan", OperatorClass::reduction},
    {"catarray", OperatorClass::memory},
    {"copy", OperatorClass::memory},
    {"fill", OperatorClass::memory},
    {"transpose", OperatorClass::memory},
    {"elementwise", OperatorClass::elementwise},
    {"pointwise", OperatorClass::elementwise},
    {"triton_", OperatorClass::elementwise},
};

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

template <std::size_t N>
OperatorClass first_match(const Rule (&rules)[N], std::string_view text) {
  if (text.empty()) return OperatorClass::other;
  const std::string name = lower(text);
  for (const Rule& rule : rules)
    if (name.find(rule.part) != std::string::npos) return rule.operator_class;
  return OperatorClass::other;
}

}  // namespace

OperatorClass operator_class(std::string_view operator_name, std::string_view kernel_name) {
  const OperatorClass by_operator = first_match(kOperatorRules, operator_name);
  return by_operator != OperatorClass::other ? by_operator : first_match(kKernelRules, kernel_name);
}

}  // namespace memwall
