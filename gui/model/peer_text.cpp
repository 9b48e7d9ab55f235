#include "gui/model/peer_text.h"

#include "sim/machine/gpu_place.h"
#include "sim/trace/ranks.h"

namespace memwall::gui {

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
  // Numbers ascend.
  if (places.of(ranks.front().number).node == places.of(ranks.back().number).node) return "";
  return "node " + std::to_string(places.of(ranks[rank].number).node);
}

}  // namespace memwall::gui
