// details_of a storage.
#include <fmt/format.h>

#include <algorithm>

#include "gui/model/detail_text.h"
#include "gui/model/details.h"
#include "gui/model/storage_name.h"
#include "sim/human_text.h"

namespace memwall::gui {
namespace {

constexpr std::size_t kMostReads = 20;

DetailLine line(std::string name, std::string value) {
  return {std::move(name), std::move(value), std::nullopt, std::nullopt};
}

DetailLine op_line(const OpenRun& run, std::uint8_t number, std::string name, OpId id) {
  DetailLine out = line(std::move(name), describe_op(run, id));
  out.op = OpRef{number, id, false};
  return out;
}

DetailSection what_it_is(const OpenRun& run, StorageRef ref) {
  DetailSection section{"Storage", {line("number", std::to_string(ref.storage))}};
  section.lines.back().storage = ref;
  const StorageName name = name_of(run, ref.storage);
  if (!name.label.empty()) section.lines.push_back(line("name", name.label));
  if (run.history) {
    const StorageColumns& storages = run.history->storages();
    section.lines.push_back(line("kind", std::string(to_string(storages.kind[ref.storage]))));
    section.lines.push_back(line(
        "size", fmt::format("{} ({} bytes)", format_bytes(storages.bytes[ref.storage]), storages.bytes[ref.storage])));
    if (storages.preexisting[ref.storage]) section.lines.push_back(line("there", "before the first op"));
  }
  if (!name.module.empty()) section.lines.push_back(line("module", name.module));
  if (name.phase != Phase::unknown) section.lines.push_back(line("phase", std::string(to_string(name.phase))));
  return section;
}

DetailSection life_of(const OpenRun& run, StorageRef ref) {
  DetailSection section{"Life", {}};
  if (!run.history) {
    section.lines.push_back(line("", "being read"));
    return section;
  }
  const Time end = run.outline().run.result.end;
  const std::vector<std::uint32_t> rows = run.history->life(ref.storage);
  for (const std::uint32_t row : rows) {
    const Residency& residency = run.history->residencies()[row];
    section.lines.push_back(
        line("in " + run.outline().run.machine.tiers[residency.tier].name,
             stretch(residency.begin, residency.end) + (residency.end >= end ? ", the end of the run" : "")));
  }
  if (rows.empty()) section.lines.push_back(line("", "never in any tier"));
  return section;
}

// Readers, and those that write it again.
DetailSection uses_of(const OpenRun& run, StorageRef ref, std::optional<OpId> maker) {
  DetailSection section{"Uses", {}};
  if (maker) section.lines.push_back(op_line(run, ref.run, "made by", *maker));
  const auto known = run.spans->load_uses(ref.storage);
  std::vector<StorageUse> uses = known->uses;
  std::erase_if(uses, [&](const StorageUse& use) { return maker && use.op == *maker && use.access == Access::write; });
  for (std::size_t i = 0; i < uses.size() && i < kMostReads; ++i)
    section.lines.push_back(
        op_line(run, ref.run, uses[i].access == Access::read ? "read by" : "written by", uses[i].op));
  if (uses.size() > kMostReads)
    section.lines.push_back(
        line("", fmt::format("{}{} more uses", known->complete ? "" : "at least ", uses.size() - kMostReads)));
  if (uses.size() > kMostReads)
    section.lines.push_back(op_line(run, ref.run, known->complete ? "last used by" : "still used by", uses.back().op));
  return section;
}

std::string return_text(const OpenRun& run, const StorageReturn& back) {
  if (back.is_rerun) return "made again by " + describe_op(run, back.by);
  const std::string when = back.use == kNoOp ? "not used in this run"
                           : back.late       ? "its use waits for it"
                                             : human_time(back.slack) + " before its use";
  return fmt::format("fetched by {}, {}", describe_op(run, back.by), when);
}

// What a policy or a plan does with it, whether it is what the program made or what stands for that later.
DetailSection decisions_about(const OpenRun& run, StorageRef ref) {
  DetailSection section{"Decisions", {}};
  if (!run.analysis) return section;
  const MemoryDecisions& decisions = run.analysis->summary.decisions;
  StorageId made = ref.storage;
  for (const StorageReturn& back : decisions.returns)
    if (back.replica == ref.storage) made = back.storage;
  if (made != ref.storage) {
    section.lines.push_back(line("stands for", describe_storage(run, made)));
    section.lines.back().storage = StorageRef{ref.run, made};
  }
  const auto add = [&](std::string text, OpId op) {
    section.lines.push_back(line("", std::move(text)));
    section.lines.back().op = OpRef{ref.run, op, false};
  };
  for (const StorageDeparture& gone : decisions.departures)
    if (gone.storage == made) add("copied out by " + describe_op(run, gone.copy), gone.copy);
  for (const StorageReturn& back : decisions.returns)
    if (back.storage == made) add(return_text(run, back), back.by);
  return section;
}

}  // namespace

std::vector<DetailSection> details_of(const OpenRun& run, StorageRef storage) {
  std::vector<DetailSection> sections{what_it_is(run, storage), life_of(run, storage)};
  if (DetailSection decisions = decisions_about(run, storage); !decisions.lines.empty())
    sections.push_back(std::move(decisions));
  DetailSection uses = uses_of(run, storage, maker_of(run, storage.storage));
  if (run.history && !run.history->life(storage.storage).empty()) {
    const Residency& last = run.history->residencies()[run.history->life(storage.storage).back()];
    const bool is_kept = last.end >= run.outline().run.result.end;
    uses.lines.push_back(line("freed", is_kept ? "not within the run" : "at " + format_time(last.end)));
    if (const auto freed = is_kept ? std::nullopt : free_of(run, storage.storage))
      uses.lines.push_back(op_line(run, storage.run, "freed by", *freed));
  }
  if (!uses.lines.empty()) sections.push_back(std::move(uses));
  return sections;
}

}  // namespace memwall::gui
