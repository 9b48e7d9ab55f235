#include "policies/plan/forward_holds.h"

#include <algorithm>
#include <string>
#include <utility>

#include "policies/plan/forward_names.h"
#include "policies/trace/module_blocks.h"
#include "policies/trace/parameter_casts.h"
#include "policies/trace/segments.h"

namespace memwall {

ForwardHolds::ForwardHolds(const Trace& trace, const Dataflow& flow)
    : t_(trace), flow_(flow), passes_(passes(trace)), calls_of_(trace.ops.size()) {
  for (const Pass& pass : passes_) {
    find_calls(pass);
    cast_ends_.push_back(cast_ends(trace, flow, pass));
  }
}

void ForwardHolds::find_calls(const Pass& pass) {
  const ForwardNames names(t_, flow_, pass);
  std::vector<std::pair<std::string, std::uint32_t>> open;  // from the outermost on
  for (const OpId id : forward_ops(t_, pass)) {
    const std::string& path = names.module_of(id);
    while (!open.empty() && !is_within(path, open.back().first)) open.pop_back();
    for (const std::string& part : leading_parts(path)) {
      const bool is_open = std::any_of(open.begin(), open.end(), [&](const auto& one) { return one.first == part; });
      if (part.empty() || is_open || names.is_list(part)) continue;
      open.emplace_back(part, static_cast<std::uint32_t>(calls_.size()));
      calls_.push_back({id, id});
    }
    for (const auto& [part, call] : open) {
      calls_[call].end = id;
      calls_of_[id].push_back(call);
    }
  }
}

OpId ForwardHolds::held_until(StorageId storage) const {
  const auto writers = flow_.writers(storage);
  if (writers.empty()) return kNoOp;
  const auto pass = std::find_if(passes_.begin(), passes_.end(), [&](const Pass& one) {
    return writers.front() >= one.begin && writers.front() < one.backward;
  });
  if (pass == passes_.end()) return kNoOp;
  const OpId freed = flow_.free(storage);
  if (freed != kNoOp && freed < pass->backward) return kNoOp;  // the program lets go of it by itself
  OpId used = kNoOp;
  for (const Touch& touch : flow_.touches(storage))
    if (touch.op < pass->backward) used = touch.op;
  const OpId said = t_.storages[storage].last_referenced;
  const OpId held = said != kNoOp ? std::min(said, pass->backward - 1) : held_by_rule(storage, *pass, used);
  return held != kNoOp && held > used ? held : kNoOp;
}

// Where the trace does not say how long the program refers to it.
OpId ForwardHolds::held_by_rule(StorageId storage, const Pass& pass, OpId used) const {
  if (is_cast_of_parameter(t_, flow_, storage)) {  // one made elsewhere comes from autocast's cache, and is no argument
    const std::vector<OpId>& ends = cast_ends_[static_cast<std::size_t>(&pass - passes_.data())];
    const auto end = std::upper_bound(ends.begin(), ends.end(), used);
    return end != ends.end() ? *end : kNoOp;
  }
  OpId held = kNoOp;
  const OpId made = flow_.writers(storage).front();
  for (const Touch& touch : flow_.touches(storage)) {
    if (touch.op >= pass.backward) break;
    if (!touch.reads) continue;
    for (const std::uint32_t call : calls_of_[touch.op])
      if (made < calls_[call].begin) held = held == kNoOp ? calls_[call].end : std::max(held, calls_[call].end);
  }
  return held;
}

}  // namespace memwall
