#include "policies/fusion/fusion_plan.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <set>
#include <utility>

#include "policies/fusion/fusion_space.h"
#include "policies/trace/dataflow.h"
#include "policies/trace/live_profile.h"
#include "policies/trace/operator_name.h"
#include "policies/trace/rerun_rules.h"
#include "policies/trace/segments.h"

namespace memwall {
namespace {

using GroupId = std::uint32_t;
constexpr GroupId kNoGroup = 0xffffffff;
// Pointers that fit the 4 KiB of a CUDA kernel's parameters.
constexpr std::size_t kMostUses = 512;

bool reduces(OperatorClass c) { return c == OperatorClass::normalization || c == OperatorClass::reduction; }

// Storages and by how many members of a group each is touched, ascending: few, and read far more often than changed.
using TouchCounts = std::vector<std::pair<StorageId, std::uint32_t>>;

bool contains(const TouchCounts& counts, StorageId storage) {
  const auto found = std::lower_bound(counts.begin(), counts.end(), std::pair(storage, std::uint32_t{0}));
  return found != counts.end() && found->first == storage;
}

TouchCounts sum_of(const TouchCounts& a, const TouchCounts& b) {
  TouchCounts sum;
  sum.reserve(a.size() + b.size());
  for (auto i = a.begin(), j = b.begin(); i != a.end() || j != b.end();) {
    if (j == b.end() || (i != a.end() && i->first < j->first)) {
      sum.push_back(*i++);
    } else if (i == a.end() || j->first < i->first) {
      sum.push_back(*j++);
    } else {
      sum.emplace_back(i->first, i->second + j->second);
      ++i;
      ++j;
    }
  }
  return sum;
}

struct OpenGroup {
  std::vector<OpId> members;
  TouchCounts touched;
  std::vector<StorageId> vanished;
  FusionSpace space;
  ShapeId shape = 0;
  bool has_reduction = false;
  bool open = true;
};

// What a step of growth does to the live bytes: it is taken back where it raises their peak.
struct Change {
  StorageId storage = kNoStorage;
  OpId first = 0, last = 0;
  Bytes bytes = 0;
};

class Planner {
 public:
  Planner(const Trace& trace, const FusionRules& rules)
      : t_(trace),
        rules_(rules),
        flow_(trace),
        live_(trace),
        peak_(live_.peak()),
        lives_until_(trace.storages.size(), kNoOp),
        writer_(trace.storages.size(), kNoGroup),
        readers_(trace.storages.size()),
        group_of_(trace.ops.size(), kNoGroup) {}

  std::vector<FusionGroup> run() && {
    for (StorageId s = 0; s < t_.storages.size(); ++s)
      if (flow_.free(s) != kNoOp) lives_until_[s] = flow_.free(s) - 1;
    for (OpId id = 0; id < t_.ops.size(); ++id) visit(id);
    std::vector<FusionGroup> result;
    for (OpenGroup& g : groups_) {
      if (g.members.size() < 2 || !in_scope(g)) continue;
      std::sort(g.members.begin(), g.members.end());
      std::sort(g.vanished.begin(), g.vanished.end());
      result.push_back({std::move(g.members), std::move(g.vanished), g.shape});
    }
    std::sort(result.begin(), result.end(),
              [](const FusionGroup& a, const FusionGroup& b) { return a.members.back() < b.members.back(); });
    return result;
  }

 private:
  bool in_scope(const OpenGroup& g) const { return rules_.scope != FusionScope::norms || g.has_reduction; }

  void visit(OpId id) {
    const Op& op = t_.ops[id];
    close_at_barrier(op);
    if (!runs_on_device(op.kind) && op.kind != OpKind::host_work) return;
    std::vector<GroupId> before = depends_on(id);
    GroupId mine = kNoGroup;
    if (is_fusable(t_, op, rules_)) mine = place(id, before);
    for (const GroupId g : before)
      if (g != mine) close(g);
    remember(id, mine);
  }

  // --- closing

  void close(GroupId id) {
    OpenGroup& g = groups_[id];
    if (!g.open) return;
    g.open = false;
    open_.erase({t_.ops[g.members.front()].stream, id});
  }

  void close_stream(std::uint16_t stream) {
    for (auto at = open_.lower_bound({stream, 0}); at != open_.end() && at->first == stream;) close((at++)->second);
  }

  void close_at_barrier(const Op& op) {
    const bool all = op.kind == OpKind::mark || op.kind == OpKind::hand_over || op.kind == OpKind::synchronize ||
                     op.wait_for != WaitFor::nothing;
    if (all) {
      while (!open_.empty()) close(open_.begin()->second);
    } else if (op.kind == OpKind::event_record || op.kind == OpKind::event_wait || op.kind == OpKind::graph_launch) {
      close_stream(op.stream);
    }
  }

  // --- dependences

  void need(GroupId id, std::vector<GroupId>& found) const {
    if (id != kNoGroup && groups_[id].open) found.push_back(id);
  }

  // Open groups that must run before the op, unless it joins them.
  std::vector<GroupId> depends_on(OpId id) const {
    const Op& op = t_.ops[id];
    std::vector<GroupId> found;
    for (const Use& use : t_.uses_of(op)) {
      need(writer_[use.storage], found);
      if (use.access == Access::write)
        for (const GroupId reader : readers_[use.storage]) need(reader, found);
    }
    if (draws_random_numbers(op, t_)) need(random_, found);
    if (repeats(op)) need(group_of_[op.source], found);
    std::sort(found.begin(), found.end());
    found.erase(std::unique(found.begin(), found.end()), found.end());
    // Those that reduce come first: what runs over their rows can join them only.
    std::stable_partition(found.begin(), found.end(), [&](GroupId g) { return groups_[g].space.rows > 0; });
    return found;
  }

  void remember(OpId id, GroupId mine) {
    const Op& op = t_.ops[id];
    group_of_[id] = mine;
    if (draws_random_numbers(op, t_)) random_ = mine;
    for (const Use& use : t_.uses_of(op)) {
      if (use.access == Access::write) {
        writer_[use.storage] = mine;
        readers_[use.storage].clear();
      } else if (mine != kNoGroup) {
        readers_[use.storage].push_back(mine);
      }
    }
  }

  // --- joining

  // The group that the op is in from now on: one made of those it can join, or a new one.
  GroupId place(OpId id, const std::vector<GroupId>& before) {
    OpenGroup single = alone(id);
    std::vector<GroupId> joined;
    FusionSpace space = single.space;
    std::size_t members = 1;
    for (const GroupId g : before) {
      const std::optional<FusionSpace> both = common_space(groups_[g].space, space);
      if (!both || single.space.gemm || members + groups_[g].members.size() > rules_.largest) continue;
      if (!makes_input_of(g, id) || !is_alike(g, id) || !fits_in(g, id, *both) || widens_for_another(g, id)) continue;
      space = *both;
      members += groups_[g].members.size();
      joined.push_back(g);
    }
    while (!joined.empty()) {
      if (const GroupId merged = merge(joined, single, space); merged != kNoGroup) return merged;
      joined.pop_back();  // with fewer, less lives longer
      space = single.space;
      for (const GroupId g : joined) space = *common_space(groups_[g].space, space);
    }
    groups_.push_back(std::move(single));
    const auto mine = static_cast<GroupId>(groups_.size() - 1);
    open_.insert({t_.ops[id].stream, mine});
    return mine;
  }

  OpenGroup alone(OpId id) const {
    const Op& op = t_.ops[id];
    OpenGroup g;
    g.members = {id};
    g.space = *fusion_space(t_, op);
    g.shape = op.shape;
    g.has_reduction = reduces(op.operator_class);
    for (const Use& use : t_.uses_of(op)) g.touched.emplace_back(use.storage, 1);
    std::sort(g.touched.begin(), g.touched.end());
    g.touched.erase(std::unique(g.touched.begin(), g.touched.end()), g.touched.end());
    return g;
  }

  bool makes_input_of(GroupId g, OpId id) const {
    for (const Use& use : t_.uses_of(t_.ops[id]))
      if (use.access == Access::read && writer_[use.storage] == g) return true;
    return false;
  }

  Phase phase_of(const Op& op) const {
    return rules_.joins_reruns && op.phase == Phase::recompute ? Phase::backward : op.phase;
  }

  bool is_alike(GroupId g, OpId id) const {
    const Op &a = t_.ops[groups_[g].members.front()], &b = t_.ops[id];
    if (a.stream != b.stream || a.thread != b.thread || phase_of(a) != phase_of(b)) return false;
    return rules_.modules.empty() || a.module == b.module ||
           named_module(t_.strings[a.module], rules_.modules) == named_module(t_.strings[b.module], rules_.modules);
  }

  // Storages that the op shares with the group, where one of the two writes them: element for element, or row for row.
  bool fits_in(GroupId id, OpId op_id, const FusionSpace& space) const {
    const OpenGroup& g = groups_[id];
    const Op& op = t_.ops[op_id];
    const std::optional<FusionSpace> own = fusion_space(t_, op);
    for (const Use& use : t_.uses_of(op)) {
      const bool writes = use.access == Access::write;
      if (!contains(g.touched, use.storage) || (!writes && writer_[use.storage] != id)) continue;
      const bool by_element = holds_one_per_element(t_, use.storage, space);
      const bool by_row = space.rows > 0 && holds_one_per_row(t_, use.storage, space);
      if (!by_element && !by_row) return false;
      if (op.bytes > 0 && op.bytes < bytes_touched(t_, use.storage, *own)) return false;  // it takes but a part
      // One number for the whole tensor: every element would have to wait for all others.
      if (!by_element && space.rows == 1 && own->elements == space.elements && own->rows == 0) return false;
    }
    return true;
  }

  // A cast to a wider type whose first reader cannot be in the group, as it waits for a number that the group finds of
  // the whole: the reader casts by itself, and the narrow tensor is what is in memory between.
  bool widens_for_another(GroupId g, OpId id) const {
    const auto uses = t_.uses_of(t_.ops[id]);
    if (uses.size() != 2 || uses[0].access != Access::read || uses[1].access != Access::write) return false;
    const StorageId narrow = uses[0].storage, wide = uses[1].storage;
    if (plain_operator_name(operator_of(t_, t_.ops[id])) != "to_copy" ||
        t_.storages[wide].bytes <= t_.storages[narrow].bytes ||
        known_elements(t_.shapes[t_.storages[wide].shape]) != known_elements(t_.shapes[t_.storages[narrow].shape]))
      return false;
    for (const Touch& touch : flow_.touches(wide)) {
      if (!touch.reads || touch.op == id) continue;
      const Op& reader = t_.ops[touch.op];
      if (!is_fusable(t_, reader, rules_)) return false;
      const std::optional<FusionSpace> both = common_space(groups_[g].space, *fusion_space(t_, reader));
      return !both || !fits_in(g, touch.op, *both);
    }
    return false;
  }

  // All of the groups and the op as one, or kNoGroup where too much would live longer.
  GroupId merge(const std::vector<GroupId>& ids, const OpenGroup& single, const FusionSpace& space) {
    OpenGroup whole = single;
    whole.space = space;
    for (const GroupId id : ids) {
      const OpenGroup& g = groups_[id];
      whole.members.insert(whole.members.end(), g.members.begin(), g.members.end());
      whole.vanished.insert(whole.vanished.end(), g.vanished.begin(), g.vanished.end());
      whole.has_reduction |= g.has_reduction;
      whole.touched = sum_of(whole.touched, g.touched);
      if (g.space == space) whole.shape = g.shape;
    }
    if (operands(whole) > kMostUses || !keeps_peak(ids, whole, single.members.front())) return kNoGroup;
    const GroupId target = ids.front();
    for (std::size_t i = 1; i < ids.size(); ++i) {
      for (const OpId member : groups_[ids[i]].members) group_of_[member] = target;
      for (const auto& [storage, count] : groups_[ids[i]].touched) inherit(storage, ids[i], target);
      if (random_ == ids[i]) random_ = target;
      close(ids[i]);
      groups_[ids[i]] = OpenGroup{};
      groups_[ids[i]].open = false;
    }
    groups_[target] = std::move(whole);
    return target;
  }

  void inherit(StorageId storage, GroupId from, GroupId to) {
    if (writer_[storage] == from) writer_[storage] = to;
    std::replace(readers_[storage].begin(), readers_[storage].end(), from, to);
  }

  std::size_t operands(const OpenGroup& g) const {
    return static_cast<std::size_t>(
        std::count_if(g.touched.begin(), g.touched.end(), [&](const auto& t) { return !vanishes(t.first, t.second); }));
  }

  // --- memory

  // Changes the live bytes as the whole group does; if that raises the peak, takes it back and says no.
  bool keeps_peak(const std::vector<GroupId>& ids, OpenGroup& whole, OpId at) {
    for (const auto& [storage, count] : whole.touched)
      if (vanishes(storage, count)) whole.vanished.push_back(storage);
    std::sort(whole.vanished.begin(), whole.vanished.end());
    whole.vanished.erase(std::unique(whole.vanished.begin(), whole.vanished.end()), whole.vanished.end());
    std::vector<Change> changes;
    for (const auto& [storage, count] : whole.touched)
      if (!vanishes(storage, count)) put_off_free(storage, at, changes);
    // Of a group that may turn out to be out of scope nothing is saved yet: that is on the safe side.
    if (in_scope(whole))
      for (const StorageId storage : whole.vanished)
        if (!is_counted(ids, storage))
          changes.push_back({storage, flow_.alloc(storage), flow_.free(storage) - 1, -t_.storages[storage].bytes});
    for (const Change& c : changes)
      if (live_.counts(c.storage)) live_.add(c.first, c.last, c.bytes);
    const bool keeps = live_.peak() <= peak_;
    for (const Change& c : changes) {
      if (!keeps && live_.counts(c.storage)) live_.add(c.first, c.last, -c.bytes);
      if (keeps && c.bytes > 0) lives_until_[c.storage] = c.last;
    }
    return keeps;
  }

  // What the group touches and the program frees before `at` is freed behind `at`.
  void put_off_free(StorageId storage, OpId at, std::vector<Change>& changes) const {
    const OpId until = lives_until_[storage];
    if (until != kNoOp && until < at) changes.push_back({storage, until + 1, at, t_.storages[storage].bytes});
  }

  bool vanishes(StorageId storage, std::uint32_t touches) const {
    return flow_.alloc(storage) != kNoOp && flow_.free(storage) != kNoOp && flow_.touches(storage).size() == touches;
  }

  // Is it already taken off the live bytes that the storage vanishes?
  bool is_counted(const std::vector<GroupId>& ids, StorageId storage) const {
    return std::any_of(ids.begin(), ids.end(), [&](GroupId id) {
      const OpenGroup& g = groups_[id];
      return in_scope(g) && std::binary_search(g.vanished.begin(), g.vanished.end(), storage);
    });
  }

  const Trace& t_;
  const FusionRules& rules_;
  const Dataflow flow_;
  LiveProfile live_;
  const Bytes peak_;
  std::vector<OpId> lives_until_;  // per storage: the last op after which it lives, kNoOp: to the end
  std::vector<OpenGroup> groups_;
  std::set<std::pair<std::uint16_t, GroupId>> open_;  // by stream
  std::vector<GroupId> writer_;                       // per storage: who made its newest version, kNoGroup: no group
  std::vector<std::vector<GroupId>> readers_;         // per storage: who has read its newest version
  std::vector<GroupId> group_of_;                     // per op
  GroupId random_ = kNoGroup;                         // who drew the last random number
};

// Operators that libraries bring along, "symm_mem::fused_matmul_reduce_scatter": a compiler calls them, and does not
// look into them. Kernels' own names have no such beginning.
bool is_opaque(const std::string& name) {
  const std::size_t end = name.find("::");
  if (end == name.npos || name.starts_with("aten::") || name.starts_with("prims::")) return false;
  return std::all_of(name.begin(), name.begin() + static_cast<std::ptrdiff_t>(end),
                     [](unsigned char c) { return std::isalnum(c) || c == '_'; });
}

}  // namespace

bool is_fusable(const Trace& trace, const Op& op, const FusionRules& rules) {
  if (op.kind != OpKind::kernel || op.graph_member || op.placed || op.added || op.wait_for != WaitFor::nothing ||
      op.dispatch == Dispatch::compiled || op.use_count == 0 || op.use_count > kMostUses)
    return false;
  if (rules.model_only && (op.phase == Phase::optimizer || op.phase == Phase::unknown)) return false;
  if (!rules.modules.empty() && named_module(trace.strings[op.module], rules.modules).empty()) return false;
  if (op.operator_class == OperatorClass::gemm && !rules.gemm_epilogues) return false;
  if (reduces(op.operator_class) && rules.scope == FusionScope::elementwise) return false;
  if (is_opaque(operator_of(trace, op))) return false;
  return fusion_space(trace, op).has_value();
}

std::string named_module(const std::string& path, const std::vector<std::string>& patterns) {
  for (std::size_t end = path.find('.');; end = path.find('.', end + 1)) {
    std::string module = path.substr(0, end);
    if (std::ranges::any_of(patterns, [&](const std::string& pattern) { return matches(pattern, module); }))
      return module;
    if (end == path.npos) return "";
  }
}

std::vector<FusionGroup> plan_fusion(const Trace& trace, const FusionRules& rules) {
  return Planner(trace, rules).run();
}

}  // namespace memwall
