// Steps and phases of a capture, by the ranges that PyTorch names.
//
// Backward: under autograd::engine::evaluate_function (files of 2021: operators named *Backward on
// another thread). Optimizer: under Optimizer.step#. Forward: from the start of the step, or the end
// of a zero_grad that comes before most operators, to the first backward operator. The rest, zero_grad
// with it, is unknown. Where a file names no steps, an iteration ends with Optimizer.step, and iterations that are
// clearly alike are steps (repeated_steps.h). A range whose meaning the reader knows (RangeMeaning) stands for that
// step or phase. Internal to the importers of timed captures.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/workload/import/timed/joined_capture.h"
#include "sim/trace/op.h"

namespace memwall {

struct StepMarker {
  std::string name;
  Time start{};
  std::uint16_t thread = 0;
};

class CapturePhases {
 public:
  explicit CapturePhases(const TimedCapture& capture);

  // By ProfilerStep ranges and ranges that mean a step, else by repetition; empty where nothing tells.
  const std::vector<StepMarker>& steps() const { return steps_; }
  bool marks_steps() const { return marks_steps_; }       // the file does
  std::size_t iterations() const { return iterations_; }  // of a file that does not: optimizer steps or backward passes
  // Of the one step of a file in which nothing tells steps: "window", "window of one iteration", "window of 3
  // iterations".
  std::string window_name() const;
  // Of something that a thread does at a time, inside `operator_index` (or kNoIndex).
  Phase phase(std::uint16_t thread, Time time, std::uint32_t operator_index) const;

 private:
  struct Window {  // of one step
    Time start{}, end = kNever;
    Time forward_start{}, backward_start = kNever, backward_end{}, optimizer_start = kNever;
    Time zero_grad_end{};
    std::uint32_t operators = 0, before_zero_grad = 0;  // of the main thread before backward
    std::uint16_t backward_thread = 0;
    bool has_backward = false, stated_backward = false;  // the latter: a range means it, on whatever threads it runs
  };
  enum class Range : std::uint8_t { none, forward, backward, optimizer, zero_grad };

  void find_steps();
  void find_repeated_steps();
  void find_main_thread();
  void cut_windows();
  void find_windows();
  void note(Window& window, const CapturedOperator& op, Range range, bool outermost) const;
  Range own_range(const CapturedOperator& op) const;
  const Window& window_at(Time time) const;

  const TimedCapture& c_;
  std::vector<StepMarker> steps_;
  std::vector<Window> windows_;           // one per step or iteration; at least one
  std::vector<Range> range_of_operator_;  // inherited from parents
  std::uint16_t main_thread_ = 0;
  bool marks_steps_ = false;
  std::size_t iterations_ = 0;
  bool stated_steps_ = false;  // ranges mean steps: those, and no others by their names
};

}  // namespace memwall
