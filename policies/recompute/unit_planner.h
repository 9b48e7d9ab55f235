// Plans one unit of a recomputation. Internal to recompute_plan.h, which says by which rules.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "policies/recompute/recompute_plan.h"
#include "policies/recompute/unit_prefix.h"
#include "policies/trace/parameter_gathers.h"
#include "policies/trace/saved_storages.h"

namespace memwall {

class UnitPlanner {
 public:
  // `kept_until[s]`: the op until which a later unit's re-run needs `s`, 0 = none does. All must outlive it.
  UnitPlanner(const Trace& trace, const Dataflow& flow, const Pass& pass, const RecomputeUnit& unit,
              const RecomputeRules& rules, const ParameterGathers& gathers, const SavedStorages& saved,
              std::vector<OpId>& kept_until);

  UnitPlan run() &&;

 private:
  bool inside(OpId id) const;
  bool is_dropped(StorageId s) const;
  bool has_kept_result(OpId id) const;
  bool is_read_by_backward(StorageId s) const { return flow_.touches(s).back().op >= pass_.backward; }
  void refuse(const std::string& reason);
  bool are_pieces_of_one(OpId one, OpId next, StorageId s) const;
  bool updates_itself(OpId id, StorageId s) const;

  // What goes, and where the re-run stands.
  void gather_written();
  bool may_drop(StorageId s) const;
  void choose_dropped();
  // Right before `reader`, an op of backward; where the trace says what autograd saves, before the node of its graph,
  // which asks for all that it saved before it runs anything.
  OpId point_before(OpId reader) const;

  // By what backward reads.
  void want(OpId id);
  void rerun_closure();
  void close_over_inputs();
  void want_chain(StorageId s, std::uint32_t version);
  bool must_rerun_for(OpId id, const Use& use);
  void keep_inputs();

  // As PyTorch does it.
  void guess_prefix();
  void choose_remade();
  bool is_kept_by_autograd(StorageId s) const;
  bool may_be_remade(StorageId s) const;
  bool has_one_stream(StorageId s) const;
  bool is_own_backward(const Op& op) const;
  OpId first_own_reader(StorageId s) const;
  void rerun_prefix();
  void check_use(OpId id, const Use& use);
  void check_kept_result(OpId id);
  void place_remade();
  void place_releases();
  void release_to_nodes();
  void release(StorageId s, const std::map<StorageId, OpId>& keeper);
  bool reads_what_is_kept(OpId id, OpId keeper) const;
  void place_casts();
  void keep_frame();
  OpId frame_end() const;
  void keep(StorageId s, OpId until, bool before);

  void refuse_side_effects();
  void refuse_waits();

  const Trace& t_;
  const Dataflow& flow_;
  const ParameterGathers& gathers_;
  const SavedStorages& saved_;
  const Pass& pass_;
  const RecomputeUnit& unit_;
  const RecomputeRules& rules_;
  std::vector<OpId>& kept_until_;
  UnitPrefix prefix_;
  UnitPlan plan_;
  std::set<StorageId> written_;        // by the unit
  std::set<StorageId> kept_;           // by autograd, for ops of the unit
  std::set<StringId> modules_;         // of the unit's ops
  std::vector<StorageId> candidates_;  // to be made a second time
  std::set<OpId> rerun_;
  std::vector<OpId> open_;
};

}  // namespace memwall
