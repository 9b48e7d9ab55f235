// Activation checkpointing: forward drops what backward needs, and backward computes it again.
//
// Source of the semantics: Chen et al. 2016, "Training Deep Nets with Sublinear Memory Cost", and
// PyTorch's torch/utils/checkpoint.py (non-reentrant): a unit's re-run begins when backward first
// needs something of it, repeats the host program, and stops once all that is needed is back.
#include <algorithm>
#include <cmath>
#include <set>

#include <fmt/format.h>

#include "policies/plan/plan_writer.h"
#include "policies/recompute/recompute.h"
#include "policies/trace/operator_name.h"
#include "policies/trace/segments.h"
#include "sim/error.h"
#include "sim/human_text.h"
#include "sim/policy/registry.h"

namespace memwall {
namespace {

struct Settings {
  std::string mode;  // full, sqrt, every, modules, ops
  std::size_t every = 1;
  std::vector<std::string> patterns;
  bool keep_last = false;
  double fraction = 1;  // of the units of a forward, the first ones
  RecomputeRules rules;
};

// The mode is named, or follows from the one of every, modules and ops that is given.
std::string resolve_mode(const PolicyArguments& a) {
  const std::string& named = a.choice("mode");
  std::vector<std::string> given;
  for (const char* key : {"every", "modules", "ops"})
    if (a.is_set(key)) given.emplace_back(key);
  if (given.size() > 1)
    throw UsageError("Policy 'checkpoint': " + given[0] + " and " + given[1] +
                     " are both given; they are different modes, choose one.");
  if (named == "auto") return given.empty() ? "full" : given[0];
  if (!given.empty() && given[0] != named)
    throw UsageError("Policy 'checkpoint': " + given[0] + "=… contradicts mode=" + named + ".");
  if (given.empty() && (named == "every" || named == "modules" || named == "ops"))
    throw UsageError("Policy 'checkpoint': mode=" + named + " needs " + named + "=….");
  return named;
}

Settings settings_of(const PolicyArguments& a) {
  Settings s;
  s.mode = resolve_mode(a);
  s.every = static_cast<std::size_t>(a.integer_or("every", 1));
  if (s.mode == "modules" || s.mode == "ops") s.patterns = a.list(s.mode);
  s.keep_last = a.choice("last") == "keep";
  s.fraction = a.number("fraction");
  s.rules.early_stop = a.flag("early_stop");
  s.rules.allow_collectives = a.flag("allow_collectives");
  const std::string& outputs = a.choice("outputs");
  s.rules.drop_outputs = outputs == "drop" || (outputs == "auto" && s.mode == "ops");
  return s;
}

std::string refusal_without_passes(const Trace& trace, const std::vector<Pass>& all) {
  if (!all.empty()) return "";
  return "Policy 'checkpoint' has no meaning for trace '" + trace.name +
         "': no backward follows a forward in it, so nothing is kept for one.";
}

class Checkpoint : public Rewriter {
 public:
  explicit Checkpoint(Settings settings) : s_(std::move(settings)) {}

  Knowledge needs() const override { return {.modules = s_.mode == "modules"}; }

  Trace rewrite(const Trace& trace, const Machine& machine, const Pricer& pricer) const override {
    const std::vector<Pass> all = passes(trace);
    const Dataflow flow(trace);
    const RecomputePlan plan = decide(trace, flow, all);
    TraceEdit edit(trace, machine.host);
    write_plan(memory_plan_of(trace, flow, plan), flow, pricer, edit);
    Trace result = std::move(edit).apply();
    explain(trace, plan, all.size(), result.notes);
    return result;
  }

  std::optional<MemoryPlan> memory_plan(const Trace& trace, const Machine&, const Pricer&) const override {
    const Dataflow flow(trace);
    return memory_plan_of(trace, flow, decide(trace, flow, passes(trace)));
  }

 private:
  RecomputePlan decide(const Trace& trace, const Dataflow& flow, const std::vector<Pass>& all) const {
    if (const std::string refusal = refusal_without_passes(trace, all); !refusal.empty()) throw UsageError(refusal);
    refuse_idle_patterns(trace, all);
    RecomputePlan plan;
    plan.kept_until.assign(trace.storages.size(), 0);
    for (const Pass& pass : all) {
      std::vector<RecomputeUnit> units = units_of(trace, flow, pass);
      if (s_.keep_last && !units.empty()) units.pop_back();
      const double taken = std::round(s_.fraction * static_cast<double>(units.size()));
      units.resize(std::min(units.size(), std::max<std::size_t>(1, static_cast<std::size_t>(taken))));
      plan_recompute(trace, flow, pass, units, s_.rules, plan);
    }
    refuse_if_nothing_is_left(trace, plan);
    return plan;
  }

  std::vector<RecomputeUnit> units_of(const Trace& trace, const Dataflow& flow, const Pass& pass) const {
    if (s_.mode == "modules") return module_units(trace, pass, s_.patterns);
    if (s_.mode == "ops") return operator_units(trace, pass, s_.patterns);
    std::vector<RecomputeUnit> units;
    if (trace.knowledge.modules) units = block_units(trace, flow, pass);
    if (units.empty()) units = segment_units(trace, flow, pass);
    if (s_.mode == "every") return grouped(trace, pass, units, s_.every);
    if (s_.mode == "sqrt") {
      // Chen et al., section 4.2: segments of sqrt(n) keep 2 sqrt(n) of n at the most.
      const auto size = static_cast<std::size_t>(std::sqrt(static_cast<double>(units.size())));
      return grouped(trace, pass, units, std::max<std::size_t>(1, size));
    }
    return units;
  }

  // Every pattern must match something: a misspelt one would silently do nothing.
  void refuse_idle_patterns(const Trace& trace, const std::vector<Pass>& all) const {
    for (const std::string& pattern : s_.patterns) {
      const bool hit = std::any_of(all.begin(), all.end(), [&](const Pass& pass) {
        return !(s_.mode == "modules" ? module_units(trace, pass, {pattern}) : operator_units(trace, pass, {pattern}))
                    .empty();
      });
      if (hit) continue;
      throw UsageError("Policy 'checkpoint': " + s_.mode + "=" + pattern + " matches no forward op of trace '" +
                       trace.name + "'." + alternatives(trace, all, pattern));
    }
  }

  // What could have been meant instead of a pattern that matches nothing.
  std::string alternatives(const Trace& trace, const std::vector<Pass>& all, const std::string& pattern) const {
    std::set<std::string> known;
    for (const Pass& pass : all)
      for (const OpId id : forward_ops(trace, pass)) {
        const Op& op = trace.ops[id];
        if (s_.mode == "modules")
          known.insert(trace.strings[op.module]);
        else
          known.insert(plain_operator_name(operator_of(trace, op)));
      }
    known.erase("");
    const std::vector<std::string> names(known.begin(), known.end());
    std::string text = did_you_mean(pattern, names);
    for (std::size_t i = 0; i < names.size() && i < 12; ++i) text += (i == 0 ? " It has: " : ", ") + names[i];
    return names.empty() ? text : text + (names.size() > 12 ? ", …." : ".");
  }

  void refuse_if_nothing_is_left(const Trace& trace, const RecomputePlan& plan) const {
    const std::string begin = "Policy 'checkpoint' (mode=" + s_.mode + ") ";
    if (plan.units.empty())
      throw UsageError(begin + "finds no unit in the forward of trace '" + trace.name +
                       "' that holds anything for backward.");
    const bool refused =
        std::all_of(plan.units.begin(), plan.units.end(), [](const UnitPlan& u) { return !u.refusal.empty(); });
    if (refused)
      throw UsageError(begin + "can re-run none of " + std::to_string(plan.units.size()) + " units; the first is " +
                       plan.units.front().name + ": " + plan.units.front().refusal + ".");
  }

  void explain(const Trace& trace, const RecomputePlan& plan, std::size_t forwards,
               std::vector<std::string>& notes) const {
    Bytes dropped = 0, kept = 0;
    Duration again{};
    std::size_t ops = 0, refused = 0, idle = 0;
    std::set<std::string> random, statistics;
    for (const UnitPlan& unit : plan.units) {
      dropped += unit.dropped_bytes;
      kept += unit.kept_bytes;
      ops += unit.rerun.size();
      idle += unit.dropped.empty() && unit.refusal.empty() ? 1 : 0;
      for (const OpId id : unit.rerun) again += trace.ops[id].duration;
      random.insert(unit.random.begin(), unit.random.end());
      statistics.insert(unit.statistics.begin(), unit.statistics.end());
      if (!unit.refusal.empty() && ++refused <= 5)
        notes.push_back("checkpoint: unit " + unit.name + " is left as it was: " + unit.refusal + ".");
    }
    if (refused > 5)
      notes.push_back("checkpoint: left as they were, too: " + counted_text(refused - 5, "further unit") + ".");
    notes.push_back(fmt::format(
        "checkpoint: mode={}, {} ({}), {} dropped in forward, {} kept longer to start from, {} of {} computed again{}.",
        s_.mode, counted_text(plan.units.size(), "unit"),
        plan.units.size() == 1 ? plan.units.front().name : plan.units.front().name + " to " + plan.units.back().name,
        human_bytes(dropped), human_bytes(kept), counted_text(ops, "op"), human_time(again),
        forwards > 1 ? "; all of " + std::to_string(forwards) + " forwards together" : ""));
    explain_gathers(trace, plan, notes);
    if (idle > 0)
      notes.push_back("checkpoint: " + counted_text(idle, "unit") + by_number(idle, " has", " have") +
                      " nothing to drop and" + by_number(idle, " is", " are") + " not re-run.");
    for (const std::string& name : random)
      notes.push_back("checkpoint: " + name +
                      " draws random numbers; the re-run draws the same, from a saved generator "
                      "state (preserve_rng_state), whose saving is not charged.");
    for (const std::string& name : statistics)
      notes.push_back("checkpoint: " + name +
                      " updates what lives across steps (running statistics); PyTorch updates it "
                      "a second time, here the second update goes to a scratch copy.");
  }

  // Where a re-run starts from parameters that sharding has given back.
  static void explain_gathers(const Trace& trace, const RecomputePlan& plan, std::vector<std::string>& notes) {
    Bytes sent = 0, avoidable = 0, distance = 0;
    std::size_t gathers = 0;
    for (const UnitPlan& unit : plan.units)
      for (const RepeatedGather& repeated : unit.gathers) {
        ++gathers;
        sent += trace.ops[repeated.gather].bytes;
        if (repeated.distance > 0) avoidable += trace.ops[repeated.gather].bytes;
        distance = std::max(distance, repeated.distance);
      }
    if (gathers == 0) return;
    std::string note =
        fmt::format("checkpoint: {} of parameters for re-runs, {} sent per rank besides those for backward",
                    counted_text(gathers, "gather"), human_bytes(sent));
    if (avoidable > 0)
      note += fmt::format("; with zero's reuse_distance={} backward finds what the re-run has gathered: {} fewer",
                          distance_text(distance), human_bytes(avoidable));
    notes.push_back(note + ".");
  }

  // As the option is typed, in whole megabytes where it is more than one: "1B", "437MB".
  static std::string distance_text(Bytes distance) {
    constexpr Bytes kMB = 1'000'000;
    return distance <= kMB ? fmt::format("{}B", distance) : fmt::format("{}MB", (distance + kMB - 1) / kMB);
  }

  Settings s_;
};

const RegisterPolicy registered_checkpoint{
    {.name = "checkpoint",
     .sentence = "drops activations in forward and computes them again in backward, unit by unit",
     .kind = PolicyKind::memory_plan,
     .needs = {.timing = true, .allocations = true, .dataflow = true},
     .parameters =
         {choice(
              "mode", "auto", {"auto", "full", "sqrt", "every", "modules", "ops"},
              "full: every block is a unit; every: every N blocks are one; sqrt: every sqrt(n) of n blocks; modules, "
              "ops: those named. auto: the one whose parameter is given, else full. A block is a repeated module "
              "(layers.3), or, where modules are not known, a segment between articulation points of the dataflow."),
          integer("every", Unset{"0"}, {1, 1'000'000}, "blocks", "blocks per unit."),
          patterns("modules", Unset{"none"}, "module paths; '*' stands for any letters: layers.*.mlp"),
          patterns("ops", Unset{"none"}, "operators to compute again: gelu+softmax"),
          choice("outputs", "auto", {"auto", "keep", "drop"},
                 "keep: what later ops outside of the unit read stays, as torch.utils.checkpoint does; drop: that goes "
                 "too, as selective checkpointing by op does. auto: drop for ops, else keep."),
          number("fraction", 1, {0.001, 1}, "",
                 "share of the units that is computed again, from the first on; the others keep what they made. What "
                 "comes first is dropped longest, and computed again when little else is left."),
          flag("early_stop", true, "1: stop the re-run once all that is needed is back; 0: re-run the whole unit."),
          choice("last", "recompute", {"recompute", "keep"},
                 "the last unit, which backward needs at once: recompute (as PyTorch does) or keep."),
          flag("allow_collectives", false,
               "1: a unit may communicate again when it is re-run; 0: it is left as it was.")},
     .answer = [](const Trace& trace) -> PolicyAnswer {
       return {refusal_without_passes(trace, passes(trace)), {}, {}};
     },
     .make_rewriter = [](const PolicyArguments& a) { return std::make_unique<Checkpoint>(settings_of(a)); }}};

}  // namespace
}  // namespace memwall
