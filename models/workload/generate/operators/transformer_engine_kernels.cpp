// What Transformer Engine has around its linear layers: normalization that writes fp8, scales, the loss.
#include "models/workload/generate/operators/operators_transformer_engine.h"

#include "models/workload/generate/operators/kernel_work.h"

namespace memwall {
namespace {

Tensors normalization_backward(Tape& t, GradientFunction& node, const Tensor& given) {
  const Tensor g = contiguous(t, given);
  const Tensor x = node.take_saved(t, 0), weight = node.take_saved(t, 1), deviation = node.take_saved(t, 2);
  const bool with_bias = node.edges.size() == 3;
  const std::string_view name = with_bias ? "transformer_engine::layernorm_bwd" : "transformer_engine::rmsnorm_bwd";
  const Tensor mean = with_bias ? node.take_saved(t, 3) : Tensor();
  Tensors result(node.edges.size());
  if (node.needs(0)) result[0] = t.make(name, x.shape, x.type);
  for (std::size_t i = 1; i < result.size(); ++i)
    if (node.needs(i)) result[i] = t.make(name, weight.shape, weight.type);
  Tensor none;
  t.kernel(normalization_work(name, x, with_bias ? 14 : 10), {&g, &x, &mean, &deviation, &weight},
           {&result[0], &result[1], with_bias ? &result[2] : &none});
  return result;
}

}  // namespace

Tensor normalization_in_fp8(Tape& tape, const Tensor& x, const Tensor& weight, const Tensor& bias) {
  const std::string_view name = bias ? "transformer_engine::layernorm_fwd_fp8" : "transformer_engine::rmsnorm_fwd_fp8";
  const auto backward = [](Tape& t, GradientFunction& node, Tensors& g) {
    return normalization_backward(t, node, g[0]);
  };
  Tape::Function f = bias ? tape.record({&x, &weight, &bias}, {x, weight}, backward)
                          : tape.record({&x, &weight}, {x, weight}, backward);
  Tensor y = tape.make(name, x.shape, DataType::fp8);
  Shape rows = x.shape;
  rows.back() = 1;
  const Tensor deviation = tape.make(name, rows, DataType::fp32);
  const Tensor mean = bias ? tape.make(name, rows, DataType::fp32) : Tensor();
  tape.kernel(normalization_work(name, x, bias ? 9 : 6), {&x, &weight, &bias}, {&y, &mean, &deviation});
  Tape::result(f, y);
  if (!f) return y;
  f->results.back().type = x.type;  // its gradient is in 16 bits
  tape.save(f, deviation);
  if (mean) tape.save(f, mean);
  return y;
}

void update_fp8_scales(Tape& tape, const TransformerEngine& engine, std::int64_t linear_layers) {
  if (engine.recipe != Fp8Recipe::delayed || linear_layers == 0) return;
  const Tensor largest = tape.make("aten::cat", {3 * linear_layers}, DataType::fp32);
  TapeKernel work;
  work.name = "aten::cat";
  work.operator_class = OperatorClass::memory;
  work.type = DataType::fp32;
  work.shape = {largest.elements()};
  tape.kernel(work, {}, {&largest});
  if (engine.parallel) engine.parallel->group.all_reduce(largest);
  work.name = "transformer_engine::fused_amax_and_scale_update";
  work.operator_class = OperatorClass::elementwise;
  tape.kernel(work, {&largest}, {&largest});
}

Tensor fused_parallel_cross_entropy(Tape& tape, TensorParallel& parallel, const Tensor& given,
                                    const Tensor& targets_given) {
  const std::int64_t width = given.shape.back(), rows = given.elements() / width;
  const Tensor logits = reshape(tape, given, {rows, width}), targets = reshape(tape, targets_given, {rows});
  const auto touch = [rows, width](Tape& t, std::string_view name, OperatorClass kind, double flops,
                                   std::initializer_list<const Tensor*> reads,
                                   std::initializer_list<const Tensor*> writes) {
    TapeKernel work;
    work.name = name;
    work.operator_class = kind;
    work.type = DataType::bf16;
    work.flops = flops * static_cast<double>(rows * width);
    work.shape = {rows, width};
    t.kernel(work, reads, writes);
  };
  auto f = tape.record({&logits}, {}, [touch](Tape& t, GradientFunction& node, Tensors& g) {
    const Tensor gradient = node.take_saved(t, 0);
    touch(t, "transformer_engine::element_mul", OperatorClass::normalization, 1, {&gradient, &g[0]}, {&gradient});
    return Tensors{gradient};
  });
  Tensor losses = tape.make("transformer_engine::cross_entropy", {rows}, DataType::fp32);
  {
    const NoGradientScope scope(tape);
    const Tensor own = tape.make("transformer_engine::online_softmax", {1, 3 * rows}, DataType::fp32);
    touch(tape, "transformer_engine::online_softmax", OperatorClass::normalization, 4, {&logits, &targets}, {&own});
    const Tensor all = parallel.group.all_gather(own);
    touch(tape, "transformer_engine::cross_entropy", OperatorClass::normalization, 4, {&logits, &targets, &all},
          {&logits, &losses});
  }
  Tensor loss = tape.make("aten::mean", {}, DataType::fp32);
  tape.kernel(whole_reduction("aten::mean", DataType::fp32, rows), {&losses}, {&loss});
  Tape::result(f, loss);
  tape.save(f, logits.detached());
  return loss;
}

}  // namespace memwall
