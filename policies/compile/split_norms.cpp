#include "policies/compile/split_norms.h"

#include <optional>
#include <string>
#include <vector>

#include "policies/trace/dataflow.h"
#include "policies/trace/operator_name.h"
#include "policies/trace/trace_edit.h"

namespace memwall {
namespace {

// FLOPs per element over rows, as models/workload counts them of compiled code: with a mean, or without.
constexpr double kLayerNorm = 11, kRmsNorm = 8, kColumns = 3;

struct NormBackward {
  double flops_over_rows = 0;
  std::int64_t rows = 0, width = 0;
  std::vector<Use> over_rows, over_columns;
  std::vector<StorageId> sums;  // gradients of weight and bias
  Bytes bytes_over_rows = 0, bytes_over_columns = 0;
};

class NormSplitter {
 public:
  NormSplitter(const Trace& trace, const HostCosts& costs, const Pricer& pricer)
      : t_(trace), flow_(trace), costs_(costs), pricer_(pricer), edit_(trace, costs) {}

  void split(OpId id) {
    const std::optional<NormBackward> norm = norm_backward(id);
    if (!norm) return;
    const Op& whole = t_.ops[id];
    Op over_rows = whole, over_columns = whole;
    over_rows.flops = norm->flops_over_rows * elements(*norm);
    over_rows.bytes = norm->bytes_over_rows;
    over_columns.operator_class = OperatorClass::reduction;
    over_columns.flops = kColumns * elements(*norm);
    over_columns.bytes = norm->bytes_over_columns;
    over_columns.shape = edit_.tables().shapes.intern({norm->width, norm->rows});
    over_columns.framework_calls = 0;
    over_columns.host_gap = {};
    over_columns.host_cost = costs_.launch;
    set_times(whole, over_rows, over_columns);
    edit_.replace(id, over_rows, norm->over_rows);
    write_columns(id, *norm, over_columns);
  }

  Trace apply() && { return std::move(edit_).apply(); }

 private:
  static double elements(const NormBackward& norm) {
    return static_cast<double>(norm.rows) * static_cast<double>(norm.width);
  }

  // Behind the elementwise ops that follow, which are merged with the kernel over rows.
  void write_columns(OpId id, const NormBackward& norm, const Op& over_columns) {
    const InsertionPoint point{last_elementwise(id, norm), true};
    for (const StorageId sum : norm.sums) move_behind(flow_.alloc(sum), point);
    edit_.insert_complete(point, over_columns, norm.over_columns);
    for (const Use& use : norm.over_columns)
      if (const OpId freed = flow_.free(use.storage); use.access == Access::read && freed > id && freed < point.op)
        move_behind(freed, point);
  }

  void move_behind(OpId id, InsertionPoint point) {
    edit_.remove(id);
    edit_.insert_complete(point, t_.ops[id]);
  }

  // The last of the elementwise ops in a row behind the normalization that leave what its kernel over columns reads and
  // do not ask for what it makes; else the normalization itself.
  OpId last_elementwise(OpId id, const NormBackward& norm) const {
    OpId last = id;
    for (OpId next = id + 1; next < t_.ops.size(); ++next) {
      const Op& op = t_.ops[next];
      if (op.kind == OpKind::alloc || op.kind == OpKind::free) continue;
      if (op.kind != OpKind::kernel || op.operator_class != OperatorClass::elementwise) break;
      if (op.stream != t_.ops[id].stream || op.thread != t_.ops[id].thread || touches(op, norm)) break;
      last = next;
    }
    return last;
  }

  bool touches(const Op& op, const NormBackward& norm) const {
    for (const Use& use : t_.uses_of(op))
      for (const Use& own : norm.over_columns)
        if (use.storage == own.storage && (use.access == Access::write || own.access == Access::write)) return true;
    return false;
  }

  std::optional<NormBackward> norm_backward(OpId id) const {
    const Op& op = t_.ops[id];
    const std::string name = plain_operator_name(operator_of(t_, op));
    NormBackward norm;
    if (name == "native_layer_norm_backward") norm.flops_over_rows = kLayerNorm;
    if (name == "fused_rms_norm_backward") norm.flops_over_rows = kRmsNorm;
    const Shape& shape = t_.shapes[op.shape];
    if (norm.flops_over_rows == 0 || shape.size() != 2 || shape[0] == shape[1] || shape[0] == 1) return std::nullopt;
    norm.rows = shape[0], norm.width = shape[1];
    for (const Use& use : t_.uses_of(op)) add(use, norm);
    const bool told = norm.over_columns.size() == norm.sums.size() + 2 && !norm.sums.empty();
    return told ? std::optional(norm) : std::nullopt;
  }

  // The gradient of the result and what was normalized are read twice.
  void add(const Use& use, NormBackward& norm) const {
    const Storage& s = t_.storages[use.storage];
    const std::int64_t held = known_elements(t_.shapes[s.shape]);
    const bool by_element = held == norm.rows * norm.width;
    const bool is_sum = use.access == Access::write && held == norm.width && flow_.alloc(use.storage) != kNoOp;
    if (is_sum) norm.sums.push_back(use.storage);
    if (!is_sum) norm.over_rows.push_back(use), norm.bytes_over_rows += s.bytes;
    if (is_sum || (by_element && use.access == Access::read))
      norm.over_columns.push_back(use), norm.bytes_over_columns += s.bytes;
  }

  void set_times(const Op& whole, Op& over_rows, Op& over_columns) const {
    const Shape& shape = t_.shapes[whole.shape];
    const Shape columns{shape[1], shape[0]};
    if (whole.origin == Origin::modelled) {
      over_rows.duration = pricer_.kernel(over_rows, shape);
      over_columns.duration = pricer_.kernel(over_columns, columns);
      return;
    }
    const double rows = to_seconds(pricer_.kernel(over_rows, shape));
    const double both = rows + to_seconds(pricer_.kernel(over_columns, columns));
    over_rows.duration = both > 0 ? scaled_time(whole.duration, rows / both) : whole.duration;
    over_columns.duration = whole.duration - over_rows.duration;
    over_rows.origin = over_columns.origin = Origin::transferred;
  }

  const Trace& t_;
  const Dataflow flow_;
  const HostCosts& costs_;
  const Pricer& pricer_;
  TraceEdit edit_;
};

}  // namespace

Trace with_split_norms(const Trace& trace, const HostCosts& costs, const Pricer& pricer,
                       const std::function<bool(const Op&)>& is_compiled) {
  NormSplitter splitter(trace, costs, pricer);
  for (OpId id = 0; id < trace.ops.size(); ++id)
    if (trace.ops[id].phase == Phase::backward && trace.ops[id].operator_class == OperatorClass::normalization &&
        is_compiled(trace.ops[id]))
      splitter.split(id);
  return std::move(splitter).apply();
}

}  // namespace memwall
