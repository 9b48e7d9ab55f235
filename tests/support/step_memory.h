// What a step does to device memory, in words that two traces of one program share: its kernels in order, its copies,
// and when storages live. Numbers of ops and storages mean nothing from one trace to another; numbers of kernels do,
// once the kernels are the same.
#pragma once

#include <array>
#include <cstddef>
#include <numeric>
#include <string>
#include <vector>

#include "sim/trace/trace.h"
#include "tests/support/live_bytes.h"

namespace memwall {

inline Bytes total(const LiveBytes& live) { return std::accumulate(live.begin(), live.end(), Bytes{0}); }

// Copies between device and host are no kernels.
struct StepKernel {
  Phase phase = Phase::unknown;
  std::string name;    // of the operator: "aten::addmm"
  std::string module;  // "h.0.up"
  std::string
      repeats;       // of a recomputed one: what it repeats, "h.0.up aten::addmm 0" (the first one there); "" unknown
  LiveBytes live{};  // on the device when it is called
};

// "recompute aten::addmm".
inline std::string text_of(const StepKernel& kernel) {
  return std::string(to_string(kernel.phase)) + " " + kernel.name;
}

struct StepCopy {
  Bytes bytes = 0;
  std::size_t before = 0;  // the number of the next kernel
};

// A storage from an alloc to its free. What leaves the device and comes back, or is made again, lives several times.
struct StorageSpan {
  enum class Maker : std::uint8_t { nobody, kernel, copy, before_the_step };

  Bytes bytes = 0;
  StorageKind kind = StorageKind::unknown;
  Maker maker = Maker::nobody;   // what writes it first
  std::size_t maker_number = 0;  // of the kernel; of a copy: of the next kernel
  std::size_t from = 0, to = 0;  // the numbers of the next kernels when it begins and ends; kernels.size(): the end
  bool saved = false;            // autograd keeps it for backward
  std::size_t used_until = 0;    // the last kernel that reads or writes it, or is next when it is copied; + 1
};

// The parts of a step by where its kernels are: behind the last kernel of forward backward begins.
enum class StepPart : std::uint8_t { forward, backward, optimizer };
inline constexpr std::size_t kStepParts = 3;
inline constexpr const char* kStepPartNames[kStepParts] = {"forward", "backward", "optimizer"};

// Kinds: a capture cannot tell an activation from a workspace where backward alone fills it; both count as activations,
// and so does what is of no known kind.
struct StepMemory {
  std::vector<StepKernel> kernels;
  std::vector<StepCopy> out, back;  // in the order of their calls
  std::vector<StorageSpan> lives;   // of device memory that has bytes
  std::array<Bytes, kStepParts> peak{};
  std::array<LiveBytes, kStepParts> peak_by_kind{};  // each kind's own peak
  Bytes saved = 0;                                   // of activations on the device behind the last kernel of forward
  // The number of the first kernel of backward, and of the optimizer.
  std::size_t backward = 0, optimizer = 0;
};

StepMemory step_memory(const Trace& trace);

// Of the whole step.
Bytes peak(const StepMemory& step);

}  // namespace memwall
