// The part of the reader of captured steps that puts ops in a row: threads that take turns, phases of allocs, the end.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "models/workload/import/mwc/mwc_importer.h"
#include "sim/trace/trace_check.h"

namespace memwall {
namespace {

// Sums over a whole file that later layers add up without a look: 10^19 FLOPs, 64 PiB, 11 days.
constexpr double kMostTotalFlops = 1e19, kMostTotalBytes = 0x1p56, kMostTotalPicoseconds = 1e18;

// Numbers that appear, in ascending order, become indices.
template <typename State>
std::vector<std::uint16_t> indices_of(const std::vector<State>& states) {
  std::vector<std::uint16_t> indices(states.size(), 0);
  std::uint16_t next = 0;
  for (std::size_t i = 0; i < states.size(); ++i)
    if (states[i].used) indices[i] = next++;
  return indices;
}

}  // namespace

void MwcImporter::switch_thread(Op next) {
  Op op;
  op.kind = OpKind::hand_over;
  op.phase = next.phase;
  op.origin = next.origin;
  op.thread = next.thread;
  op.inferred = true;
  op.target = static_cast<OpId>(t_.ops.size() - 1);
  builder_.append(op);
  ++counts_.hand_overs;
}

void MwcImporter::assign_pending_allocs(const Op& op) {
  MwcThread& thread = threads_[op.thread];
  for (const OpId alloc : thread.pending) {
    t_.ops[alloc].phase = op.phase;
    t_.ops[alloc].module = op.module;
  }
  thread.pending.clear();
  thread.phase = op.phase;
  thread.module = op.module;
}

void MwcImporter::account(const Op& op) {
  flops_ += op.flops;
  bytes_ += static_cast<double>(op.bytes);
  picoseconds_ += static_cast<double>((op.duration + op.host_cost + op.host_gap).count());
  if (flops_ > kMostTotalFlops || bytes_ > kMostTotalBytes || picoseconds_ > kMostTotalPicoseconds)
    fail(fmt::format(
        "the ops up to here have {:.3g} FLOPs, {:.3g} bytes and {:.3g} s together; expected no more than "
        "{:.3g}, {:.3g} and {:.3g}.",
        flops_, bytes_, picoseconds_ * 1e-12, kMostTotalFlops, kMostTotalBytes, kMostTotalPicoseconds * 1e-12));
}

OpId MwcImporter::append(Op op) {
  account(op);
  if (op.kind == OpKind::alloc || op.kind == OpKind::free || op.kind == OpKind::event_record ||
      op.kind == OpKind::event_wait || op.kind == OpKind::synchronize)
    uses_.clear();
  if (t_.ops.empty() && r_.type != MwcRecordType::step) {  // a step, if the file names none, begins with a mark
    Op opening;
    opening.thread = op.thread;
    opening.origin = op.origin;
    builder_.append(opening);
  } else if (!t_.ops.empty() && op.thread != thread_) {
    switch_thread(op);
  }
  thread_ = op.thread;
  state_of(threads_, op.thread);
  if (runs_on_device(op.kind) || op.kind == OpKind::host_work) assign_pending_allocs(op);
  return builder_.append(op, uses_);
}

void MwcImporter::close_steps() {
  if (t_.ops.empty()) fail("the file ends without a record of what the host did; expected ops behind the header.");
  if (t_.steps.empty()) t_.steps.push_back({t_.name, 0, 0});
  t_.steps.back().last = static_cast<OpId>(t_.ops.size());
}

void MwcImporter::number_threads_and_streams() {
  const std::vector<std::uint16_t> thread = indices_of(threads_), stream = indices_of(streams_);
  for (Op& op : t_.ops) {
    op.thread = thread[op.thread];
    op.stream = stream[op.stream];
  }
  for (Storage& storage : t_.storages) storage.stream = stream[storage.stream];
  for (std::size_t i = 0; i < threads_.size(); ++i)
    if (threads_[i].used) builder_.add_thread(fmt::format("thread {}", i));
  for (std::size_t i = 0; i < streams_.size(); ++i) {
    const MwcStream& s = streams_[i];
    if (!s.used) continue;
    const bool alone = s.kernels == 0;
    const StreamRole role = alone && s.collectives > 0 ? StreamRole::communication
                            : alone && s.copies > 0    ? StreamRole::copy
                                                       : StreamRole::compute;
    builder_.add_stream(fmt::format("stream {}", i), role);
  }
}

ImportedMwc MwcImporter::finish() {
  close_steps();
  number_threads_and_streams();
  for (const auto& [name, ranks] : counts_.groups) t_.ranks = std::max(t_.ranks, ranks);
  ImportedMwc result;
  result.measured = counts_.measured > 0;
  t_.knowledge.allocations = t_.knowledge.dataflow = true;
  t_.knowledge.timing = result.measured;
  t_.knowledge.modules = std::any_of(t_.ops.begin(), t_.ops.end(), [](const Op& op) { return op.module != 0; });
  t_.knowledge.shapes = flops_ > 0 || bytes_ > 0;
  counts_.unwritten_reads = storages_.unwritten_reads();
  counts_.saves = storages_.saves();
  counts_.saves_elsewhere = storages_.saves_elsewhere();
  result.decisions = mwc_decisions(counts_);
  const NoteList notes = mwc_notes(reader_.header(), counts_, result.decisions);
  t_.notes = notes.notes();
  result.note_kinds = notes.kinds();
  result.gpu = reader_.header().gpu;
  result.gpu_bytes = reader_.header().gpu_bytes;
  result.report.push_back(records_line(counts_));
  result.trace = std::move(builder_).finish();
  require_sound(result.trace, path_.string());
  return result;
}

}  // namespace memwall
