#include "policies/sharding/deepspeed_layout.h"

#include <algorithm>
#include <cassert>
#include <set>

#include "policies/sharding/zero_partition.h"

namespace memwall {
namespace {

std::int64_t next_multiple(std::int64_t value, std::int64_t to) { return (value + to - 1) / to * to; }

// Every N-th goes to the same rank: 0, N, 2N, ..., 1, N+1, ... Source: stage_1_and_2.py, _round_robin_reorder.
std::vector<StorageId> dealt_out(const std::vector<StorageId>& parameters, std::uint32_t ranks) {
  std::vector<StorageId> all;
  for (std::size_t first = 0; first < std::min<std::size_t>(ranks, parameters.size()); ++first)
    for (std::size_t i = first; i < parameters.size(); i += ranks) all.push_back(parameters[i]);
  return all;
}

std::int64_t overlap(std::int64_t begin, std::int64_t end, std::int64_t from, std::int64_t to) {
  return std::max<std::int64_t>(0, std::min(end, to) - std::max(begin, from));
}

class GradientMatch {
 public:
  GradientMatch(const Trace& trace, const Dataflow& flow, const std::vector<StorageId>& gradients,
                const std::vector<StorageId>& parameters)
      : t_(trace),
        gradients_(gradients.begin(), gradients.end()),
        parameters_(parameters.begin(), parameters.end()),
        sizes_(element_sizes(trace, flow, parameters)) {
    sizes_.merge(element_sizes(trace, flow, gradients));
  }

  std::map<StorageId, StorageId> run() {
    for (const Op& op : t_.ops)
      if (op.phase == Phase::optimizer && runs_on_device(op.kind)) match_by_update(op);
    match_by_size();
    return std::move(found_);
  }

 private:
  std::int64_t elements(StorageId id) const { return t_.storages[id].bytes / sizes_.at(id); }

  // An update lists gradients in the order of their parameters.
  void match_by_update(const Op& op) {
    std::vector<StorageId> gradients, parameters;
    const auto add = [](std::vector<StorageId>& to, StorageId id) {
      if (std::ranges::find(to, id) == to.end()) to.push_back(id);
    };
    constexpr std::uint32_t kMostCompared = 512;  // of a larger op the search for repeats would be slow
    if (op.use_count > kMostCompared) return;
    for (const Use& use : t_.uses_of(op)) {
      if (gradients_.contains(use.storage)) add(gradients, use.storage);
      if (parameters_.contains(use.storage)) add(parameters, use.storage);
    }
    if (gradients.size() != parameters.size()) return;
    for (std::size_t i = 0; i < gradients.size(); ++i)
      if (elements(gradients[i]) != elements(parameters[i])) return;
    for (std::size_t i = 0; i < gradients.size(); ++i)
      if (found_.emplace(gradients[i], parameters[i]).second) taken_.insert(parameters[i]);
  }

  // Each step may make gradients of its own.
  void match_by_size() {
    std::map<std::int64_t, std::vector<StorageId>> open;
    for (const StorageId p : parameters_)
      if (!taken_.contains(p)) open[elements(p)].push_back(p);
    std::map<std::int64_t, std::size_t> turn;
    for (const StorageId gradient : gradients_) {
      const std::vector<StorageId>& fitting = open[elements(gradient)];
      if (found_.contains(gradient) || fitting.empty()) continue;
      found_.emplace(gradient, fitting[turn[elements(gradient)]++ % fitting.size()]);
    }
  }

  const Trace& t_;
  std::set<StorageId> gradients_, parameters_;
  std::map<StorageId, Bytes> sizes_;
  std::set<StorageId> taken_;
  std::map<StorageId, StorageId> found_;
};

}  // namespace

std::map<StorageId, Bytes> element_sizes(const Trace& trace, const Dataflow& flow,
                                         const std::vector<StorageId>& storages) {
  std::map<StorageId, Bytes> sizes;
  std::map<Bytes, Bytes> by_size;
  std::vector<StorageId> unknown;
  for (const StorageId id : storages) {
    const bool is_known = std::ranges::any_of(flow.touches(id), [&](const Touch& touch) {
      return trace.ops[touch.op].phase != Phase::optimizer && bytes_of(trace.ops[touch.op].data_type) > 0;
    });
    sizes[id] = element_bytes(trace, flow, id);
    if (is_known)
      by_size[sizes[id]] += trace.storages[id].bytes;
    else
      unknown.push_back(id);
  }
  if (by_size.empty()) return sizes;
  const Bytes usual = std::ranges::max_element(by_size, {}, [](const auto& one) { return one.second; })->first;
  for (const StorageId id : unknown)
    if (trace.storages[id].bytes % usual == 0) sizes[id] = usual;
  return sizes;
}

FlatLayout::FlatLayout(const Trace& trace, const Dataflow& flow, const std::vector<StorageId>& parameters,
                       std::uint32_t ranks, bool round_robin)
    : ranks_(ranks) {
  const std::map<StorageId, Bytes> sizes = element_sizes(trace, flow, parameters);
  std::map<Bytes, std::size_t> number_of;
  for (const StorageId id : round_robin ? dealt_out(parameters, ranks) : parameters) {
    const Bytes element = sizes.at(id);
    const auto [found, is_new] = number_of.try_emplace(element, groups_.size());
    if (is_new) groups_.push_back({.element = element});
    FlatGroup& group = groups_[found->second];
    const std::int64_t elements = trace.storages[id].bytes / element;
    group.parameters.push_back(id);
    placed_[id] = {id, group.elements, elements, 0, found->second};
    group.elements += elements;
  }
  for (FlatGroup& group : groups_) lay_out(group);
}

void FlatLayout::lay_out(FlatGroup& group) {
  group.padded = next_multiple(group.elements, 2 * std::int64_t{ranks_});
  group.partition = group.padded / ranks_;
  std::map<std::int64_t, std::int64_t> touched;  // by rank
  for (const StorageId id : group.parameters) {
    const PlacedParameter& p = placed_.at(id);
    if (p.elements == 0) continue;
    const std::int64_t last = (p.begin + p.elements - 1) / group.partition;
    for (std::int64_t rank = p.begin / group.partition; rank <= last; ++rank) touched[rank] += p.elements;
  }
  for (const auto& [rank, elements] : touched)
    if (elements > group.touched) {
      group.touched = elements;
      group.rank = static_cast<std::uint32_t>(rank);
    }
  const std::int64_t from = group.rank * group.partition;
  for (const StorageId id : group.parameters) {
    PlacedParameter& p = placed_.at(id);
    p.own = overlap(p.begin, p.begin + p.elements, from, from + group.partition);
  }
}

std::vector<ParameterSlice> FlatLayout::slices(StorageId parameter) const {
  const PlacedParameter& p = of(parameter);
  const std::int64_t partition = groups_[p.group].partition;
  std::vector<ParameterSlice> all;
  for (std::int64_t at = p.begin; at < p.begin + p.elements;) {
    const std::int64_t rank = at / partition, end = std::min((rank + 1) * partition, p.begin + p.elements);
    all.push_back({static_cast<std::uint32_t>(rank), end - at});
    at = end;
  }
  return all;
}

std::map<StorageId, StorageId> parameters_of_gradients(const Trace& trace, const Dataflow& flow,
                                                       const std::vector<StorageId>& gradients,
                                                       const std::vector<StorageId>& parameters) {
  return GradientMatch(trace, flow, gradients, parameters).run();
}

}  // namespace memwall
