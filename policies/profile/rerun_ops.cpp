#include "policies/profile/rerun_ops.h"

#include <boost/container/small_vector.hpp>

#include <algorithm>

namespace memwall {
namespace {

// A set of few numbers, ascending and mostly without memory of its own: re-runs are looked for ten thousands of times.
class FewNumbers {
 public:
  // Was it not yet there?
  bool insert(std::uint32_t number) {
    if (all_.empty() || all_.back() < number) {
      all_.push_back(number);
      return true;
    }
    const auto at = std::lower_bound(all_.begin(), all_.end(), number);
    if (*at == number) return false;
    all_.insert(at, number);
    return true;
  }
  bool contains(std::uint32_t number) const { return std::binary_search(all_.begin(), all_.end(), number); }
  std::size_t size() const { return all_.size(); }
  auto begin() const { return all_.begin(); }
  auto end() const { return all_.end(); }
  std::vector<std::uint32_t> numbers() const { return {begin(), end()}; }

 private:
  boost::container::small_vector<std::uint32_t, 16> all_;
};

class RerunSearch {
 public:
  RerunSearch(const StepProfile& profile, OpId at, const std::function<bool(StorageId)>& absent, std::size_t most_ops,
              const std::vector<bool>& kept)
      : t_(profile.trace()),
        flow_(profile.flow()),
        gathers_(profile.gathers()),
        at_(at),
        absent_(absent),
        most_(most_ops),
        kept_(kept) {}

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
    if (!possible_ || ops_.size() == 0) return std::nullopt;
    RerunOps found;
    found.ops = ops_.numbers();
    for (const StorageId input : inputs_)
      if (!made_.contains(input)) found.inputs.push_back(input);
    FewNumbers outputs;
    for (const OpId id : found.ops) {
      found.time += t_.ops[id].duration;
      for (const Use& use : t_.uses_of(t_.ops[id]))
        if (use.access == Access::write) outputs.insert(use.storage);
    }
    found.outputs = outputs.numbers();
    return found;
  }

 private:
  void want(OpId id) {
    const Op& op = t_.ops[id];
    if (id >= at_ || op.phase != Phase::forward || op.kind == OpKind::collective || op.graph_member || op.placed ||
        op.wait_for != WaitFor::nothing)
      possible_ = false;
    if (ops_.insert(id)) open_.push_back(id);
    if (ops_.size() > most_) possible_ = false;
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
    } else if (const StorageId other = gathered_again(s); other != kNoStorage) {
      inputs_.insert(other);
    } else if (t_.storages[s].preexisting) {
      possible_ = possible_ && !absent_(s) && writes(id, s);  // running statistics: onto a scratch copy
    } else {
      want_content(s, use.version);
    }
  }

  // Another storage that is there, into which the same parameter was gathered since.
  StorageId gathered_again(StorageId s) const {
    const StorageId other = gathers_.stand_in(s, at_);
    return other != kNoStorage && other != s && gathers_.lives(other, at_) && !absent_(other) ? other : kNoStorage;
  }

  bool writes(OpId id, StorageId s) const {
    const auto uses = t_.uses_of(t_.ops[id]);
    return std::any_of(uses.begin(), uses.end(),
                       [&](const Use& use) { return use.storage == s && use.access == Access::write; });
  }

  const Trace& t_;
  const Dataflow& flow_;
  const ParameterGathers& gathers_;
  const OpId at_;
  const std::function<bool(StorageId)>& absent_;
  const std::size_t most_;
  const std::vector<bool>& kept_;
  FewNumbers ops_;
  boost::container::small_vector<OpId, 16> open_;
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
