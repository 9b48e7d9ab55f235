#include "validate/replay/step_contents.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace memwall {
namespace {

bool computes(const Op& op) {
  return op.kind == OpKind::kernel || op.kind == OpKind::memset || op.kind == OpKind::collective ||
         op.kind == OpKind::host_work;
}
bool transfers(const Op& op) { return op.kind == OpKind::copy || op.kind == OpKind::storage_io; }

// Numbers the contents of the step before its plan, use by use.
class Numbering {
 public:
  Numbering(const Trace& trace, std::size_t storages) : t_(trace), present_(trace.storages.size(), 0) {
    contents_.uses.assign(trace.uses.size(), 0);
    contents_.initial.assign(storages, 0);
    for (StorageId id = 0; id < storages; ++id)
      if (trace.storages[id].preexisting) contents_.initial[id] = present_[id] = ++made_;
    for (const Op& op : trace.ops) visit(op);
  }

  StepContents& contents() { return contents_; }

 private:
  void visit(const Op& op) {
    if (computes(op)) return compute(op);
    if (transfers(op)) return transfer(op);
    if (op.kind == OpKind::alloc) present_[op.target] = 0;
    for (const Use& use : t_.uses_of(op))
      if (use.access == Access::write) present_[use.storage] = 0;
  }

  void compute(const Op& op) {
    const auto uses = t_.uses_of(op);
    for (std::size_t i = 0; i < uses.size(); ++i)
      if (uses[i].access == Access::read) contents_.uses[op.first_use + i] = present_[uses[i].storage];
    const Op* const same = repeated_by(op);
    for (std::size_t i = 0; i < uses.size(); ++i)
      if (uses[i].access == Access::write)
        contents_.uses[op.first_use + i] = present_[uses[i].storage] =
            same != nullptr ? contents_.uses[same->first_use + i] : ++made_;
  }

  // The op before it that made what this one makes: its original, or a gather of the same shards.
  const Op* repeated_by(const Op& op) {
    if (repeats(op)) return reads_alike(op, t_.ops[op.source]) ? &t_.ops[op.source] : nullptr;
    if (op.kind != OpKind::collective || op.collective != CollectiveKind::all_gather) return nullptr;
    std::vector<std::uint32_t> shards;
    for (std::uint32_t i = 0; i < op.use_count; ++i)
      if (t_.uses[op.first_use + i].access == Access::read) shards.push_back(contents_.uses[op.first_use + i]);
    if (shards.empty() || std::ranges::find(shards, 0u) != shards.end()) return nullptr;
    const auto [first, is_new] = gathers_.try_emplace(std::move(shards), &op);
    return !is_new && reads_alike(op, *first->second) ? first->second : nullptr;
  }

  // Does the op read what `other` read, and write as many?
  bool reads_alike(const Op& op, const Op& other) const {
    if (op.use_count != other.use_count) return false;
    for (std::uint32_t i = 0; i < op.use_count; ++i) {
      const Use &a = t_.uses[op.first_use + i], &b = t_.uses[other.first_use + i];
      if (a.access != b.access) return false;
      if (a.access == Access::read && contents_.uses[op.first_use + i] != contents_.uses[other.first_use + i])
        return false;
    }
    return true;
  }

  // What is only partly moved has no number.
  void transfer(const Op& op) {
    const StorageId from = t_.uses[op.first_use].storage, to = t_.uses[op.first_use + 1].storage;
    const bool whole = op.bytes == t_.storages[from].bytes && op.bytes == t_.storages[to].bytes;
    present_[to] = whole ? present_[from] : 0;
  }

  const Trace& t_;
  std::vector<std::uint32_t> present_;  // by storage: the number of what it holds
  StepContents contents_;
  std::map<std::vector<std::uint32_t>, const Op*> gathers_;  // by the numbers of the shards: the first
  std::uint32_t made_ = 0;
};

class Pairing {
 public:
  Pairing(const Trace& planned, const Trace& before, StepContents numbered)
      : planned_(planned), before_(before), numbered_(std::move(numbered)), original_(planned.ops.size(), kNoOp) {}

  std::optional<StepContents> run() {
    StepContents found;
    found.uses.assign(planned_.uses.size(), 0);
    found.initial = numbered_.initial;
    found.initial.resize(planned_.storages.size(), 0);
    for (const HeldCopy& held : planned_.held_copies)
      if (held.of < numbered_.initial.size()) found.initial[held.copy] = numbered_.initial[held.of];
    OpId next = next_of(0);
    for (OpId id = 0; id < planned_.ops.size(); ++id) {
      const Op& op = planned_.ops[id];
      if (!computes(op)) continue;
      if (next < before_.ops.size() && is_same(op, before_.ops[next])) {
        original_[id] = next;
        next = next_of(next + 1);
      } else if (repeats(op)) {
        original_[id] = original_[op.source];  // a re-run
      }
      if (original_[id] == kNoOp) return std::nullopt;
      const Op& original = before_.ops[original_[id]];
      if (op.use_count != original.use_count) return std::nullopt;
      if (repeats(op)) note_second_writes(original);
      for (std::uint32_t i = 0; i < op.use_count; ++i) {
        const std::size_t use = original.first_use + i;
        if (!written_again_.contains(before_.uses[use].storage)) found.uses[op.first_use + i] = numbered_.uses[use];
      }
    }
    if (next < before_.ops.size()) return std::nullopt;
    return found;
  }

 private:
  // What lived before the step (running statistics) a re-run changes a second time: from then on it holds what the step
  // without the plan never had, and what the schedule says is all that is known of it.
  void note_second_writes(const Op& original) {
    for (const Use& use : before_.uses_of(original))
      if (use.access == Access::write && before_.storages[use.storage].preexisting) written_again_.insert(use.storage);
  }

  OpId next_of(OpId id) const {
    while (id < before_.ops.size() && !computes(before_.ops[id])) ++id;
    return id;
  }

  bool is_same(const Op& a, const Op& b) const {
    if (a.kind != b.kind || a.phase != b.phase || a.use_count != b.use_count || a.bytes != b.bytes ||
        a.flops != b.flops || a.operator_class != b.operator_class || a.data_type != b.data_type)
      return false;
    if (planned_.strings[a.name] != before_.strings[b.name] ||
        planned_.strings[a.operator_name] != before_.strings[b.operator_name] ||
        planned_.strings[a.module] != before_.strings[b.module])
      return false;
    // The step's own re-runs are paired with themselves, not with those of the plan.
    if ((a.source == kNoOp) != (b.source == kNoOp) || (a.source != kNoOp && original_[a.source] != b.source))
      return false;
    for (std::uint32_t i = 0; i < a.use_count; ++i)
      if (planned_.uses[a.first_use + i].access != before_.uses[b.first_use + i].access) return false;
    return true;
  }

  const Trace& planned_;
  const Trace& before_;
  const StepContents numbered_;
  std::set<StorageId> written_again_;
  std::vector<OpId> original_;  // by op of the planned step: which op before it computes, or repeats
};

}  // namespace

std::optional<StepContents> step_contents(const Trace& planned, const Trace& before, std::size_t storages) {
  Numbering numbering(before, storages);
  return Pairing(planned, before, std::move(numbering.contents())).run();
}

}  // namespace memwall
