#include "study/planned_step_facts.h"

#include <map>
#include <string>

#include "sim/trace/shape.h"

namespace memwall {
namespace {

// Elements of what the op writes; 0: unknown.
std::int64_t written_elements(const Trace& trace, const Op& op) {
  if (op.shape == 0) return 0;
  const Shape& shape = trace.shapes[op.shape];
  switch (op.operator_class) {
    case OperatorClass::gemm:
      return shape.size() >= 3 ? known_elements({shape[0], shape[1], shape[2]}) : 0;
    case OperatorClass::elementwise:
    case OperatorClass::memory:
      return shape.empty() ? 0 : shape[0];
    default:
      return 0;
  }
}

// Gradients that ops of known shape write in backward: bytes by bytes per element.
std::map<Bytes, Bytes> gradient_widths(const Trace& trace) {
  std::map<Bytes, Bytes> widths;
  for (const Op& op : trace.ops) {
    if (op.phase != Phase::backward || op.kind != OpKind::kernel) continue;
    const std::int64_t elements = written_elements(trace, op);
    if (elements <= 0) continue;
    const Use* written = nullptr;
    int writes = 0;
    for (const Use& use : trace.uses_of(op))
      if (use.access == Access::write) {
        written = &use;
        ++writes;
      }
    if (writes != 1 || trace.storages[written->storage].kind != StorageKind::gradient) continue;
    const Bytes bytes = trace.storages[written->storage].bytes;
    widths[bytes % elements == 0 ? bytes / elements : 0] += bytes;
  }
  return widths;
}

std::string compute_dtype_of(const Trace& trace) {
  DataType type = DataType::unknown;
  for (const Op& op : trace.ops) {
    if (op.kind != OpKind::kernel || op.operator_class != OperatorClass::gemm) continue;
    if (op.data_type == DataType::unknown || (type != DataType::unknown && op.data_type != type)) return "";
    type = op.data_type;
  }
  const std::string name(to_string(type == DataType::tf32 ? DataType::fp32 : type));
  return name == "bf16" || name == "fp16" || name == "fp32" ? name : "";
}

std::string gradient_dtype_of(const Trace& trace, const std::string& compute_dtype) {
  const std::map<Bytes, Bytes> widths = gradient_widths(trace);
  if (widths.size() != 1) return "";
  constexpr Bytes kSingle = 4, kHalf = 2;
  if (widths.begin()->first == kSingle) return "fp32";
  const bool is_half = widths.begin()->first == kHalf && (compute_dtype == "bf16" || compute_dtype == "fp16");
  return is_half ? compute_dtype : "";
}

}  // namespace

PlanStep plan_step_of(const Trace& trace) {
  PlanStep step{trace.samples_per_step, trace.tokens_per_step, compute_dtype_of(trace)};
  step.gradient_dtype = gradient_dtype_of(trace, step.compute_dtype);
  return step;
}

}  // namespace memwall
