#include "models/workload/import/timed/module_paths.h"

#include <map>
#include <unordered_map>
#include <utility>

namespace memwall {
namespace {

// The innermost module span of the operator's thread that contains its start.
std::vector<std::uint32_t> modules_by_time(const TimedCapture& c) {
  std::vector<std::uint32_t> module_of(c.operators.size(), kNoIndex);
  std::vector<std::uint32_t> newest(c.threads.size(), kNoIndex);  // begun last, per thread
  std::size_t next = 0;
  for (std::size_t i = 0; i < c.operators.size(); ++i) {
    const CapturedOperator& op = c.operators[i];
    for (; next < c.modules.size() && c.modules[next].start <= op.start; ++next)
      newest[c.modules[next].thread] = static_cast<std::uint32_t>(next);
    std::uint32_t module = newest[op.thread];
    while (module != kNoIndex && c.modules[module].end() < op.end()) module = c.modules[module].parent;
    module_of[i] = module;
  }
  return module_of;
}

// A step's modules come again in every step: a path is kept once.
std::vector<std::uint32_t> paths_of_spans(const TimedCapture& c, std::vector<std::string>& paths) {
  std::vector<std::uint32_t> path_of;
  path_of.reserve(c.modules.size());
  std::map<std::pair<std::uint32_t, StringId>, std::uint32_t> known;  // by path of the parent and own name
  for (const CapturedModule& module : c.modules) {
    const std::uint32_t parent = module.parent == kNoIndex ? kNoIndex : path_of[module.parent];
    const auto [path, is_new] = known.try_emplace({parent, module.name}, static_cast<std::uint32_t>(paths.size()));
    if (is_new) paths.push_back(parent == kNoIndex ? c.text(module.name) : paths[parent] + "." + c.text(module.name));
    path_of.push_back(path->second);
  }
  return path_of;
}

}  // namespace

ModulePaths find_modules(const TimedCapture& capture) {
  ModulePaths found;
  found.of_operator.assign(capture.operators.size(), kNoIndex);
  if (capture.modules.empty()) return found;
  const std::vector<std::uint32_t> path_of_span = paths_of_spans(capture, found.paths);
  found.of_operator = modules_by_time(capture);
  for (std::uint32_t& module : found.of_operator)
    if (module != kNoIndex) module = path_of_span[module];
  std::unordered_map<std::int64_t, std::uint32_t> of_sequence;
  for (std::size_t i = 0; i < capture.operators.size(); ++i) {  // by start: forward before its backward
    const CapturedOperator& op = capture.operators[i];
    std::uint32_t& module = found.of_operator[i];
    if (module == kNoIndex && op.sequence_number >= 0 && op.forward_thread > 0) {
      const auto forward = of_sequence.find(op.sequence_number);
      if (forward != of_sequence.end()) module = forward->second;
    } else if (module != kNoIndex && op.sequence_number >= 0 && op.forward_thread <= 0) {
      of_sequence[op.sequence_number] = module;
    }
    if (module == kNoIndex && op.parent != kNoIndex) module = found.of_operator[op.parent];
  }
  return found;
}

}  // namespace memwall
