#include "models/workload/import/cupti/cupti_notes.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/human_text.h"

namespace memwall {
namespace {

// As CUDA counts: 12080 is 12.8.
std::string cuda_version(std::int32_t version) {
  return version <= 0 ? "unknown" : fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

void add_process(const CuptiRecords& r, NoteList& notes) {
  if (!r.recorder.empty()) return notes.counted(r.recorder);
  const std::string& command = r.strings[r.command_line == 0 ? r.executable : r.command_line];
  notes.counted(fmt::format(
      "Captured by libmemwall_inject, process {}{}{}; the driver's CUDA is {}, the runtime's {}, CUPTI's version is "
      "{}.",
      r.process, command.empty() ? "" : ": ", command.size() > 200 ? command.substr(0, 200) + "..." : command,
      cuda_version(r.driver_version), cuda_version(r.runtime_version), r.cupti_version));
}

void add_losses(const CuptiRecords& r, NoteList& notes) {
  const CuptiCounts& c = r.counts;
  if (!c.ended)
    notes.missing(fmt::format("The file has no end{}: the program was killed, and its last moments are missing.",
                              c.cut ? " and breaks off inside a record" : ""));
  if (c.dropped + c.refused_buffers > 0)
    notes.missing(fmt::format(
        "Records were lost while the program ran: CUPTI counts {} of them; {} times no buffer was free. More buffers "
        "(MEMWALL_INJECT_BUFFERS) or a faster disk would keep them.",
        c.dropped, c.refused_buffers));
  if (c.over_limit > 0)
    notes.missing(fmt::format("Left out because the file reached its limit (MEMWALL_INJECT_LIMIT): {}.",
                              counted_text(c.over_limit, "record")));
  if (c.lost_names > 0)
    notes.missing(fmt::format("Too many, so their records are nameless: {}.", counted_text(c.lost_names, "name")));
  if (c.unwritten + c.unknown_kinds > 0)
    notes.missing(fmt::format("Of a kind that the library or this program does not know: {}.",
                              counted_text(c.unwritten + c.unknown_kinds, "record")));
  for (const RefusedActivity& refusal : r.refusals)
    notes.missing(fmt::format("CUPTI did not record {} on that machine: {}.", r.strings[refusal.activity],
                              refusal.reason == 0 ? "it gave no reason" : r.strings[refusal.reason]));
}

void add_work(const CuptiRecords& r, const CuptiFindings& f, NoteList& notes) {
  if (f.unfinished_work + f.unfinished_calls > 0)
    notes.missing(fmt::format("Left out, as they have no end: {} of device work and {}.",
                              counted_text(f.unfinished_work, "piece"), counted_text(f.unfinished_calls, "call")));
  if (f.inner_calls > 0)
    notes.counted(fmt::format("Made by the runtime inside its own calls, and counted as part of them: {} of {}.",
                              counted_text(f.inner_calls, "call"), r.words.driver));
  if (f.graph_nodes > 0)
    notes.counted(fmt::format("Nodes of CUDA graphs: {} of device work; a graph is launched as a whole.",
                              counted_text(f.graph_nodes, "piece")));
  if (f.whole_graphs > 0)
    notes.missing(fmt::format("Recorded as one piece of work each: {} of CUDA graphs; what runs inside is not known.",
                              counted_text(f.whole_graphs, "launch", "launches")));
  if (f.unknown_events > 0)
    notes.missing(
        fmt::format("For events whose recording is not in the file: {}.", counted_text(f.unknown_events, "wait")));
}

void add_memory(const CuptiRecords& r, const CuptiFindings& f, NoteList& notes) {
  if (!r.memory.empty())
    notes.assumed(fmt::format(
        "Allocations are those of the {} interface. A program with a caching allocator (PyTorch, TensorFlow, JAX) asks "
        "it for large blocks, and shares them out itself: storages here are those blocks, not tensors.",
        r.words.interface));
  if (f.from_pool + r.counts.pools > 0)
    notes.assumed(
        fmt::format("Through memory pools: {} ({} of the pools themselves); what a pool keeps is not modelled.",
                    counted_text(f.from_pool, "allocation or release", "allocations and releases"),
                    counted_text(r.counts.pools, "record")));
  if (f.unknown_releases > 0)
    notes.missing(fmt::format("Of blocks from before the capture, without saying how large those were: {}.",
                              counted_text(f.unknown_releases, "release")));
  if (f.managed > 0)
    notes.missing(fmt::format("Of unified memory, which has no fixed place, and left out: {}, {} in all.",
                              counted_text(f.managed, "allocation or release", "allocations and releases"),
                              human_bytes(static_cast<Bytes>(f.managed_bytes))));
  if (r.counts.unified > 0)
    notes.missing(fmt::format(
        "Unified memory: {}, {} migrated to devices, {} to the host, {}; a trace has no such ops, so their time is "
        "part "
        "of the kernels that waited.",
        counted_text(r.counts.unified, "event"), human_bytes(static_cast<Bytes>(r.counts.to_device_bytes)),
        human_bytes(static_cast<Bytes>(r.counts.to_host_bytes)), counted_text(r.counts.faults, "page fault")));
}

void add_ranges(const CuptiRecords& r, const CuptiFindings& f, NoteList& notes) {
  const NvtxRangeCounts& n = f.ranges;
  if (n.ranges == 0)
    notes.missing(fmt::format(
        "The file has no {} ranges: kernels have no operators, and steps and phases are not known.", r.words.ranges));
  else
    notes.counted(fmt::format("{} ranges: {}, of them {} operators, {} modules, {} steps, {} phases.", r.words.ranges,
                              n.ranges, n.operators, n.modules, n.steps, n.phases));
  if (n.instants + n.open + n.across_threads > 0)
    notes.missing(fmt::format(
        "{}: {} instants, {} ranges without an end and {} that end on another thread or have no thread are left out.",
        r.words.ranges, n.instants, n.open, n.across_threads));
  if (r.counts.overheads > 0)
    notes.counted(fmt::format(
        "CUPTI reports {} overheads of its own and of the driver, {:.1f} us in all; they are part of the host times.",
        r.counts.overheads, static_cast<double>(r.counts.overhead_ns) / 1000));
}

}  // namespace

NoteList cupti_notes(const CuptiRecords& records, const CuptiFindings& found) {
  NoteList notes;
  add_process(records, notes);
  add_losses(records, notes);
  add_work(records, found, notes);
  add_memory(records, found, notes);
  add_ranges(records, found, notes);
  return notes;
}

}  // namespace memwall
