// Runs in which several tiers matter: a generated step of a GPT, with policies and a pager, on the machine of round
// numbers. For tests and pictures of memory.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "gui/model/open_run.h"
#include "sim/machine/machine.h"
#include "sim/engine/observer.h"
#include "sim/policy/pager.h"
#include "sim/trace/trace.h"

namespace memwall {

struct TieredRunOptions {
  std::vector<std::string> policies{};  // "offload:what=activations"
  std::string pager{};                  // "lru"
  std::string allocator = "pytorch";
  Pager* own_pager = nullptr;    // not owned; instead of `pager`
  Bytes hbm = 0;                 // capacity; 0 = the machine's
  Bytes untracked = 0;           // on the device, in no storage
  Observer* observer = nullptr;  // not owned; its storages are those of the trace that policies made
};

// Moves what was used least recently to the tier "host". Tests of pictures use it: they know no policies.
class PagerToHost final : public Pager {
 public:
  PagerClock clock() const override { return PagerClock::host; }
  std::vector<Move> make_room(int tier, Bytes bytes, const PagerView& view) override;
};

// The trace after the policies.
Trace tiered_trace(const Trace& trace, const TieredRunOptions& options);
Run tiered_run(Trace trace, const TieredRunOptions& options);
// Two steps of a GPT of three layers, paged by PagerToHost: the device holds 70 % of what they need.
std::shared_ptr<const Run> paged_run();
// Open as the viewer has it: source, cache, history.
gui::OpenRun opened(std::shared_ptr<const Run> run);

}  // namespace memwall
