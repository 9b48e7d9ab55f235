// What one capture of a job says about its rank: who it is, and when its collectives ran.
//
// It is what several captures are joined by (rank_join.h), whatever format they have.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/trace/op.h"
#include "sim/trace/trace.h"
#include "sim/units.h"

namespace memwall {

// A communicator as one rank's file tells of it.
struct CapturedGroup {
  std::string name;         // "" = the file does not name it: then it is a stream, or a pointer of its process
  std::string ranks_text;   // as the file lists its ranks; part of what names it
  std::uint32_t ranks = 0;  // how many; 0 = unknown
  std::vector<std::uint32_t> members;  // their numbers in the job, ascending; empty = unknown
};

// Of a batch of sends and receives (captured_batches.h) that says with whom, each message is one, and all have one op.
struct CapturedCollective {
  OpId op = kNoOp;
  CollectiveKind kind = CollectiveKind::none;
  DataType type = DataType::unknown;
  std::uint16_t group = 0;        // index into RankCapture::groups
  std::int64_t sequence = -1;     // the library's number of it within the group; -1 = unknown, here and below
  std::int64_t elements = -1;     // of this rank's message
  std::int64_t source = -1;       // of a send or a receive whose peers are known: numbers of ranks. Of a group without
  std::int64_t destination = -1;  // known members they count within it.
  bool batched = false;           // a message of a batch
  bool several_peers = false;     // and the batch has messages with others
  Time start{}, end{};            // captured, since the trace's start; of a batch the kernel's
};

struct RankCapture {
  std::int64_t rank = -1, world_size = -1;  // -1 = the capture does not say
  std::int64_t start_ns = 0;  // the trace's start on the host's clock, as far as the file has absolute times
  Duration start_fraction{};  // added to it, less than a nanosecond
  std::uint32_t devices = 0;  // that did something
  std::vector<CapturedGroup> groups;
  std::vector<CapturedCollective> collectives;  // in the order of the ops
  std::uint64_t named_by_file = 0;              // collectives whose group the capture itself names
  std::uint64_t named_by_execution_trace = 0;   // whose group and number come from an ExecutionTrace
};

}  // namespace memwall
