#include "policies/trace/pipelined_passes.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sim/error.h"
#include "sim/trace/pass_end_mark.h"
#include "sim/trace/pipeline_chunk.h"
#include "sim/trace/trace_builder.h"

namespace memwall {
namespace {

// A pass and what follows it until the next: messages, reductions.
struct Segment {
  OpId begin = 0, end = 0, next = 0;  // its mark; behind its end mark; the next segment's mark
  std::string_view stage;             // as its mark says it
  bool backward = false;
  std::size_t pair = 0;
};

struct Pair {
  std::size_t forward = 0, backward = 0;  // segments
  std::size_t kind = 0;                   // index of the template
};

// Numbers of one program as those of another.
using Numbers = std::unordered_map<std::uint32_t, std::uint32_t>;

std::uint32_t mapped(const Numbers& numbers, std::uint32_t number) {
  const auto found = numbers.find(number);
  return found == numbers.end() ? number : found->second;
}

bool has_event(const Op& op) { return op.kind == OpKind::event_record || op.kind == OpKind::event_wait; }
bool has_storage(const Op& op) { return op.kind == OpKind::alloc || op.kind == OpKind::free; }

std::vector<Segment> segments_of(const Trace& t) {
  std::vector<Segment> all;
  OpId update = static_cast<OpId>(t.ops.size());
  for (OpId id = 0; id < t.ops.size(); ++id) {
    if (t.ops[id].kind != OpKind::mark) continue;
    const std::string_view name = t.strings[t.ops[id].name];
    const bool backward = name.starts_with(kBackwardMark);
    if (backward || name.starts_with(kForwardMark)) {
      if (!all.empty()) all.back().next = id;
      all.push_back({id, 0, 0, name.substr(backward ? kBackwardMark.size() : kForwardMark.size()), backward});
    } else if (name == kPassEndMark && !all.empty()) {
      all.back().end = id + 1;
    } else if (name == kUpdateMark) {
      update = id;
    }
  }
  if (!all.empty()) all.back().next = update;
  return all;
}

// The n-th forward pass of a stage is of the micro-batch of its n-th backward pass. In the order of backward passes.
std::vector<Pair> pairs_of(std::vector<Segment>& segments) {
  std::map<std::string_view, std::vector<std::size_t>> forward;
  std::map<std::string_view, std::size_t> taken;
  std::vector<Pair> pairs;
  for (std::size_t i = 0; i < segments.size(); ++i)
    if (!segments[i].backward) forward[segments[i].stage].push_back(i);
  for (std::size_t i = 0; i < segments.size(); ++i) {
    if (!segments[i].backward) continue;
    const std::size_t there = forward[segments[i].stage].at(taken[segments[i].stage]++);
    segments[there].pair = segments[i].pair = pairs.size();
    pairs.push_back({there, i, 0});
  }
  return pairs;
}

// Do two pairs run the same ops? Which storages and events of one are those of the other is noted.
class Comparison {
 public:
  Comparison(const Trace& trace, const std::vector<Segment>& segments) : t_(trace), segments_(segments) {}

  bool are_equal(const Pair& a, const Pair& b) {
    storages_.clear(), events_.clear(), ops_.clear(), taken_.clear();
    return are_equal(segments_[a.forward], segments_[b.forward]) &&
           are_equal(segments_[a.backward], segments_[b.backward]);
  }
  Numbers take_storages() { return std::move(storages_); }
  Numbers take_events() { return std::move(events_); }

 private:
  bool are_equal(const Segment& a, const Segment& b) {
    if (a.end - a.begin != b.end - b.begin) return false;
    for (OpId i = 1; i < a.end - a.begin; ++i) {  // behind the mark, whose phase is that of what stands before it
      ops_[a.begin + i] = b.begin + i;
      if (!are_equal(t_.ops[a.begin + i], t_.ops[b.begin + i])) return false;
    }
    return true;
  }

  bool are_equal(const Op& a, const Op& b) {
    Op same = b;  // but for its numbers
    same.target = a.target, same.source = a.source, same.first_use = a.first_use;
    if (!is_same(a, same)) return false;
    if (has_storage(a) ? !matches(a.target, b.target)
        : has_event(a) ? !is_event(a.target, b.target)
                       : a.target != b.target)
      return false;
    if (a.source != b.source && mapped(ops_, a.source) != b.source) return false;
    const auto uses = t_.uses_of(a), others = t_.uses_of(b);
    for (std::size_t i = 0; i < uses.size(); ++i)
      if (uses[i].access != others[i].access || uses[i].saved != others[i].saved ||
          !matches(uses[i].storage, others[i].storage))
        return false;
    return true;
  }

  static bool is_same(const Op& a, const Op& b) {
    const auto key = [](const Op& o) {
      return std::tuple(o.kind, o.phase, o.origin, o.wait_for, o.graph_member, o.placed, o.inferred, o.added, o.thread,
                        o.stream, o.name, o.operator_name, o.module, o.host_gap, o.host_cost, o.return_delay,
                        o.duration, o.bytes, o.flops, o.waves, o.use_count, o.from, o.to);
    };
    const auto rest = [](const Op& o) {
      return std::tuple(o.group, o.shape, o.error_permille, o.kernels, o.framework_calls, o.dispatch, o.operator_class,
                        o.data_type, o.collective, o.pageable);
    };
    return key(a) == key(b) && rest(a) == rest(b);
  }

  bool matches(StorageId a, StorageId b) {
    const auto [at, is_new] = storages_.try_emplace(a, b);
    if (!is_new) return at->second == b;
    const Storage &one = t_.storages[a], &other = t_.storages[b];
    return taken_.insert(b).second && one.bytes == other.bytes && one.kind == other.kind && one.place == other.place &&
           one.stream == other.stream && one.shape == other.shape && one.preexisting == other.preexisting;
  }

  bool is_event(std::uint32_t a, std::uint32_t b) { return events_.try_emplace(a, b).first->second == b; }

  const Trace& t_;
  const std::vector<Segment>& segments_;
  Numbers storages_, events_, ops_;
  std::set<StorageId> taken_;
};

class PassRewriter {
 public:
  explicit PassRewriter(const Trace& trace) : t_(trace), segments_(segments_of(trace)), pairs_(pairs_of(segments_)) {}

  Trace run(const std::function<Trace(const Trace&)>& rewrite) && {
    find_kinds();
    const Trace few = alternating();
    const Trace rewritten = rewrite(few);
    find_rewritten(few, rewritten);
    return instances(rewritten);
  }

 private:
  struct Kind {
    std::size_t pair = 0;
    std::vector<StorageId> own;   // made in its passes
    std::vector<StorageId> sent;  // of those: read by what stands behind a pass
    std::vector<OpId> frees;      // of those, within the backward pass
  };
  // In the rewritten program: a pass, from behind its mark to its end mark.
  struct Body {
    OpId begin = 0, end = 0;
  };

  void find_kinds() {
    Comparison comparison(t_, segments_);
    storages_.resize(pairs_.size());
    events_.resize(pairs_.size());
    std::map<std::string_view, std::vector<std::size_t>> known;  // by stage: the last one is the likeliest
    for (std::size_t i = 0; i < pairs_.size(); ++i) {
      std::vector<std::size_t>& of_stage = known[segments_[pairs_[i].forward].stage];
      const auto same = std::find_if(of_stage.rbegin(), of_stage.rend(), [&](std::size_t kind) {
        return comparison.are_equal(pairs_[kinds_[kind].pair], pairs_[i]);
      });
      if (same != of_stage.rend()) {
        pairs_[i].kind = *same;
        storages_[i] = comparison.take_storages();
        events_[i] = comparison.take_events();
        continue;
      }
      pairs_[i].kind = kinds_.size();
      of_stage.push_back(kinds_.size());
      kinds_.push_back(kind_of(i));
    }
  }

  Kind kind_of(std::size_t number) const {
    Kind kind{number, {}, {}, {}};
    const std::size_t both[] = {pairs_[number].forward, pairs_[number].backward};
    for (const std::size_t s : both)
      for (OpId id = segments_[s].begin; id < segments_[s].end; ++id)
        if (t_.ops[id].kind == OpKind::alloc) kind.own.push_back(t_.ops[id].target);
    std::ranges::sort(kind.own);
    for (const std::size_t s : both)
      for (OpId id = segments_[s].end; id < segments_[s].next; ++id)
        for (const Use& use : t_.uses_of(t_.ops[id]))
          if (std::ranges::binary_search(kind.own, use.storage)) kind.sent.push_back(use.storage);
    std::ranges::sort(kind.sent);
    for (const std::size_t s : both)
      for (OpId id = segments_[s].begin; id < segments_[s].end; ++id)
        if (t_.ops[id].kind == OpKind::free && std::ranges::binary_search(kind.sent, t_.ops[id].target))
          kind.frees.push_back(id);
    return kind;
  }

  // --- the program of one micro-batch of each kind

  Trace alternating() {
    builder_ = TraceBuilder::like(t_);
    few_ids_.clear();
    const OpId first = segments_.front().begin;
    for (OpId id = 0; id < first; ++id) append_few(id);
    for (const Kind& kind : kinds_)
      for (const std::size_t s : {pairs_[kind.pair].forward, pairs_[kind.pair].backward})
        append_few(segments_[s], kind);
    Trace few = std::move(builder_).finish();
    few.steps = {t_.steps.front()};
    few.steps.front().last = static_cast<OpId>(few.ops.size());
    for (StorageId s = 0; s < few.storages.size(); ++s) {
      const auto found = few_ids_.find(t_.storages[s].last_referenced);
      few.storages[s].last_referenced = found == few_ids_.end() ? kNoOp : found->second;
    }
    return few;
  }

  void append_few(OpId id) { append_few(id, t_.ops[id], t_.uses_of(t_.ops[id])); }
  void append_few(OpId id, Op op, std::span<const Use> uses) {
    const auto source = few_ids_.find(op.source);
    op.source = source == few_ids_.end() ? kNoOp : source->second;
    few_ids_[id] = builder_.append_renewed(op, uses);
  }

  // Behind the pass stands who reads what it has made, and who gives it back. What is sent is the pipeline's until it
  // gives it back, which is left out here, and is no policy's to drop.
  void append_few(const Segment& segment, const Kind& kind) {
    const auto is_own = [&](StorageId s) {
      return std::ranges::binary_search(kind.own, s) && !std::ranges::binary_search(kind.sent, s);
    };
    const auto is_sent = [&](StorageId s) { return std::ranges::binary_search(kind.sent, s); };
    for (OpId id = segment.begin; id < segment.end; ++id)
      if (std::ranges::find(kind.frees, id) == kind.frees.end()) append_few(id);
    for (OpId id = segment.end; id < segment.next; ++id) {
      Op op = t_.ops[id];
      std::vector<Use> reads;
      for (const Use& use : t_.uses_of(op))
        if (use.access == Access::read && is_sent(use.storage)) reads.push_back(use);
      if (reads.empty() && !(op.kind == OpKind::free && is_own(op.target))) continue;
      op.phase = segment.backward ? Phase::backward : Phase::forward;
      append_few(id, op, reads);
    }
  }

  // --- what the policy has made of it

  void find_rewritten(const Trace& few, const Trace& rewritten) {
    const std::vector<Segment> before = segments_of(few), after = segments_of(rewritten);
    bool same = before.size() == after.size() && after.size() == 2 * kinds_.size();
    for (std::size_t i = 0; same && i < after.size(); ++i)
      same = after[i].end > after[i].begin && is_untouched(few, before[i], rewritten, after[i]);
    if (!same)
      throw UsageError(fmt::format(
          "In trace '{}' forward passes of several micro-batches follow each other before a backward pass (a "
          "pipeline's warm-up); this policy changes what stands between passes, which is not implemented.",
          t_.name));
    bodies_.clear();
    for (const Segment& segment : after) bodies_.push_back({segment.begin, segment.end});
    prologue_ = after.front().begin;
  }

  // Is all behind the pass as it was?
  static bool is_untouched(const Trace& few, const Segment& before, const Trace& rewritten, const Segment& after) {
    if (before.next - before.end != after.next - after.end) return false;
    for (OpId i = 0; i < before.next - before.end; ++i) {
      const Op &one = few.ops[before.end + i], &other = rewritten.ops[after.end + i];
      if (one.kind != other.kind || one.target != other.target || one.use_count != other.use_count) return false;
    }
    return true;
  }

  // --- all micro-batches

  Trace instances(const Trace& rewritten) {
    builder_ = TraceBuilder::like(rewritten);
    builder_.trace().ops.reserve(t_.ops.size());
    builder_.trace().uses.reserve(t_.uses.size());
    for (OpId id = 0; id < prologue_; ++id)
      builder_.append_renewed(rewritten.ops[id], rewritten.uses_of(rewritten.ops[id]));
    ops_.resize(pairs_.size());
    const OpId begin = segments_.front().begin;
    for (const Segment& segment : segments_) {
      append_instance(rewritten, segment);
      for (OpId id = segment.end; id < segment.next; ++id) append_base(id);
    }
    for (OpId id = segments_.back().next; id < t_.ops.size(); ++id) append_base(id);
    Trace all = std::move(builder_).finish();
    all.steps = {t_.steps.front()};
    if (all.steps.front().first >= begin) all.steps.front().first = 0;
    all.steps.front().last = static_cast<OpId>(all.ops.size());
    set_last_referenced(rewritten, all);
    const std::string note = fmt::format(
        "Passes of {} micro-batches and stages are rewritten as {} of them, which run the same ops: what policies count "
        "is of these.",
        pairs_.size(), kinds_.size());
    if (std::ranges::find(all.notes, note) == all.notes.end()) all.notes.push_back(note);
    return all;
  }

  void append_base(OpId id) {
    Op op = t_.ops[id];
    op.source = kNoOp;
    builder_.append_renewed(op, t_.uses_of(op));
  }

  void append_instance(const Trace& rewritten, const Segment& segment) {
    const std::size_t number = segment.pair;
    const Pair& pair = pairs_[number];
    const Body& body = bodies_[2 * pair.kind + (segment.backward ? 1 : 0)];
    Numbers &storages = storages_[number], &events = events_[number], &ops = ops_[number];
    const bool is_template = kinds_[pair.kind].pair == number;
    std::vector<Use> uses;
    for (OpId id = body.begin; id < body.end; ++id) {
      if (id + 1 == body.end && segment.backward) append_frees(kinds_[pair.kind], is_template ? nullptr : &storages);
      Op op = rewritten.ops[id];
      if (id == body.begin) op.phase = t_.ops[segment.begin].phase;
      uses.assign(rewritten.uses_of(op).begin(), rewritten.uses_of(op).end());
      if (!is_template) {
        for (Use& use : uses) use.storage = storage(storages, use.storage);
        if (has_storage(op)) op.target = storage(storages, op.target);
        if (has_event(op)) op.target = event(events, op.target);
      }
      op.source = source_of(ops, op.source);
      ops[id] = builder_.append_renewed(op, uses);
      if (is_template) template_ops_[id] = ops[id];
    }
  }

  // Within the micro-batch; else before the first pass, or within the first micro-batch (what it gathers).
  OpId source_of(const Numbers& ops, OpId source) const {
    if (source == kNoOp || source < prologue_) return source;
    const auto own = ops.find(source);
    if (own != ops.end()) return own->second;
    const auto earlier = template_ops_.find(source);
    return earlier == template_ops_.end() ? kNoOp : earlier->second;
  }

  // At the end of the backward pass, behind which nobody of it asks for what was sent.
  void append_frees(const Kind& kind, Numbers* storages) {
    for (const OpId id : kind.frees) {
      Op op = t_.ops[id];
      if (storages != nullptr) op.target = storage(*storages, op.target);
      builder_.append_renewed(op, {});
    }
  }

  // One that the policy has added is another one for each micro-batch.
  StorageId storage(Numbers& storages, StorageId id) {
    const auto found = storages.find(id);
    if (found != storages.end()) return found->second;
    if (id < t_.storages.size()) return id;
    Trace& made = builder_.trace();
    const auto fresh = static_cast<StorageId>(made.storages.size());
    const Storage copy = made.storages[id];
    made.storages.push_back(copy);
    storages[id] = fresh;
    return fresh;
  }

  std::uint32_t event(Numbers& events, std::uint32_t id) {
    const auto found = events.find(id);
    if (found != events.end()) return found->second;
    if (id < t_.event_count) return id;
    return events[id] = builder_.add_event();
  }

  void set_last_referenced(const Trace& rewritten, Trace& all) const {
    for (std::size_t number = 0; number < pairs_.size(); ++number) {
      const bool is_template = kinds_[pairs_[number].kind].pair == number;
      const auto set = [&](StorageId from, StorageId to) {
        const auto found = ops_[number].find(rewritten.storages[from].last_referenced);
        if (found != ops_[number].end()) all.storages[to].last_referenced = found->second;
      };
      if (is_template)
        for (const StorageId s : kinds_[pairs_[number].kind].own) set(s, s);
      else
        for (const auto& [from, to] : storages_[number]) set(from, to);
    }
  }

  const Trace& t_;
  std::vector<Segment> segments_;
  std::vector<Pair> pairs_;
  std::vector<Kind> kinds_;
  std::vector<Numbers> storages_, events_;  // by pair: the template's as this one's
  std::vector<Numbers> ops_;                // by pair: ops of the rewritten program as the last one's
  TraceBuilder builder_;
  Numbers template_ops_;  // of the rewritten program, in the new one
  Numbers few_ids_;  // ops of the trace in the program of few
  std::vector<Body> bodies_;
  OpId prologue_ = 0;
};

}  // namespace

bool is_pipeline_stage(const Trace& trace) {
  return std::ranges::any_of(trace.ops, [&](const Op& op) {
    return op.kind == OpKind::mark && trace.strings[op.name].starts_with(kForwardMark);
  });
}

bool has_pipelined_passes(const Trace& trace) {
  bool open = false, follow = false, ended = false;
  for (const Op& op : trace.ops) {
    if (op.kind != OpKind::mark) continue;
    const std::string_view name = trace.strings[op.name];
    if (name.starts_with(kForwardMark)) follow = follow || std::exchange(open, true);
    if (name.starts_with(kBackwardMark)) open = false;
    ended = ended || name == kPassEndMark;
  }
  return follow && ended && trace.steps.size() == 1 && trace.rank_table.size() <= 1;
}

Trace with_each_pass_rewritten(const Trace& trace, const std::function<Trace(const Trace&)>& rewrite) {
  return PassRewriter(trace).run(rewrite);
}

}  // namespace memwall
