#include <algorithm>
#include <cassert>

#include "sim/trace/rank_tables.h"
#include "sim/trace/ranks.h"

namespace memwall {
namespace {

// Picks one rank's rows. Rows of a rank need not stand together.
class Extract {
 public:
  Extract(const Trace& trace, std::uint16_t index) : trace_(trace), index_(index), words_(trace, out_) {}

  Trace run() && {
    describe();
    take_threads_and_streams();
    choose_ops();
    take_storages();
    for (OpId id = 0; id < trace_.ops.size(); ++id)
      if (is_mine(id)) append(id);
    take_steps();
    return std::move(out_);
  }

 private:
  static constexpr std::uint32_t kElsewhere = 0xffffffff;
  bool is_mine(OpId id) const { return op_[id] != kElsewhere; }

  void describe() {
    const Rank& rank = trace_.rank_table[index_];
    out_.name = trace_.name;
    out_.machine = trace_.machine;
    out_.places = trace_.places;
    out_.constants = rank.constants;
    out_.knowledge = trace_.knowledge;
    out_.groups = trace_.groups;
    out_.job_ranks = trace_.job_ranks;
    out_.ranks = rank.ranks;
    out_.samples_per_step = rank.samples_per_step;
    out_.tokens_per_step = rank.tokens_per_step;
    out_.untracked_bytes = rank.untracked_bytes;
    out_.reserved_at_start = rank.reserved_at_start;
    out_.recipe = trace_.recipe;
    out_.budgets = trace_.budgets;
    out_.completeness = trace_.completeness;
    out_.completeness_reason = trace_.completeness_reason;
    for (const std::string& note : trace_.notes) take_note(note);
  }

  void take_note(const std::string& note) {
    for (std::size_t i = 0; i < trace_.rank_table.size(); ++i) {
      const std::string prefix = rank_note_prefix(trace_.rank_table[i].number);
      if (!note.starts_with(prefix)) continue;
      if (i == index_) out_.notes.push_back(note.substr(prefix.size()));
      return;
    }
    out_.notes.push_back(note);
  }

  void take_threads_and_streams() {
    thread_.assign(trace_.threads.size(), 0);
    stream_.assign(trace_.streams.size(), 0);
    for (std::size_t i = 0; i < trace_.threads.size(); ++i) {
      if (trace_.threads[i].rank != index_) continue;
      thread_[i] = static_cast<std::uint16_t>(out_.threads.size());
      out_.threads.push_back({trace_.threads[i].name});
    }
    const std::vector<std::uint16_t> devices = devices_of(trace_, index_);
    for (std::size_t i = 0; i < trace_.streams.size(); ++i) {
      if (trace_.streams[i].rank != index_) continue;
      stream_[i] = static_cast<std::uint16_t>(out_.streams.size());
      Stream& stream = out_.streams.emplace_back(trace_.streams[i]);
      stream.device = device_position(devices, stream.device);
      stream.rank = 0;
    }
  }

  // Numbers of this rank's ops, and which events they name.
  void choose_ops() {
    op_.assign(trace_.ops.size(), kElsewhere);
    event_.assign(trace_.event_count, kElsewhere);
    OpId next = 0;
    for (OpId id = 0; id < trace_.ops.size(); ++id) {
      const Op& op = trace_.ops[id];
      if (rank_of(trace_, op) != index_) continue;
      op_[id] = next++;
      if (targets_event(op)) event_[op.target] = 0;
    }
    for (std::uint32_t& event : event_)
      if (event != kElsewhere) event = out_.event_count++;
  }

  void take_storages() {
    const std::vector<std::uint16_t> ranks = storage_ranks(trace_);
    storage_.assign(ranks.size(), kElsewhere);
    for (StorageId s = 0; s < ranks.size(); ++s) {
      if (ranks[s] != index_) continue;
      storage_[s] = static_cast<StorageId>(out_.storages.size());
      Storage storage = trace_.storages[s];
      words_.translate(storage);
      storage.stream = stream_of(storage.stream);
      if (storage.last_referenced != kNoOp) storage.last_referenced = op_[storage.last_referenced];
      out_.storages.push_back(storage);
    }
    for (const HeldCopy& held : trace_.held_copies)
      if (storage_[held.copy] != kElsewhere && storage_[held.of] != kElsewhere)
        out_.held_copies.push_back({storage_[held.copy], storage_[held.of]});
  }

  std::uint16_t stream_of(std::uint16_t stream) const { return stream < stream_.size() ? stream_[stream] : 0; }

  void append(OpId id) {
    Op op = trace_.ops[id];
    words_.translate(op);
    op.thread = op.thread < thread_.size() ? thread_[op.thread] : 0;
    op.stream = stream_of(op.stream);
    if (op.source != kNoOp) op.source = op_[op.source];
    if (op.kind == OpKind::alloc || op.kind == OpKind::free)
      op.target = storage_[op.target];
    else if (op.kind == OpKind::hand_over)
      op.target = op_[op.target];
    else if (targets_event(op))
      op.target = event_[op.target];
    op.first_use = static_cast<std::uint32_t>(out_.uses.size());
    for (Use use : trace_.uses_of(trace_.ops[id])) {
      use.storage = storage_[use.storage];
      out_.uses.push_back(use);
    }
    out_.ops.push_back(op);
  }

  void take_steps() {
    for (const Step& step : trace_.steps) {
      if (step.first >= trace_.ops.size() || !is_mine(step.first)) continue;
      OpId last = step.last;
      while (last < trace_.ops.size() && !is_mine(last)) ++last;
      const OpId end = last < trace_.ops.size() ? op_[last] : static_cast<OpId>(out_.ops.size());
      out_.steps.push_back({step.name, op_[step.first], end});
    }
  }

  const Trace& trace_;
  const std::uint16_t index_;
  Trace out_;
  RankDictionary words_;
  std::vector<std::uint16_t> thread_, stream_;
  std::vector<OpId> op_;
  std::vector<StorageId> storage_;
  std::vector<std::uint32_t> event_;
};

}  // namespace

Trace one_rank(const Trace& trace, std::uint16_t index) {
  assert(index < rank_count(trace));
  return trace.rank_table.empty() ? trace : Extract(trace, index).run();
}

}  // namespace memwall
