#include "models/workload/memory/source_lines.h"

#include <fmt/format.h>

#include <map>
#include <string_view>

#include "models/workload/memory/allocations.h"
#include "models/workload/memory/stack_phase.h"

namespace memwall {
namespace {

using std::string_view;

// The last `count` components of a path.
string_view last_components(string_view path, int count) {
  std::size_t from = path.size();
  while (count-- > 0 && from != path.npos && from > 0) from = path.find_last_of("/\\", from - 1);
  return from == path.npos || from == 0 ? path : path.substr(from + 1);
}

// What stands between the model's code and PyTorch: it names no line that a person would change.
bool is_library_file(string_view file) {
  if (is_torch_file(file) || file.starts_with('<')) return true;
  for (const string_view package : {"-packages/einops/", "-packages/opt_einsum/", "-packages/triton/",
                                    "-packages/functorch/", "-packages/torchgen/"})
    if (file.find(package) != file.npos) return true;
  // Python's own library: .../lib/python3.12/contextlib.py
  const std::size_t library = file.find("/lib/python3");
  return library != file.npos && file.find("-packages/", library) == file.npos;
}

// "void at::cuda::cub::sort<long, 8>(long const*, ...)" -> "at::cuda::cub::sort".
string_view function_name(string_view signature) {
  int depth = 0;
  std::size_t begin = 0, end = signature.size();
  for (std::size_t i = 0; i < signature.size(); ++i) {
    const char c = signature[i];
    if (c == '<' && depth++ == 0 && i > begin) end = i;
    if (c == '>' && depth > 0) --depth;
    if (depth > 0 || c == '>') continue;
    if (c == '(' && signature.substr(i, 11) == "(anonymous ") {
      i += 20;  // "(anonymous namespace)"
      continue;
    }
    if (c == '(') return signature.substr(begin, std::min(end, i) - begin);
    if (c == ' ') begin = i + 1, end = signature.size();
    if (c == ':') end = signature.size();  // a template's member: its name is still to come
  }
  return signature.substr(begin, end - begin);
}

// "torch::autograd::generated::MulBackward0::apply(...)" -> "MulBackward0"; empty for everything else.
string_view autograd_node(string_view function) {
  const std::size_t apply = function.find("::apply(");
  if (!function.starts_with("torch::autograd::") || apply == function.npos) return {};
  const string_view node = function.substr(0, apply);
  return node.substr(node.rfind(':') + 1);
}

// "at::_ops::sum_dim_IntList::call(...)" -> "sum_dim_IntList".
string_view operator_name(string_view function) {
  constexpr string_view kPrefix = "at::_ops::";
  if (!function.starts_with(kPrefix)) return {};
  const string_view rest = function.substr(kPrefix.size());
  return rest.substr(0, rest.find(':'));
}

// Frames of the allocator and of the recorder itself stand innermost in every stack.
bool is_allocator(string_view function) {
  for (const string_view part : {"torch::unwind", "CapturedTraceback", "gather_with_cpp", "CachingAllocator"})
    if (function.find(part) != function.npos) return true;
  return function.empty() || function == "??";
}

}  // namespace

SourceLines::SourceLines(const MemoryRecording& recording) : recording_(recording) {
  std::map<string_view, StringId> seen;
  for (const SourceFrame& frame : recording.frames) {
    const string_view file = recording.strings[frame.file];
    if (!is_python_file(file)) continue;
    const auto [first, added] = seen.emplace(last_components(file, 1), frame.file);
    if (!added && first->second != frame.file) ambiguous_.emplace(first->first);
  }
}

const std::string& SourceLines::of(StackId stack) {
  const auto known = known_.find(stack);
  return known != known_.end() ? known->second : known_.emplace(stack, line_of(recording_.stacks[stack])).first->second;
}

std::string SourceLines::python_line(const SourceFrame& frame) const {
  const std::string& file = recording_.strings[frame.file];
  const string_view name = last_components(file, 1);
  const bool ambiguous = ambiguous_.count(std::string(name)) > 0;
  return fmt::format("{}:{} {}", ambiguous ? last_components(file, 2) : name, frame.line,
                     recording_.strings[frame.function]);
}

std::string SourceLines::line_of(const std::vector<std::uint32_t>& stack) const {
  if (stack.empty()) return "no frames recorded";
  const SourceFrame* python = nullptr;
  string_view node, op, innermost;
  for (const std::uint32_t id : stack) {
    const SourceFrame& frame = recording_.frames[id];
    const string_view function = recording_.strings[frame.function];
    if (is_python_file(recording_.strings[frame.file])) {
      if (!is_library_file(recording_.strings[frame.file])) return python_line(frame);
      if (python == nullptr) python = &frame;
      continue;
    }
    if (node.empty()) node = autograd_node(function);
    if (const string_view name = operator_name(function); !name.empty() && node.empty()) op = name;
    if (!innermost.empty() || is_allocator(function)) continue;
    innermost = function_name(function);
    if (innermost.empty()) innermost = function;  // no name that can be read
  }
  if (python != nullptr) return python_line(*python);
  if (!node.empty()) return op.empty() ? std::string(node) : fmt::format("{} aten::{}", node, op);
  if (!op.empty()) return fmt::format("aten::{}", op);
  return innermost.empty() ? "frames of the allocator only" : std::string(innermost);
}

std::string source_line(const MemoryRecording& recording, StackId stack) { return SourceLines(recording).of(stack); }

}  // namespace memwall
