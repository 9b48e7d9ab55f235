#include "models/workload/saved_tensors.h"

#include <algorithm>
#include <map>
#include <utility>

namespace memwall {
namespace {

// The call of an operator that made a node.
struct Maker {
  std::uint16_t thread = 0;
  std::uint32_t call = 0;
  OpId last = kNoOp;   // of its ops
  OpId saves = kNoOp;  // the last of its ops that keeps anything
  std::map<std::pair<StorageId, std::uint32_t>, std::pair<OpId, std::uint32_t>> contents{};  // by version: op and use
  std::vector<OpId> run_for_it{};                                                            // in backward
};

class Marking {
 public:
  Marking(Trace& trace, std::span<const AutogradNode> nodes) : t_(trace), nodes_(nodes) {}

  SavedTensors run() {
    for (OpId id = 0; id < t_.ops.size(); ++id) {
      if (nodes_[id].number < 0 || !runs_on_device(t_.ops[id].kind)) continue;
      if (nodes_[id].runs)
        mark(id);
      else
        add(id);
    }
    SavedTensors counts{.saves = saves_};
    for (const auto& [number, makers] : makers_)
      for (const Maker& maker : makers) {
        counts.nodes += !maker.run_for_it.empty();
        for (const OpId id : maker.run_for_it)
          if (t_.ops[id].phase == Phase::backward) t_.ops[id].source = maker.saves != kNoOp ? maker.saves : maker.last;
      }
    return counts;
  }

 private:
  // Inputs are kept before the operator runs: where an op reads them first. A content that is made is kept behind it.
  void add(OpId id) {
    const Op& op = t_.ops[id];
    std::vector<Maker>& makers = makers_[nodes_[id].number];
    auto maker = std::ranges::find(makers, op.thread, &Maker::thread);
    if (maker == makers.end()) maker = makers.insert(maker, Maker{.thread = op.thread, .call = nodes_[id].call});
    if (maker->call != nodes_[id].call)  // the call before made no node
      *maker = Maker{.thread = op.thread, .call = nodes_[id].call, .run_for_it = std::move(maker->run_for_it)};
    maker->last = id;
    for (std::uint32_t i = op.first_use; i < op.first_use + op.use_count; ++i)
      maker->contents.try_emplace({t_.uses[i].storage, t_.uses[i].version}, id, i);
  }

  void mark(OpId id) {
    const auto found = makers_.find(nodes_[id].number);
    if (found == makers_.end()) return;
    Maker* of = nullptr;
    for (Maker& maker : found->second)
      if (mark_for(id, maker) || of == nullptr) of = &maker;
    of->run_for_it.push_back(id);
  }

  // Does the op read anything that `maker` has read or made?
  bool mark_for(OpId id, Maker& maker) {
    bool any = false;
    for (const Use& use : t_.uses_of(t_.ops[id])) {
      if (use.access == Access::write) continue;
      const auto content = maker.contents.find({use.storage, use.version});
      if (content == maker.contents.end()) continue;
      any = true;
      const auto [op, place] = content->second;
      if (!std::exchange(t_.uses[place].saved, true)) ++saves_;
      if (maker.saves == kNoOp || op > maker.saves) maker.saves = op;
    }
    return any;
  }

  Trace& t_;
  std::span<const AutogradNode> nodes_;
  std::map<std::int64_t, std::vector<Maker>> makers_;  // by number
  std::size_t saves_ = 0;
};

}  // namespace

SavedTensors mark_saved_tensors(Trace& trace, std::span<const AutogradNode> nodes) {
  return Marking(trace, nodes).run();
}

}  // namespace memwall
