#include "tests/support/step_lines.h"

#include <fmt/format.h>

#include <algorithm>

namespace memwall {

std::vector<std::string> lines_of(const Trace& t) {
  std::vector<std::string> lines;
  for (const Op& op : t.ops) {
    if (op.kind == OpKind::alloc || op.kind == OpKind::free) {
      const Storage& s = t.storages[op.target];
      lines.push_back(fmt::format("{} {}", to_string(op.kind), s.bytes));
    } else if (op.kind == OpKind::mark) {
      lines.push_back("mark " + t.strings[op.name]);
    } else {
      const auto uses = t.uses_of(op);
      const auto reads = std::count_if(uses.begin(), uses.end(), [](Use u) { return u.access == Access::read; });
      const bool lists = op.operator_class == OperatorClass::optimizer;  // elsewhere a capture says 1
      // Captures of truth values have a type that memwall computes nothing in.
      const DataType type = op.data_type == DataType::boolean ? DataType::unknown : op.data_type;
      lines.push_back(fmt::format("{} {} {} {} {} FLOPs {} bytes, {} kernels, {} reads of {} uses",
                                  t.strings[op.operator_name], to_string(op.operator_class), to_string(type),
                                  to_string(op.phase), op.flops, op.bytes, lists ? op.kernels : 1, reads, uses.size()));
    }
  }
  return lines;
}

SavedAndPeak memory_of(const Trace& t) {
  SavedAndPeak memory;
  Bytes live = 0;
  std::vector<bool> alive(t.storages.size(), false);
  for (const Storage& s : t.storages) live += s.preexisting && t.places[s.place] == "hbm" ? s.bytes : 0;
  memory.peak = live;
  for (const Op& op : t.ops) {
    if (op.kind == OpKind::alloc || op.kind == OpKind::free) {
      alive[op.target] = op.kind == OpKind::alloc;
      if (t.places[t.storages[op.target].place] != "hbm") continue;
      live += (op.kind == OpKind::alloc ? 1 : -1) * t.storages[op.target].bytes;
      memory.peak = std::max(memory.peak, live);
    }
    if (op.kind != OpKind::mark || t.strings[op.name] != "loss" || !memory.saved.empty()) continue;
    for (std::size_t i = 0; i < alive.size(); ++i)
      if (alive[i] && t.places[t.storages[i].place] == "hbm") memory.saved.push_back(t.storages[i].bytes);
  }
  std::sort(memory.saved.begin(), memory.saved.end());
  return memory;
}

}  // namespace memwall
