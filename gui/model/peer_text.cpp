#include "gui/model/peer_text.h"

#include <algorithm>

#include "sim/machine/gpu_place.h"
#include "sim/trace/ranks.h"

namespace memwall::gui {
namespace {

// Numbers ascend.
bool in_several_nodes(const std::vector<Rank>& ranks, const GpuPlaces& places) {
  return !ranks.empty() && places.of(ranks.front().number).node != places.of(ranks.back().number).node;
}

std::string node_of(const GpuPlaces& places, const Rank& rank) {
  return "node " + std::to_string(places.of(rank.number).node);
}

}  // namespace

std::string rank_and_node(const OpenRun& run, OpId op) {
  const RunOutline& outline = run.outline();
  const Trace& trace = outline.run.trace;
  if (trace.rank_table.empty() || op >= outline.ops) return "";
  const std::uint16_t rank = rank_of(trace, run.source->op(op).op);
  return GpuPlaces(outline.run.machine.one).rank_text(trace.rank_table[rank].number);
}

std::string node_text(const OpenRun& run, std::size_t rank) {
  const std::vector<Rank>& ranks = run.outline().run.trace->rank_table;
  const GpuPlaces places(run.outline().run.machine.one);
  if (!in_several_nodes(ranks, places)) return "";
  return node_of(places, ranks[rank]);
}

std::string link_node_text(const Run& run, std::size_t link) {
  const std::vector<Rank>& ranks = run.trace->rank_table;
  const GpuPlaces places(run.machine.one);
  if (!in_several_nodes(ranks, places)) return "";
  const std::uint32_t sharers = run.machine.links[link].sharers;
  if (sharers == 0 || sharers > places.node_size()) return "several nodes";
  for (std::size_t r = 0; r < run.machine.views.size() && r < ranks.size(); ++r) {
    const std::vector<std::uint16_t>& own = run.machine.views[r].link;
    if (std::find(own.begin(), own.end(), link) != own.end()) return node_of(places, ranks[r]);
  }
  return "";
}

}  // namespace memwall::gui
