// Another optimizer: the step as it would be if the program updated its parameters by SGD, Adam, AdamW or 8-bit AdamW.
//
// The ops of the captured update go, with their states and temporaries; what the other optimizer issues stands where
// the first of them stood, modelled, in their stream. Gradients, clipping and zero_grad stay as they are.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "policies/recipe/dropped_storages.h"
#include "policies/recipe/optimizer_update.h"
#include "policies/recipe/update_in_backward.h"
#include "policies/trace/described.h"
#include "sim/error.h"
#include "sim/human_text.h"
#include "sim/policy/registry.h"

namespace memwall {
namespace {

constexpr const char* kRules[] = {"sgd", "adam", "adamw", "adamw_8bit"};
constexpr const char* kRuleWords[] = {"SGD", "Adam", "AdamW", "8-bit AdamW"};
constexpr const char* kKernels[] = {"foreach", "fused", "for_loop"};

std::string no_optimizer_for(const Trace& trace, const std::string& why) {
  return fmt::format("Policy 'optimizer' has no meaning for trace '{}': {}", trace.name, why);
}

// Why the trace's optimizer cannot be another, "" if it can.
std::string optimizer_refusal(const Trace& trace, const Optimizer& found) {
  if (found.steps.empty())
    return no_optimizer_for(trace, "no op of it updates parameters with states of an optimizer.");
  if (found.steps.size() > static_cast<std::size_t>(std::max<std::size_t>(1, trace.steps.size())))
    return no_optimizer_for(trace,
                            "its optimizer runs inside backward, which another one for it is not implemented for.");
  for (OpId id = 0; id < trace.ops.size(); ++id)
    if (trace.strings[trace.ops[id].operator_name].find("_amp_") != std::string::npos)
      return no_optimizer_for(
          trace, described_op(trace, id) + " is of a GradScaler, which another optimizer is not implemented with.");
  for (const OptimizerStep& step : found.steps) {
    if (step.parameters.empty())
      return no_optimizer_for(trace, "its optimizer updates no parameter that is known as one.");
    for (const OpId id : step.ops) {
      const Op& op = trace.ops[id];
      if (op.graph_member)
        return no_optimizer_for(trace, described_op(trace, id) + " of its optimizer is in a CUDA graph.");
      if (op.kind != OpKind::kernel && op.kind != OpKind::memset)
        return no_optimizer_for(
            trace, described_op(trace, id) + " of its optimizer is no kernel: it is sharded, or elsewhere.");
      if (trace.places[trace.storages[step.parameters.front()].place] != "hbm")
        return no_optimizer_for(trace, "its parameters are not on the GPU.");
    }
  }
  return "";
}

class OptimizerChange {
 public:
  OptimizerChange(const Trace& trace, const Machine& machine, const Pricer& pricer, UpdateRule rule,
                  UpdateKernels kernels, bool in_backward, bool paged)
      : t_(trace),
        flow_(trace),
        found_(find_optimizer(trace, flow_)),
        pricer_(pricer),
        rule_(rule),
        kernels_(kernels),
        in_backward_(in_backward),
        paged_(paged),
        edit_(trace, machine.host) {}

  Trace apply() && {
    if (const std::string refusal = optimizer_refusal(t_, found_); !refusal.empty()) throw UsageError(refusal);
    const OptimizerStep& first = found_.steps.front();
    const std::vector<UpdatedParameter> parameters = updated_parameters(t_, flow_, first, "optimizer");
    if (rule_ == UpdateRule::adamw_8bit && parameters.front().master != kNoStorage)
      throw UsageError(no_optimizer_for(t_,
                                        "its optimizer keeps an fp32 copy of the parameters, which 8-bit AdamW is not "
                                        "implemented with."));
    const OptimizerUpdate update(edit_, parameters, rule_, kernels_, paged_);
    std::set<StorageId> dropped = drop_temporaries();
    for (const OptimizerStep& step : found_.steps) {
      dropped.insert(step.states.begin(), step.states.end());
      remove(step);
      const std::vector<UpdatedParameter> updated = in_order(parameters, step);
      in_backward_ ? write_in_backward(update, step, updated) : write_behind(update, step, updated);
    }
    for (const UpdatedParameter& p : parameters) dropped.erase(p.master);
    Trace result = without_storages(std::move(edit_).apply(), dropped);
    describe(result, parameters.size());
    return result;
  }

 private:
  // Of a later step, in the order of the first.
  std::vector<UpdatedParameter> in_order(const std::vector<UpdatedParameter>& first, const OptimizerStep& step) const {
    std::map<StorageId, UpdatedParameter> by_value;
    for (const UpdatedParameter& p : updated_parameters(t_, flow_, step, "optimizer")) by_value.emplace(p.value, p);
    std::vector<UpdatedParameter> ordered;
    for (const UpdatedParameter& p : first) {
      const auto found = by_value.find(p.value);
      if (found == by_value.end() || by_value.size() != first.size())
        throw UsageError(
            no_optimizer_for(t_, "its steps update other parameters each; expected one step (memwall import --step)."));
      ordered.push_back(found->second);
    }
    return ordered;
  }

  void write_behind(const OptimizerUpdate& update, const OptimizerStep& step,
                    const std::vector<UpdatedParameter>& parameters) {
    ListWriter writer(edit_, {step.ops.front(), false}, t_.ops[step.ops.front()], pricer_);
    update.write(writer, parameters);
  }

  // A gradient goes once its parameter is updated.
  void write_in_backward(const OptimizerUpdate& update, const OptimizerStep& step,
                         const std::vector<UpdatedParameter>& parameters) {
    for (const EarlyUpdate& early : updates_in_backward(t_, flow_, step, parameters, "optimizer")) {
      Op like = t_.ops[early.like];
      like.phase = Phase::optimizer;
      ListWriter writer(edit_, {early.behind, true}, like, pricer_);
      const UpdatedParameter& p = parameters[early.parameter];
      update.write(writer, {&p, 1}, early.parameter);
      if (early.freed != kNoOp) edit_.remove(early.freed);
      writer.drop({p.gradient, p.elements, p.type});
    }
  }

  std::set<StorageId> drop_temporaries() {
    for (const StorageId id : found_.temporaries)
      for (const OpId op : {flow_.alloc(id), flow_.free(id)})
        if (op != kNoOp) edit_.remove(op);
    return {found_.temporaries.begin(), found_.temporaries.end()};
  }

  // The update, and what waits for its parts.
  void remove(const OptimizerStep& step) {
    for (const OpId id : step.ops) edit_.remove(id);
    OpId id = step.ops.front();
    for (; id <= step.ops.back(); ++id) remove_wait(id);
    for (; id < t_.ops.size() && t_.ops[id].kind == OpKind::synchronize; ++id) remove_wait(id);
  }

  void remove_wait(OpId id) {
    if (t_.ops[id].kind == OpKind::synchronize && t_.ops[id].phase == Phase::optimizer) edit_.remove(id);
  }

  static Bytes state_bytes(const Trace& trace) {
    Bytes bytes = 0;
    for (const Storage& s : trace.storages)
      bytes += s.preexisting && s.kind == StorageKind::optimizer_state ? s.bytes : 0;
    return bytes;
  }

  void describe(Trace& result, std::size_t parameters) const {
    const auto rule = static_cast<std::size_t>(rule_);
    std::string words = kRuleWords[rule];
    if (rule_ != UpdateRule::adamw_8bit) {
      const char* const kernels = kKernels[static_cast<std::size_t>(kernels_)];
      words = fmt::format("{} {}", kernels, words);
    }
    if (paged_) words += ", paged";
    if (in_backward_) words += " in backward";
    result.notes.push_back(fmt::format(
        "optimizer: {} updates {}; its states take {} instead of {}. What it runs is modelled, not measured.", words,
        counted_text(parameters, "parameter"), human_bytes(state_bytes(result)), human_bytes(state_bytes(t_))));
    for (RecipeItem& item : result.recipe)
      if (item.what == "optimizer") item = {.what = item.what, .value = words, .setting = ""};
  }

  const Trace& t_;
  const Dataflow flow_;
  const Optimizer found_;
  const Pricer& pricer_;
  const UpdateRule rule_;
  const UpdateKernels kernels_;
  const bool in_backward_, paged_;
  TraceEdit edit_;
};

class OptimizerRecipe : public Rewriter {
 public:
  OptimizerRecipe(UpdateRule rule, UpdateKernels kernels, bool in_backward, bool paged)
      : rule_(rule), kernels_(kernels), in_backward_(in_backward), paged_(paged) {}

  Trace rewrite(const Trace& trace, const Machine& machine, const Pricer& pricer) const override {
    return OptimizerChange(trace, machine, pricer, rule_, kernels_, in_backward_, paged_).apply();
  }

 private:
  const UpdateRule rule_;
  const UpdateKernels kernels_;
  const bool in_backward_, paged_;
};

template <typename Value, std::size_t count>
Value index_of(const char* const (&words)[count], const std::string& word) {
  return static_cast<Value>(std::find(std::begin(words), std::end(words), word) - std::begin(words));
}

std::unique_ptr<Rewriter> rewriter_of(const PolicyArguments& a) {
  const auto rule = index_of<UpdateRule>(kRules, a.choice("to"));
  if (rule == UpdateRule::adamw_8bit && a.is_set("kernels"))
    throw UsageError("Policy 'optimizer': to=adamw_8bit has kernels of its own; leave kernels=" + a.choice("kernels") +
                     " away.");
  if (rule != UpdateRule::adamw_8bit && a.flag("paged"))
    throw UsageError(
        "Policy 'optimizer': paged=1 is of to=adamw_8bit alone (PagedAdamW8bit); found to=" + a.choice("to") + ".");
  const auto kernels =
      a.is_set("kernels") ? index_of<UpdateKernels>(kKernels, a.choice("kernels")) : UpdateKernels::foreach;
  return std::make_unique<OptimizerRecipe>(rule, kernels, a.flag("in_backward"), a.flag("paged"));
}

PolicyAnswer answer_of_optimizer(const Trace& trace) {
  const Dataflow flow(trace);
  const Optimizer found = find_optimizer(trace, flow);
  PolicyAnswer answer{.refusal = optimizer_refusal(trace, found), .setting = "to=...", .reason = "another optimizer"};
  if (!answer.refusal.empty()) return answer;
  try {
    updated_parameters(trace, flow, found.steps.front(), "optimizer");
  } catch (const UsageError& e) {
    answer.refusal = e.what();
  }
  return answer;
}

const RegisterPolicy registered_optimizer{
    {.name = "optimizer",
     .sentence = "updates the parameters by another optimizer, or by other kernels of the same",
     .kind = PolicyKind::recipe,
     .needs = {.timing = true, .allocations = true, .dataflow = true},
     .parameters = {choice(
                        "to", kRequired, {"sgd", "adam", "adamw", "adamw_8bit"},
                        "SGD has momentum and no weight decay, Adam no weight decay; adamw_8bit is bitsandbytes'. The "
                        "name may be left out: optimizer:adamw_8bit."),
                    choice("kernels", Unset{"auto"}, {"foreach", "fused", "for_loop"},
                           "foreach (PyTorch's default on a GPU): kernels on lists of tensors; fused: one kernel on "
                           "lists; for_loop: parameter by parameter."),
                    flag("in_backward", false,
                         "1: each parameter is updated as soon as its gradient is there, which goes then."),
                    flag("paged", false,
                         "1: moments of adamw_8bit are in the host's memory and come for their update (PagedAdamW8bit "
                         "where the GPU has no room for them).")},
     .answer = answer_of_optimizer,
     .make_rewriter = rewriter_of}};

}  // namespace
}  // namespace memwall
