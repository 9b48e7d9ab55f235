// Makes a run: watches a simulation and keeps what a run needs.
#pragma once

#include <string>
#include <vector>

#include "traces/run/run.h"

namespace memwall {

// Collects memory, residency and link rates. Within one instant only turning points are kept.
class RunRecorder : public Observer {
 public:
  // `machine`: that of all ranks (sim/machine/rank_machine.h). `next` sees every call too (a progress bar); null =
  // none, not owned.
  RunRecorder(const Trace& trace, const RankMachine& machine, Observer* next = nullptr);

  void on_memory(Time time, int tier, const Usage& usage) override;
  void on_residency(Time time, StorageId storage, int tier, bool begins) override;
  void on_link_rate(Time time, int link, double bytes_per_second) override;
  void on_progress(Time time, double share) override;

  // Moves what was collected into `run`. REQUIRES: run.result is set; called once.
  void finish(Run& run);

 private:
  static constexpr std::uint32_t kNowhere = 0xffffffff;

  Observer* next_;
  std::vector<std::vector<MemoryPoint>> memory_;
  std::vector<std::vector<RatePoint>> link_rates_;
  std::vector<Residency> residency_;
  std::vector<std::uint32_t> open_;  // per storage: its last interval, while that is open
  // Which intervals stand at a peak cannot be told from times alone: much can happen in one instant.
  // So changes are numbered, and each tier's peak notes the number of the change that made it.
  struct Changes {
    std::uint64_t begin = 0, end = 0;
  };
  std::vector<Changes> order_;              // of residency_; end 0 = never
  std::vector<std::uint64_t> peak_change_;  // per tier
  std::vector<Bytes> peak_allocated_;       // per tier
  std::uint64_t changes_ = 0;
};

struct RunSettings {
  std::vector<std::string> policies;  // as text, for the record; already applied to the trace
  std::string pager_text;             // likewise
  std::string allocator = "pytorch";
  AllocatorSettings allocator_settings{};
  RunChanges changes{};          // for the record; already in the trace and the machine
  Pager* pager = nullptr;        // not owned; null = none
  Observer* observer = nullptr;  // not owned; null = none
  std::vector<InputFile> inputs;
  std::vector<double> cached{};  // as SimulationOptions::cached
  bool first_step = false;       // likewise
  bool record = true;            // false: no series of memory and links, no residency
};

// Simulates, and records where that is asked for. Throws what simulate() throws. Provenance is left to the caller.
Run simulate_and_record(SharedTrace trace, const Machine& machine, const RunSettings& settings);

}  // namespace memwall
