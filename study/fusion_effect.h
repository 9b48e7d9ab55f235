// What merging small ops into fewer kernels would save: a step as it is, and after a policy of the kind fusion.
#pragma once

#include <string>

#include "sim/machine/machine.h"
#include "sim/trace/shared_trace.h"

namespace memwall {

struct StepTotals {
  std::uint64_t kernels = 0;
  Bytes bytes = 0;         // that kernels read and write
  Duration kernel_time{};  // one by one
  Duration step_time{};    // of the first step, simulated
  Bytes peak = 0;          // of the first tier of the machine, allocated
};

struct FusionEffect {
  std::string refusal;  // why the rewriter has no meaning for the trace; "" = it has, and all below is filled
  StepTotals before, after;
  std::uint64_t merged_ops = 0, merged_into = 0;
  std::uint64_t vanished = 0;  // intermediates that never reach memory
  Bytes vanished_bytes = 0;
};

// `policy`: one of the kind fusion, with settings or without: "fusion:epilogues=gemm". Throws UsageError where it is
// another or the settings are wrong. REQUIRES: the trace has its times on `machine`.
FusionEffect fusion_effect(const SharedTrace& trace, const Machine& machine, const std::string& policy);

}  // namespace memwall
