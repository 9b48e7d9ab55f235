#include "study/layout/chunk_places.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <set>

namespace memwall {
namespace {

// How many of the ranks are in each unit of so many neighbours, in the order of their numbers.
std::vector<std::uint32_t> counts_of(const std::vector<std::uint32_t>& ranks, std::uint32_t size) {
  std::map<std::uint32_t, std::uint32_t> units;
  for (const std::uint32_t rank : ranks) ++units[rank / size];
  std::vector<std::uint32_t> counts;
  for (const auto& [unit, count] : units) counts.push_back(count);
  return counts;
}

}  // namespace

std::string chunk_places(const ParallelJob& job, std::int64_t pipeline_rank, const std::vector<std::uint32_t>& sizes) {
  if (job.tensor() == 1) return "";
  const std::uint32_t own = job.number(pipeline_rank);
  std::vector<std::uint32_t> ranks = job.folded_ranks(pipeline_rank);
  ranks.push_back(own);
  std::set<std::vector<std::uint32_t>> groups;
  for (const std::uint32_t rank : ranks) groups.insert(job.grid.group(rank, "tp"));
  std::string text;
  for (const std::uint32_t size : sizes) {
    std::set<std::vector<std::uint32_t>> splits;
    for (const std::vector<std::uint32_t>& group : groups) splits.insert(counts_of(group, size));
    const std::vector<std::uint32_t> counts = counts_of(ranks, size);
    text += fmt::format(" {}: {} of {} in {}", size, counts_of(job.grid.group(own, "tp"), size), splits,
                        std::set<std::uint32_t>(counts.begin(), counts.end()));
  }
  return text;
}

}  // namespace memwall
