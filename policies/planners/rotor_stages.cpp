#include "policies/planners/rotor_stages.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <set>
#include <utility>

#include "policies/planners/rotor_units.h"

namespace memwall {
namespace {

// --- times and bytes of units

class StageSizes {
 public:
  StageSizes(const StepProfile& profile, const ParameterGathers& gathers, const Pass& pass,
             const RotorUnitSearch& search, RotorPass& result)
      : p_(profile),
        t_(profile.trace()),
        flow_(profile.flow()),
        pass_(pass),
        gathers_(gathers),
        search_(search),
        r_(result) {}

  void run() {
    find_beside();
    const std::size_t units = r_.units.size();
    r_.chain.stages.resize(units + 1);
    for (std::size_t k = 0; k < units; ++k) size_unit(k);
    // Behind the last unit: forward once, and what backward does before it comes to the chain.
    RotorStage& rest = r_.chain.stages.back();
    const OpId end = r_.units.back().end, backward = r_.units.back().backward;
    rest.gradient = beside_before(end);
    rest.while_saving = most_beside(end, pass_.backward) - rest.gradient;
    rest.while_backward = most_in_backward(units, pass_.backward, backward);
    rest.while_passing = RotorStage::kNever;
    rest.first_saving = 0;
    rest.first_passing = rest.first_passing_alone = RotorStage::kNever;
    const std::vector<StorageId> input = passed_to(units);
    for (OpId id = end; id < pass_.backward; ++id)
      rest.first_saving = std::max(rest.first_saving, beside_[id] + left_of(input, id));
    for (OpId id = end; id < backward; ++id) rest.backward += device_time(id);
    take_off_what_stays();
  }

 private:
  Duration device_time(OpId id) const {
    return runs_on_device(t_.ops[id].kind) && t_.ops[id].phase != Phase::optimizer ? t_.ops[id].duration : Duration{};
  }

  // Lives, but is not of the chain, after each op. What a unit starts from stays until its backward.
  void find_beside() {
    std::vector<OpId> until(t_.storages.size(), 0);
    for (std::size_t k = 0; k < r_.units.size(); ++k)
      for (const OpId id : r_.units[k].ops)
        for (const Use& use : t_.uses_of(t_.ops[id]))
          if (use.access == Access::read) keep(k, use, until);
    std::vector<Bytes> change(t_.ops.size() + 1, 0);
    for (StorageId s = 0; s < t_.storages.size(); ++s) {
      if (p_.held(s) == 0 || search_.part(s) != RotorPart::beside ||
          (flow_.alloc(s) == kNoOp && !t_.storages[s].preexisting))
        continue;
      change[flow_.alloc(s) == kNoOp ? 0 : flow_.alloc(s)] += p_.held(s);
      if (flow_.free(s) != kNoOp) change[std::max(flow_.free(s), until[s])] -= p_.held(s);
    }
    beside_.resize(t_.ops.size());
    std::partial_sum(change.begin(), change.end() - 1, beside_.begin());
  }

  void keep(std::size_t k, const Use& use, std::vector<OpId>& until) {
    const OpId freed = flow_.free(use.storage), alloc = flow_.alloc(use.storage);
    const RotorUnit& unit = r_.units[k];
    if (!unit.is_repeatable || search_.part(use.storage) != RotorPart::beside || freed == kNoOp ||
        freed >= unit.backward || gathers_.gather_of(use.storage) != kNoOp ||
        (alloc != kNoOp && flow_.writer(use.storage, 1) >= unit.begin))  // its alloc may stand before the unit
      return;
    if (k == 0 && freed < pass_.backward && flow_.touches(use.storage).back().op < unit.end) {
      if (input_.insert(use.storage).second) r_.chain.input_passed += p_.held(use.storage);
    } else {
      until[use.storage] = std::max(until[use.storage], unit.backward);
    }
  }

  Bytes beside_before(OpId id) const { return id == 0 ? 0 : beside_[id - 1]; }
  Bytes most_beside(OpId begin, OpId end) const {
    return begin < end ? *std::max_element(beside_.begin() + begin, beside_.begin() + end) : beside_before(begin);
  }

  void size_unit(std::size_t k) {
    const RotorUnit& unit = r_.units[k];
    RotorStage& stage = r_.chain.stages[k];
    for (const StorageId s : unit.saved) stage.saved += p_.held(s);
    for (const StorageId s : unit.output)
      (search_.part(s) == RotorPart::output_saved ? stage.output_saved : stage.output_passed) += p_.held(s);
    stage.gradient = beside_before(unit.backward);
    const OpId end = k > 0 ? r_.units[k - 1].backward : last_free(unit);
    size_own_forward(k);
    stage.while_backward = most_in_backward(k, unit.backward, end);
    for (OpId id = unit.backward; id < end; ++id) stage.backward += device_time(id);
    stage.forward = stage.forward_last = time_of(unit.ops);
    stage.while_passing = stage.while_saving = stage.while_last = RotorStage::kNever;
    if (unit.is_repeatable) size_rerun(unit, stage);
  }

  // A re-run gives back what nobody wants at its end: it holds all that its ops make.
  void size_rerun(const RotorUnit& unit, RotorStage& stage) const {
    std::vector<StorageId> wanted = read_from(unit.saved, unit.backward);
    const std::vector<OpId> last = *ops_making(p_, gathers_, unit, wanted);
    wanted.insert(wanted.end(), unit.output.begin(), unit.output.end());
    stage.forward_last = time_of(last);
    stage.while_last = made_by(last);
    stage.while_saving = made_by(*ops_making(p_, gathers_, unit, wanted));
    stage.while_passing = made_by(*ops_making(p_, gathers_, unit, unit.output));
  }

  // With the parameters that are gathered for it.
  Bytes made_by(const std::vector<OpId>& ops) const {
    std::set<StorageId> made;
    for (const OpId id : ops)
      for (const Use& use : t_.uses_of(t_.ops[id])) {
        const OpId gather = gathers_.gather_of(use.storage);
        if (gather != kNoOp)
          made.insert(gathers_.filled_by(gather).begin(), gathers_.filled_by(gather).end());
        else if (use.access == Access::write && !t_.storages[use.storage].preexisting)
          made.insert(use.storage);
      }
    Bytes bytes = 0;
    for (const StorageId s : made) bytes += p_.held(s);
    return bytes;
  }

  // What the unit starts from and only its forward reads.
  std::vector<StorageId> passed_to(std::size_t k) const {
    if (k == 0) return {input_.begin(), input_.end()};
    std::vector<StorageId> passed;
    std::ranges::copy_if(r_.units[k - 1].output, std::back_inserter(passed),
                         [&](StorageId s) { return search_.part(s) == RotorPart::output_passed; });
    return passed;
  }

  // That the program has not given back after the op.
  Bytes left_of(const std::vector<StorageId>& storages, OpId op) const {
    Bytes bytes = 0;
    for (const StorageId s : storages)
      if (flow_.free(s) == kNoOp || flow_.free(s) > op) bytes += p_.held(s);
    return bytes;
  }

  // From the first alloc of what the unit makes: that stands before the unit's first op.
  void size_own_forward(std::size_t k) {
    const RotorUnit& unit = r_.units[k];
    RotorStage& stage = r_.chain.stages[k];
    OpId begin = unit.begin;
    for (const auto* storages : {&unit.saved, &unit.idle, &unit.output})
      for (const StorageId s : *storages) begin = std::min(begin, flow_.alloc(s));
    std::vector<Bytes> all(unit.end - begin + 1, 0), outputs(all);  // changes, by op
    const auto add = [&](std::vector<Bytes>& changes, StorageId s, OpId last) {
      changes[flow_.alloc(s) - begin] += p_.held(s);
      changes[std::min(unit.end, last + 1) - begin] -= p_.held(s);
    };
    for (const StorageId s : unit.saved) add(all, s, unit.end);
    for (const StorageId s : unit.output) {
      if (search_.part(s) == RotorPart::output_passed) add(all, s, unit.end);
      add(outputs, s, unit.end);
    }
    for (const StorageId s : unit.saved)
      if (search_.part(s) == RotorPart::saved) add(outputs, s, last_in_forward(s));  // dropped behind
    for (const StorageId s : unit.idle)
      for (auto* changes : {&all, &outputs}) add(*changes, s, last_in_forward(s));
    std::partial_sum(all.begin(), all.end(), all.begin());
    std::partial_sum(outputs.begin(), outputs.end(), outputs.begin());
    const std::vector<StorageId> input = passed_to(k);
    stage.first_saving = stage.first_passing = stage.first_passing_alone = 0;
    for (OpId id = begin; id < unit.end; ++id) {
      const Bytes left = left_of(input, id), made = outputs[id - begin] + beside_[id];
      stage.first_saving = std::max(stage.first_saving, all[id - begin] + beside_[id] + left);
      stage.first_passing = std::max(stage.first_passing, made + left);
      stage.first_passing_alone = std::max(stage.first_passing_alone, made);
    }
    if (!unit.is_repeatable) stage.first_passing = stage.first_passing_alone = RotorStage::kNever;
  }

  OpId last_in_forward(StorageId s) const {
    OpId last = flow_.alloc(s);
    for (const Touch& touch : flow_.touches(s))
      if (touch.op < pass_.backward) last = touch.op;
    return last;
  }

  // Beside the chain and with what is left of the unit's own, less what has gone of its input, which counts as kept.
  // Backward of the unit runs from `begin` to before `end`.
  Bytes most_in_backward(std::size_t k, OpId begin, OpId end) const {
    if (begin >= end) return beside_before(begin);
    std::vector<Bytes> given_back(end - begin, 0);
    const auto give_back = [&](StorageId s) {
      if (const OpId freed = flow_.free(s); begin <= freed && freed < end) given_back[freed - begin] += p_.held(s);
    };
    Bytes own = 0;
    if (k < r_.units.size())
      for (const StorageId s : r_.units[k].saved) {
        if (flow_.free(s) >= begin) own += p_.held(s);
        give_back(s);
      }
    if (k > 0)
      for (const StorageId s : r_.units[k - 1].output)
        if (search_.part(s) == RotorPart::output_saved) give_back(s);
    Bytes most = std::numeric_limits<Bytes>::min();
    for (OpId id = begin; id < end; ++id) {
      own -= given_back[id - begin];
      most = std::max(most, own + beside_[id]);
    }
    return most;
  }

  OpId last_free(const RotorUnit& unit) const {
    OpId last = unit.backward + 1;
    for (const StorageId s : unit.saved) last = std::max(last, flow_.free(s) + 1);
    return last;
  }

  std::vector<StorageId> read_from(const std::vector<StorageId>& storages, OpId op) const {
    std::vector<StorageId> found;
    std::copy_if(storages.begin(), storages.end(), std::back_inserter(found),
                 [&](StorageId s) { return flow_.touches(s).back().op >= op; });
    return found;
  }

  Duration time_of(const std::vector<OpId>& ops) const {
    Duration sum{};
    for (const OpId id : ops) sum += t_.ops[id].duration;
    return sum;
  }

  void take_off_what_stays() {
    Bytes least = RotorStage::kNever;
    for (const RotorStage& stage : r_.chain.stages) least = std::min({least, stage.gradient, stage.while_backward});
    for (RotorStage& stage : r_.chain.stages) {
      stage.gradient -= least;
      stage.while_backward -= least;
      stage.first_saving -= least;
      stage.first_passing -= least;
      stage.first_passing_alone -= least;
    }
    r_.beside = least;
    r_.most_beside = most_beside(pass_.begin, pass_.end);  // in others live what these save
  }

  const StepProfile& p_;
  const Trace& t_;
  const Dataflow& flow_;
  const Pass& pass_;
  const ParameterGathers& gathers_;
  const RotorUnitSearch& search_;
  RotorPass& r_;
  std::set<StorageId> input_;
  std::vector<Bytes> beside_;  // by op
};

// Is there an op that may not run again, wherever what it makes is needed?
bool is_bound_to_its_place(const Trace& t, const Op& op) {
  const bool upload = op.kind == OpKind::copy && op.from != op.to && t.places[op.to] == "hbm";
  const bool of_sharding = op.added && !runs_on_device(op.kind);  // a rate limiter's wait, a late free
  return op.kind == OpKind::collective || op.graph_member || op.placed ||
         (op.wait_for != WaitFor::nothing && !upload && !of_sharding);
}

// The first op of the unit's range that keeps it from running again; kNoOp: none.
OpId bound_op(const Trace& t, const RotorUnit& unit) {
  for (OpId id = unit.begin; id < unit.end; ++id)
    if (t.ops[id].thread == t.ops[unit.begin].thread && is_bound_to_its_place(t, t.ops[id]) &&
        !gathers_parameters(t, t.ops[id]))
      return id;
  return kNoOp;
}

bool has_use(const Trace& t, OpId id, StorageId s, Access access) {
  const auto uses = t.uses_of(t.ops[id]);
  return std::any_of(uses.begin(), uses.end(),
                     [&](const Use& use) { return use.storage == s && use.access == access; });
}

}  // namespace

std::optional<std::vector<OpId>> ops_making(const StepProfile& profile, const ParameterGathers& gathers,
                                            const RotorUnit& unit, const std::vector<StorageId>& wanted) {
  const Trace& t = profile.trace();
  const Dataflow& flow = profile.flow();
  std::set<OpId> ops;
  std::vector<OpId> open;
  const auto want = [&](StorageId s, std::uint32_t version) {
    for (std::uint32_t v = 1; v <= version; ++v)
      if (ops.insert(flow.writer(s, v)).second) open.push_back(flow.writer(s, v));
  };
  for (const StorageId s : wanted) want(s, flow.version_before(s, unit.backward));
  while (!open.empty()) {
    const OpId id = open.back();
    open.pop_back();
    if (id < unit.begin || id >= unit.end || is_bound_to_its_place(t, t.ops[id])) return std::nullopt;
    for (const Use& use : t.uses_of(t.ops[id])) {
      if (use.access == Access::read && gathers.gather_of(use.storage) != kNoOp) continue;
      const OpId alloc = flow.alloc(use.storage);
      const bool made_here =
          !t.storages[use.storage].preexisting && alloc != kNoOp && flow.writer(use.storage, 1) >= unit.begin;
      if (use.access == Access::write) {
        if (!t.storages[use.storage].preexisting) want(use.storage, use.version - 1);
      } else if (made_here) {
        want(use.storage, use.version);
      } else if (flow.version_before(use.storage, unit.backward) != use.version &&
                 !(t.storages[use.storage].preexisting && has_use(t, id, use.storage, Access::write))) {
        return std::nullopt;
      }
    }
  }
  if (ops.empty()) return std::vector<OpId>{};
  // Kernels without dataflow of their own between them belong to them.
  for (auto id = std::lower_bound(unit.ops.begin(), unit.ops.end(), *ops.begin()); *id < *ops.rbegin(); ++id)
    if (t.ops[*id].use_count == 0) ops.insert(*id);
  return std::vector<OpId>(ops.begin(), ops.end());
}

RotorPass rotor_pass(const StepProfile& profile, const ParameterGathers& gathers, const ForwardChain& chain,
                     std::size_t most_units) {
  const Trace& t = profile.trace();
  RotorUnitSearch search(profile, chain, most_units);
  RotorPass result;
  result.units = search.run();
  if (result.units.empty()) return result;
  const std::vector<OpId> all = forward_ops(t, chain.pass);
  for (RotorUnit& unit : result.units) {
    std::copy_if(all.begin(), all.end(), std::back_inserter(unit.ops),
                 [&](OpId id) { return unit.begin <= id && id < unit.end; });
    std::vector<StorageId> wanted = unit.saved;
    wanted.insert(wanted.end(), unit.output.begin(), unit.output.end());
    unit.bound = bound_op(t, unit);
    unit.is_repeatable = unit.bound == kNoOp && ops_making(profile, gathers, unit, wanted).has_value();
  }
  StageSizes(profile, gathers, chain.pass, search, result).run();
  return result;
}

}  // namespace memwall
