#include "traces/plan/plan_summary.h"

namespace memwall {
namespace {

PlanDocument without_decisions(const PlanDocument& document) {
  PlanDocument none;
  none.trace = document.trace;
  none.ops = document.ops;
  none.storages = document.storages;
  none.fingerprint = document.fingerprint;
  return none;
}

void count(const StorageDecision& d, Bytes bytes, PlanSummary& summary) {
  if (d.home != StorageDecision::kDevice) ++summary.traffic[d.home].homes;
  for (const PlannedCopy& copy : d.copies) {
    ++summary.traffic[copy.tier].copies;
    summary.traffic[copy.tier].bytes_out += bytes;
  }
  for (const PlannedFetch& fetch : d.fetches) {
    if (fetch.tier == PlannedFetch::kNoTier) {
      ++summary.allocations;
      continue;
    }
    ++summary.traffic[fetch.tier].fetches;
    summary.traffic[fetch.tier].bytes_back += bytes;
  }
  summary.drops += d.drops.size();
}

}  // namespace

PlanSummary summary_of(const PlanDocument& document) {
  PlanSummary summary;
  for (const TransferStyle& style : document.plan.tiers) summary.traffic.push_back({style});
  for (std::size_t i = 0; i < document.plan.storages.size(); ++i)
    count(document.plan.storages[i], document.notes[i].bytes.value_or(0), summary);
  summary.reruns = document.plan.reruns.size();
  for (const PlannedRerun& rerun : document.plan.reruns) summary.called += rerun.called.size();
  summary.keeps = document.plan.keeps.size();
  summary.decided = compare(without_decisions(document), document, "", "");
  return summary;
}

}  // namespace memwall
