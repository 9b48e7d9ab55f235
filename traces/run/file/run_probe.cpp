#include "traces/run/file/run_probe.h"

#include "traces/run/file/run_file.h"
#include "traces/run/file/run_file_source.h"

namespace memwall {
namespace {

constexpr std::size_t kPoints = 2000;  // as many as a screen is wide

void look_at_index(const RunSource& source) {
  const RunOutline& outline = source.outline();
  const Time end = outline.run.result.end;
  for (std::uint32_t lane = 0; lane < outline.lanes.size(); ++lane)
    if (const std::uint8_t levels = outline.lanes[lane].levels; levels > 0)
      source.cells(lane, static_cast<std::uint8_t>(levels > 11 ? levels - 11 : 0), 0, kPoints);
  for (std::uint32_t t = 0; t < outline.run.machine.tiers.size(); ++t) source.memory(t, Time{}, end, kPoints);
  for (std::uint32_t l = 0; l < outline.run.machine.links.size(); ++l) source.link_rates(l, Time{}, end, kPoints);
  if (outline.ops == 0) return;
  source.spans(0);
  source.spans(static_cast<std::uint32_t>((outline.ops - 1) / kSpanBlock));
  source.op(0);
  source.op(static_cast<OpId>(outline.ops - 1));
}

}  // namespace

void probe_run(const std::filesystem::path& path) {
  const RunInFile file(path);
  file.touch();
  look_at_index(file);
}

}  // namespace memwall
