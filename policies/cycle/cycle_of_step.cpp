#include "policies/cycle/cycle_of_step.h"

#include <algorithm>
#include <map>

#include "sim/error.h"
#include "sim/machine/rank_machine.h"

namespace memwall {
namespace {

std::uint16_t main_stream(const Trace& trace) {
  std::map<std::uint16_t, Duration> busy;
  for (const Op& op : trace.ops)
    if (runs_on_device(op.kind)) busy[op.stream] += op.duration;
  if (busy.empty()) throw UsageError("The step has no work on the device: there is nothing to plan around.");
  return std::max_element(busy.begin(), busy.end(), [](const auto& a, const auto& b) { return a.second < b.second; })
      ->first;
}

class Conversion {
 public:
  explicit Conversion(const StepProfile& profile) : p_(profile), stream_(main_stream(profile.trace())) {}

  CycledStep run() {
    add_slots();
    for (StorageId s = 0; s < p_.trace().storages.size(); ++s)
      if (p_.on_device(s)) add_storage(s);
    return std::move(step_);
  }

 private:
  bool is_slot(const Op& op) const { return runs_on_device(op.kind) && op.stream == stream_; }

  void add_slots() {
    const auto& ops = p_.trace().ops;
    bool allocated = false;  // since the last slot's op
    for (OpId id = 0; id < ops.size(); ++id) {
      step_.slot_of.push_back(static_cast<std::uint32_t>(step_.places.size()));
      behind_alloc_.push_back(allocated);
      if (ops[id].kind == OpKind::alloc && p_.on_device(ops[id].target)) allocated = true;
      if (!is_slot(ops[id])) continue;
      allocated = false;
      step_.places.push_back({id, 0, false});
      step_.program.slots.push_back({{}, ops[id].duration});
    }
    auto& slots = step_.program.slots;
    for (std::size_t k = 0; k < slots.size(); ++k) {
      const Time begin = k == 0 ? Time{} : p_.start(step_.places[k].op);
      const Time end = k + 1 < slots.size() ? p_.start(step_.places[k + 1].op) : p_.step_time();
      slots[k].time = std::max(Duration{}, end - begin);
    }
  }

  void add_storage(StorageId s) {
    const Storage& storage = p_.trace().storages[s];
    const Dataflow& flow = p_.flow();
    const auto last_slot = static_cast<std::uint32_t>(step_.places.size() - 1);
    CycleStorage c;
    c.held = p_.held(s);
    c.moved = storage.bytes;
    const OpId alloc = flow.alloc(s), free = flow.free(s);
    c.from_before = storage.preexisting;
    c.to_next = free == kNoOp;
    c.across = c.from_before && c.to_next;
    c.first = alloc == kNoOp ? 0 : std::min(step_.slot_of[alloc], last_slot);
    c.last = last_slot;
    if (free != kNoOp) {
      // What is freed behind an alloc for the next slot lives beside that.
      const std::uint32_t next = step_.slot_of[free], back = behind_alloc_[free] ? 0 : std::min(1u, next);
      c.last = std::clamp(next - back, c.first, last_slot);
    }
    if (!c.from_before && !c.to_next && alloc != kNoOp && step_.slot_of[alloc] == step_.slot_of[free]) return;
    busy_ = 0;
    for (const Touch& touch : flow.touches(s)) add_touch(touch, last_slot, c);
    stay_until(std::min(busy_, c.last), c);
    step_.storages.push_back(s);
    step_.program.storages.push_back(std::move(c));
  }

  void add_touch(const Touch& touch, std::uint32_t last_slot, CycleStorage& c) {
    const bool own = is_slot(p_.trace().ops[touch.op]);
    if (!own && touch.writes) c.fixed = true;
    const std::uint32_t slot = std::clamp(step_.slot_of[touch.op], c.first, std::min(c.last, last_slot));
    // Another stream's op is issued between two slots: what it uses is there from the one before on, until it ends.
    const std::uint32_t first = own || slot == c.first ? slot : slot - 1;
    if (first > 0) stay_until(std::min(busy_, first - 1), c);
    if (first < slot) {
      add_touch_in(first, true, false, c);
      if (c.touches.back().slot == first) c.touches.back().goes_on = true;
    }
    add_touch_in(slot, touch.reads, touch.writes, c);
    busy_ = own || !runs_on_device(p_.trace().ops[touch.op].kind) ? 0 : slot_at(p_.end(touch.op));
  }

  static void stay_until(std::uint32_t slot, CycleStorage& c) {
    if (!c.touches.empty() && c.touches.back().slot < slot) add_touch_in(slot, true, false, c);
  }

  // That the device works in right before the time.
  std::uint32_t slot_at(Time time) const {
    const auto next =
        std::ranges::lower_bound(step_.places, time, {}, [this](const SlotPlace& place) { return p_.start(place.op); });
    return static_cast<std::uint32_t>(std::max<std::ptrdiff_t>(next - step_.places.begin(), 1) - 1);
  }

  // Touches come in the order of their slots, but for that of another stream.
  static void add_touch_in(std::uint32_t slot, bool reads, bool writes, CycleStorage& c) {
    if (!c.touches.empty() && c.touches.back().slot >= slot) {
      if (c.touches.back().slot > slot) return;  // it was there already
      CycleTouch& there = c.touches.back();
      there.reads = there.reads || (reads && !there.writes);
      there.writes = there.writes || writes;
      return;
    }
    c.touches.push_back({slot, reads, writes});
  }

  const StepProfile& p_;
  const std::uint16_t stream_;
  std::vector<bool> behind_alloc_;  // by op: was memory taken since the last slot's op?
  std::uint32_t busy_ = 0;          // the slot in which another stream's work ends with the present storage
  CycledStep step_;
};

struct Way {
  double rate = 0;
  Duration latency{};
  std::vector<std::uint16_t> links;
  bool staged = false;
};

// Of a copy, and of its part between the device and a buffer.
struct DeviceWay {
  Way whole, beside;
};

double shared_rate(const Machine& machine, std::uint16_t link) {
  return machine.links[link].bandwidth;
}

// Where there is no way of its own: through the host.
Way way(const Machine& machine, int from, int to) {
  const Route* route = machine.route(from, to, false);
  const int host = machine.tier("host");
  if (route == nullptr && host >= 0 && from != host && to != host) {
    const Way a = way(machine, from, host), b = way(machine, host, to);
    Way both{std::min(a.rate, b.rate), a.latency + b.latency, a.links, true};
    both.links.insert(both.links.end(), b.links.begin(), b.links.end());
    return both;
  }
  if (route == nullptr)
    throw UsageError("Machine '" + machine.name + "' has no way from '" +
                     machine.tiers[static_cast<std::size_t>(from)].name + "' to '" +
                     machine.tiers[static_cast<std::size_t>(to)].name + "'.");
  double best = route->efficiency.points.empty() ? 1 : 0;
  for (const auto& [bytes, share] : route->efficiency.points) best = std::max(best, share);
  return {route->bandwidth * best, route->latency, route->links, false};
}

DeviceWay way_of_device(const Machine& machine, int device, int tier, bool out) {
  DeviceWay ways{out ? way(machine, device, tier) : way(machine, tier, device), {}};
  const int host = machine.tier("host");
  ways.beside = !ways.whole.staged ? ways.whole : out ? way(machine, device, host) : way(machine, host, device);
  return ways;
}

// The most that all ways carry together.
double together(const Machine& machine, const std::vector<Way>& ways) {
  double sum = 0;
  for (const Way& one : ways) sum += one.rate;
  for (const std::uint16_t link : ways.front().links)
    if (std::all_of(ways.begin(), ways.end(), [&](const Way& one) {
          return std::find(one.links.begin(), one.links.end(), link) != one.links.end();
        }))
      sum = std::min(sum, std::max(ways.front().rate, shared_rate(machine, link)));
  return sum;
}

}  // namespace

CycledStep cycle_of_step(const StepProfile& profile) { return Conversion(profile).run(); }

CycleLinks links_of_machine(const Machine& machine, const std::vector<std::string>& tiers) {
  const int device = machine.tier("hbm");
  CycleLinks links;
  std::vector<Way> outs, ins, outs_beside, ins_beside;
  bool is_staged = false;
  for (const std::string& name : tiers) {
    const int tier = machine.tier(name);
    if (device < 0 || tier < 0) throw UsageError("Machine '" + machine.name + "' has no memory '" + name + "'.");
    if (tier == device) throw UsageError("'hbm' is the memory of the GPU itself: nothing leaves it by going there.");
    const DeviceWay out = way_of_device(machine, device, tier, true), in = way_of_device(machine, device, tier, false);
    CyclePath path{out.whole.rate,
                   in.whole.rate,
                   out.whole.latency,
                   in.whole.latency,
                   machine.tiers[static_cast<std::size_t>(tier)].holds(),
                   machine.tiers[static_cast<std::size_t>(tier)].tier_class == TierClass::host};
    if (out.whole.staged || in.whole.staged)
      path.staged_out_rate = out.beside.rate, path.staged_in_rate = in.beside.rate, is_staged = true;
    links.paths.push_back(path);
    outs.push_back(out.whole), ins.push_back(in.whole);
    outs_beside.push_back(out.beside), ins_beside.push_back(in.beside);
  }
  links.total_out = together(machine, outs);
  links.total_in = together(machine, ins);
  if (is_staged) links.staged_out = together(machine, outs_beside), links.staged_in = together(machine, ins_beside);
  return links;
}

}  // namespace memwall
