// Another way to take the loss: output layer and cross entropy piece by piece, so that all logits (or all of them in
// fp32, with their gradients) are never held at once.
//
// The captured loss must be the mean cross entropy of the product of an output layer without a bias
// (loss_program.h). What the program runs in its place is modelled, and stands where that stood.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "policies/recipe/dropped_storages.h"
#include "policies/recipe/gradient_sums.h"
#include "policies/recipe/loss_pieces.h"
#include "policies/trace/described.h"
#include "policies/trace/operator_name.h"
#include "sim/error.h"
#include "sim/human_text.h"
#include "sim/policy/registry.h"

namespace memwall {

void OpenedLoss::take_place_of(StorageId storage, StorageId by, OpId maker) {
  const Trace& base = edit.base();
  const Storage& known = base.storages[storage];
  Storage& written = edit.tables().storages[by];
  if (known.kind == StorageKind::gradient) written.kind = known.kind;
  if (maker != kNoOp && known.kind == StorageKind::gradient) written.label = known.label;
  for (const Touch& touch : flow.touches(storage))
    if (touch.op != maker) edit.repoint(touch.op, storage, by);
  if (const OpId freed = flow.free(storage); freed != kNoOp) edit.repoint(freed, storage, by);
}

void OpenedLoss::count_calls(OpId before, int calls) {
  Op op = edit.base().ops[before];
  const HostCosts& costs = edit.costs();
  op.framework_calls = static_cast<std::uint16_t>(op.framework_calls + calls);
  op.host_gap += std::int64_t{calls} * (op.phase == Phase::backward ? costs.eager_backward : costs.eager_forward);
  edit.replace(before, op);
}

namespace {

std::string no_loss_of(const Trace& trace, const std::string& why) {
  return fmt::format("Policy 'loss' has no meaning for trace '{}': {}", trace.name, why);
}

enum class LossForm : std::uint8_t { chunked, fused_linear_cross_entropy };

// The programs of all passes, or why there is none.
struct FoundLosses {
  std::vector<Pass> passes;
  std::vector<LossProgram> programs;
  std::string refusal;
};

FoundLosses losses_of(const Trace& trace, const Dataflow& flow) {
  FoundLosses found;
  found.passes = passes(trace);
  if (found.passes.empty()) found.refusal = "no forward of it has a backward behind it.";
  for (const Pass& pass : found.passes) {
    FoundLoss loss = loss_program(trace, flow, pass);
    if (!loss.program) {
      found.refusal = loss.refusal;
      break;
    }
    found.programs.push_back(*std::move(loss.program));
  }
  return found;
}

class LossRewrite {
 public:
  LossRewrite(const Trace& trace, const Machine& machine, const Pricer& pricer)
      : t_(trace),
        flow_(trace),
        pricer_(pricer),
        edit_(trace, machine.host),
        sums_in_place_(!sums_gradients_anew(trace)) {}

  Trace apply(LossForm form, std::int64_t chunks) && {
    const FoundLosses found = losses_of(t_, flow_);
    if (!found.refusal.empty()) throw UsageError(no_loss_of(t_, found.refusal));
    for (std::size_t i = 0; i < found.programs.size(); ++i) {
      const LossProgram& program = found.programs[i];
      require(program, form, chunks);
      OpenedLoss opened = open(program, found.passes[i]);
      if (form == LossForm::chunked)
        write_chunked_loss(opened, chunks);
      else
        write_fused_linear_loss(opened);
    }
    Trace result = without_storages(std::move(edit_).apply(), dropped_);
    describe(result, found.programs.front(), form, chunks);
    return result;
  }

 private:
  void require(const LossProgram& program, LossForm form, std::int64_t chunks) const {
    if (form == LossForm::chunked && chunks > program.tokens)
      throw UsageError(no_loss_of(
          t_, fmt::format("its sequences have {} tokens; expected no more chunks than that.", program.tokens)));
    if (form == LossForm::chunked) return;
    if (program.forward.cast_x != kNoOp)
      throw UsageError(no_loss_of(t_, "fused_linear_cross_entropy under autocast is not implemented."));
  }

  void remove(OpId id) {
    if (id != kNoOp) edit_.remove(id);
  }

  void drop(StorageId storage) {
    remove(flow_.alloc(storage));
    dropped_.insert(storage);
  }

  OpenedLoss open(const LossProgram& p, const Pass& pass) {
    const auto& f = p.forward;
    const auto& b = p.backward;
    for (const OpId id : {f.cast_x, f.product, f.cast_logits, f.log_softmax, f.cast_logs, f.loss, b.loss, b.cast_logs,
                          b.log_softmax, b.cast_logits, b.input, b.weight, b.cast_x})
      remove(id);
    for (const StorageId storage : p.made) {
      drop(storage);
      remove(flow_.free(storage));
    }
    remove(flow_.free(p.x));
    drop(p.value);
    drop(p.of_x);
    if (p.of_weight != kNoStorage) drop(p.of_weight);
    const bool seed_goes = flow_.free(p.seed) < b.log_softmax;
    if (seed_goes) remove(flow_.free(p.seed));
    const bool weight_goes = flow_.free(p.weight) != kNoOp && flow_.free(p.weight) > b.input;
    if (weight_goes) remove(flow_.free(p.weight));
    const StorageId first = f.cast_x != kNoOp ? p.x_low : p.logits;
    OpId of_logs = kNoOp;
    for (const Use& use : t_.uses_of(t_.ops[b.loss]))
      if (use.access == Access::write) of_logs = flow_.alloc(use.storage);
    return {.edit = edit_,
            .flow = flow_,
            .pass = pass,
            .program = p,
            .pricer = pricer_,
            .sums_in_place = sums_in_place_,
            .seed_goes = seed_goes,
            .weight_goes = weight_goes,
            .forward = {flow_.alloc(first), false},
            .backward = {of_logs, false},
            .behind = {first_use(p), false}};
  }

  // The first of the allocs before what reads the gradient of x first.
  OpId first_use(const LossProgram& p) const {
    OpId reader = kNoOp;
    for (const Touch& touch : flow_.touches(p.of_x))
      if (touch.reads && reader == kNoOp) reader = touch.op;
    if (reader == kNoOp) return flow_.free(p.of_x);  // nothing before it is trained
    while (reader > 0 && t_.ops[reader - 1].kind == OpKind::alloc) --reader;
    return reader;
  }

  void describe(Trace& result, const LossProgram& p, LossForm form, std::int64_t chunks) const {
    const Bytes logits = p.sequences * p.tokens * p.vocabulary * bytes_of(p.wide_type);
    result.notes.push_back(
        form == LossForm::chunked
            ? fmt::format("loss: the cross entropy of {} tokens (all logits {}) is taken in {}, modelled.",
                          p.sequences * p.tokens, human_bytes(logits),
                          counted_text(static_cast<std::uint64_t>(chunks), "chunk"))
            : fmt::format("loss: output layer and cross entropy of {} tokens are one function (Liger's "
                          "LigerFusedLinearCrossEntropyFunction), modelled; all logits ({}) are never held.",
                          p.sequences * p.tokens, human_bytes(logits)));
  }

  const Trace& t_;
  const Dataflow flow_;
  const Pricer& pricer_;
  TraceEdit edit_;
  const bool sums_in_place_;
  std::set<StorageId> dropped_;
};

class LossRecipe : public Rewriter {
 public:
  LossRecipe(LossForm form, std::int64_t chunks) : form_(form), chunks_(chunks) {}

  // Before what repeats passes, and before another optimizer.
  int precedence() const override { return -10; }

  Trace rewrite(const Trace& trace, const Machine& machine, const Pricer& pricer) const override {
    return LossRewrite(trace, machine, pricer).apply(form_, chunks_);
  }

 private:
  const LossForm form_;
  const std::int64_t chunks_;
};

PolicyAnswer answer_of_loss(const Trace& trace) {
  const std::string refusal = losses_of(trace, Dataflow(trace)).refusal;
  return {
      .refusal = refusal.empty() ? "" : no_loss_of(trace, refusal), .setting = "form=...", .reason = "how it is taken"};
}

std::unique_ptr<Rewriter> loss_rewriter_of(const PolicyArguments& a) {
  const bool chunked = a.choice("form") == "chunked";
  if (!chunked && a.is_set("chunks"))
    throw UsageError(
        "Policy 'loss': fused_linear_cross_entropy chooses its pieces by the sizes of input and vocabulary; expected "
        "no chunks=.");
  constexpr std::int64_t kChunks = 8;  // torchtune's num_output_chunks
  return std::make_unique<LossRecipe>(chunked ? LossForm::chunked : LossForm::fused_linear_cross_entropy,
                                      a.is_set("chunks") ? a.integer("chunks") : kChunks);
}

const RegisterPolicy registered_loss{
    {.name = "loss",
     .sentence = "takes the cross entropy of the logits in pieces: chunked, or fused with the output layer",
     .kind = PolicyKind::recipe,
     .needs = {.timing = true, .allocations = true, .dataflow = true, .shapes = true},
     .parameters = {choice("form", kRequired, {"chunked", "fused_linear_cross_entropy"},
                           "chunked: torchtune's CEWithChunkedOutputLoss; fused_linear_cross_entropy: Liger's, which "
                           "makes the gradients of input and weight in forward; its name may be left out: "
                           "loss:chunked."),
                    integer("chunks", Unset{"8"}, {2, 65536}, "pieces", "of each sequence, of a chunked loss.")},
     .answer = answer_of_loss,
     .make_rewriter = loss_rewriter_of}};

}  // namespace
}  // namespace memwall
