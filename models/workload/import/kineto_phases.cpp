#include "models/workload/import/kineto_phases.h"

#include <algorithm>
#include <string_view>

namespace memwall {
namespace {

using std::string_view;

bool is_backward_name(string_view name) {
  // "MulBackward0", "NativeBatchNormBackward"; not "aten::threshold_backward".
  while (!name.empty() && name.back() >= '0' && name.back() <= '9') name.remove_suffix(1);
  return name.ends_with("Backward") && name.find("::") == string_view::npos;
}

}  // namespace

CapturePhases::CapturePhases(const KinetoCapture& capture) : c_(capture) {
  find_main_thread();
  find_steps();
  find_windows();
}

void CapturePhases::find_main_thread() {
  // Steps and optimizers are named on the thread that trains; else the first operator that is not backward.
  int found = -1;
  for (const CapturedOperator& op : c_.operators) {
    const string_view name = c_.text(op.name);
    if (name.starts_with("ProfilerStep#") || name.starts_with("Optimizer.")) {
      main_thread_ = op.thread;
      return;
    }
    if (found < 0 && op.forward_thread <= 0 && !name.starts_with("autograd::") && !is_backward_name(name)) found = op.thread;
  }
  main_thread_ = static_cast<std::uint16_t>(std::max(found, 0));
}

void CapturePhases::find_steps() {
  for (const CapturedOperator& op : c_.operators) {
    const std::string& name = c_.text(op.name);
    if (!name.starts_with("ProfilerStep#")) continue;
    if (!steps_.empty() && (steps_.back().start == op.start || steps_.back().name == name)) continue;  // written twice
    steps_.push_back({name, op.start, op.thread});
  }
}

Phase CapturePhases::own_phase(const CapturedOperator& op) const {
  const string_view name = c_.text(op.name);
  if (name.starts_with("autograd::engine::evaluate_function")) return Phase::backward;
  if (name.starts_with("Optimizer.step#")) return Phase::optimizer;
  if (is_backward_name(name) && op.thread != main_thread_) return Phase::backward;
  return Phase::unknown;
}

void CapturePhases::find_windows() {
  if (steps_.empty()) windows_.emplace_back();
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    Window window;
    window.start = i == 0 ? Time{} : steps_[i].start;
    window.end = i + 1 < steps_.size() ? steps_[i + 1].start : kNever;
    window.forward_start = steps_[i].start;
    windows_.push_back(window);
  }
  phase_of_operator_.resize(c_.operators.size(), Phase::unknown);
  std::size_t at = 0;
  for (std::size_t i = 0; i < c_.operators.size(); ++i) {
    const CapturedOperator& op = c_.operators[i];
    Phase phase = own_phase(op);
    if (phase == Phase::unknown && op.parent != kNoIndex) phase = phase_of_operator_[op.parent];
    phase_of_operator_[i] = phase;
    while (at + 1 < windows_.size() && op.start >= windows_[at].end) ++at;
    Window& window = windows_[at];
    if (phase == Phase::backward) {
      if (!window.has_backward) {
        window.backward_start = op.start;
        window.backward_thread = op.thread;
        window.has_backward = true;
      }
      if (op.thread == window.backward_thread) window.backward_end = std::max(window.backward_end, op.end());
    } else if (phase == Phase::optimizer) {
      window.optimizer_start = std::min(window.optimizer_start, op.start);
    } else if (!window.has_backward && window.optimizer_start == kNever &&
               c_.text(op.name).starts_with("Optimizer.zero_grad")) {
      window.forward_start = std::max(window.forward_start, op.end());
    }
  }
}

const CapturePhases::Window& CapturePhases::window_at(Time time) const {
  const auto after = std::upper_bound(windows_.begin() + 1, windows_.end(), time,
                                      [](Time t, const Window& window) { return t < window.start; });
  return *(after - 1);
}

Phase CapturePhases::phase(std::uint16_t thread, Time time, std::uint32_t operator_index) const {
  if (operator_index != kNoIndex && phase_of_operator_[operator_index] != Phase::unknown)
    return phase_of_operator_[operator_index];
  const Window& window = window_at(time);
  if (window.has_backward && thread == window.backward_thread && thread != main_thread_ &&
      time >= window.backward_start && time <= window.backward_end)
    return Phase::backward;  // between two of its functions
  if (thread == main_thread_ && time >= window.forward_start &&
      time < std::min(window.backward_start, window.optimizer_start))
    return Phase::forward;
  return Phase::unknown;
}

}  // namespace memwall
