#include "models/workload/import/timed/capture_phases.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "models/workload/import/timed/repeated_steps.h"

namespace memwall {
namespace {

using std::string_view;

bool is_backward_name(string_view name) {
  // "MulBackward0", "NativeBatchNormBackward"; not "aten::threshold_backward".
  while (!name.empty() && name.back() >= '0' && name.back() <= '9') name.remove_suffix(1);
  return name.ends_with("Backward") && name.find("::") == string_view::npos;
}

}  // namespace

CapturePhases::CapturePhases(const TimedCapture& capture) : c_(capture) {
  stated_steps_ = std::any_of(c_.operators.begin(), c_.operators.end(),
                              [](const CapturedOperator& op) { return op.meaning == RangeMeaning::step; });
  find_main_thread();
  find_steps();
  marks_steps_ = !steps_.empty();
  if (!marks_steps_) find_repeated_steps();
  find_windows();
}

void CapturePhases::find_main_thread() {
  // Steps and optimizers are named on the thread that trains; else the first operator that is not backward.
  int found = -1;
  for (const CapturedOperator& op : c_.operators) {
    const string_view name = c_.text(op.name);
    if (op.meaning == RangeMeaning::step ||
        (!stated_steps_ && (name.starts_with("ProfilerStep#") || name.starts_with("Optimizer.")))) {
      main_thread_ = op.thread;
      return;
    }
    if (found < 0 && op.forward_thread <= 0 && !name.starts_with("autograd::") && !is_backward_name(name))
      found = op.thread;
  }
  main_thread_ = static_cast<std::uint16_t>(std::max(found, 0));
}

void CapturePhases::find_steps() {
  Time end{};  // of the range that means the last step
  for (const CapturedOperator& op : c_.operators) {
    const std::string& name = c_.text(op.name);
    if (op.meaning == RangeMeaning::step) {
      if (op.thread == main_thread_ && op.start >= end) steps_.push_back({name, op.start, op.thread});
      end = std::max(end, op.end());  // a step inside a step is none
      continue;
    }
    if (stated_steps_ || !name.starts_with("ProfilerStep#")) continue;
    if (!steps_.empty() && (steps_.back().start == op.start || steps_.back().name == name)) continue;  // written twice
    steps_.push_back({name, op.start, op.thread});
  }
}

// Ranges that a program names around its work are looked through.
void CapturePhases::find_repeated_steps() {
  std::vector<StepOperator> sequence;
  std::vector<std::uint32_t> operators;
  std::vector<char> is_around(c_.operators.size(), 0);  // a range without a meaning, within others or none
  for (std::uint32_t k = 0; k < c_.operators.size(); ++k) {
    const CapturedOperator& op = c_.operators[k];
    const Range range = own_range(op);
    if (op.thread != main_thread_) {
      if (range == Range::backward && !sequence.empty()) sequence.back().before_backward = true;
      continue;
    }
    if (op.parent != kNoIndex && !is_around[op.parent]) continue;
    is_around[k] = op.annotation && range == Range::none ? 1 : 0;
    if (is_around[k]) continue;
    sequence.push_back({op.name, range == Range::optimizer, false});
    operators.push_back(k);
  }
  const RepeatedSteps found = repeated_steps(sequence);
  iterations_ = found.rounds;
  for (std::size_t i = 0; i < found.first.size(); ++i)
    steps_.push_back(
        {"iteration " + std::to_string(i + 1), c_.operators[operators[found.first[i]]].start, main_thread_});
}

std::string CapturePhases::window_name() const {
  if (iterations_ == 0) return "window";
  return iterations_ == 1 ? "window of one iteration" : "window of " + std::to_string(iterations_) + " iterations";
}

CapturePhases::Range CapturePhases::own_range(const CapturedOperator& op) const {
  const string_view name = c_.text(op.name);
  if (op.meaning == RangeMeaning::forward) return Range::forward;
  if (op.meaning == RangeMeaning::backward) return Range::backward;
  if (op.meaning == RangeMeaning::optimizer) return Range::optimizer;
  if (name.starts_with("autograd::engine::evaluate_function")) return Range::backward;
  if (name.starts_with("Optimizer.step#")) return Range::optimizer;
  if (name.starts_with("Optimizer.zero_grad")) return Range::zero_grad;
  if (is_backward_name(name) && op.thread != main_thread_) return Range::backward;
  return Range::none;
}

void CapturePhases::cut_windows() {
  std::vector<Time> starts = {Time{}};
  for (std::size_t i = 1; i < steps_.size(); ++i) starts.push_back(steps_[i].start);
  if (steps_.empty())
    for (const CapturedOperator& op : c_.operators)
      if (own_range(op) == Range::optimizer && op.end() > starts.back()) starts.push_back(op.end());
  for (std::size_t i = 0; i < starts.size(); ++i) {
    Window window;
    window.start = starts[i];
    window.end = i + 1 < starts.size() ? starts[i + 1] : kNever;
    window.forward_start = i == 0 && !steps_.empty() ? steps_[0].start : starts[i];
    windows_.push_back(window);
  }
}

void CapturePhases::find_windows() {
  cut_windows();
  range_of_operator_.resize(c_.operators.size(), Range::none);
  std::size_t at = 0;
  for (std::size_t i = 0; i < c_.operators.size(); ++i) {
    const CapturedOperator& op = c_.operators[i];
    Range range = own_range(op);
    const bool outermost = range != Range::none;
    if (!outermost && op.parent != kNoIndex) range = range_of_operator_[op.parent];
    range_of_operator_[i] = range;
    while (at + 1 < windows_.size() && op.start >= windows_[at].end) ++at;
    note(windows_[at], op, range, outermost);
  }
  for (Window& window : windows_)
    if (window.zero_grad_end > Time{} && window.before_zero_grad * 2 < window.operators)
      window.forward_start = std::max(window.forward_start, window.zero_grad_end);
}

void CapturePhases::note(Window& window, const CapturedOperator& op, Range range, bool outermost) const {
  switch (range) {
    case Range::backward:
      if (!window.has_backward) {
        window.backward_start = op.start;
        window.backward_thread = op.thread;
        window.has_backward = true;
      }
      window.stated_backward = window.stated_backward || op.meaning == RangeMeaning::backward;
      if (op.thread == window.backward_thread) window.backward_end = std::max(window.backward_end, op.end());
      break;
    case Range::optimizer:
      window.optimizer_start = std::min(window.optimizer_start, op.start);
      break;
    case Range::zero_grad:
      if (!outermost || window.has_backward) break;
      window.zero_grad_end = op.end();
      window.before_zero_grad = window.operators;
      break;
    default:
      if (!window.has_backward && op.thread == main_thread_) ++window.operators;
  }
}

const CapturePhases::Window& CapturePhases::window_at(Time time) const {
  const auto after = std::upper_bound(windows_.begin() + 1, windows_.end(), time,
                                      [](Time t, const Window& window) { return t < window.start; });
  return *(after - 1);
}

Phase CapturePhases::phase(std::uint16_t thread, Time time, std::uint32_t operator_index) const {
  switch (operator_index == kNoIndex ? Range::none : range_of_operator_[operator_index]) {
    case Range::forward:
      return Phase::forward;
    case Range::backward:
      return Phase::backward;
    case Range::optimizer:
      return Phase::optimizer;
    case Range::zero_grad:
      return Phase::unknown;
    default:
      break;
  }
  const Window& window = window_at(time);
  if (window.has_backward && (thread == window.backward_thread || window.stated_backward) && thread != main_thread_ &&
      time >= window.backward_start && time <= window.backward_end)
    return Phase::backward;  // between two of its functions
  if (thread == main_thread_ && time >= window.forward_start &&
      time < std::min(window.backward_start, window.optimizer_start))
    return Phase::forward;
  return Phase::unknown;
}

}  // namespace memwall
