// A run as lanes of slices: what the exports to trace viewers share.
//
// Lanes are host threads, streams, copy engines and a pager's moves. Slices of one lane
// never overlap, so that viewers do not take them for nested calls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "traces/run/run.h"

namespace memwall {

inline constexpr std::size_t kFlushBytes = 1 << 20;  // an export is handed to its stream when it has grown to more

enum class LaneGroup : std::uint8_t { host, stream, engine, pager };
inline constexpr int kLaneGroups = 4;
std::string_view to_string(LaneGroup group);  // "Host threads", ...

struct ExportLane {
  LaneGroup group = LaneGroup::host;
  std::string name;  // "main", "stream 7 (compute)", "copy engine to host"
};

struct ExportSlice {
  std::uint32_t lane = 0;  // index into ExportLanes::lanes()
  Time begin{}, end{};
  OpId op = kNoOp;         // kNoOp for a pager's move
  std::uint32_t move = 0;  // index into SimulationResult::moves, for a pager's move
};

// From the end of one op's work (or of its call) to the start of another's.
struct ExportEdge {
  OpId from = kNoOp, to = kNoOp;
  bool on_host = false;    // `to` is a call that this let return or begin
  bool from_host = false;  // `from` is a host thread's op: a hand-over
};

// `run` must outlive it.
class ExportLanes {
 public:
  explicit ExportLanes(const Run& run);

  const std::vector<ExportLane>& lanes() const { return lanes_; }
  // The lane of an op's call, or of its work on a stream.
  std::uint32_t host_lane(const Op& op) const { return op.thread; }
  std::uint32_t stream_lane(const Op& op) const {
    return static_cast<std::uint32_t>(run_.trace->threads.size()) + op.stream;
  }

  // Calls, then work on streams, then engines and moves; ascending in time within each lane.
  void for_each(const std::function<void(const ExportSlice&)>& visit) const;
  // Events of another stream that an op waited for, what a blocking call waited for, hand-overs. In
  // order of `to`. Launches are not among them: they are one per op.
  std::vector<ExportEdge> edges() const;

 private:
  void add_engines();
  void add_moves();
  // Adds lanes for slices that may overlap: as many as it takes.
  void add_packed(LaneGroup group, const std::string& name, std::vector<ExportSlice> slices);

  const Run& run_;
  std::vector<ExportLane> lanes_;
  std::vector<ExportSlice> packed_;  // of engines and moves, by lane
};

// Deals out lanes to slices that may overlap: each gets the first lane that is free, a new one where none is.
class LanePacker {
 public:
  // The lane, counted from 0. REQUIRES: begins not before the slice that was placed last.
  std::uint32_t place(Time begin, Time end);
  std::uint32_t lanes() const { return static_cast<std::uint32_t>(free_from_.size()); }
  // "copy engine to host (2)".
  static std::string name(const std::string& first, std::uint32_t lane);

 private:
  std::vector<Time> free_from_;  // per lane
};

// What people see of an op: its name, else its operator, else its kind.
const std::string& display_name(const Trace& trace, const Op& op);

// Exact: 1'234'500 ps is "1.2345".
std::string exact_microseconds(Time time);

}  // namespace memwall
