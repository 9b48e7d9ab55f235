#include "sim/trace/ranks.h"

#include <algorithm>
#include <cassert>
#include <limits>
#include <string>
#include <utility>

#include "sim/error.h"
#include "sim/trace/rank_tables.h"

namespace memwall {
namespace {

// At least one: work without a stream is on a device too.
std::size_t device_count(const Trace& trace) { return std::max<std::size_t>(1, devices_of(trace, 0).size()); }

bool contains(const std::vector<std::string>& texts, const std::string& text) {
  return std::find(texts.begin(), texts.end(), text) != texts.end();
}

// What is added to the numbers of a rank whose program stands behind others. Fields that a kind does not use wrap
// around.
struct Offsets {
  std::uint16_t thread = 0, stream = 0;
  StorageId storage = 0;
  OpId op = 0;
  std::uint32_t event = 0, use = 0;
};

void renumber(Op& op, const Offsets& by) {
  op.thread = static_cast<std::uint16_t>(op.thread + by.thread);
  op.stream = static_cast<std::uint16_t>(op.stream + by.stream);
  op.first_use += by.use;
  if (op.source != kNoOp) op.source += by.op;
  if (op.kind == OpKind::alloc || op.kind == OpKind::free)
    op.target += by.storage;
  else if (op.kind == OpKind::hand_over)
    op.target += by.op;
  else if (targets_event(op))
    op.target += by.event;
}

// Where each group of a trace stands in `joined`, which grows by what is new. Two equal ones of one trace stay two.
std::vector<std::uint16_t> merge_groups(const std::vector<ProcessGroup>& groups, std::vector<ProcessGroup>& joined) {
  std::vector<bool> taken(joined.size(), false);
  std::vector<std::uint16_t> numbers;
  for (const ProcessGroup& group : groups) {
    std::size_t at = 0;
    while (at < joined.size() && (taken[at] || !is_same(joined[at], group))) ++at;
    if (at == joined.size()) {
      if (at > std::numeric_limits<std::uint16_t>::max())
        throw InputError("The ranks have more than 65536 process groups together; a trace can number no more.");
      joined.push_back(group);
      taken.push_back(false);
    }
    taken[at] = true;
    numbers.push_back(static_cast<std::uint16_t>(at));
  }
  return numbers;
}

class Join {
 public:
  explicit Join(std::vector<RankProgram> ranks) : ranks_(std::move(ranks)) {
    std::sort(ranks_.begin(), ranks_.end(),
              [](const RankProgram& a, const RankProgram& b) { return a.number < b.number; });
  }

  Trace run() && {
    require_room();
    describe();
    make_room();
    for (std::size_t index = 0; index < ranks_.size(); ++index) {
      append(ranks_[index].trace, static_cast<std::uint16_t>(index));
      ranks_[index].trace = {};  // its memory is large, and there may be many
    }
    trim_unknown(out_.groups);
    return std::move(out_);
  }

 private:
  template <class Count>
  void require(const char* what, std::uint64_t most, Count count) const {
    std::uint64_t all = 0;
    for (const RankProgram& rank : ranks_) all += count(rank.trace);
    if (all > most)
      throw InputError("The " + std::to_string(ranks_.size()) + " ranks have " + std::to_string(all) + " " + what +
                       " together; a trace can number " + std::to_string(most) + ".");
  }

  void require_room() const {
    constexpr std::uint64_t kMost16 = 0x10000, kMost32 = 0xfffffffe;
    require("host threads", kMost16, [](const Trace& t) { return t.threads.size(); });
    require("streams", kMost16, [](const Trace& t) { return t.streams.size(); });
    require("devices", kMost16 - 1, [](const Trace& t) { return device_count(t); });
    require("ops", kMost32, [](const Trace& t) { return t.ops.size(); });
    require("uses", kMost32, [](const Trace& t) { return t.uses.size(); });
    require("storages", kMost32, [](const Trace& t) { return t.storages.size(); });
    require("events", kMost32, [](const Trace& t) { return t.event_count; });
    require("names", kMost32, [](const Trace& t) { return t.strings.size(); });
    require("places", 256, [this](const Trace& t) { return &t == &ranks_[0].trace ? all_places() : 0; });
  }

  // Growing by doubling would copy most of it again, and touch twice the memory.
  void make_room() {
    std::size_t ops = 0, uses = 0, storages = 0;
    for (const RankProgram& rank : ranks_) {
      ops += rank.trace.ops.size();
      uses += rank.trace.uses.size();
      storages += rank.trace.storages.size();
    }
    out_.ops.reserve(ops);
    out_.uses.reserve(uses);
    out_.storages.reserve(storages);
  }

  std::size_t all_places() const {
    std::vector<std::string> places;
    for (const RankProgram& rank : ranks_)
      for (const std::string& place : rank.trace.places)
        if (!contains(places, place)) places.push_back(place);
    return places.size();
  }

  // What the trace as a whole has.
  void describe() {
    const Trace& first = ranks_.front().trace;
    out_.name = first.name;
    out_.machine = first.machine;
    out_.constants = first.constants;
    out_.knowledge = first.knowledge;
    for (const auto& [number, trace, stands_for, chunks] : ranks_) {
      const Knowledge& k = trace.knowledge;
      out_.knowledge.timing &= k.timing;
      out_.knowledge.allocations &= k.allocations;
      out_.knowledge.dataflow &= k.dataflow;
      out_.knowledge.modules &= k.modules;
      out_.knowledge.shapes &= k.shapes;
      out_.job_ranks = std::max(out_.job_ranks, trace.job_ranks);
      out_.samples_per_step += trace.samples_per_step;
      out_.tokens_per_step += trace.tokens_per_step;
      out_.untracked_bytes += trace.untracked_bytes;
      out_.reserved_at_start += trace.reserved_at_start;
      out_.rank_table.push_back({.number = number,
                                 .constants = trace.constants,
                                 .untracked_bytes = trace.untracked_bytes,
                                 .reserved_at_start = trace.reserved_at_start,
                                 .samples_per_step = trace.samples_per_step,
                                 .tokens_per_step = trace.tokens_per_step,
                                 .ranks = trace.ranks,
                                 .stands_for = stands_for,
                                 .chunks = chunks});
    }
    join_notes();
    join_recipes();
    join_budgets();
    join_completeness();
  }

  // Of what one policy was given for each rank, that of the rank which keeps to it least.
  void join_budgets() {
    for (const RankProgram& rank : ranks_)
      for (const MemoryBudget& budget : rank.trace.budgets) {
        const auto known = std::find_if(out_.budgets.begin(), out_.budgets.end(),
                                        [&](const MemoryBudget& other) { return other.policy == budget.policy; });
        if (known == out_.budgets.end())
          out_.budgets.push_back(budget);
        else if (budget.over > known->over)
          *known = budget;
      }
  }

  // No better than that of any rank.
  void join_completeness() {
    for (const RankProgram& rank : ranks_) {
      if (!is_worse(rank.trace.completeness, out_.completeness)) continue;
      out_.completeness = rank.trace.completeness;
      out_.completeness_reason = rank.trace.completeness_reason;
    }
  }

  // What holds of every rank.
  void join_recipes() {
    for (const RecipeItem& item : ranks_.front().trace.recipe)
      if (std::all_of(ranks_.begin(), ranks_.end(), [&](const RankProgram& rank) {
            return std::find(rank.trace.recipe.begin(), rank.trace.recipe.end(), item) != rank.trace.recipe.end();
          }))
        out_.recipe.push_back(item);
  }

  void join_notes() {
    const auto is_common = [&](const std::string& note) {
      return std::all_of(ranks_.begin(), ranks_.end(),
                         [&](const RankProgram& rank) { return contains(rank.trace.notes, note); });
    };
    for (const std::string& note : ranks_.front().trace.notes)
      if (is_common(note)) out_.notes.push_back(note);
    const std::vector<std::string> common = out_.notes;
    for (const auto& [number, trace, stands_for, chunks] : ranks_)
      for (const std::string& note : trace.notes)
        if (!contains(common, note)) out_.notes.push_back(rank_note_prefix(number) + note);
  }

  void append(const Trace& trace, std::uint16_t index) {
    const Offsets by{.thread = static_cast<std::uint16_t>(out_.threads.size()),
                     .stream = static_cast<std::uint16_t>(out_.streams.size()),
                     .storage = static_cast<StorageId>(out_.storages.size()),
                     .op = static_cast<OpId>(out_.ops.size()),
                     .event = out_.event_count,
                     .use = static_cast<std::uint32_t>(out_.uses.size())};
    for (const HostThread& thread : trace.threads) out_.threads.push_back({thread.name, index});
    const std::vector<std::uint16_t> devices = devices_of(trace, 0);
    for (Stream stream : trace.streams) {
      stream.device = static_cast<std::uint16_t>(devices_ + device_position(devices, stream.device));
      stream.rank = index;
      out_.streams.push_back(std::move(stream));
    }
    devices_ = static_cast<std::uint16_t>(devices_ + device_count(trace));
    out_.event_count += trace.event_count;
    for (const Step& step : trace.steps) out_.steps.push_back({step.name, step.first + by.op, step.last + by.op});
    RankDictionary words(trace, out_);
    for (const std::string& place : trace.places) out_.place(place);
    append_storages(trace, by, words);
    for (const HeldCopy& held : trace.held_copies)
      out_.held_copies.push_back({held.copy + by.storage, held.of + by.storage});
    append_ops(trace, by, words);
  }

  void append_storages(const Trace& trace, const Offsets& by, RankDictionary& words) {
    for (Storage storage : trace.storages) {
      words.translate(storage);
      storage.stream = static_cast<std::uint16_t>(storage.stream + by.stream);
      if (storage.last_referenced != kNoOp) storage.last_referenced += by.op;
      out_.storages.push_back(storage);
    }
    for (Use use : trace.uses) {
      use.storage += by.storage;
      out_.uses.push_back(use);
    }
  }

  void append_ops(const Trace& trace, const Offsets& by, RankDictionary& words) {
    const std::vector<std::uint16_t> groups = merge_groups(all_groups(trace), out_.groups);
    for (Op op : trace.ops) {
      words.translate(op);
      renumber(op, by);
      if (op.kind == OpKind::collective) op.group = groups[op.group];
      out_.ops.push_back(op);
    }
  }

  std::vector<RankProgram> ranks_;
  Trace out_;
  std::uint16_t devices_ = 0;
};

}  // namespace

Trace joined_ranks(std::vector<RankProgram> ranks) {
  assert(!ranks.empty());
  return Join(std::move(ranks)).run();
}

std::vector<std::uint16_t> storage_ranks(const Trace& trace) {
  std::vector<std::uint16_t> ranks(trace.storages.size(), 0);
  if (trace.rank_table.empty()) return ranks;
  for (StorageId s = 0; s < ranks.size(); ++s) {
    const std::uint16_t stream = trace.storages[s].stream;
    if (stream < trace.streams.size()) ranks[s] = trace.streams[stream].rank;
  }
  for (const Op& op : trace.ops) {
    const std::uint16_t rank = rank_of(trace, op);
    if (op.kind == OpKind::alloc || op.kind == OpKind::free) ranks[op.target] = rank;
    for (const Use& use : trace.uses_of(op)) ranks[use.storage] = rank;
  }
  return ranks;
}

bool hold_the_same_parameters(const Trace& trace) {
  if (rank_count(trace) == 1) return true;
  const std::vector<std::uint16_t> ranks = storage_ranks(trace);
  std::vector<std::vector<std::pair<StringId, Bytes>>> held(rank_count(trace));
  for (StorageId s = 0; s < ranks.size(); ++s) {
    const Storage& storage = trace.storages[s];
    if (storage.kind == StorageKind::parameter && storage.preexisting)
      held[ranks[s]].emplace_back(storage.label, storage.bytes);
  }
  for (auto& of_rank : held) std::sort(of_rank.begin(), of_rank.end());
  return std::all_of(held.begin(), held.end(), [&](const auto& of_rank) { return of_rank == held.front(); });
}

OpId end_of_step(const Trace& trace, const Step& step) {
  const auto count = static_cast<OpId>(trace.ops.size());
  if (trace.rank_table.empty() || step.first >= count) return step.last;
  const std::uint16_t rank = rank_of(trace, trace.ops[step.first]);
  OpId last = step.last;
  // Ranks stand whole, one behind the other.
  while (last < count && rank_of(trace, trace.ops[last]) == rank && trace.ops[last].placed) ++last;
  if (last < count && rank_of(trace, trace.ops[last]) != rank) return count;
  return last;
}

std::size_t rank_count(const Trace& trace) { return trace.rank_table.empty() ? 1 : trace.rank_table.size(); }

}  // namespace memwall
