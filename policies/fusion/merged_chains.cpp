#include "policies/fusion/merged_chains.h"

#include <fmt/format.h>

#include <vector>

#include "policies/fusion/fused_trace.h"
#include "sim/human_text.h"

namespace memwall {
namespace {

constexpr int kMostRounds = 32;

struct Totals {
  std::size_t kernels = 0;
  Bytes bytes = 0;
  Duration time{};
};

Totals totals_of(const Trace& trace) {
  Totals all;
  for (const Op& op : trace.ops) {
    if (op.kind != OpKind::kernel && op.kind != OpKind::memset) continue;
    all.kernels += op.kernels;
    all.bytes += op.bytes;
    all.time += op.duration;
  }
  return all;
}

void count(const Trace& trace, const FusionGroup& group, MergedChains& merged) {
  merged.ops += group.members.size();
  ++merged.into;
  merged.vanished += group.vanished.size();
  for (const StorageId s : group.vanished) merged.vanished_bytes += trace.storages[s].bytes;
}

}  // namespace

MergedChains with_merged_chains(const Trace& trace, const FusionRules& rules, const HostCosts& host,
                                const Pricer& pricer) {
  MergedChains merged;
  merged.trace = trace;
  for (int round = 0; round < kMostRounds; ++round) {
    const std::vector<FusionGroup> groups = plan_fusion(merged.trace, rules);
    if (groups.empty()) break;
    for (const FusionGroup& g : groups) count(merged.trace, g, merged);
    merged.trace = with_fusion(merged.trace, groups, host, pricer);
  }
  return merged;
}

std::string merged_text(const Trace& before, const MergedChains& merged) {
  const Totals was = totals_of(before), is = totals_of(merged.trace);
  return fmt::format(
      "{} became {}; {} of {} never {} memory; kernels {} -> {}, their traffic {} -> {}, their time {} -> {}",
      counted_text(merged.ops, "op"), merged.into, counted_text(merged.vanished, "intermediate"),
      human_bytes(merged.vanished_bytes), by_number(merged.vanished, "reaches", "reach"), was.kernels, is.kernels,
      human_bytes(was.bytes), human_bytes(is.bytes), human_time(was.time), human_time(is.time));
}

}  // namespace memwall
