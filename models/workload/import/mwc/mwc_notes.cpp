#include "models/workload/import/mwc/mwc_notes.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sim/human_text.h"

namespace memwall {
namespace {

std::string listed(const std::vector<std::pair<std::string, std::string>>& words) {
  std::string text;
  for (const auto& [key, value] : words) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", key, value);
  return text;
}

std::string origin(const MwcHeader& header) {
  return fmt::format("Captured{}{}.", header.program.empty() ? "" : " by " + listed(header.program),
                     header.real ? " on a device" : " with fake tensors");
}

std::string groups(const MwcCounts& counts) {
  std::string text;
  for (const auto& [name, ranks] : counts.groups)
    text += fmt::format("{}{} of {}", text.empty() ? "" : ", ", name.empty() ? "one without name" : name,
                        counted_text(ranks, "rank"));
  const bool differ = std::any_of(counts.groups.begin(), counts.groups.end(),
                                  [&](const auto& g) { return g.second != counts.groups.front().second; });
  return fmt::format(
      "Process groups: {}. The largest is taken as the ranks that run this same program; bytes of collectives are what "
      "one rank sends in a ring of its own group.{}",
      text, differ ? " A model takes every collective to be among as many ranks as the largest group has." : "");
}

}  // namespace

std::string records_line(const MwcCounts& counts) {
  std::string line;
  for (int i = 1; i < kMwcRecordTypes; ++i)
    if (const auto n = counts.records[static_cast<std::size_t>(i)]; n > 0)
      line += fmt::format("{}{} {}", line.empty() ? "Records in the file: " : ", ", n,
                          to_string(static_cast<MwcRecordType>(i)));
  return line + ".";
}

NoteList mwc_notes(const MwcHeader& header, const MwcCounts& counts,
                                   const std::vector<Decision>& decisions) {
  NoteList notes;
  notes.counted(origin(header));
  if (!header.choices.empty()) notes.assumed(fmt::format("Decided as a GPU would: {}.", listed(header.choices)));
  for (const Decision& decision : decisions) notes.counted(note_of(decision));
  if (counts.random > 0)
    notes.counted(counted_text(counts.random, "operator") + by_number(counts.random, " draws", " draw") +
                    " random numbers.");
  if (!counts.groups.empty()) notes.assumed(groups(counts));
  for (const std::string& note : header.notes) notes.missing(note);  // what the capture could not see
  return notes;
}

std::vector<Decision> mwc_decisions(const MwcCounts& counts) {
  const std::uint64_t operators = counts.records[static_cast<std::size_t>(MwcRecordType::op)];
  const std::uint64_t kernels = operators - std::min(operators, counts.without_kernel);
  std::vector<Decision> all{
      {"durations", "Kernels, copies and collectives that were measured; with fake tensors none is.", counts.measured,
       counts.measured + counts.unmeasured, counts.unmeasured > 0 ? NoteKind::missing : NoteKind::counted},
      {"operators as ops", "One op each; views and shapes launch nothing and are left out.", kernels, operators}};
  const auto add = [&](const char* subject, std::string sentence, std::uint64_t covered, std::uint64_t of,
                       NoteKind kind = NoteKind::counted) {
    if (covered > 0) all.push_back({subject, std::move(sentence), covered, of, kind});
  };
  add("operators of several kernels",
      fmt::format("They stay one op, which knows how many it launches; {} kernels in all.", counts.kernels),
      counts.several, kernels);
  add("kernels without FLOPs and bytes", "A model can give them only the shortest duration.", counts.priceless,
      kernels, NoteKind::missing);
  add("first writers", "In-place operators on what nobody has written before: they do not read it.",
      counts.unwritten_reads, operators, NoteKind::assumed);
  add("saved tensors left out", "What autograd keeps for an operator that does not use it itself.",
      counts.saves_elsewhere, counts.saves + counts.saves_elsewhere, NoteKind::missing);
  add("recomputing operators without original", "They count as part of backward.", counts.without_original, operators, NoteKind::assumed);
  add("waits left out", "For events that nothing in the file records.", counts.waits_without_event,
      counts.records[static_cast<std::size_t>(MwcRecordType::event)] +
          counts.records[static_cast<std::size_t>(MwcRecordType::synchronize)], NoteKind::missing);
  add("memory of several streams",
      "Where the host frees it, it is free; PyTorch's allocator waits until the other streams are done "
      "(record_stream).",
      counts.shared_frees, counts.records[static_cast<std::size_t>(MwcRecordType::free)], NoteKind::assumed);
  if (counts.hand_overs > 0)
    all.push_back({"hand-overs", "Where the host thread changes, the new one is taken to wait for the one before: " +
                                     counted_text(counts.hand_overs, "time") + ".",
                   0, 0, NoteKind::assumed});
  return all;
}

}  // namespace memwall
