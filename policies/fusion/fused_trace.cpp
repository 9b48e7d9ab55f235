#include "policies/fusion/fused_trace.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>

#include "policies/fusion/fusion_space.h"
#include "policies/trace/segments.h"
#include "sim/trace/trace_builder.h"

namespace memwall {
namespace {

constexpr std::size_t kNamesShown = 8;

// What a group does with one storage.
struct Traffic {
  bool read_before = false;  // its content from outside is read
  bool written = false;
  Bytes moved = 0;                      // by the members one by one
  Bytes largest_read = 0, largest = 0;  // of a member: reads from outside, any access
};

class MergedOp {
 public:
  MergedOp(const Trace& trace, const FusionGroup& group, const HostCosts& host, const Pricer& pricer)
      : t_(trace), group_(group), host_(host), pricer_(pricer) {
    for (const OpId member : group_.members) add(member);
  }

  Op op(StringTable& strings) const {
    Op merged = t_.ops[group_.members.back()];
    merged.module = strings.intern(common_module());
    merged.name = merged.operator_name = strings.intern(name());
    merged.flops = flops_;
    merged.bytes = bytes();
    merged.shape = group_.shape;
    merged.source = t_.ops[group_.members.front()].source;
    const Op& dominant = t_.ops[dominant_];
    merged.operator_class = dominant.operator_class;
    merged.kernels = dominant.operator_class == OperatorClass::gemm ? dominant.kernels : 1;
    merged.waves = dominant.waves;
    merged.data_type = t_.ops[busiest_].data_type;
    set_duration(merged);
    set_call(merged);
    return merged;
  }

  // Reads before writes, each in the order of the storages.
  std::vector<Use> uses() const {
    std::vector<Use> all;
    for (const auto& [storage, traffic] : traffic_)
      if (traffic.read_before) all.push_back({storage, TraceBuilder::kLatest, Access::read});
    for (const auto& [storage, traffic] : traffic_)
      if (traffic.written && !vanishes(storage)) all.push_back({storage, 0, Access::write});
    return all;
  }

 private:
  bool vanishes(StorageId storage) const {
    return std::binary_search(group_.vanished.begin(), group_.vanished.end(), storage);
  }

  // What the whole is a kernel of: a product before a normalization, that before a reduction, that before the rest.
  static int rank(OperatorClass c) {
    switch (c) {
      case OperatorClass::gemm:
        return 4;
      case OperatorClass::normalization:
        return 3;
      case OperatorClass::reduction:
        return 2;
      case OperatorClass::elementwise:
        return 1;
      default:
        return 0;
    }
  }

  void add(OpId id) {
    const Op& op = t_.ops[id];
    if (dominant_ == kNoOp || rank(op.operator_class) > rank(t_.ops[dominant_].operator_class)) dominant_ = id;
    if (busiest_ == kNoOp || op.flops > t_.ops[busiest_].flops) busiest_ = id;
    flops_ += op.flops;
    Bytes touched = 0;
    const FusionSpace space = *fusion_space(t_, op);
    for (const bool writes : {false, true})  // reads come first, whatever their order in the list
      for (const Use& use : t_.uses_of(op)) {
        if ((use.access == Access::write) != writes) continue;
        const Bytes bytes = bytes_touched(t_, use.storage, space);
        touched += bytes;
        count(traffic_[use.storage], writes, bytes);
      }
    parts_ += op.bytes > 0 ? op.bytes : touched;
  }

  static void count(Traffic& traffic, bool writes, Bytes bytes) {
    traffic.moved += bytes;
    traffic.largest = std::max(traffic.largest, bytes);
    if (!writes && !traffic.written) {
      traffic.read_before = true;
      traffic.largest_read = std::max(traffic.largest_read, bytes);
    }
    traffic.written |= writes;
  }

  Bytes bytes() const {
    Bytes moved = 0, needed = 0;
    for (const auto& [storage, traffic] : traffic_) {
      moved += traffic.moved;
      if (traffic.read_before) needed += traffic.largest_read;
      if (traffic.written && !vanishes(storage)) needed += traffic.largest;
    }
    // Where members moved other amounts than their storages hold (broadcasts, parts), only the difference is certain.
    return std::max(parts_ - (moved - needed), std::min(parts_, needed));
  }

  void set_duration(Op& merged) const {
    Duration parts{}, parts_price{};
    bool modelled = true;
    for (const OpId id : group_.members) {
      const Op& op = t_.ops[id];
      parts += op.duration;
      parts_price += pricer_.kernel(op, t_.shapes[op.shape]);
      modelled &= op.origin == Origin::modelled;
    }
    const Duration price = pricer_.kernel(merged, t_.shapes[merged.shape]);
    merged.origin = modelled ? Origin::modelled : Origin::transferred;
    merged.duration = std::min(parts, price);
    if (!modelled && parts_price.count() > 0) {
      const double ratio = std::min(1.0, to_seconds(price) / to_seconds(parts_price));
      merged.duration = Duration(std::llround(static_cast<double>(parts.count()) * ratio));
    }
  }

  void set_call(Op& merged) const {
    if (merged.origin == Origin::modelled && merged.dispatch == Dispatch::eager) {
      merged.host_gap = std::int64_t{merged.kernels} * host_.compiled_call;
      merged.host_cost = std::int64_t{merged.kernels} * host_.launch;
    }
    merged.framework_calls = 0;
    merged.dispatch = Dispatch::compiled;
  }

  // "layers.0" of "layers.0.norm" and "layers.0.mlp".
  std::string common_module() const {
    std::string common = t_.strings[t_.ops[group_.members.front()].module];
    for (const OpId id : group_.members) {
      const std::string& module = t_.strings[t_.ops[id].module];
      while (!common.empty() && module != common && !module.starts_with(common + ".")) {
        const std::size_t dot = common.rfind('.');
        common.resize(dot == std::string::npos ? 0 : dot);
      }
    }
    return common;
  }

  // "fused(mul,add,…+3)"
  std::string name() const {
    std::string names;
    for (std::size_t i = 0; i < group_.members.size() && i < kNamesShown; ++i) {
      const Op& op = t_.ops[group_.members[i]];
      names +=
          (i == 0 ? "" : ",") + plain_operator_name(t_.strings[op.operator_name != 0 ? op.operator_name : op.name]);
    }
    if (group_.members.size() > kNamesShown)
      names += ",\xe2\x80\xa6+" + std::to_string(group_.members.size() - kNamesShown);
    return "fused(" + names + ")";
  }

  const Trace& t_;
  const FusionGroup& group_;
  const HostCosts& host_;
  const Pricer& pricer_;
  std::map<StorageId, Traffic> traffic_;
  OpId dominant_ = kNoOp, busiest_ = kNoOp;
  double flops_ = 0;
  Bytes parts_ = 0;
};

class Writer {
 public:
  Writer(const Trace& trace, std::span<const FusionGroup> groups, const HostCosts& host, const Pricer& pricer)
      : t_(trace), groups_(groups), host_(host), pricer_(pricer), builder_(TraceBuilder::like(trace)) {}

  Trace run() && {
    analysis();
    new_id_.assign(t_.ops.size(), kNoOp);
    for (OpId id = 0; id < t_.ops.size(); ++id) write(id);
    renumber();
    return std::move(builder_).finish();
  }

 private:
  static constexpr std::uint32_t kNone = 0xffffffff;

  void analysis() {
    group_of_.assign(t_.ops.size(), kNone);
    gone_.assign(t_.storages.size(), false);
    freed_behind_.assign(t_.storages.size(), 0);
    for (std::uint32_t g = 0; g < groups_.size(); ++g) {
      const OpId at = groups_[g].members.back();
      for (const StorageId s : groups_[g].vanished) gone_[s] = true;
      for (const OpId member : groups_[g].members) {
        group_of_[member] = g;
        for (const Use& use : t_.uses_of(t_.ops[member]))
          freed_behind_[use.storage] = std::max(freed_behind_[use.storage], at);
      }
    }
    for (const Op& op : t_.ops)
      if (op.kind == OpKind::hand_over) named_.insert(op.target);
  }

  void write(OpId id) {
    const Op& op = t_.ops[id];
    const bool lifetime = op.kind == OpKind::alloc || op.kind == OpKind::free;
    if (lifetime && gone_[op.target]) return leave_out(id);
    if (op.kind == OpKind::free && freed_behind_[op.target] > id) {
      put_off_[freed_behind_[op.target]].push_back(id);
      return leave_out(id);
    }
    const std::uint32_t g = group_of_[id];
    if (g == kNone) {
      const std::span<const Use> uses = t_.uses_of(op);
      return append(id, op, {uses.begin(), uses.end()});
    }
    if (groups_[g].members.back() != id) return leave_out(id);
    const MergedOp merged(t_, groups_[g], host_, pricer_);
    append(id, merged.op(tables().strings), merged.uses());
    for (const OpId member : groups_[g].members) new_id_[member] = new_id_[id];
    for (const OpId free : put_off_[id]) append_free(free);
    put_off_.erase(id);
  }

  // An op that a hand-over names remains as a point in time of its thread.
  void leave_out(OpId id) {
    if (named_.count(id) == 0) return;
    Op mark;
    mark.thread = t_.ops[id].thread;
    mark.phase = t_.ops[id].phase;
    append(id, mark, {});
  }

  void append(OpId id, const Op& op, std::vector<Use> uses) {
    for (Use& use : uses) use.version = use.access == Access::read ? TraceBuilder::kLatest : 0;
    new_id_[id] = builder_.append(op, uses);
  }

  void append_free(OpId id) {
    const OpId mark = new_id_[id];
    append(id, t_.ops[id], {});
    if (mark != kNoOp) new_id_[id] = mark;
  }

  // Ops that name other ops, and the steps, follow the new numbers.
  void renumber() {
    Trace& t = tables();
    std::vector<OpId> at(t_.ops.size() + 1, static_cast<OpId>(t.ops.size()));
    for (OpId id = static_cast<OpId>(t_.ops.size()); id-- > 0;)
      at[id] = std::min(at[id + 1], new_id_[id]);  // of one that is gone: the next one's
    for (Op& op : t.ops) {
      if (op.kind == OpKind::hand_over) op.target = new_id_[op.target];
      if (op.source != kNoOp) op.source = new_id_[op.source];
    }
    t.steps = t_.steps;
    for (Step& step : t.steps) {
      step.first = at[std::min<std::size_t>(step.first, t_.ops.size())];
      step.last = at[std::min<std::size_t>(step.last, t_.ops.size())];
    }
  }

  Trace& tables() { return builder_.trace(); }

  const Trace& t_;
  std::span<const FusionGroup> groups_;
  const HostCosts& host_;
  const Pricer& pricer_;
  TraceBuilder builder_;
  std::vector<std::uint32_t> group_of_;
  std::vector<bool> gone_;
  std::vector<OpId> freed_behind_;  // per storage: the last member that any group using it ends with
  std::map<OpId, std::vector<OpId>> put_off_;
  std::set<OpId> named_;  // by hand-overs
  std::vector<OpId> new_id_;
};

}  // namespace

Trace with_fusion(const Trace& trace, std::span<const FusionGroup> groups, const HostCosts& host,
                  const Pricer& pricer) {
  return Writer(trace, groups, host, pricer).run();
}

}  // namespace memwall
