#include "models/workload/import/cupti/range_shapes.h"

#include <cstdint>
#include <string_view>
#include <utility>

#include "models/workload/import/timed/recorded_shapes.h"

namespace memwall {
namespace {

// Tensile, rocBLAS's and hipBLASLt's generator, writes the types behind the order of the indices, a letter each for
// what is multiplied, the result and the sum: "Cijk_Ailk_Bljk_HHS_BH_MT128x128x16_...", of one type only
// "Cijk_Ailk_Bljk_SB_". Source: Tensile, Common.py and DataType.py (H half, B bfloat16, S single, D double, I8 int8).
DataType tensile_type(std::string_view kernel) {
  for (int part = 0; part < 3; ++part) {
    const std::size_t at = kernel.find('_');
    if (at == std::string_view::npos) return DataType::unknown;
    kernel.remove_prefix(at + 1);
  }
  static constexpr std::pair<std::string_view, DataType> kTypes[] = {{"I8", DataType::int8},
                                                                     {"H", DataType::fp16},
                                                                     {"B", DataType::bf16},
                                                                     {"S", DataType::fp32},
                                                                     {"D", DataType::fp64}};
  for (const auto& [letter, type] : kTypes)
    if (kernel.starts_with(letter)) return type;
  return DataType::unknown;
}

// The type of a matrix product by its kernel's name, as cuBLAS and CUTLASS call them: "ampere_sgemm_128x64_tn",
// "ampere_bf16_s16816gemm_bf16_...". What multiplies in tensor cores and does not say of which type stays unknown.
DataType product_type(std::string_view kernel) {
  if (kernel.starts_with("Cijk_")) return tensile_type(kernel);
  static constexpr std::pair<std::string_view, DataType> kTypes[] = {
      {"tf32", DataType::tf32},  {"bf16", DataType::bf16},  {"fp16", DataType::fp16},   {"f16_", DataType::fp16},
      {"h884", DataType::fp16},  {"h1688", DataType::fp16}, {"h16816", DataType::fp16}, {"hgemm", DataType::fp16},
      {"dgemm", DataType::fp64}, {"sgemm", DataType::fp32}};
  for (const auto& [part, type] : kTypes)
    if (kernel.find(part) != std::string_view::npos) return type;
  return DataType::unknown;
}

// FLOPs of an unknown type would be taken as single precision: only those whose type the kernel's name tells are kept.
// Returns their number.
std::uint64_t keep_typed_products(Trace& trace) {
  std::uint64_t typed = 0;
  for (Op& op : trace.ops) {
    if (op.kind != OpKind::kernel || op.flops == 0) continue;
    if (op.data_type == DataType::unknown) op.data_type = product_type(trace.strings[op.name]);
    if (op.data_type == DataType::unknown)
      op.flops = 0;
    else
      ++typed;
  }
  return typed;
}

}  // namespace

std::vector<Decision> add_range_shapes(const TimedCapture& capture, ImportedTrace& imported) {
  const RecordedShapes s = add_recorded_shapes(capture, imported);
  if (s.with_inputs == 0)
    return {{"inputs of operators", "No range lists sizes (emit_nvtx with record_shapes=True): shapes are unknown.", 0,
             s.operators}};
  return {
      {"inputs of operators", "Sizes that the ranges of emit_nvtx list.", s.with_inputs, s.operators},
      {"shapes of kernels", "By operator class (sim/trace/op.h), where extents alone decide.", s.with_shape, s.kernels},
      {"FLOPs of products",
       "By their shapes, where the kernel's name tells the data type; without it FLOPs say nothing about time.",
       keep_typed_products(imported.trace), s.products},
      {"bytes of kernels", "The ranges do not say the types of tensors: bytes stay unknown.", s.with_bytes, s.kernels}};
}

}  // namespace memwall
