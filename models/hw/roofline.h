// A step under the roofline: how much of what the machine offers each operator reaches, and what holds it.
//
// Williams, Waterman and Patterson 2009, "Roofline: An Insightful Visual Performance Model for Multicore
// Architectures", with one roof per level of memory as in Yang, Kurth and Williams 2020, "Hierarchical Roofline
// Analysis for GPUs":
//
//   FLOPs                   that the kernel performs (models/hw/attention_cost.h)
//   intensity at a level    FLOPs / bytes that cross it       (L2: Op::bytes, HBM: those that L2 does not serve)
//   attainable FLOP/s       min(peak of the data type, intensity x bandwidth of each level)
//   of attainable           roof time / duration, roof time = max(FLOPs / peak, bytes / bandwidth of each level):
//                           the same ratio as achieved / attainable FLOP/s, and one for work without FLOPs too
//
// A kernel is bound by what makes its roof time; by latency, if at least half of its duration is the fixed cost of
// its class (KernelEfficiency::fixed, for each kernel of the op).
#pragma once

#include <array>
#include <string>
#include <vector>

#include "sim/machine/machine.h"
#include "sim/trace/trace.h"

namespace memwall {

enum class RooflineBound : std::uint8_t {
  compute,
  l2,
  hbm,
  latency,
  unknown  // neither FLOPs nor bytes are known
};
inline constexpr int kRooflineBounds = 5;
std::string_view to_string(RooflineBound bound);

inline constexpr int kRooflineClasses = 10;

struct MemoryRoof {
  std::string name;  // "L2", "HBM"
  BytesPerSecond bandwidth = 0;
};

struct ComputeRoof {
  DataType data_type = DataType::unknown;  // of the arithmetic
  FlopsPerSecond flops = 0;
};

// Kernels of one operator in modules that differ by numbers only, in one phase.
struct RooflineOperator {
  std::string name;    // "aten::mm"
  std::string module;  // "layers.*.mlp.up"; "" = unknown
  Phase phase = Phase::unknown;
  OperatorClass operator_class = OperatorClass::other;  // of the most time, as data_type
  DataType data_type = DataType::unknown;               // of the arithmetic
  Origin origin = Origin::measured;                     // of the duration of the longest op
  std::uint64_t ops = 0, kernels = 0;
  Duration duration{};
  double flops = 0, l2_bytes = 0, hbm_bytes = 0;
  double roof_seconds = 0;
  std::array<Duration, kRooflineBounds> by_bound{};

  RooflineBound bound() const;      // that of the most time
  double achieved() const;          // FLOP/s
  double attainable() const;        // FLOP/s; 0 without FLOPs
  double share_of_roof() const;     // roof time / duration
  double intensity_at_l2() const;   // FLOP/B; 0 without FLOPs or bytes
  double intensity_at_hbm() const;  // likewise; infinite where all is served by L2
};

// Copies between two places, collectives of one kind: no FLOPs, so that only a bandwidth bounds them.
struct RooflineTransfer {
  std::string name;  // "host to hbm", "all_reduce"
  std::uint64_t ops = 0;
  Bytes bytes = 0;
  Duration duration{};
  BytesPerSecond bandwidth = 0;  // of the route or the fabric; 0 = the machine has none. Within the GPU, where each
                                 // byte is read and written: what L2 and HBM allow for these sizes
  double roof_seconds = 0;
  Origin origin = Origin::measured;  // of the longest one's duration
  double share_of_roof() const;      // roof time / duration
};

struct Roofline {
  std::vector<MemoryRoof> memory;    // nearest first
  std::vector<ComputeRoof> compute;  // of the types in use, highest first
  Duration kernel_time{};            // of all kernels, one by one
  std::array<Duration, kRooflineBounds> by_bound{};
  std::array<Duration, kRooflineClasses> by_class{}, memory_bound_by_class{};
  std::vector<RooflineOperator> operators;  // most time first
  std::vector<RooflineTransfer> transfers;  // likewise
  Duration memory_bound() const;            // by L2 or HBM
};

// REQUIRES: the trace has durations (measured, or priced for `machine`).
Roofline roofline(const Trace& trace, const Machine& machine);

// "layers.3.mlp" and "Block_3" become "layers.*.mlp" and "Block_*".
std::string folded_module(const std::string& module);

}  // namespace memwall
