// Writes the gathers of parameters that re-runs read (sharding) into a trace. Internal to policies/plan.
//
// Where a re-run reads a gathered parameter that is gone, the plan says what happens. It lists the gather among the
// re-run's ops: then the gather is repeated, into storages that live until their last reader in the re-run. Or it does
// not: then the re-run reads what stands in for it (ParameterGathers::stand_in), and where that is gathered only later,
// the gather moves up to the re-run. Gathers that leave ahead of their use elsewhere in the trace leave ahead here too:
// one before the first reader of the one before it, the first of all beside the trace's last gather before the re-run.
//
// A gather that reads a communication buffer (FSDP) is repeated with all that fills the buffer; it never
// moves.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "policies/trace/dataflow.h"
#include "policies/trace/parameter_gathers.h"
#include "policies/trace/trace_edit.h"
#include "sim/policy/memory_plan.h"

namespace memwall {

class GatherWriter {
 public:
  // All must outlive it.
  GatherWriter(TraceEdit& edit, const Dataflow& flow, const ParameterGathers& gathers);

  // Of each re-run, in the order of their places: begin, then around each op that runs again, then end.
  // `present`: by storage of the base, what stands for it there.
  void begin(const PlannedRerun& rerun, std::span<const StorageId> present);
  void before(OpId op);
  void after(OpId op);
  void end();

  // What the re-run reads instead of a gathered storage; kNoStorage: it is none.
  StorageId instead_of(StorageId storage) const;

 private:
  enum class Way : std::uint8_t { there, moved, repeated };
  // A gather that the re-run reads.
  struct Source {
    OpId gather = kNoOp;
    Way way = Way::there;
    OpId first = kNoOp, last = kNoOp;  // readers in the re-run
    std::uint32_t event = kNone;       // behind it
    std::set<std::uint16_t> held;      // streams that wait for it, or need not
    std::vector<StorageId> storages;   // of repeated ones: what is filled
  };
  static constexpr std::uint32_t kNone = 0xffffffff;

  InsertionPoint point() const { return {rerun_->at.op, rerun_->at.after}; }
  OpId position() const { return rerun_->at.op + (rerun_->at.after ? 1 : 0); }
  void note_reader(OpId id, StorageId storage);
  InsertionPoint point_ahead() const;
  void issue(Source& source, InsertionPoint point);
  bool reads_buffer(OpId gather) const;
  StorageId filled_again(InsertionPoint point, StorageId buffer, OpId reader, std::vector<StorageId>& temporary);
  void hold(Source& source, std::uint16_t stream);
  std::uint32_t event_behind(OpId gather) const;
  bool waits_already(OpId gather, std::uint16_t stream) const;
  void await_readers(InsertionPoint point, std::uint16_t stream);

  TraceEdit& edit_;
  const Trace& t_;
  const Dataflow& flow_;
  const ParameterGathers& gathers_;
  std::map<OpId, std::uint32_t> moved_;  // with the event behind each
  const PlannedRerun* rerun_ = nullptr;  // the present one, as all below
  std::span<const StorageId> present_;
  std::vector<Source> sources_;          // in the order of their first readers
  std::vector<std::size_t> issued_;      // those that are moved or repeated
  std::size_t next_ = 0;                 // of these
  std::map<std::pair<OpId, Way>, std::size_t> number_of_;
  std::optional<std::uint16_t> last_filled_;                     // stream of the last op that fills a buffer again
  std::map<StorageId, std::pair<std::size_t, StorageId>> read_;  // by gathered storage: its source, what is read
};

}  // namespace memwall
