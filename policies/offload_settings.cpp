#include "policies/offload_settings.h"

#include <limits>
#include <optional>

#include "sim/error.h"

namespace memwall {
namespace {

constexpr const char* kAuto = "auto";

// Defaults: 5 copies in flight is torchtune's max_fwd_stash_size (torchtune/training/_activation_offloading.py);
// 1e9 parameters per sub-group is DeepSpeed's sub_group_size (deepspeed/runtime/zero/config.py).
constexpr std::int64_t kDefaultBuffers = 5, kDefaultPrefetch = 1, kDefaultStaging = 2, kDefaultGroup = 1'000'000'000;
// Pipelined sub-groups: one is read, one computed, one written.
constexpr std::int64_t kPipelineBuffers = 3;

bool given(const PolicyArguments& arguments, const std::string& key) { return arguments.text(key) != kAuto; }

std::int64_t integer_or(const PolicyArguments& arguments, const std::string& key, std::int64_t low, std::int64_t high,
                        std::int64_t otherwise) {
  return given(arguments, key) ? arguments.integer(key, low, high) : otherwise;
}

bool flag_or(const PolicyArguments& arguments, const std::string& key, bool otherwise) {
  return given(arguments, key) ? arguments.flag(key) : otherwise;
}

[[noreturn]] void contradiction(const std::string& sentence) { throw UsageError("Policy 'offload': " + sentence); }

void read_what(const std::string& text, OffloadSettings& settings) {
  const std::vector<std::string> known = {"activations", "optimizer", "gradients", "parameters"};
  std::size_t begin = 0;
  while (begin <= text.size()) {
    const std::size_t end = std::min(text.find('+', begin), text.size());
    const std::string word = text.substr(begin, end - begin);
    bool* flags[] = {&settings.activations, &settings.optimizer, &settings.gradients, &settings.parameters};
    bool found = false;
    for (std::size_t i = 0; i < known.size(); ++i) {
      if (word != known[i]) continue;
      if (*flags[i]) contradiction("what=" + text + " names '" + word + "' twice.");
      *flags[i] = found = true;
    }
    if (!found) {
      const std::string nearest = nearest_name(word, known);
      contradiction("what=" + text + ": '" + word + "' is not one of activations, optimizer, gradients, parameters." +
                    (nearest.empty() ? "" : " Did you mean '" + nearest + "'?"));
    }
    begin = end + 1;
  }
}

void refuse_contradictions(const PolicyArguments& arguments, const OffloadSettings& s) {
  const bool leaves_host = s.to != "host";
  if (given(arguments, "pinned") && leaves_host)
    contradiction("pinned=" + arguments.text("pinned") + " has a meaning with to=host only; the way to " + s.to +
                  (s.to == "nvme" ? " is always staged in pinned memory." : " does not touch host memory."));
  if (given(arguments, "stream") && leaves_host) contradiction("stream has a meaning with to=host only.");
  if (given(arguments, "stream") && s.side_streams && !s.pinned)
    contradiction("pinned=0 copies block the host, so they have no stream of their own; expected stream=compute.");
  if (given(arguments, "stream") && !s.side_streams && (s.optimizer || s.gradients || s.parameters))
    contradiction("stream=compute has a meaning with what=activations only.");
  if (!s.side_streams && (given(arguments, "prefetch") || given(arguments, "buffers")))
    contradiction(std::string(s.pinned ? "stream=compute" : "pinned=0") +
                  " copies block the host, so prefetch and buffers have no meaning beside it.");
  if (!s.optimizer)
    for (const char* key : {"cpu_adam", "pipeline", "group"})
      if (given(arguments, key)) contradiction(std::string(key) + " has a meaning with what=optimizer only.");
  if (s.optimizer && s.cpu_adam && !s.pinned)
    contradiction("the CPU optimizer copies gradients beside the backward pass and needs pinned=1.");
  if (s.optimizer && s.cpu_adam && s.to == "peer_hbm")
    contradiction("to=peer puts the optimizer states where no CPU reaches them; expected cpu_adam=0 with it.");
  const bool grouped = s.optimizer && s.cpu_adam && s.to == "nvme";
  if (!grouped)
    for (const char* key : {"pipeline", "group"})
      if (given(arguments, key))
        contradiction(std::string(key) + " has a meaning with what=optimizer,to=nvme,cpu_adam=1 only.");
  if (s.pipeline && s.staging < kPipelineBuffers)
    contradiction(
        "pipeline=1 reads one sub-group, computes one and writes one, so it needs staging=3 or more; found staging=" +
        std::to_string(s.staging) + ".");
  if (given(arguments, "staging") && s.to != "nvme") contradiction("staging has a meaning with to=nvme only.");
  if (s.inputs && !s.activations) contradiction("inputs=1 has a meaning with what=activations only.");
}

}  // namespace

std::vector<ParameterInfo> offload_parameters() {
  return {{"what", "", "what leaves the GPU: activations, optimizer, gradients, parameters, joined by '+'"},
          {"to", "host", "where it goes: host, nvme (through pinned host memory) or peer (another GPU's HBM)"},
          {"pinned", kAuto, "1 (the default): page-locked host memory; 0: pageable, every copy blocks the host"},
          {"stream", kAuto,
           "to=host: own (the default): copies on streams beside the compute stream; compute: in it, and leaving "
           "blocks the host, as PyTorch's save_on_cpu"},
          {"prefetch", kAuto, "how many consuming ops ahead a fetch is issued; 0 = at use; by default 1"},
          {"buffers", kAuto, "copies in flight before the oldest one's device memory is waited for; by default 5"},
          {"staging", kAuto, "to=nvme: pinned host buffers per direction; by default 2, with pipeline=1 3"},
          {"min_bytes", "1MiB", "smaller storages stay where they are (not asked of optimizer states)"},
          {"fraction", "1", "share of the eligible bytes that goes, 0 to 1, in the order in which they are made"},
          {"inputs", "0", "1: activations include the step's inputs"},
          {"cpu_adam", kAuto, "optimizer: 1 (the default) updates on the CPU, 0 streams the states through the GPU"},
          {"pipeline", kAuto, "optimizer on nvme: 1 overlaps reads and writes with the CPU step; by default 0"},
          {"group", kAuto, "optimizer on nvme: parameters per sub-group; by default 1000000000"}};
}

OffloadSettings offload_settings(const PolicyArguments& arguments) {
  OffloadSettings s;
  read_what(arguments.text("what"), s);
  s.to = arguments.choice("to", {"host", "nvme", "peer"});
  if (s.to == "peer") s.to = "peer_hbm";
  s.pinned = flag_or(arguments, "pinned", true);
  s.side_streams = s.pinned;
  if (given(arguments, "stream")) s.side_streams = arguments.choice("stream", {kAuto, "own", "compute"}) == "own";
  s.prefetch = static_cast<std::uint32_t>(
      integer_or(arguments, "prefetch", 0, 1'000'000, s.side_streams ? kDefaultPrefetch : 0));
  s.buffers =
      static_cast<std::uint32_t>(integer_or(arguments, "buffers", 0, 1'000'000, s.side_streams ? kDefaultBuffers : 0));
  s.cpu_adam = flag_or(arguments, "cpu_adam", true);
  s.pipeline = flag_or(arguments, "pipeline", false);
  s.staging = static_cast<std::uint32_t>(
      integer_or(arguments, "staging", 1, 1000, s.pipeline ? kPipelineBuffers : kDefaultStaging));
  s.min_bytes = arguments.bytes("min_bytes");
  s.fraction = arguments.number("fraction", 0, 1);
  s.inputs = arguments.flag("inputs");
  s.group = integer_or(arguments, "group", 1, std::numeric_limits<std::int64_t>::max(), kDefaultGroup);
  refuse_contradictions(arguments, s);
  return s;
}

void require_routes(const OffloadSettings& settings, const Machine& machine) {
  std::vector<std::string> way = {"hbm"};
  if (settings.to == "nvme") way.push_back("host");
  way.push_back(settings.to);
  for (const std::string& tier : way) {
    if (machine.tier(tier) >= 0) continue;
    std::string tiers;
    for (const Tier& t : machine.tiers) tiers += (tiers.empty() ? "" : ", ") + t.name;
    contradiction("to=" + std::string(settings.to == "peer_hbm" ? "peer" : settings.to) + " needs a tier '" + tier +
                  "', which machine '" + machine.name + "' does not have; it has " + tiers + ".");
  }
  for (std::size_t i = 0; i + 1 < way.size(); ++i)
    for (const auto& [from, to] : {std::pair(way[i], way[i + 1]), std::pair(way[i + 1], way[i])})
      if (!machine.route(machine.tier(from), machine.tier(to), !settings.pinned))
        contradiction("machine '" + machine.name + "' has no route from " + from + " to " + to + ".");
}

}  // namespace memwall
