#include "traces/run/analysis/peak.h"

#include <algorithm>
#include <numeric>

#include "traces/run/analysis/run_scan.h"

namespace memwall {
namespace {

PeakStorage describe(const Run& run, const Residency& residency, OpId maker) {
  const Trace& trace = run.trace;
  const Storage& storage = trace.storages[residency.storage];
  PeakStorage out{residency.storage, storage.bytes,   storage.kind, trace.strings[storage.label], "",
                  Phase::unknown,    residency.begin, residency.end};
  if (maker == kNoOp) return out;
  const Op& op = trace.ops[maker];
  out.phase = op.phase;
  out.module = trace.strings[op.module];
  if (out.label.empty()) out.label = trace.strings[op.operator_name != 0 ? op.operator_name : op.name];
  return out;
}

Peak find_peak_with(const Run& run, int tier, std::size_t limit, const std::vector<OpId>& made_by) {
  const auto t = static_cast<std::size_t>(tier);
  Peak peak;
  peak.tier = tier;
  if (t >= run.result.tiers.size()) return peak;
  const TierResult& result = run.result.tiers[t];
  peak.time = result.peak_time;
  peak.allocated = result.peak_allocated;
  std::copy(std::begin(result.peak_by_kind), std::end(result.peak_by_kind), peak.by_kind.begin());
  peak.requested = std::accumulate(peak.by_kind.begin(), peak.by_kind.end(), Bytes{0});
  if (t >= run.at_peak.size()) return peak;
  std::vector<std::uint32_t> residencies = run.at_peak[t];
  peak.storages = residencies.size();
  Bytes visible = 0;
  for (const std::uint32_t i : residencies) {
    const StorageId s = run.residency[i].storage;
    const Phase phase = made_by[s] == kNoOp ? Phase::unknown : run.trace->ops[made_by[s]].phase;
    peak.by_phase[static_cast<std::size_t>(phase)] += run.trace->storages[s].bytes;
    visible += run.trace->storages[s].bytes;
  }
  peak.by_phase[static_cast<std::size_t>(Phase::unknown)] += peak.requested - visible;  // untracked
  const auto larger = [&](std::uint32_t a, std::uint32_t b) {
    const StorageId x = run.residency[a].storage, y = run.residency[b].storage;
    const Bytes bx = run.trace->storages[x].bytes, by = run.trace->storages[y].bytes;
    return bx != by ? bx > by : x < y;
  };
  const auto middle = residencies.begin() + static_cast<std::ptrdiff_t>(std::min(limit, residencies.size()));
  std::partial_sort(residencies.begin(), middle, residencies.end(), larger);
  for (auto i = residencies.begin(); i != middle; ++i) {
    const Residency& residency = run.residency[*i];
    peak.largest.push_back(describe(run, residency, made_by[residency.storage]));
  }
  return peak;
}

}  // namespace

MakerCollector::MakerCollector(const Run& run)
    : run_(run), writer_(run.trace->storages.size(), kNoOp), alloc_(run.trace->storages.size(), kNoOp) {}

void MakerCollector::add(OpId first, OpId last) {
  const Trace& trace = run_.trace;
  for (OpId id = first; id < last; ++id) {
    const Op& op = trace.ops[id];
    if (op.kind == OpKind::alloc && alloc_[op.target] == kNoOp) alloc_[op.target] = id;
    for (const Use& use : trace.uses_of(op))
      if (use.access == Access::write && writer_[use.storage] == kNoOp) writer_[use.storage] = id;
  }
}

std::vector<OpId> MakerCollector::take() {
  for (StorageId s = 0; s < writer_.size(); ++s) {
    if (run_.trace->storages[s].preexisting)
      writer_[s] = kNoOp;
    else if (writer_[s] == kNoOp)
      writer_[s] = alloc_[s];
  }
  return std::move(writer_);
}

Peak find_peak(const Run& run, int tier, std::size_t limit) {
  MakerCollector makers(run);
  scan(run, makers);
  return find_peak_with(run, tier, limit, makers.take());
}

std::vector<Peak> find_peaks(const Run& run, const std::vector<OpId>& made_by, std::size_t limit) {
  std::vector<Peak> peaks;
  for (std::size_t t = 0; t < run.machine.tiers.size(); ++t)
    peaks.push_back(find_peak_with(run, static_cast<int>(t), limit, made_by));
  return peaks;
}

std::vector<Peak> find_peaks(const Run& run, std::size_t limit) {
  MakerCollector makers(run);
  scan(run, makers);
  return find_peaks(run, makers.take(), limit);
}

}  // namespace memwall
