#include "tests/support/kernel_lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "tests/support/step_memory.h"

namespace memwall {
namespace {

bool is_gradient_sum(const StepKernel& kernel) {
  return kernel.phase == Phase::backward && (kernel.name == "aten::add_" || kernel.name == "aten::add");
}

}  // namespace

std::vector<std::string> kernel_lines(const Trace& trace) {
  std::vector<std::string> lines;
  const StepMemory memory = step_memory(trace);
  std::size_t next = 0;
  for (const Op& op : trace.ops) {
    if (!runs_on_device(op.kind) || op.kind == OpKind::copy || op.kind == OpKind::storage_io) continue;
    const StepKernel& kernel = memory.kernels.at(next++);
    const std::string module = is_gradient_sum(kernel) ? "" : fmt::format(" in '{}'", kernel.module);
    lines.push_back(fmt::format("{}{}, {} kernels, {}, {} bytes, {} FLOPs, {} bytes live", text_of(kernel), module,
                                op.kernels, to_string(op.data_type), op.bytes, op.flops, total(kernel.live)));
  }
  return lines;
}

std::string kernel_difference(const Trace& found, const Trace& expected, Phases phases) {
  std::vector<std::string> a = kernel_lines(found), b = kernel_lines(expected);
  if (phases == Phases::are_not_told)
    for (auto* lines : {&a, &b})
      for (std::string& line : *lines) line = line.substr(line.find(' ') + 1);
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    if (a[i] != b[i])
      return fmt::format("kernel {}:\n  found    {}\n  expected {}{}", i, a[i], b[i],
                         i > 0 ? "\n  behind   " + a[i - 1] : "");
  if (a.size() != b.size()) return fmt::format("found {} kernels, expected {}", a.size(), b.size());
  return "";
}

std::string kernel_count_difference(const Trace& found, const Trace& expected) {
  std::map<std::string, int> more;
  const auto count = [&](const Trace& trace, int each) {
    for (const Op& op : trace.ops)
      if (runs_on_device(op.kind) && op.kind != OpKind::copy && op.kind != OpKind::storage_io)
        more[fmt::format("{} {} {}", to_string(op.phase), trace.strings[op.operator_name], to_string(op.data_type))] +=
            each;
  };
  count(found, 1);
  count(expected, -1);
  std::string text;
  for (const auto& [kernel, by] : more)
    if (by != 0) text += fmt::format("{}{} {:+}", text.empty() ? "" : "; ", kernel, by);
  return text;
}

}  // namespace memwall
