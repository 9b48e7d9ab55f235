#include "policies/sharding/deepspeed_whole_gradients.h"

namespace memwall {

void WholeGradients::drop_base() {
  for (const StorageId id : analysis_.gradients) {
    edit_.tables().storages[id].preexisting = false;
    for (const OpId end : {flow_.alloc(id), flow_.free(id)})
      if (end != kNoOp) edit_.remove(end);
  }
}

void WholeGradients::make(const BackwardPass& pass) {
  const Trace& base = edit_.base();
  for (const GradientMade& made : pass.made) {
    const auto [found, is_new] = whole_.try_emplace(made.gradient, kNoStorage);
    if (is_new) {
      const Storage& old = base.storages[made.gradient];
      found->second = edit_.builder().add_storage(old.bytes, old.kind, base.places[old.place], base.strings[old.label]);
      edit_.tables().storages[found->second].stream = old.stream;
      edit_.alloc({made.first_write, false}, found->second);
      if (made.accumulates) forgotten_[made.first_write].insert(made.gradient);
    }
    for (const Touch& touch : flow_.touches(made.gradient))
      if (touch.op >= made.first_write && touch.op <= made.ready) edit_.repoint(touch.op, made.gradient, found->second);
  }
}

void WholeGradients::finish() {
  const Trace& base = edit_.base();
  for (const auto& [id, gradients] : forgotten_) {
    const auto uses = base.uses_of(base.ops[id]);
    std::vector<Use> kept(uses.begin(), uses.end());
    std::erase_if(kept, [&](const Use& use) { return use.access == Access::read && gradients.contains(use.storage); });
    edit_.replace(id, base.ops[id], kept);
  }
}

}  // namespace memwall
