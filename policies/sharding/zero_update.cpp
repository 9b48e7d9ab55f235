#include "policies/sharding/zero_update.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace memwall {
namespace {

class UpdateSplitter {
 public:
  UpdateSplitter(TraceEdit& edit, const ZeroAnalysis& analysis, const Partition& partition, int stage,
                 std::uint32_t ranks, const Machine& machine, const Pricer& pricer)
      : edit_(edit),
        base_(edit.base()),
        analysis_(analysis),
        partition_(partition),
        stage_(stage),
        ranks_(ranks),
        machine_(machine),
        pricer_(pricer),
        own_part_(base_.storages.size(), false) {
    for (const auto* group : {&analysis.parameters, &analysis.gradients, &analysis.states, &analysis.temporaries})
      for (const StorageId id : *group) own_part_[id] = true;
  }

  SplitUpdate run() {
    for (const OpId id : analysis_.updates) scale(id);
    for (StorageId id = 0; id < base_.storages.size(); ++id)
      if (partition_.has(id)) edit_.resize(id, partition_.share(id));
    if (stage_ >= 2) forget_sums();
    return result_;
  }

 private:
  // Stage 1 keeps gradients whole, so whoever clears them clears all of them.
  bool clears_whole_gradients(const Op& op) const {
    if (stage_ >= 2) return false;
    const auto uses = base_.uses_of(op);
    return std::all_of(uses.begin(), uses.end(), [this](const Use& use) {
      return use.access == Access::write && base_.storages[use.storage].kind == StorageKind::gradient;
    });
  }

  void scale(OpId id) {
    const Op& old = base_.ops[id];
    if (clears_whole_gradients(old)) return;
    double before = 0, after = 0;
    for (const Use& use : base_.uses_of(old)) {
      const auto bytes = static_cast<double>(base_.storages[use.storage].bytes);
      before += bytes;
      after += own_part_[use.storage] ? bytes / ranks_ : bytes;
    }
    if (before <= 0) {
      ++result_.of_unknown_work;
      return;
    }
    const double share = after / before;
    Op measured = old;
    if (measured.bytes == 0 && measured.flops <= 0) measured.bytes = static_cast<Bytes>(before);
    Op op = old;
    op.bytes = std::llround(static_cast<double>(old.bytes) * share);
    op.flops = old.flops * share;
    op.waves = static_cast<float>(static_cast<double>(old.waves) * share);
    op.duration = duration(measured, share);
    if (op.origin == Origin::measured) op.origin = Origin::transferred;
    edit_.replace(id, op);
    ++result_.scaled;
  }

  Duration duration(const Op& measured, double share) const {
    const Bytes bytes = std::llround(static_cast<double>(measured.bytes) * share);
    if (measured.kind != OpKind::copy && measured.kind != OpKind::storage_io)
      return pricer_.scaled(measured, bytes, measured.flops * share);
    const std::string &from = base_.places[measured.from], &to = base_.places[measured.to];
    double ratio = share;
    if (machine_.route(machine_.tier(from), machine_.tier(to), measured.pageable) != nullptr) {
      const double old_price = to_seconds(pricer_.copy(from, to, measured.bytes, measured.pageable));
      if (old_price > 0) ratio = to_seconds(pricer_.copy(from, to, bytes, measured.pageable)) / old_price;
    }
    return scaled_time(measured.duration, ratio);
  }

  void forget_sums() {
    std::map<OpId, std::set<StorageId>> forgotten;
    for (const BackwardPass& pass : analysis_.passes)
      for (const GradientMade& made : pass.made)
        if (made.accumulates) forgotten[made.first_write].insert(made.gradient);
    for (const auto& [id, gradients] : forgotten) {
      const auto uses = base_.uses_of(base_.ops[id]);
      std::vector<Use> kept(uses.begin(), uses.end());
      std::erase_if(kept,
                    [&](const Use& use) { return use.access == Access::read && gradients.contains(use.storage); });
      edit_.replace(id, base_.ops[id], std::move(kept));
    }
  }

  TraceEdit& edit_;
  const Trace& base_;
  const ZeroAnalysis& analysis_;
  const Partition& partition_;
  int stage_;
  std::uint32_t ranks_;
  const Machine& machine_;
  const Pricer& pricer_;
  std::vector<bool> own_part_;  // an update touches only the rank's part of these
  SplitUpdate result_;
};

}  // namespace

Partition partition_for_zero(const Trace& trace, const Dataflow& flow, const ZeroAnalysis& analysis, int stage,
                             std::uint32_t ranks) {
  Partition partition(trace.storages.size(), ranks);
  if (stage >= 1) {
    partition.cut_together(trace, flow, analysis.states);
    partition.cut_together(trace, flow, analysis.temporaries);
  }
  if (stage == 2) partition.cut_together(trace, flow, analysis.gradients);
  if (stage == 3) {
    partition.cut_each(trace, flow, analysis.gradients);
    partition.cut_each(trace, flow, analysis.parameters);
  }
  return partition;
}

Partition partition_for_messages(const Trace& trace, const Dataflow& flow, const ZeroAnalysis& analysis, int stage,
                                 std::uint32_t ranks) {
  Partition partition(trace.storages.size(), ranks);
  for (const auto* group : {&analysis.gradients, &analysis.parameters}) {
    if (stage == 3)
      partition.cut_each(trace, flow, *group);
    else
      partition.cut_together(trace, flow, *group);
  }
  return partition;
}

SplitUpdate split_update(TraceEdit& edit, const ZeroAnalysis& analysis, const Partition& partition, int stage,
                         std::uint32_t ranks, const Machine& machine, const Pricer& pricer) {
  return UpdateSplitter(edit, analysis, partition, stage, ranks, machine, pricer).run();
}

}  // namespace memwall
