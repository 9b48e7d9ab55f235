#include "tests/support/step_memory.h"

#include <algorithm>
#include <map>
#include <set>

namespace memwall {
namespace {

// Operators of one forward by their place: "h.0.up aten::addmm 0".
std::vector<std::string> names_in_forward(const Trace& trace) {
  std::vector<std::string> names(trace.ops.size());
  std::map<std::string, int> calls;
  for (OpId id = 0; id < trace.ops.size(); ++id) {
    const Op& op = trace.ops[id];
    if (op.phase != Phase::forward || !runs_on_device(op.kind)) continue;
    const std::string name = trace.strings[op.module] + " " + trace.strings[op.operator_name];
    names[id] = name + " " + std::to_string(calls[name]++);
  }
  return names;
}

StorageKind kind_in_memory(StorageKind kind) {
  return kind == StorageKind::workspace || kind == StorageKind::unknown ? StorageKind::activation : kind;
}

class MemoryReader {
 public:
  explicit MemoryReader(const Trace& trace)
      : trace_(trace), names_(names_in_forward(trace)), life_of_(trace.storages.size(), kNone) {
    find_parts();
    for (const Use& use : trace.uses)
      if (use.saved) saved_.insert(use.storage);
    for (StorageId id = 0; id < trace.storages.size(); ++id)
      if (trace.storages[id].preexisting && is_on_device(id)) begin(id);
    note_peak();
    for (const Op& op : trace.ops) read(op);
    for (StorageSpan& life : step_.lives)
      if (life.to == kNone) life.to = step_.kernels.size();
    if (!behind_forward_) step_.saved = saved_bytes();
  }

  StepMemory result() && { return std::move(step_); }

 private:
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);

  bool is_on_device(StorageId id) const {
    return trace_.places[trace_.storages[id].place] == "hbm" && trace_.storages[id].bytes > 0;
  }

  bool is_device_kernel(const Op& op) const {
    return runs_on_device(op.kind) && op.kind != OpKind::copy && op.kind != OpKind::storage_io;
  }

  void find_parts() {
    std::size_t number = 0;
    for (const Op& op : trace_.ops) {
      if (!is_device_kernel(op)) continue;
      if (op.phase == Phase::forward) step_.backward = number + 1;
      if (op.phase != Phase::optimizer) step_.optimizer = number + 1;
      ++number;
    }
  }

  std::size_t part() const {
    const std::size_t next = step_.kernels.size();
    return next < step_.backward ? 0 : next < step_.optimizer ? 1 : 2;
  }

  Bytes saved_bytes() const { return of(live_, StorageKind::activation); }

  void note_peak() {
    const std::size_t at = part();
    step_.peak[at] = std::max(step_.peak[at], total(live_));
    for (std::size_t kind = 0; kind < live_.size(); ++kind)
      step_.peak_by_kind[at][kind] = std::max(step_.peak_by_kind[at][kind], live_[kind]);
  }

  void begin(StorageId id) {
    const Storage& storage = trace_.storages[id];
    live_[static_cast<std::size_t>(kind_in_memory(storage.kind))] += storage.bytes;
    life_of_[id] = step_.lives.size();
    const std::size_t next = step_.kernels.size();
    const bool before = storage.preexisting && next == 0 && !has_begun_;
    step_.lives.push_back({.bytes = storage.bytes,
                           .kind = kind_in_memory(storage.kind),
                           .maker = before ? StorageSpan::Maker::before_the_step : StorageSpan::Maker::nobody,
                           .from = next,
                           .to = kNone,
                           .used_until = next});
  }

  void end(StorageId id) {
    if (life_of_[id] == kNone) return;
    const Storage& storage = trace_.storages[id];
    live_[static_cast<std::size_t>(kind_in_memory(storage.kind))] -= storage.bytes;
    step_.lives[life_of_[id]].to = step_.kernels.size();
    life_of_[id] = kNone;
  }

  // Of what is made again its original is asked, too: who saves that may be called by the re-run, and not run.
  bool is_saved(const Op& op, std::size_t use) const {
    const auto uses = trace_.uses_of(op);
    if (saved_.contains(uses[use].storage)) return true;
    if (!repeats(op) || trace_.ops[op.source].use_count != op.use_count) return false;
    return saved_.contains(trace_.uses_of(trace_.ops[op.source])[use].storage);
  }

  void note_uses(const Op& op, StorageSpan::Maker by) {
    const auto uses = trace_.uses_of(op);
    for (std::size_t i = 0; i < uses.size(); ++i) {
      const Use& use = uses[i];
      if (life_of_[use.storage] == kNone) continue;
      StorageSpan& life = step_.lives[life_of_[use.storage]];
      life.used_until = step_.kernels.size() + 1;
      life.saved = life.saved || is_saved(op, i);
      if (use.access != Access::write || life.maker != StorageSpan::Maker::nobody) continue;
      life.maker = by;
      life.maker_number = step_.kernels.size();
    }
  }

  void read_copy(const Op& op) {
    note_uses(op, StorageSpan::Maker::copy);
    (trace_.places[op.from] == "hbm" ? step_.out : step_.back).push_back({op.bytes, step_.kernels.size()});
  }

  void read_kernel(const Op& op) {
    note_uses(op, StorageSpan::Maker::kernel);
    step_.kernels.push_back({.phase = op.phase,
                             .name = trace_.strings[op.operator_name],
                             .module = trace_.strings[op.module],
                             .repeats = repeats(op) ? names_[op.source] : "",
                             .live = live_});
  }

  void read(const Op& op) {
    has_begun_ = true;
    if (op.kind == OpKind::alloc && is_on_device(op.target)) {
      if (part() > 0 && !behind_forward_) {
        step_.saved = saved_bytes();
        behind_forward_ = true;
      }
      begin(op.target);
      note_peak();
    } else if (op.kind == OpKind::free) {
      end(op.target);
    } else if (op.kind == OpKind::copy && trace_.places[op.from] != trace_.places[op.to]) {
      read_copy(op);
    } else if (runs_on_device(op.kind)) {
      read_kernel(op);
    }
  }

  const Trace& trace_;
  std::set<StorageId> saved_;  // by autograd, of any op
  const std::vector<std::string> names_;
  std::vector<std::size_t> life_of_;
  LiveBytes live_{};
  bool has_begun_ = false, behind_forward_ = false;
  StepMemory step_;
};

}  // namespace

StepMemory step_memory(const Trace& trace) { return MemoryReader(trace).result(); }

Bytes peak(const StepMemory& step) { return *std::max_element(step.peak.begin(), step.peak.end()); }

}  // namespace memwall
