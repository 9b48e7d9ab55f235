// Does what a run file says make sense: does every number name something that is there, are times within the run?
// Internal to traces/run.
//
// Row by row, so that a run that is read in parts is checked like one that is read whole.
#pragma once

#include "traces/run/file/column_file.h"
#include "traces/run/run.h"

namespace memwall {

struct RunCounts {
  std::uint64_t ops = 0, storages = 0, uses = 0, strings = 0, residencies = 0;
};

// All functions throw InputError by `context`. `run`: its small parts are there; both must outlive this.
class RunCheck {
 public:
  RunCheck(const Run& run, const RunCounts& counts, const ReadContext& context)
      : run_(run), counts_(counts), context_(context) {}

  void small_parts() const;  // first: the others count on them
  void storage(const Storage& storage, std::uint64_t row) const;
  void use(const Use& use, std::uint64_t row) const;
  void op(const Op& op, std::uint64_t row) const;
  void record(const Op& op, const OpRecord& record, std::uint64_t row) const;
  // Only what a lane needs to draw it.
  void drawn(const Op& op, std::uint64_t row) const;
  void drawn(const Op& op, const OpRecord& record, std::uint64_t row) const;
  void peer(const OpRecord& record, const OpRecord& peer, std::uint64_t row) const;
  void move(const MoveRecord& move, std::uint64_t row) const;
  void residency(const Residency& residency, std::uint64_t row) const;

  void below(std::uint64_t value, std::uint64_t bound, const char* place, std::uint64_t row) const;
  void within_run(Time begin, Time end, const char* place, std::uint64_t row) const;
  void same(std::uint64_t found, std::uint64_t expected, const char* place) const;

 private:
  void below_or_none(std::uint32_t value, std::uint64_t bound, const char* place, std::uint64_t row) const;
  void machine() const;
  void ranks() const;

  const Run& run_;
  RunCounts counts_;
  const ReadContext& context_;
};

// Completes the machine: where each rank finds its tiers and links. REQUIRES: RunCheck::small_parts did not throw.
void find_rank_views(Run& run, const ReadContext& context);

// Of a whole run.
void require_consistent(const Run& run, const ReadContext& context);
// Of a run as read_run_ops gives it, from a file that holds as much.
void require_consistent_ops(const Run& run, const RunCounts& counts, const ReadContext& context);

}  // namespace memwall
