#include "models/workload/import/cupti/nvtx_ranges.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <string_view>
#include <unordered_map>

namespace memwall {
namespace {

using std::string_view;

constexpr std::uint32_t kInstant = 1, kStart = 2, kEnd = 4;
constexpr string_view kModulePrefix = "nn.Module: ";

// What a name says in small letters, without a call's parentheses: "Optimizer.step()" is "optimizer_step".
std::string plain(string_view name) {
  std::string text;
  for (const char c : name) {
    if (c == '(' || c == ')') continue;
    const bool word = std::isalnum(static_cast<unsigned char>(c)) != 0;
    text += word ? static_cast<char>(std::tolower(static_cast<unsigned char>(c))) : '_';
  }
  while (text.ends_with('_')) text.pop_back();
  while (text.starts_with('_')) text.erase(0, 1);
  return text;
}

// "step_12", "iteration", "step12": the word, with a number behind it or not.
bool numbered(string_view text, string_view word) {
  if (!text.starts_with(word)) return false;
  return text.find_first_not_of("_0123456789", word.size()) == string_view::npos;
}

RangeMeaning meaning_of(string_view name) {
  if (name.size() > 64) return RangeMeaning::none;
  const std::string text = plain(name);
  for (const string_view step : {"step", "train_step", "training_step", "iteration", "iter", "profilerstep"})
    if (numbered(text, step)) return RangeMeaning::step;
  for (const string_view forward : {"forward", "forward_pass", "fwd"})
    if (text == forward) return RangeMeaning::forward;
  for (const string_view backward : {"backward", "backward_pass", "bwd", "loss_backward"})
    if (text == backward) return RangeMeaning::backward;
  for (const string_view optimizer : {"optimizer", "optimizer_step", "optim_step", "opt_step", "optimizer_update"})
    if (text == optimizer) return RangeMeaning::optimizer;
  return RangeMeaning::none;
}

// A list in brackets at the front of a text, with what it holds; "" where it does not end.
string_view bracketed(string_view text) {
  int depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '[') ++depth;
    if (text[i] == ']' && --depth == 0) return text.substr(0, i + 1);
    if (depth == 0) return {};
  }
  return {};
}

// As autograd names its functions: "AddmmBackward0", alone or as what the engine evaluates.
bool is_backward(string_view name) {
  if (name.starts_with("autograd::engine::evaluate_function")) return true;
  name = name.substr(0, name.find_last_not_of("0123456789") + 1);
  return name.ends_with("Backward") && name.find("::") == string_view::npos;
}

// torch.autograd.profiler.emit_nvtx writes "aten::addmm, seq = 7, op_id = 12, sizes = [[4, 8], [8, 2]]".
bool read_operator(string_view name, CapturedOperator& op, StringTable& strings) {
  std::size_t end = string_view::npos;
  for (const string_view field : {", seq = ", ", op_id = ", ", sizes = "}) end = std::min(end, name.find(field));
  if (end == string_view::npos || end == 0) return false;
  op.name = strings.intern(name.substr(0, end));
  if (is_backward(name.substr(0, end))) op.forward_thread = 1;  // which one it was is not said
  if (const std::size_t at = name.find(", seq = "); at != string_view::npos) {
    const string_view number = name.substr(at + 8);
    std::int64_t value = -1;
    std::from_chars(number.data(), number.data() + number.size(), value);
    op.sequence_number = std::max<std::int64_t>(value, -1);
  }
  if (const std::size_t at = name.find(", sizes = "); at != string_view::npos)
    if (const string_view list = bracketed(name.substr(at + 10)); !list.empty()) op.input_dims = strings.intern(list);
  return true;
}

class RangeAdder {
 public:
  RangeAdder(const CuptiRecords& records, const std::string& step_range,
             const std::function<std::uint16_t(std::uint32_t)>& thread, TimedCapture& capture, CaptureTimeRange& span)
      : records_(records), step_range_(step_range), thread_(thread), capture_(capture), span_(span) {}

  NvtxRangeCounts run() {
    std::unordered_map<std::uint32_t, std::uint32_t> open;  // id -> the marker that begins it
    for (std::uint32_t i = 0; i < records_.markers.size(); ++i) {
      if ((records_.markers[i].flags & kStart) != 0) open.insert_or_assign(records_.markers[i].id, i);
      counts_.instants += (records_.markers[i].flags & kInstant) != 0;
    }
    for (const NvtxMarker& end : records_.markers) {
      if ((end.flags & kEnd) == 0) continue;
      const auto begin = open.find(end.id);
      if (begin == open.end()) continue;
      add(records_.markers[begin->second], end);
      open.erase(begin);
    }
    counts_.open = open.size();
    return counts_;
  }

 private:
  void add(const NvtxMarker& begin, const NvtxMarker& end) {
    if (begin.thread == 0 || begin.thread != end.thread || end.time < begin.time || begin.time == 0) {
      ++counts_.across_threads;
      return;
    }
    span_.see(begin.time);
    span_.see(end.time);
    ++counts_.ranges;
    const string_view name = records_.strings[begin.name];
    if (name.starts_with(kModulePrefix)) {
      CapturedModule module;
      module.name = capture_.strings.intern(name.substr(kModulePrefix.size()));
      module.start = Time(begin.time);
      module.duration = Duration(end.time - begin.time);
      module.thread = thread_(begin.thread);
      capture_.modules.push_back(module);
      ++counts_.modules;
      return;
    }
    CapturedOperator op;
    op.annotation = !read_operator(name, op, capture_.strings);
    if (op.annotation) describe(name, op);
    counts_.operators += !op.annotation;
    op.start = Time(begin.time);
    op.duration = Duration(end.time - begin.time);
    op.thread = thread_(begin.thread);
    capture_.operators.push_back(op);
  }

  void describe(string_view name, CapturedOperator& op) {
    op.name = capture_.strings.intern(name);
    op.meaning = meaning_of(name);
    if (!step_range_.empty()) {
      if (op.meaning == RangeMeaning::step) op.meaning = RangeMeaning::none;
      if (name.starts_with(step_range_)) op.meaning = RangeMeaning::step;
    }
    counts_.steps += op.meaning == RangeMeaning::step;
    counts_.phases += op.meaning != RangeMeaning::step && op.meaning != RangeMeaning::none;
  }

  const CuptiRecords& records_;
  const std::string& step_range_;
  const std::function<std::uint16_t(std::uint32_t)>& thread_;
  TimedCapture& capture_;
  CaptureTimeRange& span_;
  NvtxRangeCounts counts_;
};

}  // namespace

NvtxRangeCounts add_ranges(const CuptiRecords& records, const std::string& step_range,
                             const std::function<std::uint16_t(std::uint32_t)>& thread, TimedCapture& capture,
                             CaptureTimeRange& span) {
  return RangeAdder(records, step_range, thread, capture, span).run();
}

}  // namespace memwall
