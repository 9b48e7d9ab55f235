#include <algorithm>
#include <bit>

#include "policies/recipe/loss_pieces.h"
#include "policies/recipe/program_writer.h"

namespace memwall {
namespace {

class FusedLinearLoss {
 public:
  explicit FusedLinearLoss(OpenedLoss& opened)
      : o_(opened), p_(opened.program), t_(opened.edit.base()), w_(opened.edit, opened.pricer) {}

  void write() {
    w_.move_to(o_.forward, t_.ops[p_.forward.product]);
    w_.count_calls(2);  // x and targets, seen as rows
    count_targets();
    of_x_ = zeros("aten::zeros_like", {rows_, p_.width}, p_.type);
    if (trains_weight()) of_weight_ = zeros("aten::zeros_like", {p_.vocabulary, p_.width}, p_.type);
    const WrittenTensor losses = zeros("aten::zeros", {rows_}, DataType::fp32);
    take_pieces(losses);
    sum_losses(losses);
    w_.free(losses);
    w_.move_to(o_.forward, t_.ops[p_.forward.loss]);
    w_.free(p_.x);
    w_.move_to(o_.backward, t_.ops[p_.backward.loss]);
    w_.in_module(t_.ops[p_.forward.product].module);
    backward();
  }

 private:
  bool trains_weight() const { return p_.backward.weight != kNoOp; }
  WrittenTensor x(std::int64_t rows) const { return {p_.x, {rows, p_.width}, p_.type}; }
  WrittenTensor weight() const { return {p_.weight, {p_.vocabulary, p_.width}, p_.type}; }
  WrittenTensor targets() const { return {p_.targets, {rows_}, DataType::int64}; }

  WrittenTensor zeros(std::string_view name, const Shape& shape, DataType type) {
    const WrittenTensor y = w_.make(name, shape, type);
    w_.kernel(memory_work(name, type, y.elements()), {}, {&y});
    return y;
  }

  // The host waits for how many targets count.
  void count_targets() {
    const WrittenTensor labels = targets(), counted = w_.make("aten::ne", labels.shape, DataType::boolean);
    w_.kernel(elementwise_work("aten::ne", DataType::boolean, rows_), {&labels}, {&counted});
    const WrittenTensor number = w_.make("aten::sum", {}, DataType::int64);
    w_.kernel(elementwise_work("aten::sum", DataType::int64, 1), {&counted}, {&number});
    w_.read_on_host(number);
    w_.free(number);
    w_.free(counted);
  }

  // A product of m x k with k x n; in a piece its factors are read once each, as they are.
  void product(std::int64_t m, std::int64_t n, std::int64_t k, std::initializer_list<const WrittenTensor*> reads,
               const WrittenTensor& into) {
    OperatorWork work = product_work(p_.type, m, n, k);
    work.bytes = (m * k + k * n + m * n) * bytes_of(p_.type);
    w_.kernel(work, reads, {&into});
  }

  // As many rows as make the logits of a piece about as large as x, rounded up to a power of two.
  std::int64_t rows_of_a_piece() const {
    const std::int64_t pieces = (p_.vocabulary + p_.width - 1) / p_.width;
    const auto least = static_cast<std::uint64_t>((rows_ + pieces - 1) / pieces);
    return std::min<std::int64_t>(rows_, static_cast<std::int64_t>(std::bit_ceil(least)));
  }

  void take_pieces(const WrittenTensor& losses) {
    const std::int64_t most = rows_of_a_piece();
    WrittenTensor logits;
    for (std::int64_t done = 0; done < rows_; done += most) {
      const std::int64_t rows = std::min(most, rows_ - done);
      const WrittenTensor made = w_.make("aten::mm", {rows, p_.vocabulary}, p_.type);
      if (logits) w_.free(logits);  // Python's variable: the next piece's are made first
      logits = made;
      take_piece(rows, logits, losses);
    }
    w_.free(logits);
  }

  void take_piece(std::int64_t rows, const WrittenTensor& logits, const WrittenTensor& losses) {
    const WrittenTensor whole = x(rows_), by = weight(), labels = targets();
    product(rows, p_.vocabulary, p_.width, {&whole, &by}, logits);
    constexpr std::int64_t kPasses = 3;  // over the logits: read, read, write
    w_.kernel({.name = "liger::cross_entropy",
               .operator_class = OperatorClass::reduction,
               .type = p_.type,
               .flops = 8 * static_cast<double>(rows) * static_cast<double>(p_.vocabulary),
               .shape = {rows, p_.vocabulary},
               .bytes = rows * (kPasses * p_.vocabulary * bytes_of(p_.type) + 8 + 4)},
              {&logits, &labels}, {&logits, &losses});
    const WrittenTensor part = w_.make("aten::mm", {rows, p_.width}, p_.type);
    product(rows, p_.width, p_.vocabulary, {&logits, &by}, part);
    w_.kernel({.name = "aten::copy_",
               .operator_class = OperatorClass::memory,
               .type = p_.type,
               .shape = {part.elements()},
               .bytes = 2 * part.bytes()},
              {&part}, {&of_x_});
    if (trains_weight()) add_to_weight(rows, logits);
    w_.free(part);
  }

  // A product in the type of x, cast up before it is added.
  void add_to_weight(std::int64_t rows, const WrittenTensor& logits) {
    const WrittenTensor whole = x(rows_);
    WrittenTensor part = w_.make("aten::mm", {p_.vocabulary, p_.width}, p_.type);
    product(p_.vocabulary, p_.width, rows, {&logits, &whole}, part);
    if (p_.type != DataType::fp32) {
      const WrittenTensor wide = w_.make("aten::_to_copy", part.shape, DataType::fp32);
      w_.kernel(memory_work("aten::_to_copy", p_.type, wide.elements()), {&part}, {&wide});
      w_.free(part);
      part = wide;
    }
    w_.kernel(elementwise_work("aten::add_", of_weight_.type, of_weight_.elements()), {&of_weight_, &part},
              {&of_weight_});
    w_.free(part);
  }

  void sum_losses(const WrittenTensor& losses) {
    const WrittenTensor loss = w_.make("aten::sum", {}, DataType::fp32);
    w_.kernel({.name = "aten::sum",
               .operator_class = OperatorClass::reduction,
               .type = DataType::fp32,
               .flops = static_cast<double>(rows_),
               .shape = {1, rows_}},
              {&losses}, {&loss});
    o_.take_place_of(p_.value, loss.storage, p_.forward.loss);
  }

  // The host asks whether the gradient of the loss is 1; then both gradients are there already. PyTorch takes that of
  // the weight as it is, which is written as a copy: a parameter's gradient is made in backward.
  void backward() {
    const WrittenTensor seed{p_.seed, {}, p_.loss_type}, differs = w_.make("aten::ne", {}, DataType::boolean);
    w_.kernel(elementwise_work("aten::ne", p_.loss_type, 1), {&seed}, {&differs});
    w_.read_on_host(differs);
    w_.free(differs);
    if (trains_weight()) {
      const WrittenTensor copy = w_.make("aten::clone", of_weight_.shape, of_weight_.type);
      w_.kernel(memory_work("aten::clone", copy.type, copy.elements()), {&of_weight_}, {&copy});
      o_.take_place_of(p_.of_weight, copy.storage, p_.backward.weight);
    }
    if (o_.seed_goes) w_.free(seed);
    if (trains_weight()) w_.free(of_weight_);
    o_.take_place_of(p_.of_x, of_x_.storage, p_.backward.input);
    for (const Touch& touch : o_.flow.touches(p_.of_x))
      if (touch.reads) return o_.count_calls(touch.op, 1);  // seen as x again
  }

  OpenedLoss& o_;
  const LossProgram& p_;
  const Trace& t_;
  ProgramWriter w_;
  const std::int64_t rows_ = p_.sequences * p_.tokens;
  WrittenTensor of_x_, of_weight_;
};

}  // namespace

void write_fused_linear_loss(OpenedLoss& opened) { FusedLinearLoss(opened).write(); }

}  // namespace memwall
