// Which ranks of a job form which groups: Megatron-LM's grids over the numbers of ranks (revision d98e8a64,
// megatron/core/parallel_state.py). An axis' stride is the product of the sizes before it; a group of some axes are the
// ranks that differ only in them.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace memwall {

// Axes in order, the first with stride 1.
class RankGrid {
 public:
  struct Axis {
    std::string_view name;  // of static storage
    std::uint32_t size = 1;
  };
  // REQUIRES: sizes are at least 1, their product fits.
  explicit RankGrid(std::vector<Axis> axes) : axes_(std::move(axes)) {}

  std::uint32_t ranks() const;
  // Of one rank along an axis. REQUIRES: the grid has the axis; rank < ranks().
  std::uint32_t coordinate(std::uint32_t rank, std::string_view axis) const;
  // Those that differ from `rank` in these axes alone, ascending; itself among them. An axis that the grid does not have
  // is of size 1.
  std::vector<std::uint32_t> group(std::uint32_t rank, std::span<const std::string_view> axes) const;
  std::vector<std::uint32_t> group(std::uint32_t rank, std::string_view axis) const { return group(rank, {&axis, 1}); }

 private:
  std::uint32_t stride(std::string_view axis) const;
  std::vector<Axis> axes_;
};

struct RankSizes {
  std::uint32_t tensor = 1, context = 1, data = 1, pipeline = 1;
  std::uint32_t expert = 1, expert_tensor = 0;  // expert_tensor 0: as tensor
};

// "tp", "cp", "dp", "pp". `pipeline_before_data`: --use-tp-pp-dp-mapping.
RankGrid dense_grid(const RankSizes& sizes, bool pipeline_before_data = false);
// The experts' grid over the same ranks: "tp" (expert-tensor), "ep", "dp" (expert-data), "pp".
// Throws UsageError where the ranks are not a multiple of tensor x expert x pipeline, or where pipelines of both grids
// would differ.
RankGrid expert_grid(const RankSizes& sizes, bool pipeline_before_data = false);

}  // namespace memwall
