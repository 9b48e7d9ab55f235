#include "models/workload/graft/graft.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "models/workload/graft/complete_rounds.h"
#include "models/workload/graft/graft_report.h"
#include "models/workload/graft/grafted_program.h"
#include "models/workload/graft/lone_work.h"
#include "models/workload/graft/part_of_time.h"
#include "models/workload/graft/size_comparison.h"
#include "models/workload/graft/workspaces.h"
#include "sim/error.h"
#include "sim/trace/trace_builder.h"

namespace memwall {
namespace {

constexpr std::uint16_t kNowhere = 0xffff;

// By index in the complete step, the index in the measured program that most pairs give; kNowhere where there is none.
std::vector<std::uint16_t> most_paired(const Trace& measured, const Trace& complete, const std::vector<LinePair>& pairs,
                                       std::size_t count, std::uint16_t Op::*member, bool device_only) {
  std::map<std::pair<std::uint16_t, std::uint16_t>, std::uint64_t> counts;
  for (const LinePair& pair : pairs) {
    const Op &m = measured.ops[pair.measured.front()], &c = complete.ops[pair.complete.front()];
    if (!device_only || is_device_line(c.kind)) ++counts[{c.*member, m.*member}];
  }
  std::vector<std::uint16_t> best(count, kNowhere);
  std::vector<std::uint64_t> most(count, 0);
  for (const auto& [key, number] : counts)
    if (number > most[key.first]) most[key.first] = number, best[key.first] = key.second;
  return best;
}

class Graft {
 public:
  Graft(const Trace& measured, const Trace& complete, const OperatorCalls& calls)
      : m_(measured),
        c_(complete),
        pairs_(pair_lines(measured, complete, calls)),
        workspaces_(measured_workspaces(measured, calls)),
        calls_(calls),
        builder_(TraceBuilder::like(complete)),
        out_(builder_.trace()) {}

  GraftedTrace run() {
    declare();
    compare_sizes(m_, c_, pairs_, report_);
    std::vector<bool> left_out = replaced_workspaces(c_, pairs_, workspaces_);
    is_replaced_.assign(c_.storages.size(), false);
    for (OpId id = 0; id < left_out.size(); ++id)
      if (left_out[id]) is_replaced_[c_.ops[id].target] = true;
    const std::vector<GraftedLine> lines =
        grafted_program(m_, c_, {pairs_, keep_workspaces(), std::move(left_out), std::move(threads_)});
    of_measured_.assign(m_.ops.size(), kNoOp);
    of_complete_.assign(c_.ops.size(), kNoOp);
    last_of_thread_.assign(m_.threads.size(), kNoOp);
    out_.ops.reserve(lines.size());
    for (const GraftedLine& line : lines) append(line);
    finish();
    mark_saved();
    account(m_, c_, pairs_, calls_, report_);
    return {std::move(builder_).finish(), std::move(report_)};
  }

 private:
  // --- what stands before the ops ---
  void declare() {
    out_.name = m_.name;
    out_.machine = m_.machine;
    out_.completeness = m_.completeness;
    out_.completeness_reason = m_.completeness_reason;
    out_.threads = m_.threads;
    out_.streams = m_.streams;
    out_.constants = m_.constants;
    out_.event_count = m_.event_count;
    out_.reserved_at_start = m_.reserved_at_start;
    out_.knowledge.timing = true;
    join_groups();
    if (out_.job_ranks == 0) out_.job_ranks = m_.job_ranks;
    if (out_.samples_per_step == 0) out_.samples_per_step = m_.samples_per_step;
    if (out_.tokens_per_step == 0) out_.tokens_per_step = m_.tokens_per_step;
    out_.notes = m_.notes;
    // The storages are those of the complete step.
    std::erase_if(out_.notes, [](const std::string& note) {
      return note.starts_with("Dataflow is inferred") || note.starts_with("Dataflow cannot be inferred");
    });
    strings_.assign(m_.strings.size(), 0);
    shapes_.assign(m_.shapes.size(), 0);
    threads_ = most_paired(m_, c_, pairs_, c_.threads.size(), &Op::thread, false);
    std::replace(threads_.begin(), threads_.end(), kNowhere, std::uint16_t{0});
    map_streams();
    for (std::size_t place = 0; place < m_.places.size(); ++place) places_.push_back(out_.place(m_.places[place]));
    for (Storage& storage : out_.storages) storage.stream = streams_[storage.stream];
    lone_.emplace(m_, c_, pairs_, streams_);
    out_.untracked_bytes = std::max(c_.untracked_bytes, m_.untracked_bytes + lasting_bytes(m_) - lasting_bytes(c_));
  }

  // Those of the profile, and behind them those of the complete step that it does not name.
  void join_groups() {
    out_.groups = m_.groups;
    for (const Op& op : m_.ops)
      if (op.kind == OpKind::collective && !c_.groups.empty())
        out_.groups.resize(std::max<std::size_t>(out_.groups.size(), op.group + 1U));
    for (const ProcessGroup& group : c_.groups) {
      const auto same = std::ranges::find_if(out_.groups, [&](const ProcessGroup& other) {
        return other.name == group.name && other.ranks == group.ranks && other.members == group.members;
      });
      groups_.push_back(static_cast<std::uint16_t>(same - out_.groups.begin()));
      if (same == out_.groups.end()) out_.groups.push_back(group);
    }
  }

  // What is there before a step and behind it. A profile counts it as what it does not see, but for what was inferred.
  static Bytes lasting_bytes(const Trace& step) {
    Bytes sum = 0;
    std::vector<bool> freed(step.storages.size(), false);
    for (const Op& op : step.ops)
      if (op.kind == OpKind::free) freed[op.target] = true;
    for (StorageId s = 0; s < step.storages.size(); ++s) {
      const Storage& storage = step.storages[s];
      if (storage.preexisting && !freed[s] && step.places[storage.place] == "hbm") sum += storage.bytes;
    }
    return sum;
  }

  // A stream on which nothing is paired is that of its role, or its own.
  void map_streams() {
    streams_ = most_paired(m_, c_, pairs_, c_.streams.size(), &Op::stream, true);
    for (std::size_t s = 0; s < streams_.size(); ++s) {
      if (streams_[s] != kNowhere) continue;
      const auto alike = std::ranges::find(m_.streams, c_.streams[s].role, &Stream::role);
      streams_[s] = static_cast<std::uint16_t>(alike - m_.streams.begin());
      if (alike == m_.streams.end()) {
        streams_[s] = static_cast<std::uint16_t>(out_.streams.size());
        out_.streams.push_back(c_.streams[s]);
      }
    }
  }

  // By measured op: does it allocate or free one?
  std::vector<bool> keep_workspaces() {
    std::vector<bool> stays(m_.ops.size(), false);
    storages_.assign(m_.storages.size(), kNoStorage);
    for (const CallWorkspace& workspace : workspaces_) {
      stays[workspace.alloc] = stays[workspace.free] = true;
      Storage storage = m_.storages[workspace.storage];
      storage.kind = StorageKind::workspace;
      storage.label = string(m_.ops[workspace.users.front()].operator_name);
      storage.shape = 0;
      storage.place = places_[storage.place];
      storages_[workspace.storage] = static_cast<StorageId>(out_.storages.size());
      out_.storages.push_back(storage);
      for (const OpId user : workspace.users) workspaces_of_[user].push_back(storages_[workspace.storage]);
      report_.largest_workspace = std::max(report_.largest_workspace, storage.bytes);
    }
    report_.workspaces = workspaces_.size();
    return stays;
  }

  StringId string(StringId id) {
    if (id != 0 && strings_[id] == 0) strings_[id] = out_.strings.intern(m_.strings[id]);
    return strings_[id];
  }
  ShapeId shape(ShapeId id) {
    if (id != 0 && shapes_[id] == 0) shapes_[id] = out_.shapes.intern(m_.shapes[id]);
    return shapes_[id];
  }

  // --- ops ---
  void append(const GraftedLine& line) {
    Op op = line.measured != kNoOp ? measured_op(line) : c_.ops[line.complete];
    if (line.measured == kNoOp) {
      op.stream = streams_[op.stream];
      if (op.kind == OpKind::collective && op.group < groups_.size()) op.group = groups_[op.group];
    }
    op.thread = line.thread;
    op.host_gap = line.host_gap;
    op.host_cost = line.host_cost;
    op.source = kNoOp;
    if (line.complete != kNoOp) op.source = new_source(c_.ops[line.complete].source);
    if (line.complete == kNoOp && m_.ops[line.measured].source != kNoOp)
      op.source = of_measured_[m_.ops[line.measured].source];
    // What it repeats is not in the result: then it is work of backward.
    if (op.phase == Phase::recompute && op.source == kNoOp) op.phase = Phase::backward;
    const bool takes_edges = line.complete != kNoOp && !op.graph_member && !op.placed;  // nothing stands within a graph
    if (takes_edges) lone_->before(line.complete, op.thread, op.stream, builder_);
    const OpId id = builder_.append_renewed(op, uses(line));
    if (takes_edges) lone_->behind(line.complete, op.thread, op.stream, builder_);
    last_of_thread_[op.thread] = id;
    if (line.measured != kNoOp && !calls_.nodes.empty()) {
      out_nodes_.resize(id + 1U);
      out_nodes_[id] = calls_.nodes[line.measured];
    }
    if (line.measured != kNoOp && of_measured_[line.measured] == kNoOp) of_measured_[line.measured] = id;
    if (line.complete != kNoOp && (of_complete_[line.complete] == kNoOp || line.last_of_pair))
      of_complete_[line.complete] = id;
  }

  OpId new_source(OpId source) const { return source == kNoOp ? kNoOp : of_complete_[source]; }

  Op measured_op(const GraftedLine& line) {
    const Op& m = m_.ops[line.measured];
    Op op = m;
    op.name = string(m.name);
    op.operator_name = string(m.operator_name);
    op.module = string(m.module);
    op.shape = shape(m.shape);
    if (op.kind == OpKind::copy || op.kind == OpKind::storage_io || op.kind == OpKind::host_work)
      op.from = places_[m.from], op.to = places_[m.to];
    if (op.kind == OpKind::alloc || op.kind == OpKind::free) op.target = storages_[m.target];
    if (op.kind == OpKind::hand_over) continue_behind(line, m.target, op);
    if (line.complete != kNoOp) take_work(line, op);
    return op;
  }

  // Behind an allocation of the profile, which is not in the result, the thread went on behind what stands there now;
  // behind the same op as in the complete step, where that is on the same thread.
  void continue_behind(const GraftedLine& line, OpId target, Op& op) const {
    const std::uint16_t thread = m_.ops[target].thread;
    op.target = of_measured_[target] != kNoOp ? of_measured_[target] : last_of_thread_[thread];
    if (line.complete != kNoOp && c_.ops[line.complete].kind == OpKind::hand_over) {
      const OpId own = of_complete_[c_.ops[line.complete].target];
      if (own != kNoOp && out_.ops[own].thread == thread && (op.target == kNoOp || own > op.target)) op.target = own;
    }
    if (op.target == kNoOp) op.kind = OpKind::mark;
  }

  void take_work(const GraftedLine& line, Op& op) {
    const Op &m = m_.ops[line.measured], &c = c_.ops[line.complete];
    if (c.operator_name != 0) op.operator_name = c.operator_name;
    if (c.module != 0) op.module = c.module;
    if (c.phase != Phase::unknown) op.phase = c.phase;
    op.framework_calls = c.framework_calls;
    if (!is_device_line(c.kind) || c.kind != m.kind) return;
    const LinePair& pair = pairs_[line.pair];
    const auto is_part = [&](OpId id) { return m_.ops[id].kind == c.kind; };
    const auto computes = [&](OpId id) { return is_part(id) && !is_beside_product(m_.ops[id], c); };
    const bool any_computes = std::ranges::any_of(pair.measured, computes);
    const bool is_beside = any_computes && !computes(line.measured);
    const bool is_work = c.kind == OpKind::kernel || c.kind == OpKind::memset;
    if (c.bytes > 0 && is_work && !(is_beside && m.bytes > 0))
      op.bytes = part_of(c.bytes, share_of(pair, line.measured, is_part));
    if (is_beside) return;
    if (c.operator_class != OperatorClass::other) op.operator_class = c.operator_class;
    // Tensors of fp32 do not say whether products were in TF32, one of the kernels does.
    const bool is_in_tf32 = c.data_type == DataType::fp32 && std::ranges::any_of(pair.measured, [&](OpId id) {
                              return m_.ops[id].data_type == DataType::tf32;
                            });
    if (c.data_type != DataType::unknown) op.data_type = is_in_tf32 ? DataType::tf32 : c.data_type;
    if (c.flops > 0)
      op.flops =
          c.flops * (any_computes ? share_of(pair, line.measured, computes) : share_of(pair, line.measured, is_part));
    if (c.shape != 0) op.shape = c.shape;
    if (pair.complete.size() > 1) op.duration = part_of(pair, line, m.duration);
  }

  // Of a product whose other kernels compute, one that changes a layout, adds a bias or sums its gradient, as the
  // profile says: another GPU makes it faster by its bandwidth, not by its rate of products.
  static bool is_beside_product(const Op& measured, const Op& complete) {
    return is_product(complete.operator_class) && !is_product(measured.operator_class) &&
           measured.operator_class != OperatorClass::other;
  }

  // Of a call's kernels that `counts` says, by duration.
  template <class Predicate>
  double share_of(const LinePair& pair, OpId measured, Predicate counts) const {
    Duration all{};
    std::size_t parts = 0;
    for (const OpId id : pair.measured)
      if (counts(id)) all += m_.ops[id].duration, ++parts;
    if (parts == 1) return 1;
    return all == Duration{} ? 1.0 / static_cast<double>(parts)
                             : to_seconds(m_.ops[measured].duration) / to_seconds(all);
  }

  static Bytes part_of(Bytes whole, double share) {
    return share == 1 ? whole : static_cast<Bytes>(static_cast<double>(whole) * share);
  }

  // Of a measured line that is several of the complete step, by their own durations.
  Duration part_of(const LinePair& pair, const GraftedLine& line, Duration whole) const {
    std::int64_t before = 0, behind = 0, all = 0;
    for (const OpId id : pair.complete) {
      const std::int64_t weight = std::max<std::int64_t>(1, c_.ops[id].duration.count());
      all += weight;
      if (id < line.complete) before += weight;
      if (id <= line.complete) behind += weight;
    }
    return part_of_time(whole, before, behind, all);
  }

  // Those of the complete step, and the workspaces that the measured line has.
  std::vector<Use> uses(const GraftedLine& line) const {
    std::vector<Use> all;
    if (line.complete != kNoOp) all = uses_of_complete(line);
    if (const auto own = workspaces_of_.find(line.measured); own != workspaces_of_.end() && line.measured != kNoOp)
      for (const StorageId storage : own->second) all.push_back({storage, 0, Access::write, false});
    return all;
  }

  // Of several measured lines that are one, each but the first reads what the one before wrote.
  std::vector<Use> uses_of_complete(const GraftedLine& line) const {
    std::vector<Use> own;
    for (const Use& use : c_.uses_of(c_.ops[line.complete]))
      if (!is_replaced_[use.storage]) own.push_back(use);
    if (line.pair >= pairs_.size() || pairs_[line.pair].measured.size() == 1) return own;
    std::vector<Use> all = own;
    for (Use& use : all)  // inputs are kept before the operator runs, results behind it
      use.saved &= use.access == Access::read ? line.first_of_pair : line.last_of_pair;
    if (line.first_of_pair) return all;
    for (const Use& use : own) {
      const bool is_read = std::ranges::any_of(
          own, [&](const Use& other) { return other.storage == use.storage && other.access == Access::read; });
      if (use.access == Access::write && !is_read) all.push_back({use.storage, 0, Access::read, false});
    }
    std::ranges::stable_partition(all, [](const Use& use) { return use.access == Access::read; });
    return all;
  }

  // --- behind the ops ---
  void finish() {
    const auto place = [&](OpId id) {
      while (id < m_.ops.size() && of_measured_[id] == kNoOp) ++id;
      return id < m_.ops.size() ? of_measured_[id] : static_cast<OpId>(out_.ops.size());
    };
    out_.steps.clear();
    for (const Step& step : m_.steps) out_.steps.push_back({step.name, place(step.first), place(step.last)});
    for (StorageId s = 0; s < c_.storages.size(); ++s)
      if (const OpId end = c_.storages[s].last_referenced; end != kNoOp)
        out_.storages[s].last_referenced = of_complete_[end];
  }

  // Where the complete step does not say what autograd keeps, the profile's sequence numbers do.
  void mark_saved() {
    if (std::ranges::any_of(c_.uses, &Use::saved)) return;
    out_nodes_.resize(out_.ops.size());
    mark_saved_tensors(out_, out_nodes_);
  }

  const Trace &m_, &c_;
  const std::vector<LinePair> pairs_;
  const std::vector<CallWorkspace> workspaces_;
  const OperatorCalls& calls_;  // of the measured program
  TraceBuilder builder_;
  Trace& out_;
  std::vector<StringId> strings_;                         // by measured string
  std::vector<ShapeId> shapes_;                           // by measured shape
  std::vector<std::uint8_t> places_;                      // by measured place
  std::vector<std::uint16_t> threads_, streams_;          // by those of the complete step
  std::vector<OpId> of_measured_, of_complete_;           // ops of the result
  std::vector<AutogradNode> out_nodes_;                   // by op of the result, as far as there are any
  std::map<OpId, std::vector<StorageId>> workspaces_of_;  // by measured line: of the result
  std::vector<bool> is_replaced_;      // by storage of the complete step: a workspace that is known better
  std::vector<StorageId> storages_;    // by measured storage: that of the result, or none
  std::vector<OpId> last_of_thread_;   // so far
  std::vector<std::uint16_t> groups_;  // by group of the complete step: of the result
  std::optional<LoneWork> lone_;
  GraftReport report_;
};

void require_graftable(const Trace& measured, const Trace& complete) {
  for (const Trace* trace : {&measured, &complete})
    if (!trace->rank_table.empty())
      throw UsageError(
          fmt::format("{}: it holds the programs of {} ranks; expected one rank's, grafting several at "
                      "once is not implemented.",
                      trace->name, trace->rank_table.size()));
  if (!measured.knowledge.timing)
    throw UsageError(fmt::format("{}: nothing in it was measured; expected a profile.", measured.name));
  if (!complete.knowledge.dataflow || !complete.knowledge.allocations)
    throw UsageError(
        fmt::format("{}: it does not know which op uses which storage, or when storages live; expected a "
                    "step captured by memwall_capture, or a network's name.",
                    complete.name));
  if (complete.steps.size() > 1 && complete.steps.size() != measured.steps.size())
    throw UsageError(fmt::format("{}: found {} steps; expected one, or {} as in {}.", complete.name,
                                 complete.steps.size(), measured.steps.size(), measured.name));
}

}  // namespace

GraftedTrace graft(const Trace& measured, const Trace& complete, const OperatorCalls& calls) {
  require_graftable(measured, complete);
  const std::uint32_t times = rounds_of(measured, complete);
  if (times <= 1) return Graft(measured, complete, calls).run();
  GraftedTrace result = Graft(measured, rounds(complete, times), calls).run();
  result.report.repeats = times;
  return result;
}

}  // namespace memwall
