#include <algorithm>
#include <vector>

#include "policies/recipe/loss_pieces.h"
#include "policies/recipe/program_writer.h"

namespace memwall {
namespace {

OperatorWork work_of_rows(std::string_view name, double per_element, const WrittenTensor& rows) {
  return {.name = name,
          .operator_class = OperatorClass::reduction,
          .type = rows.type,
          .flops = per_element * static_cast<double>(rows.elements()),
          .shape = rows.shape};
}

class ChunkedLoss {
 public:
  ChunkedLoss(OpenedLoss& opened, std::int64_t chunks)
      : o_(opened),
        p_(opened.program),
        t_(opened.edit.base()),
        w_(opened.edit, opened.pricer),
        root_(t_.ops[p_.forward.loss].module),
        layer_(t_.ops[p_.forward.product].module),
        pieces_(static_cast<std::size_t>(chunks)) {
    for (std::int64_t i = 0; i < chunks; ++i)  // what is left over goes to the first ones
      pieces_[static_cast<std::size_t>(i)].tokens = p_.tokens / chunks + (i < p_.tokens % chunks ? 1 : 0);
  }

  void write() {
    w_.move_to(o_.forward, t_.ops[p_.forward.product]);
    make_logits();
    for (Piece& piece : pieces_) take_targets(piece);
    take_losses();
    w_.move_to(o_.backward, t_.ops[p_.backward.loss]);
    losses_backward();
    w_.in_module(layer_);
    for (std::size_t i = pieces_.size(); i-- > 0;) product_backward(pieces_[i], i == 0);
    w_.move_to(o_.behind, t_.ops[p_.backward.loss]);
    w_.in_module(root_);
    for (std::size_t i = pieces_.size(); i-- > 0;) slice_backward(pieces_[i]);
  }

 private:
  struct Piece {
    std::int64_t tokens = 0;
    WrittenTensor x, logits, wide, targets, logs, wide_logs, counted, of_logits, of_x;
  };

  std::int64_t rows(const Piece& piece) const { return p_.sequences * piece.tokens; }
  bool is_cast() const { return p_.forward.cast_x != kNoOp; }
  // Several tokens of several sequences do not lie at equal distances: what is cut of them is copied.
  bool is_copied(const Piece& piece) const { return p_.sequences > 1 && piece.tokens > 1; }
  bool owns_x(const Piece& piece) const { return is_cast() || is_copied(piece); }
  // What a product reads is kept for the gradient of its weight.
  bool is_saved() const { return p_.backward.weight != kNoOp; }
  // Of the pieces that are all of x, the one that needs it last; else the end.
  std::vector<Piece>::const_iterator holder_of_x() const {
    return is_saved() ? std::ranges::find_if(pieces_, [&](const Piece& piece) { return !owns_x(piece); })
                      : pieces_.end();
  }
  WrittenTensor weight() const { return {p_.weight, {p_.vocabulary, p_.width}, p_.type}; }
  Shape slice(const Piece& piece, std::int64_t last) const { return {p_.sequences, piece.tokens, last}; }

  // --- forward

  void make_logits() {
    w_.in_module(layer_);
    count_cuts();
    for (Piece& piece : pieces_) {
      const WrittenTensor cut{p_.x, slice(piece, p_.width), p_.x_type};
      piece.x = cut;
      if (owns_x(piece)) {
        const char* const name = is_cast() ? "aten::_to_copy" : "aten::clone";
        piece.x = w_.make(name, cut.shape, p_.type);
        w_.kernel(memory_work(name, cut.type, piece.x.elements()), {&cut}, {&piece.x});
      }
      piece.logits = w_.make("aten::mm", slice(piece, p_.vocabulary), p_.type);
      w_.count_calls(3);
      const WrittenTensor by = weight();
      w_.kernel(product_work(p_.type, rows(piece), p_.vocabulary, p_.width), {&piece.x, &by}, {&piece.logits});
      if (owns_x(piece) && !is_saved()) w_.free(piece.x);
    }
    w_.in_module(root_);
    if (holder_of_x() == pieces_.end()) w_.free(p_.x);
  }

  // The views are made before the weight is cast, where autocast does that.
  void count_cuts() {
    const auto cuts = static_cast<int>(pieces_.size());
    const OpId cast = o_.flow.writer(p_.weight, o_.flow.version_before(p_.weight, p_.forward.product));
    const OpId of_x = o_.flow.writer(p_.x, o_.flow.version_before(p_.x, p_.forward.product));
    if (cast == kNoOp || of_x == kNoOp || cast < of_x) return w_.count_calls(cuts);
    o_.count_calls(cast, cuts);
  }

  void take_targets(Piece& piece) {
    const WrittenTensor cut{p_.targets, {p_.sequences, piece.tokens}, DataType::int64};
    piece.targets = cut;
    w_.count_calls(1);
    if (is_copied(piece)) {
      piece.targets = w_.make("aten::clone", cut.shape, cut.type);
      w_.kernel(memory_work("aten::clone", cut.type, piece.targets.elements()), {&cut}, {&piece.targets});
    }
    w_.count_calls(1);
  }

  WrittenTensor cast(const WrittenTensor& x, DataType type) {
    const WrittenTensor y = w_.make("aten::_to_copy", x.shape, type);
    w_.kernel(memory_work("aten::_to_copy", x.type, y.elements()), {&x}, {&y});
    return y;
  }

  void take_losses() {
    WrittenTensor total;
    for (Piece& piece : pieces_) {
      const WrittenTensor loss = loss_of(piece);
      if (!total) {
        total = w_.make("aten::add", {}, p_.loss_type);
        w_.kernel(elementwise_work("aten::add", loss.type, loss.elements()), {&loss}, {&total});
      } else {
        w_.kernel(elementwise_work("aten::add_", total.type, total.elements()), {&total, &loss}, {&total});
      }
      w_.free(loss);
    }
    const WrittenTensor mean = w_.make("aten::div", {}, p_.loss_type);
    w_.kernel(elementwise_work("aten::div", total.type, total.elements()), {&total}, {&mean});
    o_.take_place_of(p_.value, mean.storage, p_.forward.loss);
    w_.free(total);
    for (const Piece& piece : pieces_)
      w_.free(piece.logits);  // autograd keeps what log_softmax gives, not what it reads
  }

  WrittenTensor loss_of(Piece& piece) {
    piece.wide = piece.logits;
    if (p_.forward.cast_logits != kNoOp) piece.wide = cast(piece.logits, p_.wide_type);
    const WrittenTensor in{piece.wide.storage, {rows(piece), p_.vocabulary}, piece.wide.type};
    w_.count_calls(1);
    piece.logs = w_.make("aten::_log_softmax", in.shape, p_.logs_type);
    w_.kernel(work_of_rows("aten::_log_softmax", 5, in), {&in}, {&piece.logs});
    piece.wide_logs = p_.forward.cast_logs == kNoOp ? piece.logs : cast(piece.logs, p_.loss_type);
    const WrittenTensor loss = w_.make("aten::nll_loss_forward", {}, p_.loss_type);
    piece.counted = w_.make("aten::nll_loss_forward", {}, p_.loss_type);
    OperatorWork work = work_of_rows("aten::nll_loss_forward", 1, piece.wide_logs);
    work.bytes = loss.bytes() + piece.counted.bytes() + 2 * piece.targets.bytes();  // a number of each row
    w_.kernel(work, {&piece.wide_logs, &piece.targets}, {&loss, &piece.counted});
    if (p_.forward.cast_logits != kNoOp) w_.free(piece.wide);
    return loss;
  }

  // --- backward

  void losses_backward() {
    w_.in_module(root_);
    const WrittenTensor seed{p_.seed, {}, p_.loss_type};
    const WrittenTensor each = w_.make("aten::div", {}, p_.loss_type);
    w_.kernel(elementwise_work("aten::div", seed.type, seed.elements()), {&seed}, {&each});
    if (o_.seed_goes) w_.free(seed);
    for (std::size_t i = pieces_.size(); i-- > 0;) loss_backward(pieces_[i], each, i == 0);
  }

  void loss_backward(Piece& piece, const WrittenTensor& each, bool last) {
    WrittenTensor g = w_.make("aten::nll_loss_backward", piece.wide_logs.shape, piece.wide_logs.type);
    w_.kernel(work_of_rows("aten::nll_loss_backward", 1, g), {&each, &piece.wide_logs, &piece.targets, &piece.counted},
              {&g});
    if (last) w_.free(each);
    if (p_.forward.cast_logs != kNoOp) w_.free(piece.wide_logs);
    if (is_copied(piece)) w_.free(piece.targets);
    w_.free(piece.counted);
    if (p_.forward.cast_logs != kNoOp) g = cast_back(g, p_.logs_type);
    const WrittenTensor of_wide = w_.make("aten::_log_softmax_backward_data", g.shape, g.type);
    w_.kernel(work_of_rows("aten::_log_softmax_backward_data", 4, g), {&g, &piece.logs}, {&of_wide});
    w_.free(g);
    w_.free(piece.logs);
    w_.count_calls(1);
    piece.of_logits = {of_wide.storage, slice(piece, p_.vocabulary), of_wide.type};
    if (p_.forward.cast_logits != kNoOp) piece.of_logits = cast_back(piece.of_logits, p_.type);
  }

  WrittenTensor cast_back(const WrittenTensor& g, DataType type) {
    const WrittenTensor y = cast(g, type);
    w_.free(g);
    return y;
  }

  void product_backward(Piece& piece, bool last) {
    const WrittenTensor by = weight();
    WrittenTensor part;
    if (p_.backward.weight != kNoOp) {
      part = w_.make("aten::mm", {p_.vocabulary, p_.width}, p_.type);
      w_.count_calls(2);
      w_.kernel(product_work(p_.type, p_.vocabulary, p_.width, rows(piece)), {&piece.of_logits, &piece.x}, {&part});
    }
    piece.of_x = w_.make("aten::mm", slice(piece, p_.width), p_.type);
    w_.count_calls(1);
    w_.kernel(product_work(p_.type, rows(piece), p_.width, p_.vocabulary), {&piece.of_logits, &by}, {&piece.of_x});
    w_.free(piece.of_logits);
    if (last && o_.weight_goes) w_.free(by);
    const auto holder = holder_of_x();
    const bool ends_x = holder != pieces_.end() && &*holder == &piece;
    if (ends_x || (is_saved() && owns_x(piece))) w_.free(piece.x);
    if (part) add_to_weight(part, last);
    if (is_cast()) piece.of_x = cast_back(piece.of_x, p_.x_type);
  }

  // The sum of all parts is the storage that the captured step has, which others know.
  void add_to_weight(const WrittenTensor& part, bool last) {
    of_weight_ = sum(of_weight_, part);
    if (last) o_.take_place_of(p_.of_weight, of_weight_.storage, p_.backward.weight);
  }

  WrittenTensor sum(const WrittenTensor& so_far, const WrittenTensor& part) {
    if (!so_far) return part;
    WrittenTensor total = so_far;
    if (!o_.sums_in_place) total = w_.make("aten::add", so_far.shape, so_far.type);
    w_.kernel(elementwise_work(o_.sums_in_place ? "aten::add_" : "aten::add", total.type, total.elements()),
              {&so_far, &part}, {&total});
    if (!o_.sums_in_place) w_.free(so_far);
    w_.free(part);
    return total;
  }

  void slice_backward(const Piece& piece) {
    const WrittenTensor whole = w_.make("aten::slice_backward", {p_.sequences, p_.tokens, p_.width}, piece.of_x.type);
    w_.kernel(memory_work("aten::slice_backward", whole.type, whole.elements()), {&piece.of_x}, {&whole});
    w_.free(piece.of_x);
    of_x_ = sum(of_x_, whole);
    if (&piece == &pieces_.front()) o_.take_place_of(p_.of_x, of_x_.storage, kNoOp);
  }

  OpenedLoss& o_;
  const LossProgram& p_;
  const Trace& t_;
  ProgramWriter w_;
  const StringId root_, layer_;
  std::vector<Piece> pieces_;
  WrittenTensor of_weight_, of_x_;
};

}  // namespace

void write_chunked_loss(OpenedLoss& opened, std::int64_t chunks) { ChunkedLoss(opened, chunks).write(); }

}  // namespace memwall
