#include "policies/offload/offload_settings.h"

#include <algorithm>

#include "sim/error.h"

namespace memwall {
namespace {

constexpr const char* kAuto = "auto";

// Defaults: 5 copies in flight is torchtune's max_fwd_stash_size (torchtune/training/_activation_offloading.py);
// 1e9 parameters per sub-group is DeepSpeed's sub_group_size (deepspeed/runtime/zero/config.py).
constexpr std::int64_t kDefaultBuffers = 5, kDefaultPrefetch = 1, kDefaultStaging = 2, kDefaultGroup = 1'000'000'000;
// Pipelined sub-groups: one is read, one computed, one written.
constexpr std::int64_t kPipelineBuffers = 3;

[[noreturn]] void contradiction(const std::string& sentence) { throw UsageError("Policy 'offload': " + sentence); }

// Of keys that have no meaning without another.
void refuse_pointless(const OffloadSettings& s) {
  if (s.is_given("stream") && s.side_streams && !s.pinned)
    contradiction("pinned=0 copies block the host, so they have no stream of their own; expected stream=compute.");
  if (s.is_given("stream") && !s.side_streams && (s.optimizer || s.gradients || s.parameters))
    contradiction("stream=compute has a meaning with what=activations only.");
  if (!s.side_streams && (s.is_given("prefetch") || s.is_given("buffers")))
    contradiction(std::string(s.pinned ? "stream=compute" : "pinned=0") +
                  " copies block the host, so prefetch and buffers have no meaning beside it.");
  if (!s.optimizer)
    for (const char* key : {"cpu_adam", "pipeline", "group"})
      if (s.is_given(key)) contradiction(std::string(key) + " has a meaning with what=optimizer only.");
  if (s.optimizer && s.cpu_adam && !s.pinned)
    contradiction("the CPU optimizer copies gradients beside the backward pass and needs pinned=1.");
  if (s.pipeline && s.staging < kPipelineBuffers)
    contradiction(
        "pipeline=1 reads one sub-group, computes one and writes one, so it needs staging=3 or more; found staging=" +
        std::to_string(s.staging) + ".");
  if (s.inputs && !s.activations) contradiction("inputs=1 has a meaning with what=activations only.");
  if (s.hides && (!s.activations || s.optimizer || s.gradients || s.parameters))
    contradiction("hides=1 has a meaning with what=activations alone.");
  if (s.hides && s.fraction != 1) contradiction("hides and fraction both say how much is taken; choose one.");
}

// Of keys whose meaning depends on the tier.
void refuse_against_tier(const OffloadSettings& s) {
  const bool leaves_host = s.tier_class != TierClass::host || !s.through.empty();
  if (s.is_given("pinned") && leaves_host)
    contradiction("pinned=" + std::string(s.pinned ? "1" : "0") + " has a meaning with to=host only; the way to " +
                  s.to + (s.through.empty() ? " does not touch host memory." : " is always staged in pinned memory."));
  if (s.is_given("stream") && leaves_host) contradiction("stream has a meaning with to=host only.");
  if (s.optimizer && s.cpu_adam && s.tier_class == TierClass::device)
    contradiction("to=" + s.to + " puts the optimizer states where no CPU reaches them; expected cpu_adam=0 with it.");
  const bool grouped = s.optimizer && s.cpu_adam && s.tier_class == TierClass::storage && !s.near_memory;
  if (!grouped)
    for (const char* key : {"pipeline", "group"})
      if (s.is_given(key))
        contradiction(std::string(key) +
                      " has a meaning with what=optimizer,to=nvme,cpu_adam=1 only (or other storage without compute).");
  if (s.is_given("staging") && s.through.empty() && !grouped)
    contradiction("staging has a meaning where copies are staged on their way only, as with to=nvme.");
}

bool joined(const Machine& machine, const std::string& a, const std::string& b, bool pageable) {
  const int from = machine.tier(a), to = machine.tier(b);
  return machine.route(from, to, pageable) != nullptr && machine.route(to, from, pageable) != nullptr;
}

// The tier to stage copies in, or "" where none joins the device with `to`: the host before others.
std::string joining_tier(const OffloadSettings& s, const Machine& machine) {
  std::vector<std::string> candidates = {"host"};
  for (const Tier& tier : machine.tiers)
    if (tier.tier_class == TierClass::host && tier.name != "host") candidates.push_back(tier.name);
  for (const std::string& tier : candidates)
    if (tier != s.to && machine.tier(tier) >= 0 && joined(machine, "hbm", tier, !s.pinned) &&
        joined(machine, tier, s.to, !s.pinned))
      return tier;
  return "";
}

void require_tier(const std::string& key, const std::string& name, const Machine& machine) {
  if (machine.tier(name) >= 0) return;
  std::vector<std::string> names;
  for (const Tier& t : machine.tiers) names.push_back(t.name);
  contradiction(key + " needs a tier '" + name + "', which machine '" + machine.name + "' does not have; it has " +
                listed(names) + "." + did_you_mean(name, names));
}

void require_joined(const Machine& machine, const std::string& a, const std::string& b, bool pageable) {
  for (const auto& [from, to] : {std::pair(a, b), std::pair(b, a)})
    if (!machine.route(machine.tier(from), machine.tier(to), pageable))
      contradiction("machine '" + machine.name + "' has no route from " + from + " to " + to + ".");
}

// Storage is reached through the host where there is such a way, as swappers do; what else has a direct route, by that.
std::string way_through(const OffloadSettings& s, const Machine& machine) {
  const bool direct = joined(machine, "hbm", s.to, !s.pinned);
  if (s.via == "none") {
    require_joined(machine, "hbm", s.to, !s.pinned);
    return "";
  }
  if (s.via != kAuto) {
    require_tier("via=" + s.via, s.via, machine);
    if (machine.tiers[static_cast<std::size_t>(machine.tier(s.via))].tier_class != TierClass::host || s.via == s.to)
      contradiction("via=" + s.via + " is no memory of the host to stage copies to " + s.to + " in.");
    require_joined(machine, "hbm", s.via, !s.pinned);
    require_joined(machine, s.via, s.to, !s.pinned);
    return s.via;
  }
  if (direct && s.tier_class != TierClass::storage) return "";
  const std::string tier = joining_tier(s, machine);
  if (tier.empty()) require_joined(machine, "hbm", s.to, !s.pinned);
  return tier;
}

}  // namespace

std::vector<ParameterInfo> offload_parameters() {
  const Unset open{kAuto};
  return {
      choices("what", kRequired, {"activations", "optimizer", "gradients", "parameters"}, "what leaves the GPU"),
      tier("to", "host", "where it goes: nvme through pinned host memory; peer is another GPU's HBM", {"peer"}),
      tier("via", open,
           "where copies are staged on their way: a tier of host memory, or none; by default the host on the way to "
           "storage, else only where there is no direct route",
           {"none"}),
      flag("pinned", open, "1 (the default): page-locked host memory; 0: pageable, every copy blocks the host"),
      choice("stream", open, {"own", "compute"},
             "to=host: own (the default): copies on streams beside the compute stream; compute: in it, and leaving "
             "blocks the host, as PyTorch's save_on_cpu"),
      integer("prefetch", open, {0, 1'000'000}, "ops",
              "how many consuming ops ahead a fetch is issued, or nodes of autograd's graph where the step says what "
              "autograd saves; 0 = at use; by default 1"),
      integer("buffers", open, {0, 1'000'000}, "copies",
              "in flight before the oldest one's device memory is waited for; by default 5"),
      integer("staging", open, {1, 1000}, "buffers",
              "pinned, per direction, where copies are staged on their way; by default 2, with pipeline=1 3"),
      bytes(
          "min_bytes", "1MiB", 0,
          "smaller storages stay where they are; not asked of optimizer states, nor of gradients that a CPU optimizer "
          "takes"),
      number("fraction", 1, {0, 1}, "", "share of the eligible bytes that goes, in the order in which they are made"),
      flag("hides", false,
           "activations: 1: as many of them, in the order in which they are made, as leave the step no longer than "
           "without, to within 0.1 % (calls of the host move a step by less, and are no reason to stop). Found by "
           "bisection over simulations with unlimited memory: the largest number which that finds, where time does "
           "not grow with every activation"),
      flag("inputs", false, "1: activations include the step's inputs"),
      flag("cpu_adam", open,
           "optimizer: 1 (the default) updates on the CPU, or in the tier where that has compute; 0 streams the states "
           "through the GPU"),
      flag("pipeline", open, "optimizer on nvme: 1 overlaps reads and writes with the CPU step; by default 0"),
      integer("group", open, {1, 1e15}, "parameters", "optimizer on nvme: per sub-group; by default 1000000000")};
}

OffloadSettings offload_settings(const PolicyArguments& arguments) {
  OffloadSettings s;
  for (const std::string& what : arguments.list("what")) {
    s.activations |= what == "activations";
    s.optimizer |= what == "optimizer";
    s.gradients |= what == "gradients";
    s.parameters |= what == "parameters";
  }
  s.to = arguments.tier("to");
  if (s.to == "peer") s.to = "peer_hbm";
  if (s.to == "hbm") contradiction("to=hbm names no place to go; expected a tier but hbm.");
  s.via = arguments.tier("via");
  for (const char* key : {"pinned", "stream", "prefetch", "buffers", "staging", "cpu_adam", "pipeline", "group"})
    if (arguments.is_set(key)) s.given.emplace_back(key);
  s.pinned = arguments.flag_or("pinned", true);
  s.side_streams = arguments.is_set("stream") ? arguments.choice("stream") == "own" : s.pinned;
  s.prefetch = static_cast<std::uint32_t>(arguments.integer_or("prefetch", s.side_streams ? kDefaultPrefetch : 0));
  s.buffers = static_cast<std::uint32_t>(arguments.integer_or("buffers", s.side_streams ? kDefaultBuffers : 0));
  s.cpu_adam = arguments.flag_or("cpu_adam", true);
  s.pipeline = arguments.flag_or("pipeline", false);
  s.staging =
      static_cast<std::uint32_t>(arguments.integer_or("staging", s.pipeline ? kPipelineBuffers : kDefaultStaging));
  s.min_bytes = arguments.bytes("min_bytes");
  s.fraction = arguments.number("fraction");
  s.hides = arguments.flag("hides");
  s.inputs = arguments.flag("inputs");
  s.group = arguments.integer_or("group", kDefaultGroup);
  refuse_pointless(s);
  // What these tiers are is known before the machine is.
  if (s.to == "nvme") s.tier_class = TierClass::storage;
  if (s.to == "nvme" && s.via == kAuto) s.through = "host";
  if (s.to == "peer_hbm") s.tier_class = TierClass::device;
  if (s.to == "host" || (s.to == "nvme" && s.via == kAuto) || s.to == "peer_hbm") refuse_against_tier(s);
  return s;
}

bool OffloadSettings::is_given(std::string_view key) const {
  return std::find(given.begin(), given.end(), key) != given.end();
}

std::string OffloadSettings::work_tier() const {
  if (near_memory || tier_class != TierClass::storage) return to;
  return through.empty() ? "host" : through;
}

OffloadSettings settings_on(const Machine& machine, OffloadSettings s) {
  require_tier("to=" + (s.to == "peer_hbm" ? "peer" : s.to), s.to, machine);
  const Tier& tier = machine.tiers[static_cast<std::size_t>(machine.tier(s.to))];
  s.tier_class = tier.tier_class;
  s.near_memory = s.optimizer && s.cpu_adam && tier.compute > 0;
  s.through = way_through(s, machine);
  refuse_against_tier(s);
  return s;
}

}  // namespace memwall
