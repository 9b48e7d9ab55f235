#include "models/workload/import/execution_trace/execution_notes.h"

#include <fmt/format.h>

#include <string>
#include <utility>

namespace memwall {

void describe_execution(const ExecutionFacts& f, ImportedStep& step) {
  const auto decide = [&](std::string subject, std::string sentence, std::size_t covered = 0, std::size_t of = 0,
                          NoteKind kind = NoteKind::counted) {
    step.decisions.push_back({std::move(subject), std::move(sentence), covered, of, kind});
  };
  step.report.push_back(
      fmt::format("ExecutionTrace of schema {}: {} nodes on {} threads; {} kernels, {} copies, {} "
                  "collectives, {:.4g} FLOPs.",
                  f.execution.schema, f.execution.nodes.size(), f.threads, f.counts.kernels, f.counts.copies,
                  f.counts.collectives, f.derived.flops));
  if (f.execution.newer)
    decide("newer schema", fmt::format("Schema {} is newer than 1.1.1: what is known of it was read, {} attributes of "
                                       "nodes were skipped.",
                                       f.execution.schema, f.execution.attributes_skipped), 0, 0, NoteKind::missing);
  decide("no times",
         "An ExecutionTrace holds no times: durations are modelled for the machine that is given, from FLOPs, bytes "
         "and shapes.", 0, 0, NoteKind::missing);
  decide("device work",
         fmt::format("The file lists operators, not kernels. An operator that writes device memory which none inside "
                     "it wrote runs a kernel; {} operators have no tensor on a device.",
                     f.works.host_operators),
         f.counts.kernels + f.counts.copies + f.counts.collectives, f.execution.nodes.size(), NoteKind::assumed);
  if (f.works.compiled_kernels > 0)
    decide("compiled kernels",
           fmt::format("{} kernels of a compiler do not say which argument they write: the last tensor is taken.",
                       f.works.compiled_kernels), 0, 0, NoteKind::assumed);
  if (f.counts.collectives > 0)
    decide("collectives",
           fmt::format("{} collectives run on a stream per process group; {} waits for them are stated, {} are "
                       "concluded from the first use of their tensors{}.",
                       f.counts.collectives, f.counts.waits_stated, f.counts.waits_inferred,
                       f.counts.unsized_groups > 0
                           ? fmt::format("; of {} the file does not say how many ranks take part, so they cost "
                                         "nothing but their launch",
                                         f.counts.unsized_groups)
                           : ""),
           f.counts.waits_stated + f.counts.waits_inferred, f.counts.collectives, NoteKind::assumed);
  if (f.rank >= 0 && f.job_ranks > 0)
    decide("rank", fmt::format("Rank {} of at least {}, as its collectives say.", f.rank, f.job_ranks));
  if (f.works.devices.size() > 1)
    decide("several devices",
           fmt::format("One process used {} GPUs: each has a stream and memory of its own.", f.works.devices.size()), 0, 0, NoteKind::counted);
  if (f.counts.hand_overs > 0)
    decide("host threads",
           fmt::format("Where the recorded order passes from one thread to another the other waits: {} hand-overs. "
                       "Threads that worked side by side take turns here.",
                       f.counts.hand_overs), 0, 0, NoteKind::assumed);
  if (!f.names_steps) decide("steps", "The file names no ProfilerStep: all of it is one step.", 0, 0, NoteKind::missing);
  if (f.has_backward)
    decide("recompute",
           "Work repeated for activation checkpoints runs inside backward operators, and the file does not mark it: it "
           "counts as backward.", 0, 0, NoteKind::missing);
  for (Decision& decision : decisions_of(f.derived)) step.decisions.push_back(std::move(decision));
}

}  // namespace memwall
