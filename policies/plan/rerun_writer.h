// Writes re-runs of forward ops into a trace, one after the other. Internal to policies/plan.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <vector>

#include "policies/plan/gather_writer.h"
#include "policies/trace/dataflow.h"
#include "policies/trace/trace_edit.h"
#include "sim/policy/memory_plan.h"

namespace memwall {

// A storage of the base and what stands for it from now on.
struct BroughtBack {
  StorageId storage = kNoStorage, device = kNoStorage;
};

class RerunWriter {
 public:
  // All must outlive it.
  RerunWriter(TraceEdit& edit, const Dataflow& flow, const ParameterGathers& gathers);

  // `present`: by storage of the base, what stands for it at that point. `awaited`: those that are absent and that
  // later ops or re-runs use; ascending. `readers`: the streams of these re-runs. `leaving`: what the re-run gives back
  // as soon as it needs it no more. Returns what came back, in the order of making.
  std::vector<BroughtBack> write(const PlannedRerun& rerun, std::span<const StorageId> present,
                                 const std::vector<StorageId>& awaited, const std::set<std::uint16_t>& readers,
                                 const std::vector<StorageId>& leaving = {});
  // Frees `device`, which stands for `storage`, as the program itself frees that.
  void free(StorageId storage, StorageId device, InsertionPoint point);
  // The op's call is gone, the host time before it is not.
  void leave_out(OpId op);

 private:
  InsertionPoint point() const { return {rerun_->at.op, rerun_->at.after}; }
  bool is_listed(OpId op) const;
  bool is_called(OpId op) const;
  bool is_awaited(StorageId storage) const;
  bool is_scratch(StorageId storage) const;
  OpId first_op() const;
  void append(const Op& op, std::span<const Use> uses = {});
  void alloc_clone(StorageId storage, const Op* like, const Op& beside);
  Duration take_gap();
  void repeat(OpId id, std::span<const StorageId> present);
  void accompany(OpId id);
  void repeat_call(Op op);
  void pass_time();
  void mark_call();
  void place_ends(const std::vector<StorageId>& leaving, OpId last);
  void end_uses(OpId id);
  void place_ends_of_seconds(std::span<const StorageId> present, OpId last);
  OpId end_of_use(OpId user, StorageId storage, OpId last) const;
  void end_seconds(OpId id);
  void give_up_or_keep(std::vector<BroughtBack>& back);
  void join_streams(const std::vector<BroughtBack>& back, std::set<std::uint16_t> readers);
  void event_call(OpKind kind, std::uint32_t event, std::uint16_t stream);

  TraceEdit& edit_;
  const Trace& t_;
  const Dataflow& flow_;
  GatherWriter gathers_;
  std::vector<StorageId> clone_;         // by storage of the base, during a re-run
  const PlannedRerun* rerun_ = nullptr;  // the present one, as all below
  std::vector<OpId> ops_;                // of it, without gathers of parameters
  const std::vector<StorageId>* awaited_ = nullptr;
  std::uint16_t thread_ = 0;
  Duration gap_{};  // host time of calls that the re-run leaves out
  std::vector<StorageId> made_;
  std::set<StorageId> outputs_;
  std::multimap<OpId, StorageId> ends_;  // by op of the first run: what goes behind its repeat
  std::multimap<OpId, StorageId> seconds_;  // likewise, of what has stayed from the first run
  std::set<std::uint16_t> streams_;
  std::map<std::uint32_t, std::uint32_t> events_;
};

}  // namespace memwall
