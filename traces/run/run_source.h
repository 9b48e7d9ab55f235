// A run, read in parts: what it is about at once, its columns by range. For viewers, which open
// runs of a hundred million spans and look at a few thousand.
//
// Two sources give the same answers: one over a Run in memory (the reference), one over a file
// that reads what is asked for. Both are safe to ask from several threads at once.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "traces/run/run.h"
#include "traces/run/run_index.h"

namespace memwall {

// Told how much is done, 0 to 1, every few milliseconds; false stops the work with LoadCancelled.
using LoadProgress = std::function<bool(double)>;
struct LoadCancelled {};

// What is known as soon as a run is open. The vectors that grow with the run are empty in `run`: ops, uses,
// storages, strings, records, moves, memory, link_rates, residency.
struct RunOutline {
  Run run;
  std::uint64_t ops = 0, storages = 0, residencies = 0, uses = 0, moves = 0, strings = 0;
  std::vector<StepWindow> steps;               // as step_windows(whole run)
  std::vector<RunLane> lanes;                  // threads, streams, engines, pager: in the order of the screen
  std::vector<std::vector<LaneBlock>> blocks;  // per lane, ascending in block
};

// What is drawn of kSpanBlock ops in a row, column by column; entry i is op `first` + i.
struct SpanBlock {
  OpId first = 0;
  std::vector<Time> call_begin, begin;        // kNever: the op has no call (placed, within a graph), or no work
  std::vector<Duration> call_time, time;      // 0 where there is none
  std::vector<StringId> name, module;         // name: the op's, else its operator's, else 0 (say its kind)
  std::vector<std::uint16_t> thread, stream;  // indices into Trace::threads and Trace::streams
  std::vector<OpKind> kind;
  std::vector<Phase> phase;
  std::vector<std::uint8_t> engine;  // lane (index into RunOutline::lanes) of its copy engine, kNoLane = none
  std::vector<WaitReason> call_reason, return_reason,
      reason;  // why call, return of the call, and work were not earlier
  std::size_t size() const { return kind.size(); }
  std::size_t bytes() const;  // that it occupies
};

// The memory of a tier around `time`: the highest values until the next point.
struct MemoryHigh {
  Time time{};
  Bytes allocated = 0, requested = 0, reserved = 0;
};
// The flow over a link from `time` until the next point.
struct RateHigh {
  Time time{};
  double mean = 0, high = 0;  // bytes per second
};

// Of every storage, column by column.
struct StorageColumns {
  std::vector<Bytes> bytes;
  std::vector<StorageKind> kind;
  std::vector<StringId> label;
  std::vector<bool> preexisting;
};

// One op with all that the file says of it.
struct OpDetail {
  OpId id = kNoOp;
  Op op;
  OpRecord record;
  std::vector<Use> uses;
  std::string name, operator_name, module;
};

// An op that reads or writes a storage.
struct StorageUse {
  OpId op = kNoOp;
  std::uint32_t version = 0;
  Access access = Access::read;
};

// All functions but outline() may throw InputError where the file's numbers turn out to be wrong: nothing that they
// return points at what does not exist.
class RunSource {
 public:
  virtual ~RunSource() = default;
  virtual const RunOutline& outline() const = 0;

  // --- time
  // Level of detail of a lane: buckets [first, last) of `level`, ascending, empty ones left out.
  virtual std::vector<LaneCell> cells(std::uint32_t lane, std::uint8_t level, std::uint64_t first,
                                      std::uint64_t last) const = 0;
  // REQUIRES: block < (ops + kSpanBlock - 1) / kSpanBlock.
  virtual SpanBlock spans(std::uint32_t block) const = 0;
  virtual std::vector<MoveRecord> moves(std::uint64_t first, std::uint64_t count) const = 0;

  // --- memory and links: at most about 2 x `most` points that cover [begin, end], extremes kept; exact where there
  // are fewer. The first point is at or before `begin`.
  virtual std::vector<MemoryHigh> memory(std::uint32_t tier, Time begin, Time end, std::size_t most) const = 0;
  virtual std::vector<RateHigh> link_rates(std::uint32_t link, Time begin, Time end, std::size_t most) const = 0;
  virtual StorageColumns storages(const LoadProgress& progress) const = 0;
  virtual std::vector<Residency> residency(const LoadProgress& progress) const = 0;
  virtual std::vector<std::uint32_t> at_peak(std::uint32_t tier) const = 0;  // as Run::at_peak

  // --- ops and names
  virtual OpDetail op(OpId id) const = 0;
  virtual std::string text(StringId id) const = 0;
  virtual std::vector<std::string> texts(const LoadProgress& progress) const = 0;  // all, by StringId
  // Ops whose name, operator or module is one of `wanted` (by StringId); ascending, at most `most`.
  virtual std::vector<OpId> ops_with(const std::vector<bool>& wanted, std::size_t most,
                                     const LoadProgress& progress) const = 0;
  // Ops that name `id` as the cause of their begin, their call or their return; ascending, at most `most`.
  virtual std::vector<OpId> followers(OpId id, std::size_t most) const = 0;
  virtual std::vector<StorageUse> uses_of(StorageId storage, std::size_t most) const = 0;  // ascending in op

  // The whole run, for what needs all of it at once (critical path, comparison): some 300 bytes per op.
  virtual std::shared_ptr<const Run> whole(const LoadProgress& progress) const = 0;
  // Bytes that the source keeps in memory: outline, levels, caches.
  virtual std::size_t resident_bytes() const = 0;
};

// The reference: answers from a run in memory.
std::unique_ptr<RunSource> source_of(std::shared_ptr<const Run> run);

// Over a file. The file's first block is verified at once, every other piece before HDF5 sees a byte of it, whenever
// that is. Throws InputError.
std::unique_ptr<RunSource> open_run(const std::filesystem::path& path, const LoadProgress& progress = {});

}  // namespace memwall
