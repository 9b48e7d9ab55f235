#include "models/hw/transfer_counts.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/quantile.h"

namespace memwall {
namespace {

std::string class_of(const Op& op) {
  switch (op.kind) {
    case OpKind::copy:
    case OpKind::storage_io:
      return "copies";
    case OpKind::collective:
      return "collectives";
    case OpKind::memset:
      return "memsets";
    default:
      return op.operator_class == OperatorClass::other ? "kernels of no known class"
                                                       : fmt::format("{} kernels", to_string(op.operator_class));
  }
}

std::string_view manner(TransferRule rule) {
  switch (rule) {
    case TransferRule::launch:
      return "by their fixed time, which is all they took";
    case TransferRule::work:
      return "by FLOPs, bytes and shape";
    case TransferRule::bandwidth:
      return "taken as memory-bound, bytes inferred from the time";
    case TransferRule::between:
      return "between the ratios of peak rate and bandwidth, as their work is not known";
    case TransferRule::route:
      return "by the route's latency and bandwidth";
    case TransferRule::fabric:
      return "by the fabric's latency and bandwidth";
    case TransferRule::unchanged:
      break;
  }
  return "left as they are";
}

}  // namespace

void TransferCounts::add(const Op& op, const TransferredDuration& result) {
  const double seconds = to_seconds(op.duration);
  if (seconds <= 0) return;
  Group& group = groups_[{class_of(op), result.rule}];
  seconds_ += seconds;
  group.seconds += seconds;
  group.error_seconds += seconds * result.error;
  group.factors.push_back(static_cast<float>(to_seconds(result.duration) / seconds));
  changed_ += result.duration != op.duration || result.error > 0;
}

std::vector<std::string> TransferCounts::lines() const {
  std::vector<std::pair<double, std::string>> found;
  for (const auto& [key, group] : groups_) {
    found.emplace_back(
        group.seconds,
        fmt::format(
            "Transferred: {} {}, {:.1f} % of the device time, {}: median factor {:.3g}{}.", group.factors.size(),
            key.first, 100 * group.seconds / seconds_, manner(key.second), upper_median(group.factors),
            group.error_seconds > 0 ? fmt::format(", +-{:.0f} %", 100 * group.error_seconds / group.seconds) : ""));
  }
  std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<std::string> lines;
  for (auto& [seconds, line] : found) lines.push_back(std::move(line));
  return lines;
}

}  // namespace memwall
