// torchtune's activation checkpointing and offloading, by its own names: other policies, one after the other.
//
// torchtune: set_activation_checkpointing and training/_activation_offloading.py (at 05cda5e9dd03; read, not copied);
// ac_option from memory:
//   enable_activation_checkpointing  every transformer block runs again: `checkpoint`; with ac_option=N every N-th, the
//                                    N-th first.
//   enable_activation_offloading     what autograd then still keeps, of 1 KiB and more, waits in pinned memory of the
//                                    host: `offload:what=activations,min_bytes=1024`: at most 5 copies are under way
//                                    (max_fwd_stash_size), and one node of autograd's graph ahead copies come back,
//                                    since the copy stream waits for the node before. It needs checkpointing.
//   activation_offloading_use_streams=0  copies stand in the compute stream (`stream=compute`).
//
// Left out: ac_option=op (the same as torchtitan's of its time: `torchtitan`). Deviations: without streams a copy that
// leaves blocks the host, as `offload` has it, where torchtune's does not; a fetch waits for the compute stream up to
// where it is issued.
#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "policies/planners/unit_reruns.h"
#include "policies/trace/passes_in_turn.h"
#include "sim/error.h"
#include "sim/policy/registry.h"

namespace memwall {
namespace {

struct TorchtuneSettings {
  bool offloads = false, streams = true;
  std::size_t every = 1;  // blocks
};

class TorchtuneRewriter : public Rewriter {
 public:
  explicit TorchtuneRewriter(const TorchtuneSettings& settings) : s_(settings) {}

  Knowledge needs() const override { return {.modules = s_.every > 1}; }

  Trace rewrite(const Trace& trace, const Machine& machine, const Pricer& pricer) const override {
    Trace result = trace;
    const std::vector<std::string> texts = policies_for(trace);
    for (const std::string& text : texts) result = rewriter(text)->rewrite(result, machine, pricer);
    result.notes.push_back(fmt::format("torchtune: these options are the {} {}.",
                                       texts.size() == 1 ? "policy" : "policies", fmt::join(texts, ", then ")));
    return result;
  }

  // Of both together there is none for the step as it is: copies stand beside what runs again.
  std::optional<MemoryPlan> memory_plan(const Trace& trace, const Machine& machine,
                                        const Pricer& pricer) const override {
    const std::vector<std::string> texts = policies_for(trace);
    if (texts.size() > 1) return std::nullopt;
    return rewriter(texts.front())->memory_plan(trace, machine, pricer);
  }

 private:
  std::unique_ptr<Rewriter> rewriter(const std::string& text) const {
    const PolicySpec spec = parse_policy(text);
    std::unique_ptr<Rewriter> made = spec.info->make_rewriter(spec.arguments);
    made->restrict_plans(restriction());
    made->simulate_plans_with(allocator());
    return made;
  }

  std::vector<std::string> policies_for(const Trace& trace) const {
    std::vector<std::string> texts = {"checkpoint"};
    if (s_.every > 1) texts.front() += ":modules=" + fmt::format("{}", fmt::join(nth_blocks(trace), "+"));
    if (s_.offloads)
      texts.push_back(std::string("offload:what=activations,min_bytes=1024") + (s_.streams ? "" : ",stream=compute"));
    return texts;
  }

  // Their names.
  std::vector<std::string> nth_blocks(const Trace& trace) const {
    const Dataflow flow(trace);
    const std::vector<Pass> all = passes_in_turn(trace);
    std::vector<std::string> names;
    if (!all.empty())
      for (const RecomputeUnit& unit : every_nth(block_units(trace, flow, all.front()), s_.every))
        names.push_back(unit.name);
    if (names.empty())
      throw UsageError(
          fmt::format("Policy 'torchtune': trace '{}' has fewer than {} blocks (ac_option).", trace.name, s_.every));
    return names;
  }

  const TorchtuneSettings s_;
};

std::unique_ptr<Rewriter> torchtune_rewriter(const PolicyArguments& arguments) {
  TorchtuneSettings s;
  s.offloads = arguments.flag("enable_activation_offloading");
  s.streams = arguments.flag_or("activation_offloading_use_streams", true);
  s.every = static_cast<std::size_t>(arguments.integer_or("ac_option", 1));
  if (!arguments.flag("enable_activation_checkpointing"))
    throw UsageError(s.offloads ? "Policy 'torchtune': enable_activation_offloading=1 needs "
                                  "enable_activation_checkpointing=1, as torchtune does; --policy "
                                  "offload:what=activations offloads without it."
                                : "Policy 'torchtune': without checkpointing and offloading it changes nothing.");
  if (!s.offloads && arguments.is_set("activation_offloading_use_streams"))
    throw UsageError(
        "Policy 'torchtune': activation_offloading_use_streams has a meaning with enable_activation_offloading=1 "
        "only.");
  return std::make_unique<TorchtuneRewriter>(s);
}

const RegisterPolicy registered_torchtune{
    {.name = "torchtune",
     .sentence = "computes blocks again and sends to the host what is still kept, as torchtune's options say",
     .kind = PolicyKind::memory_plan,
     .needs = {.timing = true, .allocations = true, .dataflow = true},
     .parameters = {flag("enable_activation_checkpointing", true, "1: blocks run again in backward."),
                    integer("ac_option", Unset{"all"}, {1, 1'000'000}, "blocks",
                            "N: every N-th block runs again, the N-th first, as ac_mode=selective says; all: each."),
                    flag("enable_activation_offloading", false,
                         "1: what is still kept for backward, of 1 KiB and more, waits on the host."),
                    flag("activation_offloading_use_streams", Unset{"auto"},
                         "1 (the default): copies have streams of their own; 0: they stand in the compute stream.")},
     .make_rewriter = torchtune_rewriter}};

}  // namespace
}  // namespace memwall
