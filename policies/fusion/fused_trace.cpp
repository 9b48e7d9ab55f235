#include "policies/fusion/fused_trace.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include "policies/fusion/fusion_space.h"
#include "policies/trace/operator_name.h"
#include "policies/trace/trace_edit.h"

namespace memwall {
namespace {

constexpr std::size_t kNamesShown = 8;

// What a group does with one storage.
struct Traffic {
  bool read_before = false;  // its content from outside is read
  bool saved_before = false, saved = false;  // for backward: that, or what is there in the end
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
    merged.module = strings.intern(module());
    merged.name = merged.operator_name = strings.intern(name());
    merged.flops = flops_;
    merged.bytes = bytes();
    merged.shape = group_.shape;
    const Op& first = t_.ops[group_.members.front()];
    if (first.phase == merged.phase) merged.source = first.source;  // else it ran again for the backward it is now in
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
      if (traffic.read_before) all.push_back({storage, 0, Access::read, traffic.saved_before});
    for (const auto& [storage, traffic] : traffic_)
      if (traffic.written && !vanishes(storage)) all.push_back({storage, 0, Access::write, traffic.saved});
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
        count(traffic_[use.storage], writes, use.saved, bytes);
      }
    parts_ += op.bytes > 0 ? op.bytes : touched;
  }

  static void count(Traffic& traffic, bool writes, bool saved, Bytes bytes) {
    traffic.moved += bytes;
    traffic.largest = std::max(traffic.largest, bytes);
    if (!writes && !traffic.written) {
      traffic.read_before = true;
      traffic.largest_read = std::max(traffic.largest_read, bytes);
    }
    traffic.written |= writes;
    (traffic.written ? traffic.saved : traffic.saved_before) |= saved;
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
      merged.duration = scaled_time(parts, ratio);
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

  // That whose parameter's gradient it makes, which hooks wait for; else the one that all members are within.
  std::string module() const {
    for (const OpId id : group_.members)
      for (const Use& use : t_.uses_of(t_.ops[id]))
        if (use.access == Access::write && t_.storages[use.storage].kind == StorageKind::gradient)
          return t_.strings[t_.ops[id].module];
    return common_module();
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
      names += (i == 0 ? "" : ",") + plain_operator_name(operator_of(t_, op));
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

}  // namespace

Trace with_fusion(const Trace& trace, std::span<const FusionGroup> groups, const HostCosts& host,
                  const Pricer& pricer) {
  TraceEdit edit(trace, host);
  std::vector<bool> gone(trace.storages.size(), false);
  std::vector<OpId> freed_behind(trace.storages.size(), 0);  // the last member that any group using it ends with
  for (const FusionGroup& group : groups) {
    const OpId at = group.members.back();
    const MergedOp merged(trace, group, host, pricer);
    edit.replace(at, merged.op(edit.tables().strings), merged.uses());
    for (const StorageId s : group.vanished) gone[s] = true;
    for (const OpId member : group.members) {
      if (member != at) edit.remove(member, at);
      for (const Use& use : trace.uses_of(trace.ops[member]))
        freed_behind[use.storage] = std::max(freed_behind[use.storage], at);
    }
  }
  for (OpId id = 0; id < trace.ops.size(); ++id) {
    const Op& op = trace.ops[id];
    if (op.kind != OpKind::alloc && op.kind != OpKind::free) continue;
    const bool put_off = op.kind == OpKind::free && freed_behind[op.target] > id;
    if (!gone[op.target] && !put_off) continue;
    edit.remove(id);
    if (!gone[op.target]) edit.insert_complete({freed_behind[op.target], true}, op);
  }
  return std::move(edit).apply();
}

}  // namespace memwall
