// What comparisons of whole runs and of their digests share. Internal to traces/run/analysis/.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "traces/run/analysis/compare.h"
#include "traces/run/analysis/critical_path.h"

namespace memwall {

// Keys by which ops are aligned, comparable between runs: text is hashed, not its number. `text`: text_hashes of the
// trace's strings.
std::vector<std::uint64_t> text_hashes(const StringTable& strings);
std::uint64_t name_key(const Op& op, const std::vector<std::uint64_t>& text);
std::uint64_t lineage_key(const Op& op, const std::vector<std::uint64_t>& text);

// The ops of one host thread in their order, and their keys.
struct KeyedOps {
  std::vector<OpId> ops;
  std::vector<std::uint64_t> keys;
};
// Ops are given per thread. `lineage`: their keys are lineage_keys.
std::vector<OpPair> align(const std::vector<HostThread>& base_threads, const std::vector<KeyedOps>& base_ops,
                          const std::vector<HostThread>& other_threads, const std::vector<KeyedOps>& other_ops,
                          bool lineage);

// Collects ops of one name, operator, kind and phase.
class Differences {
 public:
  OpDifference& of(OpChange change, std::string name, std::string operator_name, OpKind kind, Phase phase) {
    return by_key_[Key{change, std::move(name), std::move(operator_name), kind, phase}];
  }
  std::vector<OpDifference> sorted() &&;

 private:
  using Key = std::tuple<OpChange, std::string, std::string, OpKind, Phase>;
  std::map<Key, OpDifference> by_key_;
};

// What of a run does not grow with it, worked out.
struct StepFigures {
  ClassTimes classes;  // of all steps together
  StepEnergyPrice energy_price;
};
ClassTimes classes_of_steps(const TimeAccounting& accounting);
// As Verdict::bound_by of the run's summary. `times`: of all steps. `path`: the critical path; of several ranks it is
// not asked for.
std::string bound_of(const Run& run, const ClassTimes& times, const std::vector<PathSegment>& path);
// Everything but ops and lag. Only the small parts of the runs are looked at.
Comparison compare_small_parts(const Run& base, const Run& other, const StepFigures& base_figures,
                               const StepFigures& other_figures);

// At most kLagPoints of them, evenly, the first and the last among them. REQUIRES: ascending in time.
std::vector<LagPoint> sampled(const std::vector<LagPoint>& points);
void sort_by_time(std::vector<LagPoint>& points);

}  // namespace memwall
