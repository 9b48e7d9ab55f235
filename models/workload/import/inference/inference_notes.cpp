#include "models/workload/import/inference/inference_notes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "models/workload/import/execution_trace/derived_dataflow.h"
#include "sim/human_text.h"

namespace memwall {

std::string few_told(const SupposedAllocations& s) {
  std::string untold;
  for (std::size_t i = 0; i < std::min<std::size_t>(4, s.untold.size()); ++i)
    untold += fmt::format("{}{} ({})", i == 0 ? "" : ", ", s.untold[i].first, s.untold[i].second);
  return fmt::format(
      "{}the file has shapes, and no memory events of the device (record with profile_memory=True, too). What an "
      "operator makes would have to follow from its name and shapes: of {} pieces of device work it does for {} "
      "({:.1f} "
      "%), expected at least {:.0f} %. It does not of {}.",
      kNotInferred, s.work, s.told, std::floor(1000 * s.told_share()) / 10, 100 * kLeastInferred, untold);
}

// The share is rounded down: what is short of the limit is not said to be at it.
std::string few_found(const InferredDataflow& r) {
  const std::uint64_t alone = r.flow.device_ops - std::min<std::uint64_t>(r.flow.device_ops, r.flow.with_operator);
  return fmt::format(
      "{}of {} device ops {} have all their inputs found ({:.1f} %), expected at least {:.0f} %. {} have no operator "
      "with "
      "tensors around them; of the others {} inputs and {} lists of tensors are not found.",
      kNotInferred, r.flow.device_ops, r.whole, std::floor(1000 * r.share()) / 10, 100 * kLeastInferred, alone,
      r.inputs.left_out, r.inputs.lists);
}

std::string too_large(std::size_t work) {
  return fmt::format(
      "{}the file has {} pieces of device work, and up to {} are looked at, for their memory and time (record fewer "
      "steps: schedule(wait=1, warmup=1, active=3)).",
      kNotInferred, work, kMostInferred);
}

std::string basis(const InferredDataflow& r) {
  const InferenceCounts& n = r.inputs;
  const std::string totals =
      r.wrong_totals == 0 ? ""
                          : fmt::format(" Its storages are not what the file says was allocated at {} of {} memory "
                                        "events.",
                                        r.wrong_totals, r.totals);
  const std::string lives =
      r.lives.made == 0
          ? ""
          : fmt::format(
                " The file has no memory events: {} results are those that rules of their operators tell, and "
                "a storage lives from its first use to its last, so that peaks are lower bounds.",
                r.supposed);
  return fmt::format(
      "Dataflow is inferred from the profile alone, not recorded: of {} inputs of device ops {} can be one storage "
      "only, {} are assumed to be the likeliest of several, {} are left out. Policies that move, drop or compute again "
      "what is read later rest on it. An ExecutionTrace of the same run (--et) would be certain.{}{}",
      n.certain + n.assumed + n.left_out + n.lists, n.certain, n.assumed, n.left_out + n.lists, lives, totals);
}

std::vector<Decision> inference_decisions(const InferredDataflow& r) {
  if (!r.missing.empty() && r.flow.device_ops == 0) return {{"dataflow inferred", r.missing, 0, 0}};
  const InferenceCounts& n = r.inputs;
  const std::uint64_t inputs = n.certain + n.assumed + n.left_out;
  std::vector<Decision> all{
      {"dataflow inferred",
       r.missing.empty() ? "From the profile alone: device ops of operators all of whose inputs were found."
                         : r.missing,
       r.whole, r.flow.device_ops},
      {"inferred inputs that are certain",
       fmt::format("By shape, type and place among the operators only one storage fits ({}).",
                   human_bytes(static_cast<Bytes>(n.certain_bytes))),
       n.certain, inputs},
      {"inferred inputs that are assumed",
       fmt::format("Several storages fit: the newest that nobody has read, in the backward pass what its forward "
                   "operator used, of optimizers by the order of parameters ({}).",
                   human_bytes(static_cast<Bytes>(n.assumed_bytes))),
       n.assumed, inputs},
      {"inferred inputs that are left out",
       fmt::format(
           "No storage fits, or it would be older than the window and not fit in what was allocated then ({} of "
           "them; {}).",
           n.beyond_total, human_bytes(static_cast<Bytes>(n.left_out_bytes))),
       n.left_out, inputs}};
  if (r.totals > 0)
    all.push_back({"inferred dataflow against Total Allocated",
                   "Memory events after which the storages that are alive, older ones among them, add up to it.",
                   r.totals - r.wrong_totals, r.totals});
  if (r.lives.made > 0) {
    all.push_back({"results by rules", "The file has no memory events: what operators make is told by rules.",
                   r.supposed, r.supposed});
    all.push_back({"lifetimes derived", lifetimes_sentence(r.lives), r.lives.freed, r.lives.made, NoteKind::assumed});
  }
  if (n.lists > 0) all.push_back({"lists of tensors left out", "The file does not say what is in them.", n.lists, 0});
  return all;
}

}  // namespace memwall
