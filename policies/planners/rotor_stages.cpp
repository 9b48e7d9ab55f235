#include "policies/planners/rotor_stages.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

#include "policies/trace/rerun_rules.h"

namespace memwall {
namespace {

constexpr int kNoUnit = -1;

enum class Part : std::uint8_t { beside, saved, output_saved, output_passed };

// Divides a pass into units until none has to be joined with a neighbour.
class UnitSearch {
 public:
  UnitSearch(const StepProfile& profile, const ForwardChain& chain, std::size_t most)
      : p_(profile),
        t_(profile.trace()),
        flow_(profile.flow()),
        pass_(chain.pass),
        unit_of_(t_.storages.size(), kNoUnit),
        part_(t_.storages.size(), Part::beside) {
    const std::size_t together = (chain.units.size() + most - 1) / most;
    for (std::size_t k = 0; k < chain.units.size(); k += together)
      if (begins_.empty() || chain.units[k].ops.front() > begins_.back()) begins_.push_back(chain.units[k].ops.front());
    for (const RecomputeUnit& unit : chain.units) end_ = std::max(end_, unit.ops.back() + 1);
  }

  std::vector<RotorUnit> run() {
    do {
      joined_.assign(begins_.size(), false);
      classify();
    } while (join() || (find_backwards(), join()));
    return std::move(units_);
  }

  Part part(StorageId s) const { return part_[s]; }

 private:
  int unit_at(OpId id) const {
    if (begins_.empty() || id < begins_.front() || id >= pass_.backward) return kNoUnit;
    if (id >= end_) return static_cast<int>(begins_.size());  // behind the last
    return static_cast<int>(std::upper_bound(begins_.begin(), begins_.end(), id) - begins_.begin()) - 1;
  }

  // Units from the first to the last become one.
  void join(int first, int last) {
    for (int k = first + 1; k <= last; ++k) joined_[static_cast<std::size_t>(k)] = true;
  }

  bool join() {
    std::vector<OpId> begins;
    for (std::size_t k = 0; k < begins_.size(); ++k)
      if (!joined_[k]) begins.push_back(begins_[k]);
    const bool any = begins.size() < begins_.size();
    begins_ = std::move(begins);
    return any;
  }

  void classify() {
    const int behind = static_cast<int>(begins_.size());
    for (StorageId s = 0; s < t_.storages.size(); ++s) {
      part_[s] = Part::beside;
      unit_of_[s] = kNoUnit;
      if (p_.held(s) == 0 || !is_forward_intermediate(t_, flow_, pass_, s)) continue;
      int first = behind, last = kNoUnit, furthest = kNoUnit;
      for (const Touch& touch : flow_.touches(s)) {
        if (touch.op >= pass_.backward) continue;
        const int unit = unit_at(touch.op);
        furthest = std::max(furthest, unit);
        if (!touch.writes) continue;
        first = std::min(first, unit);
        last = std::max(last, unit);
      }
      if (first == kNoUnit || last == behind || changes_in_backward(s)) continue;
      if (first < last) join(first, last);
      unit_of_[s] = first;
      if (furthest > first + 1) continue;
      if (is_saved_activation(t_, flow_, pass_, s))
        part_[s] = furthest > first ? Part::output_saved : Part::saved;
      else if (furthest > first && flow_.free(s) < pass_.backward)
        part_[s] = Part::output_passed;
    }
  }

  bool changes_in_backward(StorageId s) const {
    const auto touches = flow_.touches(s);
    return std::any_of(touches.begin(), touches.end(), [&](const Touch& touch) {
      return touch.op >= pass_.backward && (touch.writes || t_.ops[touch.op].phase == Phase::forward);
    });
  }

  void find_backwards() {
    joined_.assign(begins_.size(), false);
    units_.assign(begins_.size(), {});
    for (StorageId s = 0; s < t_.storages.size(); ++s) {
      if (part_[s] == Part::beside) continue;
      RotorUnit& unit = units_[static_cast<std::size_t>(unit_of_[s])];
      if (part_[s] != Part::output_passed) unit.saved.push_back(s);
      if (part_[s] != Part::saved) unit.output.push_back(s);
      if (part_[s] == Part::output_passed) continue;
      // Backward of a unit reads what it has saved, and what it started from.
      const auto reader = static_cast<std::size_t>(unit_of_[s] + (part_[s] == Part::output_saved ? 1 : 0));
      if (reader == units_.size()) continue;
      for (const Touch& touch : flow_.touches(s))
        if (touch.op >= pass_.backward) units_[reader].backward = std::min(units_[reader].backward, touch.op);
    }
    const int count = static_cast<int>(units_.size());
    for (int k = 0; k < count; ++k) {
      RotorUnit& unit = units_[static_cast<std::size_t>(k)];
      unit.begin = begins_[static_cast<std::size_t>(k)];
      unit.end = k + 1 < count ? begins_[static_cast<std::size_t>(k) + 1] : end_;
      if (unit.backward == kNoOp)
        k + 1 < count ? join(k, k + 1) : join(k - 1, k);
      else
        unit.backward = insertion_point(t_, unit.backward);
    }
    for (int k = 1; k < count; ++k)
      if (units_[static_cast<std::size_t>(k)].backward >= units_[static_cast<std::size_t>(k) - 1].backward)
        join(k - 1, k);
    if (count == 1 && units_.front().backward == kNoOp) begins_.clear(), units_.clear(), joined_.clear();
  }

  const StepProfile& p_;
  const Trace& t_;
  const Dataflow& flow_;
  const Pass pass_;
  std::vector<OpId> begins_;  // by unit
  OpId end_ = 0;              // of the last
  std::vector<bool> joined_;  // by unit: with the one before it
  std::vector<int> unit_of_;  // by storage
  std::vector<Part> part_;    // likewise
  std::vector<RotorUnit> units_;
};

// --- times and bytes of units

class StageSizes {
 public:
  StageSizes(const StepProfile& profile, const Pass& pass, const UnitSearch& search, RotorPass& result)
      : p_(profile), t_(profile.trace()), flow_(profile.flow()), pass_(pass), search_(search), r_(result) {}

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
    rest.while_backward = most_beside(pass_.backward, backward);
    rest.while_passing = RotorStage::kNever;
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
      if (p_.held(s) == 0 || search_.part(s) != Part::beside ||
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
    if (!unit.is_repeatable || search_.part(use.storage) != Part::beside || freed == kNoOp || freed >= unit.backward ||
        (alloc != kNoOp && alloc >= unit.begin))
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
      (search_.part(s) == Part::output_saved ? stage.output_saved : stage.output_passed) += p_.held(s);
    stage.gradient = beside_before(unit.backward);
    stage.while_saving =
        stage.saved + stage.output_passed + most_beside(unit.begin, unit.end) - beside_before(unit.begin);
    // A re-run gives back what nobody wants at its end: it holds as much.
    stage.while_passing = unit.is_repeatable ? stage.while_saving : RotorStage::kNever;
    const OpId end = k > 0 ? r_.units[k - 1].backward : last_free(unit);
    stage.while_backward = most_in_backward(unit, end);
    for (OpId id = unit.backward; id < end; ++id) stage.backward += device_time(id);
    stage.forward = stage.forward_last = time_of(unit.ops);
    if (unit.is_repeatable) stage.forward_last = time_of(*ops_making(p_, unit, read_from(unit.saved, unit.backward)));
  }

  // Beside the chain and with what is left of the unit's own.
  Bytes most_in_backward(const RotorUnit& unit, OpId end) const {
    std::vector<Bytes> given_back(end - unit.backward, 0);
    Bytes own = 0;
    for (const StorageId s : unit.saved) {
      const OpId freed = flow_.free(s);
      if (freed < unit.backward) continue;
      own += p_.held(s);
      if (freed < end) given_back[freed - unit.backward] += p_.held(s);
    }
    Bytes most = 0;
    for (OpId id = unit.backward; id < end; ++id) {
      own -= given_back[id - unit.backward];
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
    }
    r_.beside = least;
    r_.most_beside = most_beside(pass_.begin, pass_.end);  // in others live what these save
  }

  const StepProfile& p_;
  const Trace& t_;
  const Dataflow& flow_;
  const Pass& pass_;
  const UnitSearch& search_;
  RotorPass& r_;
  std::set<StorageId> input_;
  std::vector<Bytes> beside_;  // by op
};

// Is there an op that may not run again, wherever what it makes is needed?
bool is_bound_to_its_place(const Trace& t, const Op& op) {
  const bool upload = op.kind == OpKind::copy && op.from != op.to && t.places[op.to] == "hbm";
  return op.kind == OpKind::collective || op.graph_member || op.placed || (op.wait_for != WaitFor::nothing && !upload);
}

bool has_use(const Trace& t, OpId id, StorageId s, Access access) {
  const auto uses = t.uses_of(t.ops[id]);
  return std::any_of(uses.begin(), uses.end(),
                     [&](const Use& use) { return use.storage == s && use.access == access; });
}

}  // namespace

std::optional<std::vector<OpId>> ops_making(const StepProfile& profile, const RotorUnit& unit,
                                            const std::vector<StorageId>& wanted) {
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

RotorPass rotor_pass(const StepProfile& profile, const ForwardChain& chain, std::size_t most_units) {
  const Trace& t = profile.trace();
  UnitSearch search(profile, chain, most_units);
  RotorPass result;
  result.units = search.run();
  if (result.units.empty()) return result;
  const std::vector<OpId> all = forward_ops(t, chain.pass);
  for (RotorUnit& unit : result.units) {
    std::copy_if(all.begin(), all.end(), std::back_inserter(unit.ops),
                 [&](OpId id) { return unit.begin <= id && id < unit.end; });
    std::vector<StorageId> wanted = unit.saved;
    wanted.insert(wanted.end(), unit.output.begin(), unit.output.end());
    unit.is_repeatable = ops_making(profile, unit, wanted).has_value();
    const std::uint16_t thread = t.ops[unit.begin].thread;
    for (OpId id = unit.begin; id < unit.end; ++id)
      if (t.ops[id].thread == thread && is_bound_to_its_place(t, t.ops[id])) unit.is_repeatable = false;
  }
  StageSizes(profile, chain.pass, search, result).run();
  return result;
}

}  // namespace memwall
