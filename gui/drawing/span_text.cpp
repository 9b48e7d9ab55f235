#include "gui/drawing/span_text.h"

#include <fmt/format.h>

#include "gui/model/peer_text.h"
#include "gui/model/wait_reason_text.h"
#include "traces/figure/axis.h"

namespace memwall::gui {
namespace {

// Of a collective that waited for others: for how long, and who came last.
std::string peer_sentence(const OpenRun& run, OpId op) {
  const OpRecord record = run.source->op(op).record;
  if (record.peer >= run.outline().ops) return "";
  const Time last = run.source->op(record.peer).record.start;
  return fmt::format("\nof it {} until the last had come: {}", format_time(last - record.start),
                     rank_and_node(run, record.peer));
}

}  // namespace

std::string whole_name(const OpenRun& run, const LoadedBlock& block, std::uint16_t offset) {
  const StringId name = block.spans.name[offset];
  std::string text = name == 0 ? "" : run.source->text(name);
  return text.empty() ? std::string(to_string(block.spans.kind[offset])) : text;
}

std::string span_text(const OpenRun& run, const LoadedBlock& block, std::uint16_t offset, RunLaneKind kind) {
  const SpanBlock& spans = block.spans;
  const bool call = kind == RunLaneKind::thread;
  const Time begin = call ? spans.call_begin[offset] : spans.begin[offset];
  const Duration time = call ? spans.call_time[offset] : spans.time[offset];
  std::string text = whole_name(run, block, offset);
  text += fmt::format("\n{}{}", call ? "call: " : "", to_string(spans.kind[offset]));
  if (spans.phase[offset] != Phase::unknown) text += fmt::format(", {}", to_string(spans.phase[offset]));
  text += fmt::format(", {} from {}", format_time(time), format_time(begin));
  if (spans.module[offset] != 0) text += "\nin " + run.source->text(spans.module[offset]);
  const WaitReason reason = call ? spans.call_reason[offset] : spans.reason[offset];
  if (reason != WaitReason::none) text += fmt::format("\nwaited for {}", wait_reason_text(reason));
  const WaitReason back = call ? spans.return_reason[offset] : WaitReason::none;
  if (back != WaitReason::none) text += fmt::format("\nreturned after {}", wait_reason_text(back));
  if (!call && spans.kind[offset] == OpKind::collective) text += peer_sentence(run, spans.first + offset);
  return text;
}

std::string move_text(const OpenRun& run, const MoveRecord& move) {
  const std::vector<Tier>& tiers = run.outline().run.machine.tiers;
  std::string text = fmt::format("storage {}: {} from {} to {}\n{} from {}", move.storage, format_bytes(move.bytes),
                                 tiers[move.from].name, tiers[move.to].name, format_time(move.end - move.start),
                                 format_time(move.start));
  if (move.for_op != kNoOp) text += fmt::format("\nfor op {}", move.for_op);
  return text;
}

}  // namespace memwall::gui
