#include "models/workload/import/timed/recorded_shapes.h"

#include <map>
#include <set>
#include <string_view>
#include <tuple>
#include <vector>

#include "models/workload/import/timed/kernel_properties.h"
#include "models/workload/import/timed/recorded_call.h"

namespace memwall {
namespace {

constexpr double kLeastCovered = 0.9;  // of the kernels' time, for Knowledge::shapes

class Shapes {
 public:
  Shapes(const TimedCapture& capture, ImportedTrace& imported) : c_(capture), imported_(imported) {}

  RecordedShapes run() {
    counts_.operators = c_.operators.size();
    for (const CapturedOperator& op : c_.operators) {
      if (op.input_dims == 0) continue;
      ++counts_.with_inputs;
      if (c_.text(op.name).find("convolution_backward") != std::string::npos && learned_.insert(call_key(op)).second)
        convolutions_.learn(call_of(op, OperatorClass::convolution));
    }
    share_out();
    Trace& trace = imported_.trace;
    for (OpId id = 0; id < trace.ops.size(); ++id)
      if (trace.ops[id].kind == OpKind::kernel) describe(id);
    if (counts_.time.count() > 0 && to_seconds(counts_.time_with_bytes) >= kLeastCovered * to_seconds(counts_.time))
      trace.knowledge.shapes = true;
    return counts_;
  }

 private:
  using CallKey = std::tuple<StringId, StringId, StringId, StringId>;
  static CallKey call_key(const CapturedOperator& op) {
    return {op.name, op.input_dims, op.input_types, op.concrete_inputs};
  }

  RecordedCall call_of(const CapturedOperator& op, OperatorClass operator_class) const {
    return {c_.text(op.name), operator_class,
            recorded_arguments(c_.text(op.input_dims), c_.text(op.input_types), c_.text(op.concrete_inputs))};
  }

  // The halves of a convolution's backward in files of 2021 know two of its three tensors; the operator around them
  // (input, gradient, weight) knows all.
  RecordedCall completed(const CapturedOperator& op, RecordedCall call) const {
    const std::string_view name = c_.text(op.name);
    if (!name.ends_with("convolution_backward_input") && !name.ends_with("convolution_backward_weight")) return call;
    if (op.parent == kNoIndex) return call;
    const CapturedOperator& around = c_.operators[op.parent];
    if (!std::string_view(c_.text(around.name)).ends_with("convolution_backward")) return call;
    RecordedCall whole = call_of(around, call.operator_class);
    if (whole.arguments.size() < 3) return call;
    std::swap(whole.arguments[0], whole.arguments[1]);
    whole.name = call.name;
    return whole;
  }

  struct Share {
    Duration duration{}, computing{};  // of all its kernels; of those that do more than move data
    std::uint32_t kernels = 0;
    bool in_tf32 = false;  // as the name of one of its kernels says
  };

  void share_out() {
    shares_.resize(c_.operators.size());
    for (OpId id = 0; id < imported_.trace.ops.size(); ++id) {
      const std::uint32_t index = imported_.operator_of_op[id];
      if (imported_.trace.ops[id].kind != OpKind::kernel || index == kNoIndex) continue;
      shares_[index].duration += imported_.trace.ops[id].duration;
      if (!moves(imported_.trace.ops[id].name)) shares_[index].computing += imported_.trace.ops[id].duration;
      ++shares_[index].kernels;
      shares_[index].in_tf32 |= says_tf32(imported_.trace.ops[id].name);
    }
  }

  bool says_tf32(StringId kernel) {
    const auto [found, is_new] = tf32_names_.try_emplace(kernel, false);
    if (is_new) found->second = is_in_tf32(imported_.trace.strings[kernel]);
    return found->second;
  }

  bool moves(StringId kernel) {
    const auto [found, is_new] = moving_names_.try_emplace(kernel, false);
    if (is_new) found->second = only_moves_data(imported_.trace.strings[kernel]);
    return found->second;
  }

  // Of a product whose other kernels compute, one that changes a layout has no FLOPs: it is a copy.
  void make_copy(Op& op, const RecordedWork& w, double share) {
    op.operator_class = OperatorClass::memory;
    op.bytes = static_cast<Bytes>(static_cast<double>(w.cost.bytes) * share);
    op.data_type = w.cost.data_type;
    counts_.with_bytes += op.bytes > 0;
    if (op.bytes > 0) counts_.time_with_bytes += op.duration;
    --counts_.products;
  }

  const RecordedWork& work(std::uint32_t index, const Op& op) {
    const CapturedOperator& captured = c_.operators[index];
    const TensorType list_type = type_in_kernel_name(imported_.trace.strings[op.name]);
    // Halves of a backward are told apart by the operator around them, too.
    const StringId around = captured.parent == kNoIndex ? 0 : c_.operators[captured.parent].input_dims;
    const auto key = std::make_tuple(call_key(captured), around, op.operator_class, list_type.type);
    const auto found = works_.find(key);
    if (found != works_.end()) return found->second;
    const RecordedCall call = completed(captured, call_of(captured, op.operator_class));
    return works_.emplace(key, work_of(call, list_type, convolutions_)).first->second;
  }

  void describe(OpId id) {
    Op& op = imported_.trace.ops[id];
    const std::uint32_t index = imported_.operator_of_op[id];
    const bool product = op.operator_class == OperatorClass::gemm || op.operator_class == OperatorClass::convolution ||
                         op.operator_class == OperatorClass::attention;
    ++counts_.kernels;
    counts_.products += product;
    counts_.time += op.duration;
    if (index == kNoIndex || c_.operators[index].input_dims == 0) return;
    const RecordedWork& w = work(index, op);
    const Share& all = shares_[index];
    const double share =
        all.duration.count() > 0 ? to_seconds(op.duration) / to_seconds(all.duration) : 1.0 / all.kernels;
    const bool computes = all.computing.count() > 0;
    if (product && computes && moves(op.name)) return make_copy(op, w, share);
    op.flops = w.cost.flops * (product && computes ? to_seconds(op.duration) / to_seconds(all.computing) : share);
    op.bytes = static_cast<Bytes>(static_cast<double>(w.cost.bytes) * share);
    op.data_type = product && all.in_tf32 && w.cost.data_type == DataType::fp32 ? DataType::tf32 : w.cost.data_type;
    op.shape = imported_.trace.shapes.intern(w.shape);
    counts_.flops += op.flops;
    counts_.with_shape += op.shape != 0;
    counts_.with_flops += product && w.cost.flops > 0;
    if (w.cost.bytes == 0) return;
    ++counts_.with_bytes;
    counts_.time_with_bytes += op.duration;
  }

  const TimedCapture& c_;
  ImportedTrace& imported_;
  RecordedShapes counts_;
  ConvolutionResults convolutions_;
  std::set<CallKey> learned_;
  std::vector<Share> shares_;  // by operator
  std::map<StringId, bool> tf32_names_, moving_names_;
  std::map<std::tuple<CallKey, StringId, OperatorClass, DataType>, RecordedWork> works_;
};

}  // namespace

RecordedShapes add_recorded_shapes(const TimedCapture& capture, ImportedTrace& imported) {
  return Shapes(capture, imported).run();
}

}  // namespace memwall
