#include "study/layout/no_layout.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "study/layout/layout_candidates.h"

namespace memwall {
namespace {

// Settings that are searched where they are not said, and what is said of each.
std::vector<std::pair<std::string, std::int64_t>> said_of(const LayoutRequest& request) {
  const Recipe& r = request.job.recipe;
  const std::pair<const char*, std::int64_t> searched[] = {{"tensor", r.parallel.tensor},
                                                           {"pipeline", r.parallel.pipeline},
                                                           {"data_parallel", r.data_parallel},
                                                           {"micro_batch", r.parallel.micro_batch},
                                                           {"interleave", r.parallel.interleave}};
  std::vector<std::pair<std::string, std::int64_t>> said;
  for (const auto& [name, value] : searched)
    if (std::find(request.fixed.begin(), request.fixed.end(), name) != request.fixed.end())
      said.emplace_back(name, value);
  return said;
}

// How many layouts there would be if these were searched.
std::size_t layouts_without(LayoutRequest request, const std::vector<std::string>& names) {
  std::erase_if(request.fixed,
                [&](const std::string& fixed) { return std::find(names.begin(), names.end(), fixed) != names.end(); });
  const LayoutCandidates candidates = layout_candidates(request);
  return candidates.jobs.size() + candidates.refused.layouts();
}

std::string job_text(const LayoutRequest& request) {
  return fmt::format("{} GPUs, {} layers, {} heads and a batch of {}", request.gpus, request.job.model.layers,
                     request.job.model.heads, request.global_batch);
}

}  // namespace

std::string why_no_layout(const LayoutRequest& request) {
  const auto said = said_of(request);
  std::vector<std::string> names, texts, alone;
  for (const auto& [name, value] : said) {
    names.push_back(name);
    texts.push_back(fmt::format("{}={}", name, value));
    if (const std::size_t layouts = layouts_without(request, {name}); layouts > 0)
      alone.push_back(fmt::format("without {} there are {}", texts.back(), layouts));
  }
  if (!alone.empty())
    return fmt::format("No layout with {} divides {}: {}.", fmt::join(texts, ", "), job_text(request),
                       fmt::join(alone, ", "));
  if (const std::size_t layouts = said.empty() ? 0 : layouts_without(request, names); layouts > 0)
    return fmt::format("No layout with {} divides {}: without all of them there are {}.", fmt::join(texts, ", "),
                       job_text(request), layouts);
  return fmt::format("No layout divides {}: choose numbers with common divisors.", job_text(request));
}

}  // namespace memwall
