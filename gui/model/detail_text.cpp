#include "gui/model/detail_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "gui/model/readable_name.h"
#include "gui/model/storage_name.h"

namespace memwall::gui {

std::string flops_text(double flops, const char* unit) {
  static constexpr std::array units{ScaledUnit{1, ""},    ScaledUnit{1e3, "k"},  ScaledUnit{1e6, "M"},
                                    ScaledUnit{1e9, "G"}, ScaledUnit{1e12, "T"}, ScaledUnit{1e15, "P"},
                                    ScaledUnit{1e18, "E"}};
  return scaled_text(flops, units, 3, TrailingZeros::dropped) + unit;
}

std::string stretch(Time begin, Time end) {
  if (begin == kNever || end == kNever) return "never";
  const ScaledUnit unit = time_unit(to_seconds(end));
  int decimals = 3;
  for (double step = 1e-3 * unit.factor; begin < end && decimals < 9 && step > to_seconds(end - begin) / 50; step /= 10)
    ++decimals;
  const auto instant = [&](Time time) {
    return fmt::format("{:.{}f} {}", to_seconds(time) / unit.factor, decimals, unit.name);
  };
  return fmt::format("{}, from {} to {}", format_time(end - begin), instant(begin), instant(end));
}

std::string title_of(const OpDetail& detail) {
  const std::string& name = !detail.name.empty() ? detail.name : detail.operator_name;
  return name.empty() ? std::string(to_string(detail.op.kind)) : readable_name(name);
}

std::string describe_op(const OpenRun& run, OpId id) {
  const OpDetail detail = run.source->op(id);
  return fmt::format("#{} {}{}", id, title_of(detail), detail.module.empty() ? "" : " (" + detail.module + ")");
}

std::string describe_storage(const OpenRun& run, StorageId storage) {
  std::string text = fmt::format("storage {}", storage);
  if (run.history && storage < run.history->storages().bytes.size())
    text += fmt::format(": {}, {}", to_string(run.history->storages().kind[storage]),
                        format_bytes(run.history->storages().bytes[storage]));
  const StorageName name = name_of(run, storage);
  if (!name.label.empty()) text += ", " + readable_name(name.label);
  if (!name.module.empty()) text += " of " + name.module;
  return text;
}

std::string origin_text(const Op& op) {
  std::string text(op.origin == Origin::measured      ? "measured on the machine of the trace"
                   : op.origin == Origin::transferred ? "transferred from another machine or size by a model"
                                                      : "modelled from the machine's numbers");
  if (op.error_permille > 0) text += fmt::format(", 90 % of truths within {:.1f} %", op.error_permille / 10.0);
  return text;
}

}  // namespace memwall::gui
