#include "policies/profile/rerun_ops.h"

#include <algorithm>

namespace memwall {
namespace {

// A set of few numbers, ascending in one block of memory: re-runs are looked for ten thousands of times.
class FewNumbers {
 public:
  // Was it not yet there?
  bool insert(std::uint32_t number) {
    const auto at = std::lower_bound(all_.begin(), all_.end(), number);
    if (at != all_.end() && *at == number) return false;
    const auto place = at - all_.begin();
    if (all_.empty()) all_.reserve(kFew);
    all_.insert(all_.begin() + place, number);
    return true;
  }
  bool contains(std::uint32_t number) const { return std::binary_search(all_.begin(), all_.end(), number); }
  std::vector<std::uint32_t> take() { return std::move(all_); }
  const std::vector<std::uint32_t>& all() const { return all_; }

 private:
  static constexpr std::size_t kFew = 16;
  std::vector<std::uint32_t> all_;
};

class RerunSearch {
 public:
  RerunSearch(const StepProfile& profile, OpId at, const std::function<bool(StorageId)>& absent, std::size_t most_ops,
              const std::vector<bool>& kept)
      : t_(profile.trace()), flow_(profile.flow()), at_(at), absent_(absent), most_(most_ops), kept_(kept) {}

  std::optional<RerunOps> run(StorageId storage) {
    want_content(storage, flow_.version_before(storage, at_));
    while (possible_ && !open_.empty()) {
      const OpId id = open_.back();
      open_.pop_back();
      for (const Use& use : t_.uses_of(t_.ops[id])) {
        if (use.access == Access::write)
          want_content(use.storage, use.version - 1);  // in place, or into a part: on top of what was there
        else
          read(id, use);
      }
    }
    if (!possible_ || ops_.all().empty()) return std::nullopt;
    RerunOps found;
    found.ops = ops_.take();
    for (const StorageId input : inputs_.all())
      if (!made_.contains(input)) found.inputs.push_back(input);
    FewNumbers outputs;
    for (const OpId id : found.ops) {
      found.time += t_.ops[id].duration;
      for (const Use& use : t_.uses_of(t_.ops[id]))
        if (use.access == Access::write) outputs.insert(use.storage);
    }
    found.outputs = outputs.take();
    return found;
  }

 private:
  void want(OpId id) {
    const Op& op = t_.ops[id];
    if (id >= at_ || op.phase != Phase::forward || op.kind == OpKind::collective || op.graph_member || op.placed ||
        op.wait_for != WaitFor::nothing)
      possible_ = false;
    if (ops_.insert(id)) open_.push_back(id);
    if (ops_.all().size() > most_) possible_ = false;
  }

  void want_content(StorageId s, std::uint32_t version) {
    if (t_.storages[s].preexisting) return;  // a re-run writes to a scratch copy
    made_.insert(s);
    // From the last on: where that is wanted, those before it are.
    for (std::uint32_t v = version; v >= 1 && possible_ && !ops_.contains(flow_.writer(s, v)); --v)
      want(flow_.writer(s, v));
  }

  void read(OpId id, const Use& use) {
    const StorageId s = use.storage;
    if (made_.contains(s)) return want_content(s, use.version);
    const OpId freed = flow_.free(s);
    const bool gone = freed != kNoOp && freed < at_ && (kept_.empty() || !kept_[s]);
    const bool current = flow_.version_before(s, at_) == use.version && !gone;
    if (current && !absent_(s)) {
      inputs_.insert(s);
    } else if (t_.storages[s].preexisting) {
      possible_ = possible_ && !absent_(s) && writes(id, s);  // running statistics: onto a scratch copy
    } else {
      want_content(s, use.version);
    }
  }

  bool writes(OpId id, StorageId s) const {
    const auto uses = t_.uses_of(t_.ops[id]);
    return std::any_of(uses.begin(), uses.end(),
                       [&](const Use& use) { return use.storage == s && use.access == Access::write; });
  }

  const Trace& t_;
  const Dataflow& flow_;
  const OpId at_;
  const std::function<bool(StorageId)>& absent_;
  const std::size_t most_;
  const std::vector<bool>& kept_;
  FewNumbers ops_;
  std::vector<OpId> open_;
  FewNumbers made_, inputs_;
  bool possible_ = true;
};

}  // namespace

std::optional<RerunOps> rerun_ops(const StepProfile& profile, StorageId storage, OpId at,
                                  const std::function<bool(StorageId)>& absent, std::size_t most_ops,
                                  const std::vector<bool>& kept) {
  return RerunSearch(profile, at, absent, most_ops, kept).run(storage);
}

}  // namespace memwall
