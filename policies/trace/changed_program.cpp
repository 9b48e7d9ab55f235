#include "policies/trace/changed_program.h"

#include <algorithm>
#include <set>
#include <string>
#include <string_view>

namespace memwall {

bool has_masked_weights(const Trace& trace) {
  constexpr std::string_view kMask = "_mask";
  std::set<std::string_view> labels;
  for (const Storage& s : trace.storages)
    if (s.kind == StorageKind::parameter) labels.insert(trace.strings[s.label]);
  return std::ranges::any_of(labels, [&](std::string_view label) {
    if (!label.ends_with(kMask)) return false;
    const std::string weight(label.substr(0, label.size() - kMask.size()));
    return labels.contains(weight) || labels.contains(weight + "_orig");
  });
}

bool has_compiled_code(const Trace& trace) {
  return std::ranges::any_of(trace.ops, [](const Op& op) {
    return op.kind == OpKind::kernel && op.dispatch == Dispatch::compiled;
  });
}

}  // namespace memwall
