// Gradient accumulation: N forward and backward passes before the optimizer's step, each on a batch as large as the
// captured one.
//
// A later pass repeats the first: its ops with their times, storages of its own, another addend for every gradient
// (AccumulateGrad: the first is taken as it is, later ones are added). The loss is divided by N, as programs do it.
// For the same samples per step in smaller passes: --policy batch:... beside it.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "policies/recipe/accumulated_gradients.h"
#include "policies/recipe/loss_division.h"
#include "policies/recipe/repeated_passes.h"
#include "policies/trace/described.h"
#include "policies/trace/optimizer_step.h"
#include "policies/trace/parameter_casts.h"
#include "sim/error.h"
#include "sim/human_text.h"
#include "sim/policy/registry.h"
#include "sim/trace/step_count.h"

namespace memwall {
namespace {

constexpr std::int64_t kMostOps = 4'000'000;  // of the result; with their uses some 1 GB

std::string no_passes_of(const Trace& trace, const std::string& why) {
  return fmt::format("Policy 'accumulate' has no meaning for trace '{}': {}", trace.name, why);
}

// One past its last op of backward, with the host's wait for the thread that ran backward and what the program gives
// back before the optimizer begins.
OpId end_of_backward(const Trace& trace, const Pass& pass) {
  OpId end = pass.backward;
  for (OpId id = pass.backward; id < pass.end; ++id) {
    const Op& op = trace.ops[id];
    if (op.phase == Phase::backward || op.phase == Phase::recompute) end = id + 1;
    const bool hands_back = op.kind == OpKind::hand_over && id == end && op.target < end && op.target >= pass.begin;
    if (hands_back) end = id + 1;
  }
  while (end < trace.ops.size() && trace.ops[end].kind == OpKind::free && trace.ops[end].phase != Phase::optimizer)
    ++end;
  return end;
}

std::string pass_refusal(const Trace& trace, const Pass& pass) {
  const OpId end = end_of_backward(trace, pass);
  for (OpId id = pass.begin; id < end; ++id) {
    const Op& op = trace.ops[id];
    if (op.kind == OpKind::collective)
      return no_passes_of(trace, described_op(trace, id) +
                                     " is a collective, and whether the program calls it in every pass is not told; "
                                     "give the step of one rank, and ddp, fsdp or deepspeed beside it.");
  }
  return "";
}

std::string accumulate_refusal(const Trace& trace, const std::vector<Pass>& all) {
  if (all.empty()) return no_passes_of(trace, "no forward of it has a backward behind it.");
  if (all.size() != step_count(trace))
    return no_passes_of(trace, fmt::format("it has {} passes in {}; expected one in each.", all.size(),
                                           counted_text(step_count(trace), "step")));
  if (find_optimizer(trace, Dataflow(trace)).steps.size() > step_count(trace))
    return no_passes_of(trace, "its optimizer runs inside backward: a gradient is used up as soon as it is there.");
  for (const Pass& pass : all)
    if (const std::string refusal = pass_refusal(trace, pass); !refusal.empty()) return refusal;
  return "";
}

class Accumulate : public Rewriter {
 public:
  explicit Accumulate(std::int64_t passes) : times_(passes) {}

  // Behind optimizer:...
  int precedence() const override { return 1; }

  Trace rewrite(const Trace& trace, const Machine& machine, const Pricer& pricer) const override {
    if (const std::string refusal = accumulate_refusal(trace, passes(trace)); !refusal.empty())
      throw UsageError(refusal);
    if (const auto ops = static_cast<std::int64_t>(trace.ops.size()); ops > kMostOps / times_)
      throw UsageError(
          fmt::format("Policy 'accumulate': {} passes of a step of {} ops are more than the {} that a trace "
                      "may have; expected fewer passes.",
                      times_, ops, kMostOps));
    if (times_ == 1) return trace;
    const std::vector<Loss> losses = losses_of(trace);
    const Trace divided = with_divided_losses(trace, Dataflow(trace), losses, machine, pricer);
    const Dataflow flow(divided);
    std::vector<RepeatedPass> repeated;
    for (const Pass& pass : passes(divided)) repeated.push_back(repeated_pass(divided, flow, pass, !losses.empty()));
    Trace result = with_repeated_passes(divided, repeated, static_cast<std::uint32_t>(times_), machine, pricer);
    describe(result, repeated.front().gradients.size(), !losses.empty());
    return result;
  }

 private:
  // Nothing where some pass's loss is not told.
  static std::vector<Loss> losses_of(const Trace& trace) {
    const Dataflow flow(trace);
    std::vector<Loss> losses;
    for (const Pass& pass : passes(trace)) {
      const std::optional<Loss> loss = loss_of(trace, flow, pass);
      if (!loss) return {};
      losses.push_back(*loss);
    }
    return losses;
  }

  static RepeatedPass repeated_pass(const Trace& trace, const Dataflow& flow, const Pass& pass, bool divided) {
    RepeatedPass repeated;
    repeated.begin = pass.begin;
    for (const Step& step : trace.steps)  // its mark stands once
      if (repeated.begin <= step.first && step.first < pass.backward) repeated.begin = step.first + 1;
    repeated.end = end_of_backward(trace, pass);
    repeated.gradients = accumulated_gradients(trace, flow, pass, repeated.end);
    const std::optional<Loss> quotient = divided ? loss_of(trace, flow, pass) : std::nullopt;
    if (!quotient) return repeated;
    repeated.loss = quotient->value;
    repeated.loss_assigned = assignment(trace, flow, pass, *quotient);
    return repeated;
  }

  // The op behind which the program assigns the undivided loss: before autocast's end, else before the division.
  static OpId assignment(const Trace& trace, const Dataflow& flow, const Pass& pass, const Loss& quotient) {
    OpId made = kNoOp;
    for (const Use& use : trace.uses_of(trace.ops[quotient.made]))
      if (use.access == Access::read) made = flow.writer(use.storage, use.version);
    OpId before = flow.alloc(quotient.value);
    for (const OpId end : cast_ends(trace, flow, pass))
      if (made != kNoOp && end > made && end < before) before = end;
    return before - 1;
  }

  void describe(Trace& result, std::size_t gradients, bool divided) const {
    result.samples_per_step *= static_cast<double>(times_);
    result.tokens_per_step *= static_cast<double>(times_);
    for (Rank& rank : result.rank_table) {
      rank.samples_per_step *= static_cast<double>(times_);
      rank.tokens_per_step *= static_cast<double>(times_);
    }
    result.notes.push_back(fmt::format(
        "accumulate: {} passes per update, each as large as the captured one; {} add up. Of later passes the times are "
        "those of the first, but for the sums, which are modelled.{}",
        times_, counted_text(gradients, "gradient"),
        divided ? "" : " Which number is the loss is not told, so that none is divided."));
    for (RecipeItem& item : result.recipe)
      if (item.what == "batch")
        item = {.what = item.what, .value = fmt::format("{}, in each of {} passes", item.value, times_), .setting = ""};
  }

  const std::int64_t times_;
};

PolicyAnswer answer_of_accumulate(const Trace& trace) {
  return {.refusal = accumulate_refusal(trace, passes(trace)), .setting = "passes=N", .reason = "passes per update"};
}

const RegisterPolicy registered_accumulate{
    {.name = "accumulate",
     .sentence = "runs forward and backward several times per update (gradient accumulation)",
     .kind = PolicyKind::recipe,
     .needs = {.timing = true, .allocations = true, .dataflow = true},
     .ranks = RankRule::each_alike,
     .parameters = {integer(
         "passes", kRequired, {1, 65536}, "passes",
         "before each update of the optimizer, each on a batch as large as the captured one; its name "
         "may be left out: accumulate:4.")},
     .answer = answer_of_accumulate,
     .make_rewriter = [](const PolicyArguments& a) { return std::make_unique<Accumulate>(a.integer("passes")); }}};

}  // namespace
}  // namespace memwall
