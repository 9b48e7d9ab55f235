// What a run's time is made of, by name: operators and kernels on the device, and the host along the critical path.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/duration_sum.h"
#include "traces/run/analysis/critical_path.h"
#include "traces/run/run.h"

namespace memwall {

// Ops on the device that share a name, of all steps and ranks.
struct WorkTotal {
  std::string name;
  std::uint64_t count = 0;
  DurationSum time;  // of the ops as they ran, each from its start to its end; several may run at once
  double flops = 0;  // performed: fused attention leaves out what a causal mask hides (sim/machine/arithmetic.h)
};

// What the host does while the critical path lies there (TimeClass::host).
enum class HostWork : std::uint8_t {
  call,         // a call of the driver or library that launches or asks
  work,         // of its own: a data loader, an optimizer on the CPU, cudaMalloc
  synchronize,  // the rest of a call that waited for the device, after the device had done
  gap,          // between calls: the framework and the program, up to the call of the named operator
  latency       // between a call and its effect: launch, stream gap, event; no name
};
std::string_view to_string(HostWork work);

struct HostTotal {
  std::string name;  // the operator, else the call; "" where neither is known
  HostWork work = HostWork::call;
  std::uint64_t count = 0;  // segments of the path
  Duration time{};
};

// The FLOPs of a run against what its GPUs could have done in the time of its steps. The model's FLOPs: what is
// computed again does not count ("model FLOPs utilization", PaLM, Chowdhery et al. 2022, appendix B); those of each op
// are Op::flops, which count attention whole, as that definition does, whatever a causal mask hides: MFU may come near
// 100 % where the kernels reach half of it.
struct FlopsUse {
  double flops = 0;                         // of all steps and ranks of the trace
  double recomputed = 0;                    // beside them
  DataType arithmetic = DataType::unknown;  // that most of the matrix products ran in
  // Model's FLOPs, and those that are computed again beside them ("hardware FLOPs utilization", as above), against the
  // peak rate of that arithmetic x the time of all steps. A rank counts as often as its program stands for others.
  double mfu = 0, hfu = 0;
};

struct TopWork {
  std::vector<WorkTotal> operators, kernels;           // most time first, then by name; at most `limit` of each
  DurationSum device;                                  // of all ops on the device
  std::vector<HostTotal> host;                         // most time first, then by name; adds up to the path's host time
  std::uint64_t operator_names = 0, kernel_names = 0;  // how many there are
  // Nothing where the FLOPs of matrix products are not known, or there are none.
  std::optional<FlopsUse> flops;
};

// `path`: critical_path(run).
TopWork top_work(const Run& run, const std::vector<PathSegment>& path, std::size_t limit = 10);

}  // namespace memwall
