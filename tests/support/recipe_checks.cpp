#include "tests/support/recipe_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <vector>

#include "models/hw/machine_file.h"
#include "models/hw/modelled_step.h"
#include "models/hw/pricer.h"
#include "models/workload/generate/generate.h"
#include "sim/policy/registry.h"
#include "sim/trace/trace_check.h"

namespace memwall {
namespace {

const Machine& machine_named(const std::string& name) {
  static std::map<std::string, Machine> loaded;
  const auto found = loaded.find(name);
  return found != loaded.end() ? found->second : loaded.emplace(name, load_machine(name)).first->second;
}

auto fields(const Trace& t, const Storage& s) {
  return std::tuple(s.bytes, s.kind, t.places[s.place], s.stream, t.strings[s.label], t.shapes[s.shape], s.preexisting,
                    s.pinned);
}

// One-to-one, of storages that are alike.
class Pairing {
 public:
  Pairing(const Trace& a, const Trace& b) : a_(a), b_(b) {}
  bool agrees(StorageId x, StorageId y) {
    const bool fresh = !there_.contains(x) && !back_.contains(y);
    if (fresh && fields(a_, a_.storages[x]) != fields(b_, b_.storages[y])) return false;
    return there_.try_emplace(x, y).first->second == y && back_.try_emplace(y, x).first->second == x;
  }
  bool knows(StorageId of_first) const { return there_.contains(of_first); }
  bool is_known(StorageId of_second) const { return back_.contains(of_second); }

 private:
  const Trace &a_, &b_;
  std::map<StorageId, StorageId> there_, back_;
};

std::string words(const Trace& t, const Op& op) {
  return fmt::format("{} {} '{}' in '{}', {} bytes, {} FLOPs, gap {} cost {} duration {}, {} kernels, {} calls",
                     to_string(op.phase), to_string(op.kind), t.strings[op.name], t.strings[op.module], op.bytes,
                     op.flops, op.host_gap.count(), op.host_cost.count(), op.duration.count(), op.kernels,
                     op.framework_calls);
}

auto fields(const Trace& t, const Op& op) {
  return std::tuple(std::tie(op.kind, op.phase, op.wait_for, op.thread, op.stream, op.host_cost, op.return_delay,
                             op.duration, op.bytes, op.flops, op.source, op.use_count, op.operator_class),
                    std::tuple(op.data_type, op.collective, op.kernels, op.dispatch, t.strings[op.name],
                               t.strings[op.operator_name], t.strings[op.module], t.shapes[op.shape]));
}

bool same_op(const Trace& a, const Op& x, const Trace& b, const Op& y, Pairing& pairing) {
  if (fields(a, x) != fields(b, y)) return false;
  if ((x.kind == OpKind::alloc || x.kind == OpKind::free) && !pairing.agrees(x.target, y.target)) return false;
  for (std::uint32_t i = 0; i < x.use_count; ++i) {
    const Use &u = a.uses_of(x)[i], &v = b.uses_of(y)[i];
    if (!pairing.agrees(u.storage, v.storage) || u.version != v.version || u.access != v.access) return false;
  }
  return true;
}

// Do calls of the framework stand with the same ops? Or, where they may wait, later by a call at most, as many in all?
class CallCount {
 public:
  explicit CallCount(Calls calls) : may_wait_(calls == Calls::may_wait) {}

  bool agrees(const Op& x, const Op& y) {
    if (!may_wait_) return x.framework_calls == y.framework_calls && x.host_gap == y.host_gap;
    const int more = x.framework_calls - y.framework_calls;
    const Duration gap = x.host_gap - y.host_gap;
    if (more == 0) return gap == Duration{};
    if (more * per_call(x, y) != gap) return false;
    ahead_ += more;
    return ahead_ >= -1 && ahead_ <= 1;
  }
  bool is_even() const { return ahead_ == 0; }

 private:
  static Duration per_call(const Op& x, const Op& y) {
    const Op& busier = x.framework_calls > 0 ? x : y;
    return Duration(busier.host_gap.count() / std::max<std::int64_t>(1, busier.framework_calls));
  }

  const bool may_wait_;
  int ahead_ = 0;
};

}  // namespace

Trace modelled_step(const Model& model, const Recipe& recipe, const char* machine) {
  return modelled_on(generate_step(model, recipe), machine_named(machine));
}

Trace recipe_rewritten(const Trace& trace, const std::string& policy, const char* machine) {
  const auto pricer = make_pricer(machine_named(machine));
  return apply_rewriters(trace, {parse_policy(policy)}, machine_named(machine), *pricer);
}

std::string step_difference(const Trace& found, const Trace& expected, Calls calls) {
  Pairing pairing(found, expected);
  CallCount count(calls);
  const std::size_t both = std::min(found.ops.size(), expected.ops.size());
  for (OpId id = 0; id < both; ++id)
    if (!same_op(found, found.ops[id], expected, expected.ops[id], pairing) ||
        !count.agrees(found.ops[id], expected.ops[id]))
      return fmt::format("op {}: found {}; expected {}", id, words(found, found.ops[id]),
                         words(expected, expected.ops[id]));
  if (!count.is_even()) return "the framework's calls are not as many in all";
  if (found.ops.size() != expected.ops.size())
    return fmt::format("found {} ops, expected {}", found.ops.size(), expected.ops.size());
  std::multiset<decltype(fields(found, found.storages[0]))> unused, expected_unused;
  for (StorageId id = 0; id < found.storages.size(); ++id)
    if (!pairing.knows(id)) unused.insert(fields(found, found.storages[id]));
  for (StorageId id = 0; id < expected.storages.size(); ++id)
    if (!pairing.is_known(id)) expected_unused.insert(fields(expected, expected.storages[id]));
  if (unused != expected_unused)
    return fmt::format("found {} storages that no op touches, expected {}", unused.size(), expected_unused.size());
  if (found.samples_per_step != expected.samples_per_step || found.tokens_per_step != expected.tokens_per_step)
    return fmt::format("found {} samples per step, expected {}", found.samples_per_step, expected.samples_per_step);
  return "";
}

}  // namespace memwall
