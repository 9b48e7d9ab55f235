// Words at the beginning, the loss at the end.
#include "models/workload/generate/operators/operators.h"

namespace memwall {
namespace {

TapeKernel words_work(std::string_view name, const Tensor& table, const Tensor& words) {
  TapeKernel work;
  work.name = name;
  work.operator_class = OperatorClass::embedding;
  work.type = table.type;
  work.shape = {words.elements(), table.shape.back(), table.shape.front()};
  return work;
}

// What reads one number per row of the logits, and writes at most that many.
TapeKernel loss_work(std::string_view name, const Tensor& logs) {
  TapeKernel work;
  work.name = name;
  work.operator_class = OperatorClass::reduction;
  work.type = logs.type;
  work.flops = static_cast<double>(logs.elements());
  work.shape = {logs.shape[0], logs.shape[1]};
  return work;
}

Tensor nll_loss(Tape& tape, const Tensor& logs, const Tensor& targets) {
  auto f = tape.record({&logs}, {logs, targets}, [](Tape& t, GradientFunction& node, Tensors& g) {
    const Tensor x = node.take_saved(t, 0), y = node.take_saved(t, 1), weight = node.take_saved(t, 2);
    Tensor gradient = t.make("aten::nll_loss_backward", x.shape, x.type);
    t.kernel(loss_work("aten::nll_loss_backward", x), {&g[0], &x, &y, &weight}, {&gradient});
    return Tensors{gradient};
  });
  Tensor loss = tape.make("aten::nll_loss_forward", {}, logs.type);
  const Tensor weight = tape.make("aten::nll_loss_forward", {}, logs.type);
  TapeKernel work = loss_work("aten::nll_loss_forward", logs);
  work.bytes = loss.bytes() + weight.bytes() + 2 * targets.bytes();
  tape.kernel(work, {&logs, &targets}, {&loss, &weight});
  Tape::result(f, loss);
  tape.save(f, weight);
  return loss;
}

}  // namespace

Tensor embedding(Tape& tape, const Tensor& weight, const Tensor& words) {
  auto f = tape.record({&weight}, {words}, [shape = weight.shape](Tape& t, GradientFunction& node, Tensors& g) {
    const Tensor indices = node.take_saved(t, 0);
    const Tensor given = contiguous(t, g[0]);
    Tensor gradient = t.make("aten::embedding_dense_backward", shape, given.type);
    t.kernel(words_work("aten::embedding_dense_backward", gradient, indices), {&given, &indices}, {&gradient});
    return Tensors{gradient};
  });
  Shape shape = words.shape;
  shape.push_back(weight.shape[1]);
  Tensor y = tape.make("aten::embedding", shape, weight.type);
  TapeKernel work = words_work("aten::embedding", weight, words);
  work.bytes = 2 * y.bytes() + words.bytes();
  tape.kernel(work, {&weight, &words}, {&y});
  Tape::result(f, y);
  return y;
}

Tensor cross_entropy(Tape& tape, const Tensor& logits, const Tensor& targets) {
  const Tensor rows = reshape(tape, logits, {logits.elements() / logits.shape.back(), logits.shape.back()});
  Tensor logs = log_softmax(tape, rows);
  logs = autocast_fp32(tape, logs);  // nll_loss runs in fp32
  return nll_loss(tape, logs, reshape(tape, targets, {targets.elements()}));
}

}  // namespace memwall
