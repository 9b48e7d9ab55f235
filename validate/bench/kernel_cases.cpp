#include "validate/bench/kernel_cases.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <map>
#include <tuple>

#include "validate/replay/matmul_shape.h"

namespace memwall {
namespace {

// One linear layer: `out` outputs of `in` inputs.
struct LinearLayer {
  std::string name;
  std::int64_t in, out;
};

// Sizes as the published configurations state them (Hugging Face config.json: gpt2, gpt2-medium, gpt2-xl,
// Llama-3.2-1B, Llama-3.2-3B, Llama-3.1-8B).
std::vector<LinearLayer> gpt2_layers(const std::string& model, std::int64_t width) {
  const std::int64_t vocabulary = 50257;
  return {{model + " QKV", width, 3 * width},
          {model + " output projection", width, width},
          {model + " MLP up", width, 4 * width},
          {model + " MLP down", 4 * width, width},
          {model + " LM head", width, vocabulary}};
}

std::vector<LinearLayer> llama_layers(const std::string& model, std::int64_t width, std::int64_t key_value_width,
                                      std::int64_t inner) {
  const std::int64_t vocabulary = 128256;
  return {{model + " QKV", width, width + 2 * key_value_width},
          {model + " output projection", width, width},
          {model + " MLP up", width, inner},
          {model + " MLP down", inner, width},
          {model + " LM head", width, vocabulary}};
}

std::vector<LinearLayer> transformer_layers() {
  std::vector<LinearLayer> layers;
  for (const auto& model : {llama_layers("Llama 8B", 4096, 1024, 14336), gpt2_layers("GPT-2 124M", 768),
                            gpt2_layers("GPT-2 1.5B", 1600), llama_layers("Llama 1B", 2048, 512, 8192),
                            llama_layers("Llama 3B", 3072, 1024, 8192), gpt2_layers("GPT-2 355M", 1024)})
    layers.insert(layers.end(), model.begin(), model.end());
  return layers;
}

struct StreamingShape {
  std::int64_t columns;
  double bytes_per_element, bytes_per_row, bytes_per_launch;
  double flops_per_element;
};

StreamingShape shape_of(StreamingKernel kernel) {
  switch (kernel) {
    // Reads x, writes y; mean and reciprocal deviation per row; weight and bias. Sum 1; subtract, square, add 3;
    // subtract, scale, weight, bias 4.
    case StreamingKernel::normalization:
      return {4096, 4, 8, 2 * 4096 * 2, 8};
    // Maximum 1; subtract, exponential, add 3; scale 1.
    case StreamingKernel::softmax:
      return {2048, 4, 0, 0, 5};
    // Cube 2, inner polynomial 3, tanh 1, outer 3.
    case StreamingKernel::elementwise:
      return {2048, 4, 0, 0, 9};
    case StreamingKernel::reduction:
      return {4096, 2, 4, 0, 1};
    // Reads four values, writes three. First moment 3, second 4, root and divisions 4, update 2.
    case StreamingKernel::optimizer:
      return {1024, 28, 0, 0, 13};
  }
  return {};
}

}  // namespace

std::vector<GemmCase> gemm_cases(DataType data_type) {
  std::vector<GemmCase> cases;
  std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t>, std::size_t> seen;
  const auto add = [&](std::int64_t m, std::int64_t n, std::int64_t k, const std::string& origin) {
    const auto [at, is_new] = seen.try_emplace({m, n, k}, cases.size());
    if (is_new)
      cases.push_back({m, n, k, origin});
    else
      cases[at->second].origin += "; " + origin;
  };
  for (const std::int64_t size : {8192, 4096, 16384, 2048}) add(size, size, size, "square");
  const bool all = data_type == DataType::bf16;
  for (const std::int64_t tokens : all ? std::vector<std::int64_t>{8192, 4096, 16384} : std::vector<std::int64_t>{4096})
    for (const LinearLayer& layer : transformer_layers()) add(tokens, layer.out, layer.in, layer.name);
  // The gradient of the input has the forward shape with n and k exchanged; that of the weight sums over tokens.
  for (const LinearLayer& layer : transformer_layers())
    add(layer.out, layer.in, all ? 8192 : 4096, layer.name + ", weight gradient");
  for (const std::int64_t size : {1024, 512, 256}) add(size, size, size, "square");
  return cases;
}

double gemm_flops(const GemmCase& c) {
  return 2 * static_cast<double>(c.m) * static_cast<double>(c.n) * static_cast<double>(c.k);
}

double gemm_bytes(const GemmCase& c, DataType data_type) {
  const auto m = static_cast<double>(c.m), n = static_cast<double>(c.n), k = static_cast<double>(c.k);
  return (m * k + n * k) * static_cast<double>(matmul_input_bytes(data_type)) +
         m * n * static_cast<double>(matmul_output_bytes(data_type));
}

std::string gemm_unsupported(DataType data_type, int major, int minor) {
  const int capability = 10 * major + minor;
  const int needed = data_type == DataType::fp8                                   ? 89
                     : data_type == DataType::bf16 || data_type == DataType::tf32 ? 80
                     : data_type == DataType::fp16                                ? 70
                                                                                  : 0;
  if (capability >= needed) return "";
  return std::string(to_string(data_type)) + " products need compute capability " + std::to_string(needed / 10) + "." +
         std::to_string(needed % 10) + ", this device has " + std::to_string(major) + "." + std::to_string(minor);
}

GemmTolerance gemm_tolerance(DataType data_type) {
  switch (data_type) {
    // The result is rounded to 8 bits, and split sums may be rounded so before they are added.
    case DataType::bf16:
      return {1.0 / 128, 5e-3};
    case DataType::fp16:
      return {1.0 / 512, 1e-3};
    // Inputs are cut to 11 bits.
    case DataType::tf32:
      return {2e-3, 1e-3};
    // Sums of fp32 only: a product that used tf32 would be off by about 1.3e-4 * sqrt(k).
    case DataType::fp32:
      return {1e-5, 2e-5};
    // The tensor cores of Hopper add fp8 products with about 14 bits before they promote the sum.
    case DataType::fp8:
      return {1.0 / 128, 1e-2};
    default:
      assert(!"a data type of gemm_cases");
      return {};
  }
}

std::string_view to_string(StreamingKernel kernel) {
  switch (kernel) {
    case StreamingKernel::normalization:
      return "normalization";
    case StreamingKernel::softmax:
      return "softmax";
    case StreamingKernel::elementwise:
      return "elementwise";
    case StreamingKernel::reduction:
      return "reduction";
    case StreamingKernel::optimizer:
      return "optimizer";
  }
  return "";
}

std::vector<StreamingCase> streaming_cases(StreamingKernel kernel, double most_bytes) {
  std::vector<StreamingCase> cases;
  const StreamingShape shape = shape_of(kernel);
  const double row = static_cast<double>(shape.columns) * shape.bytes_per_element + shape.bytes_per_row;
  for (double bytes = 16 << 10; bytes <= 1 << 30; bytes *= 4) {
    const auto rows = std::max<std::int64_t>(1, static_cast<std::int64_t>((bytes - shape.bytes_per_launch) / row));
    if (!cases.empty() && cases.back().rows == rows) continue;
    const StreamingCase c{kernel, rows, shape.columns};
    if (cases.empty() || streaming_bytes(c) <= most_bytes) cases.push_back(c);
  }
  return cases;
}

double streaming_bytes(const StreamingCase& c) {
  const StreamingShape shape = shape_of(c.kernel);
  return static_cast<double>(c.elements()) * shape.bytes_per_element +
         static_cast<double>(c.rows) * shape.bytes_per_row + shape.bytes_per_launch;
}

double streaming_flops(const StreamingCase& c) {
  return static_cast<double>(c.elements()) * shape_of(c.kernel).flops_per_element;
}

std::int64_t rotating_sets(double bytes, double l2_bytes) {
  assert(bytes > 0);
  return static_cast<std::int64_t>(std::clamp(std::ceil(2 * l2_bytes / bytes), 1.0, 8192.0));
}

double nccl_wire_bytes(NcclCollective collective, double bytes, int ranks) {
  const double once = bytes * (ranks - 1) / ranks;
  return collective == NcclCollective::all_reduce ? 2 * once : once;
}

}  // namespace memwall
