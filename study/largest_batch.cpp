#include "study/largest_batch.h"

#include <algorithm>

namespace memwall {
namespace {

const TierResult* gpu_memory(const Machine& machine, const SimulationResult& result) {
  const int hbm = machine.tier("hbm");
  return hbm < 0 ? nullptr : &result.tiers[static_cast<std::size_t>(hbm)];
}

OpId first_writer(const Trace& trace, StorageId storage) {
  for (OpId id = 0; id < trace.ops.size(); ++id)
    for (const Use& use : trace.uses_of(trace.ops[id]))
      if (use.storage == storage && use.access == Access::write) return id;
  return kNoOp;
}

OpId alloc_of(const Trace& trace, StorageId storage) {
  for (OpId id = 0; id < trace.ops.size(); ++id)
    if (trace.ops[id].kind == OpKind::alloc && trace.ops[id].target == storage) return id;
  return kNoOp;
}

}  // namespace

BatchProbe probe_of(std::int64_t samples, std::uint32_t ranks, const Machine& machine, const SimulationResult& result) {
  BatchProbe probe{.samples = samples, .ranks = ranks, .fits = result.fits};
  const auto steps = static_cast<std::int64_t>(result.steps.size());
  Duration all{};
  for (const StepResult& step : result.steps) all += step.step_time;
  probe.step_time = steps > 0 ? all / steps : result.end;
  for (const TierResult& tier : result.tiers) probe.missing = std::max(probe.missing, tier.missing);
  if (const TierResult* hbm = gpu_memory(machine, result)) {
    probe.peak_allocated = hbm->peak_allocated;
    probe.peak_reserved = hbm->peak_reserved;
  }
  return probe;
}

BatchLimit limit_of(const Trace& trace, const Machine& machine, const SimulationResult& result) {
  const auto worst = std::max_element(result.tiers.begin(), result.tiers.end(),
                                      [](const TierResult& a, const TierResult& b) { return a.missing < b.missing; });
  const Tier& tier = machine.tiers[static_cast<std::size_t>(worst - result.tiers.begin())];
  BatchLimit limit{.tier = tier.name,
                   .usable = tier.holds(),
                   .missing = worst->missing,
                   .request = worst->refused,
                   .requested_bytes = 0,
                   .kind = {},
                   .label = {},
                   .operator_name = {},
                   .module = {},
                   .phase = {}};
  const StorageId id = limit.request.storage;
  if (id == kNoStorage) return limit;
  const Storage& storage = trace.storages[id];
  limit.requested_bytes = storage.bytes;
  limit.kind = to_string(storage.kind);
  limit.label = trace.strings[storage.label];
  const OpId writer = first_writer(trace, id), alloc = alloc_of(trace, id), known = writer != kNoOp ? writer : alloc;
  if (known == kNoOp) return limit;
  const Op& op = trace.ops[known];
  limit.operator_name = trace.strings[op.operator_name != 0 ? op.operator_name : op.name];
  limit.module = trace.strings[op.module];
  limit.phase = to_string(op.phase);
  return limit;
}

double samples_per_second(const BatchProbe& probe) {
  const double seconds = to_seconds(probe.step_time);
  return probe.fits && seconds > 0 ? probe.ranks * probe.passes * static_cast<double>(probe.samples) / seconds : 0;
}

LargestBatch find_largest_batch(std::int64_t unit, std::int64_t most, const ProbeBatch& probe,
                                std::size_t most_probes) {
  LargestBatch found;
  std::int64_t fits = 0, fails = 0;  // in units
  const auto tried = [&](std::int64_t units) {
    std::optional<BatchLimit> limit;
    found.probes.push_back(probe(units * unit, &limit));
    const bool ok = found.probes.back().fits;
    (ok ? fits : fails) = units;
    if (!ok) found.limit = std::move(limit);
    return ok;
  };
  const std::int64_t last = most / unit;
  std::int64_t units = 1;
  while (tried(units) && units < last) units = units > last / 2 ? last : 2 * units;
  while (fails != 0 && fails - fits > 1 && found.probes.size() < most_probes) tried(fits + (fails - fits) / 2);
  found.largest = fits * unit;
  found.refused = fails * unit;
  if (fails == 0) return found;
  for (const std::int64_t beyond : {fails + 1, fails + 2, fails + std::max<std::int64_t>(3, fails / 8)}) {
    const bool known = std::any_of(found.probes.begin(), found.probes.end(),
                                   [&](const BatchProbe& p) { return p.samples == beyond * unit; });
    if (known || beyond > last || found.probes.size() >= most_probes) continue;
    found.probes.push_back(probe(beyond * unit, nullptr));
    if (found.probes.back().fits) found.fits_beyond = beyond * unit;
  }
  return found;
}

}  // namespace memwall
