// What a pass of one chunk allocates and frees in the device's memory, in order, so that a program with marks in place
// of its passes (StageProgram::write_marked) can be followed call by call of the allocator.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "models/workload/generate/parallel/stage_program.h"

namespace memwall {

struct PassEvent {
  // own: made in this pass, by number. received: its input, or the gradient of its output. result: its output, or the
  // gradient of its input. Seen from the backward pass, of the forward pass of its micro-batch: forward, what that has
  // made, by number; input and output, what it received and what came of it. parameter: the gradient of a parameter
  // that has no buffer, by number.
  enum class Whose : std::uint8_t { own, received, result, forward, input, output, parameter };
  bool allocates = false;
  Whose whose = Whose::own;
  std::uint16_t stream = 0;  // of the pool
  std::uint32_t number = 0;
  Bytes bytes = 0;
  bool operator==(const PassEvent&) const = default;
};

struct PassEvents {
  std::vector<PassEvent> events;
  std::uint32_t own = 0;  // how many it makes
  bool operator==(const PassEvents&) const = default;
};

struct ChunkEvents {
  PassEvents first_forward, forward, first_backward, backward;
};

// The place of the device's memory, among those of the trace; none: as many as there are.
std::uint8_t device_place(const Trace& trace);

// Of a chunk alone (StageProgram::write_chunk, three times forward and backward): those of the first micro-batch and of
// any other. Nothing where marks cannot stand for passes: the third micro-batch does not as the second; something that
// a pass makes for itself outlives its backward pass; or something is freed only when a stream is done with it.
// `marks_first`: false where the first micro-batch is written out among marks (FSDP2 gathers in it), whose events are
// left empty.
std::optional<ChunkEvents> chunk_events(const StageTrace& alone, bool marks_first = true);

}  // namespace memwall
