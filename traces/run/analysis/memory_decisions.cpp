#include "traces/run/analysis/memory_decisions.h"

#include <algorithm>
#include <map>

#include "traces/run/analysis/run_scan.h"

namespace memwall {
namespace {

constexpr std::uint32_t kNone = 0xffffffff;

void take_slack(std::optional<Duration>& smallest, Duration slack) {
  smallest = smallest ? std::min(*smallest, slack) : slack;
}

// "layers.0.mlp.weight" is of "layers.0.mlp".
std::string module_of_label(const std::string& label) {
  const std::size_t dot = label.rfind('.');
  return dot == std::string::npos ? "" : label.substr(0, dot);
}

}  // namespace

ModuleDecisions MemoryDecisions::total() const {
  ModuleDecisions sum;
  for (const ModuleDecisions& m : modules) {
    sum.storages += m.storages;
    sum.copied_out += m.copied_out;
    sum.copied_in += m.copied_in;
    sum.made_again += m.made_again;
    sum.fetches += m.fetches;
    sum.late += m.late;
    if (m.slack) take_slack(sum.slack, *m.slack);
    sum.rerun_ops += m.rerun_ops;
    sum.rerun_time += m.rerun_time;
  }
  return sum;
}

void DecisionCollector::add(OpId first, OpId last) {
  const Trace& trace = run_.trace;
  for (OpId id = first; id < last; ++id) {
    const Op& op = trace.ops[id];
    if (!runs_on_device(op.kind)) continue;
    const bool between_tiers = (op.kind == OpKind::copy || op.kind == OpKind::storage_io) && op.from != op.to;
    if (between_tiers && op.added)
      add_copy(id);
    else if (!returns_.empty())
      add_uses(id);
    if (repeats(op)) add_rerun(id);
  }
}

// Nothing is kept per storage until something moves.
void DecisionCollector::begin() {
  if (!origin_.empty()) return;
  origin_.resize(run_.trace->storages.size());
  for (StorageId s = 0; s < origin_.size(); ++s) origin_[s] = s;
  return_of_.assign(origin_.size(), kNone);
}

void DecisionCollector::add_copy(OpId id) {
  const Trace& trace = run_.trace;
  const Op& op = trace.ops[id];
  StorageId read = kNoStorage, written = kNoStorage;
  for (const Use& use : trace.uses_of(op)) (use.access == Access::read ? read : written) = use.storage;
  if (read == kNoStorage || written == kNoStorage) return;
  begin();
  origin_[written] = origin_[read];
  if (trace.places[op.from] == "hbm") {
    add_uses(id);  // it may leave again before anything else uses it
    departures_.push_back({origin_[read], id});
  }
  if (trace.places[op.to] == "hbm") {
    return_of_[written] = static_cast<std::uint32_t>(returns_.size());
    returns_.push_back({origin_[read], written, id});
  }
}

// A re-run op writes what its original wrote, in the same order.
void DecisionCollector::add_rerun(OpId id) {
  const Trace& trace = run_.trace;
  const Op& op = trace.ops[id];
  reruns_.push_back(id);
  const auto again = trace.uses_of(op), before = trace.uses_of(trace.ops[op.source]);
  if (again.size() != before.size()) return;
  for (std::size_t i = 0; i < again.size(); ++i) {
    if (again[i].access != Access::write || again[i].storage == before[i].storage) continue;
    begin();
    origin_[again[i].storage] = origin_[before[i].storage];
    std::uint32_t& known = return_of_[again[i].storage];
    if (known == kNone) {
      known = static_cast<std::uint32_t>(returns_.size());
      returns_.push_back({origin_[before[i].storage], again[i].storage, id, true});
    } else {
      returns_[known].by = id;  // in place, on top of what an earlier one made
    }
  }
}

void DecisionCollector::add_uses(OpId id) {
  const Trace& trace = run_.trace;
  for (const Use& use : trace.uses_of(trace.ops[id])) {
    if (return_of_[use.storage] == kNone) continue;
    StorageReturn& back = returns_[return_of_[use.storage]];
    back.is_rerun ? use_again(back, id) : use_fetched(back, id);
  }
}

// What a re-run makes on its way to something else is no return.
void DecisionCollector::use_again(StorageReturn& back, OpId id) const {
  if (back.use == kNoOp && run_.trace->ops[id].phase != Phase::recompute) back.use = id;
}

void DecisionCollector::use_fetched(StorageReturn& back, OpId id) const {
  const std::vector<OpRecord>& records = run_.result.records;
  if (back.use != kNoOp && records[id].start >= records[back.use].start) return;
  back.use = id;
  back.late = records[id].device_reason == WaitReason::event && records[id].device_cause == back.by;
  back.slack = back.late ? Duration{} : std::max(Duration{}, records[id].start - records[back.by].end);
}

MemoryDecisions DecisionCollector::take(const std::vector<OpId>& made_by) {
  MemoryDecisions decisions{std::move(departures_), std::move(returns_), std::move(reruns_), {}};
  std::erase_if(decisions.returns, [](const StorageReturn& back) { return back.is_rerun && back.use == kNoOp; });
  const Trace& trace = run_.trace;
  std::map<std::string, ModuleDecisions> modules;
  std::vector<bool> counted(origin_.size(), false);
  const auto module_of = [&](StorageId s) -> ModuleDecisions& {
    const Storage& storage = trace.storages[s];
    ModuleDecisions& m = modules[made_by[s] == kNoOp ? module_of_label(trace.strings[storage.label])
                                                     : trace.strings[trace.ops[made_by[s]].module]];
    m.storages += counted[s] ? 0 : 1;
    counted[s] = true;
    return m;
  };
  for (const StorageDeparture& gone : decisions.departures)
    module_of(gone.storage).copied_out += trace.ops[gone.copy].bytes;
  for (const StorageReturn& back : decisions.returns) {
    ModuleDecisions& m = module_of(back.storage);
    if (back.is_rerun) {
      m.made_again += trace.storages[back.storage].bytes;
      continue;
    }
    m.copied_in += trace.ops[back.by].bytes;
    if (back.use == kNoOp) continue;
    ++m.fetches;
    m.late += back.late ? 1 : 0;
    take_slack(m.slack, back.slack);
  }
  for (const OpId id : decisions.reruns) {
    ModuleDecisions& m = modules[trace.strings[trace.ops[id].module]];
    ++m.rerun_ops;
    m.rerun_time += run_.result.records[id].end - run_.result.records[id].start;
  }
  for (auto& [name, m] : modules) {
    m.module = name;
    decisions.modules.push_back(std::move(m));
  }
  std::stable_sort(decisions.modules.begin(), decisions.modules.end(),
                   [](const ModuleDecisions& a, const ModuleDecisions& b) {
                     return std::pair(a.moved(), a.rerun_time) > std::pair(b.moved(), b.rerun_time);
                   });
  return decisions;
}

MemoryDecisions memory_decisions(const Run& run) {
  MakerCollector makers(run);
  DecisionCollector decisions(run);
  scan(run, makers, decisions);
  return decisions.take(makers.take());
}

}  // namespace memwall
