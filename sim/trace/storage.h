// A storage: one piece of memory. Tensors are views on storages; what lives,
// moves and is freed is the storage.
#pragma once

#include <cstdint>
#include <string_view>

#include "sim/trace/shape.h"
#include "sim/units.h"

namespace memwall {

using StorageId = std::uint32_t;
using StringId = std::uint32_t;
using OpId = std::uint32_t;  // index into Trace::ops
inline constexpr OpId kNoOp = 0xffffffff;
inline constexpr StorageId kNoStorage = 0xffffffff;

// What a storage is for. `unknown` is honest: a capture without dataflow cannot
// tell, and a policy that needs the kind then refuses the trace.
enum class StorageKind : std::uint8_t {
  unknown,
  parameter,
  gradient,
  optimizer_state,
  activation,
  input,
  workspace,
  communication_buffer
};
inline constexpr int kStorageKinds = 8;
std::string_view to_string(StorageKind kind);  // "optimizer_state", ...

struct Storage {
  Bytes bytes = 0;  // as requested; allocators round it
  StorageKind kind = StorageKind::unknown;
  std::uint8_t place = 0;    // index into Trace::places: where it is created
  std::uint16_t stream = 0;  // stream whose pool it is allocated from
  StringId label = 0;        // a parameter's name, or the op that made it; for people
  ShapeId shape = 0;         // of the tensor that it was made for, an index into Trace::shapes; 0 = unknown
  bool preexisting = false;  // lives before the first op; has no alloc op
  bool pinned = false;       // host memory: page-locked
  // The op behind which the program itself refers to it no more (variables, containers, arguments of calls, autocast's
  // cache), while autograd may still keep it. kNoOp: not known.
  OpId last_referenced = kNoOp;
};

}  // namespace memwall
