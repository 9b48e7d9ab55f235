// An op: one line of the host program that a training step is.
//
// Ops stand in the order in which the host issued them. An op may act on the
// host only (alloc, free, host work, hand-over), or launch work on a stream
// (kernel, copy, collective). Fields that a kind does not use stay zero.
#pragma once

#include <cstdint>
#include <string_view>

#include "sim/trace/shape.h"
#include "sim/trace/storage.h"
#include "sim/units.h"

namespace memwall {

// Op::target of a collective: the collectives of several ranks in one trace that are one and the same share a number,
// their rendezvous. Each begins when its stream lets it; all end together, the duration of the longest after the last has
// begun. kNoRendezvous: the other ranks are not in the trace, and the op takes its duration.
inline constexpr std::uint32_t kNoRendezvous = 0xffffffff;

// What readers, generators and policies hold an op's uses to. Each names a storage of the trace: an optimizer's step of a
// network with a million parameters has a few million. Files are refused beyond it before they fill the memory.
inline constexpr std::uint32_t kMostUsesOfAnOp = std::uint32_t{1} << 24;

enum class OpKind : std::uint8_t {
  kernel,        // runs on `stream` for `duration`
  memset,        // likewise
  copy,          // moves `bytes` from place `from` to place `to` on `stream`, by a copy engine
  collective,    // a communication kernel on `stream`; `bytes` cross the links of the group
  storage_io,    // reads or writes `bytes` between a storage tier and another, on a queue (`stream`)
  graph_launch,  // one host call; the ops that follow with Op::graph_member are its nodes
  alloc,         // `target` (a StorageId) begins to live, at host time
  free,          // `target` (a StorageId) is dropped, at host time
  event_record,  // marks the present end of `stream` under event number `target`
  event_wait,    // later work of `stream` waits for event number `target`
  host_work,     // the host thread computes for `duration`, moving `bytes` of host DRAM if any; or waits while that is
                 // done in the memory of place `from` (a device's memory, as place 0 usually is, means the host's)
  synchronize,   // the host waits; `wait_for` says for what
  hand_over,     // this thread goes on once the op `target` of another thread has ended on the host
  mark,          // a point in host time: a step boundary, or the source of a hand-over
};
inline constexpr int kOpKinds = 14;
std::string_view to_string(OpKind kind);

// Does the op put work on a stream (and so have a device start and end)?
constexpr bool runs_on_device(OpKind k) { return k <= OpKind::storage_io; }

enum class Phase : std::uint8_t { unknown, forward, recompute, backward, optimizer };
std::string_view to_string(Phase phase);

// Where the op's duration comes from.
enum class Origin : std::uint8_t {
  measured,     // captured on the machine the trace belongs to
  transferred,  // measured elsewhere or at another size, then scaled by a model
  modelled      // from FLOPs, bytes and the machine alone
};
std::string_view to_string(Origin origin);

// What a host call waits for besides its own cost.
enum class WaitFor : std::uint8_t {
  nothing,
  own_op,  // its own copy, in stream order (pageable copies, `.item()`)
  stream,  // everything submitted to `stream` so far; of a free: its memory comes back then, and the host goes on
  event,   // event number `target`
  device   // everything submitted to every stream of the device so far
};

enum class OperatorClass : std::uint8_t {
  other,
  gemm,
  convolution,
  attention,
  normalization,
  elementwise,
  reduction,
  optimizer,
  embedding,
  memory
};
std::string_view to_string(OperatorClass c);

enum class DataType : std::uint8_t { unknown, fp64, fp32, tf32, fp16, bf16, fp8, int8, int32, int64, boolean };
std::string_view to_string(DataType t);

// Bytes of one element; 0 of an unknown type. Numbers of 64 bits without sign count as int64, tf32 lies in memory as
// fp32.
constexpr Bytes bytes_of(DataType type) {
  switch (type) {
    case DataType::fp64:
    case DataType::int64:
      return 8;
    case DataType::fp32:
    case DataType::tf32:
    case DataType::int32:
      return 4;
    case DataType::fp16:
    case DataType::bf16:
      return 2;
    case DataType::fp8:
    case DataType::int8:
    case DataType::boolean:
      return 1;
    case DataType::unknown:
      break;
  }
  return 0;
}

enum class CollectiveKind : std::uint8_t {
  none,
  all_reduce,
  reduce_scatter,
  all_gather,
  broadcast,
  all_to_all,
  reduce,
  send_receive,
  barrier
};
std::string_view to_string(CollectiveKind k);

// Who issues the op on the host, hence what comes between two calls of the driver.
enum class Dispatch : std::uint8_t {
  native,   // a program of its own (C++, CUDA): the calls alone, or what was captured
  eager,    // a framework, operator by operator (PyTorch from Python)
  compiled  // code that a compiler made of the model (torch.compile): one call per kernel, no dispatch
};
std::string_view to_string(Dispatch dispatch);

enum class Access : std::uint8_t { read, write };

// One relation between an op and a storage. Writing makes a new version of the
// storage's content; the first write makes version 1. Version 0 is the content
// a preexisting storage starts with.
struct Use {
  StorageId storage = kNoStorage;
  std::uint32_t version = 0;  // the version read, or the version made
  Access access = Access::read;
  bool saved = false;  // the framework keeps this version for the op's backward; false: it does not, or nobody knows
};
static_assert(sizeof(Use) <= 12, "a step has several uses per op; keep them small");

struct Op {
  OpKind kind = OpKind::mark;
  Phase phase = Phase::unknown;
  Origin origin = Origin::measured;
  WaitFor wait_for = WaitFor::nothing;

  bool graph_member = false;  // launched by the graph_launch before it: no host part
  bool placed = false;        // ready at `host_gap` after the start, no host part: state before the window
  bool inferred = false;      // concluded by the importer, not stated by the file: an edge, or when a storage lives
  bool added = false;         // put in by a policy: it contends with what was captured

  std::uint16_t thread = 0;    // index into Trace::threads
  std::uint16_t stream = 0;    // index into Trace::streams; for alloc and free: the pool's stream, unless a free waits
  StringId name = 0;           // kernel or call name
  StringId operator_name = 0;  // innermost framework operator, "" if unknown
  StringId module = 0;         // module path, e.g. "layers.3.mlp"; "" if unknown

  Duration host_gap{};      // host work between the end of the thread's previous op and this one
  Duration host_cost{};     // the call itself, waiting not included
  Duration return_delay{};  // after the awaited work has ended, until the call returns; may be negative
  Duration duration{};      // of the work on the device, or of host_work; stand-alone

  // Copied; on the wire per rank (collective); DRAM (host_work); read and written below the multiprocessors (kernel, 0 =
  // unknown), of which HBM moves a part (sim/machine/hbm_traffic.h).
  Bytes bytes = 0;
  double flops = 0;  // floating-point operations, 0 = unknown
  float waves = 0;   // thread blocks / blocks resident at once; 0 = unknown

  std::uint32_t target = 0xffffffff;  // StorageId, event number or OpId, by kind; collective: see kNoRendezvous
  // Of the same trace, before it. recompute: the op that this one repeats; backward: the op of forward whose node of
  // autograd's graph runs it, kNoOp where the trace does not say.
  OpId source = kNoOp;
  std::uint32_t first_use = 0;        // index into Trace::uses
  std::uint32_t use_count = 0;        // at most kMostUsesOfAnOp
  std::uint8_t from = 0, to = 0;      // copy, storage_io: indices into Trace::places; host_work: see there
  std::uint16_t group = 0;            // collective: index of its process group, into Trace::groups where that has it
  // What the work is made of, by operator class (an index into Trace::shapes, 0 = unknown):
  //   gemm           {batch, m, n, k}: that many products of m x k with k x n
  //   convolution    {images, input channels, output channels, output positions, kernel taps, groups}
  //   attention      {batch, heads, heads of keys and values, queries, keys, head size, 1 if causal else 0}, then its
  //                  kernel (attention_kernel.h) where that is another than FlashAttention-2
  //   normalization, reduction  {rows, width of a row}
  //   embedding      {tokens, width, vocabulary}
  //   optimizer, elementwise, memory  {elements}
  // The backward of an operator has its forward's shape, except of a gemm, which has its own.
  ShapeId shape = 0;
  // 90 % of truths lie within duration x (1 +- this / 1000); 0 = not known, or measured. Set with origins other than
  // measured.
  std::uint16_t error_permille = 0;
  std::uint16_t kernels = 1;          // kernels that this one line stands for, in a row on its stream
  std::uint16_t framework_calls = 0;  // operators that the framework dispatched for it, views before it included
  Dispatch dispatch = Dispatch::native;
  OperatorClass operator_class = OperatorClass::other;
  DataType data_type = DataType::unknown;
  CollectiveKind collective = CollectiveKind::none;
  bool pageable = false;  // copy: the host side is not page-locked
};
static_assert(sizeof(Op) <= 112, "an op is stored for every line of a step; keep it small");

// Is it the work of another op, `source`, once more?
constexpr bool repeats(const Op& op) { return op.phase == Phase::recompute && op.source != kNoOp; }

}  // namespace memwall
