#include "cli/print/wait_table.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/print/table_cells.h"

namespace memwall {
namespace {

const char* wait_meaning(const LaneWait& wait) {
  switch (wait.reason) {
    case WaitReason::hand_over:
      return "another thread has not handed over yet";
    case WaitReason::synchronize:
      return "work on the device has not ended";
    case WaitReason::launch_queue:
      return "too many calls are submitted";
    case WaitReason::memory:
      return "an allocation does not fit yet: a pager makes room, or the allocator empties its cache";
    case WaitReason::launch:
      return "the host has not launched the next op yet";
    case WaitReason::stream_order:
      return "the gap that a stream leaves between two ops";
    case WaitReason::event:
      return "work of another stream";
    case WaitReason::occupancy:
      return "a kernel of another stream fills the multiprocessors";
    case WaitReason::copy_engine:
      return "the copy engine serves another copy";
    case WaitReason::page_fault:
      return "data that a pager brings in";
    case WaitReason::peer:
      return "a collective has begun, another rank has not";
    case WaitReason::none:
    case WaitReason::program_order:
      break;
  }
  return "";
}

}  // namespace

Table wait_table(const RunSummary& s) {
  std::vector<const LaneWait*> longest;
  for (const LaneWait& wait : s.waits.lanes) longest.push_back(&wait);
  std::stable_sort(longest.begin(), longest.end(),
                   [](const LaneWait* a, const LaneWait* b) { return a->time > b->time; });
  const std::size_t all = longest.size();
  longest.resize(std::min(all, kMostWaits));
  Table t{
      .name = "waits",
      .title = fmt::format("Waits: how long a host thread or a stream stood still, and for what (one thing at a time: "
                           "together at most the run of {}{})",
                           human_time(s.total),
                           all > longest.size() ? fmt::format("; the longest {} of {}", longest.size(), all) : ""),
      .columns = {"lane", "reason", "seconds", "share", "count", "meaning"},
      .headings = {"lane", "waits for", "time", "of the run", "ops", ""},
      .rows = {},
      .wrap = true};
  for (const LaneWait* wait : longest) {
    const std::string reason(to_string(wait->reason));
    // In CSV a row is known by its first cell alone.
    t.rows.push_back({cell(wait->lane, fmt::format("{}/{}", wait->lane, reason)), cell(reason), time_cell(wait->time),
                      share_cell(to_seconds(wait->time), to_seconds(s.total)), count_cell(wait->count),
                      cell(wait_meaning(*wait))});
  }
  return t;
}

}  // namespace memwall
