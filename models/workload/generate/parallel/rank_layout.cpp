#include "models/workload/generate/parallel/rank_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>

#include "sim/error.h"

namespace memwall {

std::uint32_t RankGrid::ranks() const {
  std::uint32_t product = 1;
  for (const Axis& axis : axes_) product *= axis.size;
  return product;
}

std::uint32_t RankGrid::stride(std::string_view name) const {
  std::uint32_t product = 1;
  for (const Axis& axis : axes_) {
    if (axis.name == name) return product;
    product *= axis.size;
  }
  assert(false);
  return product;
}

std::uint32_t RankGrid::coordinate(std::uint32_t rank, std::string_view name) const {
  const auto axis = std::find_if(axes_.begin(), axes_.end(), [&](const Axis& a) { return a.name == name; });
  assert(axis != axes_.end() && rank < ranks());
  return rank / stride(name) % axis->size;
}

std::vector<std::uint32_t> RankGrid::group(std::uint32_t rank, std::span<const std::string_view> names) const {
  std::vector<std::uint32_t> members{rank};
  for (const Axis& axis : axes_) {
    if (std::find(names.begin(), names.end(), axis.name) == names.end()) continue;
    const std::uint32_t step = stride(axis.name), own = coordinate(rank, axis.name);
    std::vector<std::uint32_t> further;
    for (const std::uint32_t member : members)
      for (std::uint32_t i = 0; i < axis.size; ++i) further.push_back(member - own * step + i * step);
    members = std::move(further);
  }
  std::sort(members.begin(), members.end());
  return members;
}

RankGrid dense_grid(const RankSizes& s, bool pipeline_before_data) {
  if (pipeline_before_data) return RankGrid({{"tp", s.tensor}, {"cp", s.context}, {"pp", s.pipeline}, {"dp", s.data}});
  return RankGrid({{"tp", s.tensor}, {"cp", s.context}, {"dp", s.data}, {"pp", s.pipeline}});
}

RankGrid expert_grid(const RankSizes& s, bool pipeline_before_data) {
  const std::uint32_t tensor = s.expert_tensor == 0 ? s.tensor : s.expert_tensor;
  const std::uint32_t world = s.tensor * s.context * s.data * s.pipeline, of_one = tensor * s.expert * s.pipeline;
  if (world % of_one != 0)
    throw UsageError(
        fmt::format("{} ranks are no multiple of {} (expert-tensor {} x expert {} x pipeline {}); choose sizes that "
                    "divide the ranks.",
                    world, of_one, tensor, s.expert, s.pipeline));
  const std::uint32_t data = world / of_one;
  if (pipeline_before_data && data != s.data)
    throw UsageError(
        fmt::format("Pipelines of experts and of the rest differ: with ranks in the order tensor, pipeline, data there "
                    "are {} data-parallel ranks of experts and {} of the rest; expected as many.",
                    data, s.data));
  if (pipeline_before_data) return RankGrid({{"tp", tensor}, {"ep", s.expert}, {"pp", s.pipeline}, {"dp", data}});
  return RankGrid({{"tp", tensor}, {"ep", s.expert}, {"dp", data}, {"pp", s.pipeline}});
}

}  // namespace memwall
