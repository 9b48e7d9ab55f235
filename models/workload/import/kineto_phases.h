// Steps and phases of a capture, by the ranges that PyTorch names.
//
// Backward: under autograd::engine::evaluate_function (files of 2021: operators named *Backward on
// another thread). Optimizer: under Optimizer.step#. Forward: from the start of the step, or the end
// of zero_grad, to the first backward operator. The rest is unknown.
// Internal to the Kineto importer.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/workload/import/kineto_join.h"
#include "sim/op.h"

namespace memwall {

struct CaptureStep {
  std::string name;
  Time start{};
  std::uint16_t thread = 0;
};

class CapturePhases {
 public:
  explicit CapturePhases(const KinetoCapture& capture);

  // By ProfilerStep ranges; empty where the file has none.
  const std::vector<CaptureStep>& steps() const { return steps_; }
  // Of something that a thread does at a time, inside `operator_index` (or kNoIndex).
  Phase phase(std::uint16_t thread, Time time, std::uint32_t operator_index) const;

 private:
  struct Window {  // of one step
    Time start{}, end = kNever;
    Time forward_start{}, backward_start = kNever, backward_end{}, optimizer_start = kNever;
    std::uint16_t backward_thread = 0;
    bool has_backward = false;
  };

  void find_steps();
  void find_main_thread();
  void find_windows();
  Phase own_phase(const CapturedOperator& op) const;
  const Window& window_at(Time time) const;

  const KinetoCapture& c_;
  std::vector<CaptureStep> steps_;
  std::vector<Window> windows_;             // one per step; one for all where there are no steps
  std::vector<Phase> phase_of_operator_;    // backward, optimizer, or unknown; inherited from parents
  std::uint16_t main_thread_ = 0;
};

}  // namespace memwall
