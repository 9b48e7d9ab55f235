#include "models/workload/memory/stack_phase.h"

#include <algorithm>
#include <initializer_list>
#include <map>
#include <optional>
#include <utility>

namespace memwall {
namespace {

using std::string_view;
using Maker = StackFacts::Maker;

bool any_of(string_view text, std::initializer_list<string_view> words) {
  return std::find(words.begin(), words.end(), text) != words.end();
}

bool contains_any(string_view text, std::initializer_list<string_view> parts) {
  return std::any_of(parts.begin(), parts.end(), [&](string_view part) { return text.find(part) != text.npos; });
}

// What one frame says. `mark` is what decides a phase; the innermost one does.
struct FrameFacts {
  enum class Mark : std::uint8_t { none, forward, backward, optimizer, zero_grad, closure };
  Mark mark = Mark::none;
  Maker maker = Maker::none;
  bool python = false, evaluates = false, recomputes = false, accumulates = false, communication = false;
  bool reducer = false, replaces_data = false, library_workspace = false, from_host = false, inference = false;
  bool constructor = false;     // __init__, outside of PyTorch: whose class it is the next method tells
  bool optimizer_file = false;  // or, where the file shows no method, its name
};

// Functions of torch/nn/modules/module.py that make or replace parameters and buffers.
bool makes_parameters(string_view function) {
  return any_of(function, {"_apply", "to", "cuda", "half", "float", "double", "bfloat16", "type", "to_empty", "convert",
                           "load_state_dict", "_load_from_state_dict", "load", "share_memory"});
}

bool is_optimizer_file(string_view file) {
  if (file.ends_with("lr_scheduler.py") || file.ends_with("swa_utils.py")) return false;
  return contains_any(file, {"optim", "adam", "Adam", "sgd", "lion.py", "lamb.py", "muon", "adafactor", "/zero/"});
}

// Named after optimizers or one of them, it holds hardly anything else: "my/optimizer.py", "fused_adam.py". A folder
// alone says less: there are models below "optimum/".
bool is_named_after_optimizers(string_view file) {
  if (!is_optimizer_file(file) || !file.ends_with(".py")) return false;
  string_view word = file.substr(0, file.size() - 3);
  const auto before = word.find_last_of("/\\_");
  if (before != word.npos) word.remove_prefix(before + 1);
  return any_of(word, {"optimizer", "optimizers", "optim", "adam", "adamw", "Adam", "AdamW", "sgd", "lion", "lamb",
                       "muon", "adafactor"});
}

bool is_fsdp_or_zero(string_view file) { return contains_any(file, {"/fsdp/", "/deepspeed/"}); }

FrameFacts::Mark python_mark(string_view function, string_view file) {
  using Mark = FrameFacts::Mark;
  const bool torch = is_torch_file(file);
  if (function == "forward") return Mark::forward;
  if (function == "_call_impl" && torch) return Mark::forward;
  if (function == "zero_grad") return Mark::zero_grad;
  if (function == "closure") return Mark::closure;
  if (torch && (function == "backward" || function == "grad" || function == "_engine_run_backward") &&
      contains_any(file, {"torch/autograd/", "torch/_tensor.py"}))
    return Mark::backward;
  if (torch && file.ends_with("torch/optim/optimizer.py") && any_of(function, {"wrapper", "profile_hook_step"}))
    return Mark::optimizer;
  if ((function == "step" || function == "_step") && is_optimizer_file(file)) return Mark::optimizer;
  return Mark::none;
}

Maker python_maker(string_view function, string_view file) {
  if (file.ends_with("torch/nn/modules/module.py") && makes_parameters(function)) return Maker::module;
  if (function == "load_state_dict") return is_optimizer_file(file) ? Maker::optimizer : Maker::module;
  if (contains_any(file, {"torch/nn/parameter.py", "torch/nn/init.py"})) return Maker::module;
  if (any_of(function, {"reset_parameters", "from_pretrained", "_load_pretrained_model"})) return Maker::module;
  if (function != "__init__" || !is_torch_file(file)) return Maker::none;
  return file.find("torch/nn/") != file.npos      ? Maker::module
         : file.find("torch/optim/") != file.npos ? Maker::optimizer
                                                  : Maker::none;
}

FrameFacts python_facts(string_view function, string_view file) {
  FrameFacts facts;
  facts.python = true;
  facts.mark = python_mark(function, file);
  facts.maker = python_maker(function, file);
  facts.constructor = function == "__init__" && !is_torch_file(file);
  facts.optimizer_file = facts.constructor && is_named_after_optimizers(file);
  facts.recomputes =
      file.ends_with("torch/utils/checkpoint.py") &&
      any_of(function, {"recompute_fn", "unpack_hook", "backward", "inner_unpack", "_run_fn_with_dynamo_disabled"});
  facts.inference = function == "decorate_context" && is_torch_file(file);
  facts.from_host = contains_any(file, {"torch/utils/data/"});
  facts.communication = (is_fsdp_or_zero(file) && contains_any(function, {"all_gather", "allgather", "reduce_scatter",
                                                                          "unshard", "alloc_storage", "allreduce"})) ||
                        file.ends_with("torch/distributed/distributed_c10d.py");
  return facts;
}

FrameFacts cpp_facts(string_view function) {
  FrameFacts facts;
  facts.evaluates = contains_any(function, {"autograd::Engine::evaluate_function", "autograd::Engine::thread_main"});
  facts.accumulates = function.find("autograd::AccumulateGrad::") != function.npos;
  facts.replaces_data = function.find("THPVariable_set_data") != function.npos;
  facts.reducer = function.find("c10d::Reducer") != function.npos;
  facts.communication = facts.reducer || contains_any(function, {"c10d::", "ProcessGroupNCCL"});
  facts.library_workspace =
      contains_any(function, {"getCurrentCUDABlasHandle", "getCUDABlasLtWorkspace", "getNewWorkspace",
                              "getNewCUDABlasLtWorkspace", "parseChosenWorkspaceSize"});
  facts.from_host =
      contains_any(function, {"autograd::dispatch_to(at::Tensor const&, c10::Device", "THPVariable_cuda"});
  return facts;
}

// A class without a name: its constructor stands before its methods, so the next `forward` or `step` below it in the
// file says what it is; where none is below, any in the file does; where there is none, the file's name may.
class Classes {
 public:
  void note(StringId file, int line, Maker maker) { methods_[file][line] = maker; }
  Maker of(StringId file, int line, bool optimizer_file) const {
    const auto found = methods_.find(file);
    if (found == methods_.end() && optimizer_file) return Maker::optimizer;
    if (found == methods_.end()) return any_forward() ? Maker::none : Maker::module;
    const auto below = found->second.upper_bound(line);
    return below != found->second.end() ? below->second : found->second.rbegin()->second;
  }
  void note_forward() { forward_ = true; }
  // Where the recording shows no forward pass, it is a model's construction that was recorded.
  bool any_forward() const { return forward_; }

 private:
  std::map<StringId, std::map<int, Maker>> methods_;
  bool forward_ = false;
};

class StackReader {
 public:
  explicit StackReader(const MemoryRecording& recording) : recording_(recording) {
    frames_.reserve(recording.frames.size());
    for (const SourceFrame& frame : recording.frames) frames_.push_back(facts_of(frame));
    for (const auto& stack : recording.stacks) note_optimizers(stack);
  }

  StackFacts read(const std::vector<std::uint32_t>& stack) const;

 private:
  FrameFacts facts_of(const SourceFrame& frame);
  void note_optimizers(const std::vector<std::uint32_t>& stack);
  Maker maker_of(const std::vector<std::uint32_t>& stack) const;

  const MemoryRecording& recording_;
  std::map<std::pair<StringId, StringId>, FrameFacts> known_;  // by function and file
  std::vector<FrameFacts> frames_;
  Classes classes_;
};

FrameFacts StackReader::facts_of(const SourceFrame& frame) {
  const auto key = std::pair(frame.function, frame.file);
  const string_view function = recording_.strings[frame.function], file = recording_.strings[frame.file];
  auto known = known_.find(key);
  if (known == known_.end())
    known = known_.emplace(key, is_python_file(file) ? python_facts(function, file) : cpp_facts(function)).first;
  const FrameFacts& facts = known->second;
  if (facts.mark == FrameFacts::Mark::forward) classes_.note_forward();
  if (facts.mark == FrameFacts::Mark::forward || facts.mark == FrameFacts::Mark::optimizer)
    classes_.note(frame.file, frame.line, facts.mark == FrameFacts::Mark::forward ? Maker::module : Maker::optimizer);
  return facts;
}

// PyTorch wraps the `step` of every optimizer, whatever its file is called.
void StackReader::note_optimizers(const std::vector<std::uint32_t>& stack) {
  std::uint32_t step = 0xffffffff;
  for (const std::uint32_t id : stack) {
    const SourceFrame& frame = recording_.frames[id];
    if (frames_[id].python && recording_.strings[frame.function] == "step") step = id;
    if (frames_[id].mark != FrameFacts::Mark::optimizer || step == 0xffffffff || step == id) continue;
    classes_.note(recording_.frames[step].file, recording_.frames[step].line, Maker::optimizer);
  }
}

Maker StackReader::maker_of(const std::vector<std::uint32_t>& stack) const {
  for (const std::uint32_t id : stack) {
    if (frames_[id].maker != Maker::none) return frames_[id].maker;
    if (!frames_[id].constructor) continue;
    const SourceFrame& frame = recording_.frames[id];
    const Maker maker = classes_.of(frame.file, frame.line, frames_[id].optimizer_file);
    if (maker != Maker::none) return maker;
  }
  return Maker::none;
}

Phase phase_of(FrameFacts::Mark mark, bool in_backward, bool recomputes) {
  switch (mark) {
    case FrameFacts::Mark::forward:
      return in_backward || recomputes ? Phase::recompute : Phase::forward;
    case FrameFacts::Mark::optimizer:
      return Phase::optimizer;
    case FrameFacts::Mark::backward:
      return Phase::backward;
    case FrameFacts::Mark::zero_grad:
      return Phase::unknown;
    default:
      return in_backward ? Phase::backward : Phase::unknown;
  }
}

StackFacts StackReader::read(const std::vector<std::uint32_t>& stack) const {
  StackFacts facts;
  FrameFacts::Mark mark = FrameFacts::Mark::none;
  bool in_backward = false, recomputes = false, python = false;
  for (const std::uint32_t id : stack) {
    const FrameFacts& frame = frames_[id];
    python |= frame.python;
    if (mark == FrameFacts::Mark::none) mark = frame.mark;
    in_backward |= frame.evaluates;
    recomputes |= frame.recomputes;
    facts.cpp_frames |= !frame.python;
    facts.accumulates |= frame.accumulates;
    facts.replaces_data |= frame.replaces_data;
    facts.communication |= frame.communication;
    facts.reducer |= frame.reducer;
    facts.library_workspace |= frame.library_workspace;
    facts.from_host |= frame.from_host;
    facts.inference |= frame.inference;
  }
  facts.phase = phase_of(mark, in_backward, recomputes);
  facts.zero_grad = mark == FrameFacts::Mark::zero_grad;
  if (facts.phase == Phase::unknown && python && !facts.zero_grad) facts.maker = maker_of(stack);
  return facts;
}

}  // namespace

bool is_python_file(string_view file) { return file.ends_with(".py") || file.starts_with('<'); }

bool is_torch_file(string_view file) {
  return file.starts_with("torch/") || file.find("-packages/torch/") != file.npos ||
         contains_any(file, {"/torch/nn/", "/torch/optim/", "/torch/autograd/", "/torch/utils/", "/torch/_",
                             "/torch/functional.py", "/torch/distributed/", "/torch/amp/", "/torch/cuda/"});
}

std::vector<StackFacts> read_stacks(const MemoryRecording& recording) {
  const StackReader reader(recording);
  std::vector<StackFacts> facts;
  facts.reserve(recording.stacks.size());
  for (const auto& stack : recording.stacks) facts.push_back(reader.read(stack));
  return facts;
}

}  // namespace memwall
