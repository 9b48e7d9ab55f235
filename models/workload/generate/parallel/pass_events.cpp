#include "models/workload/generate/parallel/pass_events.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

namespace memwall {
namespace {

using Whose = PassEvent::Whose;

// The forward and the backward pass of one micro-batch.
class MicroBatch {
 public:
  MicroBatch(const Trace& trace, const PassPlace& forward, const PassPlace& backward)
      : trace_(trace), forward_(forward), backward_(backward), device_(device_place(trace)) {}

  // Nothing where marks cannot stand for the passes.
  std::optional<std::pair<PassEvents, PassEvents>> events() {
    name(forward_.received, Whose::received);
    name(forward_.result, Whose::result);
    PassEvents forward, backward;
    if (!read(forward_, forward)) return std::nullopt;
    rename(Whose::own, Whose::forward);
    rename(Whose::received, Whose::input);
    rename(Whose::result, Whose::output);
    name(backward_.received, Whose::received);
    name(backward_.result, Whose::result);
    for (std::uint32_t i = 0; i < backward_.parameter_gradients.size(); ++i)
      name(backward_.parameter_gradients[i], Whose::parameter, i);
    if (!read(backward_, backward) || living_ > 0) return std::nullopt;
    return std::pair(std::move(forward), std::move(backward));
  }

 private:
  void name(StorageId id, Whose whose, std::uint32_t number = 0) {
    if (id != kNoStorage) known_.emplace(id, std::pair(whose, number));
  }
  void rename(Whose from, Whose to) {
    for (auto& [id, named] : known_)
      if (named.first == from) named.first = to;
  }

  bool read(const PassPlace& place, PassEvents& pass) {
    for (OpId id = place.entered; id < place.left; ++id) {
      const Op& op = trace_.ops[id];
      if (op.kind != OpKind::alloc && op.kind != OpKind::free) continue;
      if (trace_.storages[op.target].place != device_) continue;
      if (op.kind == OpKind::alloc ? !allocate(op.target, pass) : !free(op, pass)) return false;
    }
    return true;
  }

  bool allocate(StorageId id, PassEvents& pass) {
    const Storage& s = trace_.storages[id];
    auto [at, is_own] = known_.emplace(id, std::pair(Whose::own, pass.own));
    if (is_own) ++pass.own, ++living_;
    const auto [whose, number] = at->second;
    if (!is_own && whose != Whose::result && whose != Whose::parameter) return false;
    pass.events.push_back({true, whose, s.stream, number, s.bytes});
    return true;
  }

  bool free(const Op& op, PassEvents& pass) {
    const auto at = known_.find(op.target);
    if (at == known_.end() || op.wait_for == WaitFor::stream) return false;
    const auto [whose, number] = at->second;
    if (whose == Whose::result || whose == Whose::parameter) return false;
    if (whose == Whose::own || whose == Whose::forward) --living_;
    pass.events.push_back({false, whose, trace_.storages[op.target].stream, number, 0});
    return true;
  }

  const Trace& trace_;
  const PassPlace &forward_, &backward_;
  std::uint8_t device_;
  std::unordered_map<StorageId, std::pair<Whose, std::uint32_t>> known_;
  std::int64_t living_ = 0;  // that passes have made for themselves
};

}  // namespace

std::uint8_t device_place(const Trace& trace) {
  const auto found = std::find(trace.places.begin(), trace.places.end(), "hbm");
  return static_cast<std::uint8_t>(found - trace.places.begin());
}

std::optional<ChunkEvents> chunk_events(const StageTrace& alone, bool marks_first) {
  if (alone.passes.size() != 6) return std::nullopt;
  std::optional<std::pair<PassEvents, PassEvents>> of[3];
  for (std::size_t k = marks_first ? 0 : 1; k < 3; ++k) {
    of[k] = MicroBatch(alone.trace, alone.passes[2 * k], alone.passes[2 * k + 1]).events();
    if (!of[k]) return std::nullopt;
  }
  if (*of[1] != *of[2]) return std::nullopt;
  if (!marks_first) of[0].emplace();
  return ChunkEvents{std::move(of[0]->first), std::move(of[1]->first), std::move(of[0]->second),
                     std::move(of[1]->second)};
}

}  // namespace memwall
