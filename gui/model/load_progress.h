// How work in several parts tells how far it is.
#pragma once

#include "traces/run/run_source.h"

namespace memwall::gui {

// Tells that `share` of the work is done; throws LoadCancelled if whoever watches says so.
inline void reach(const LoadProgress& progress, double share) {
  if (progress && !progress(share)) throw LoadCancelled{};
}

// `progress` for a part of the work: from `low` to `high` of all. `progress` must outlive it.
inline LoadProgress part_of(const LoadProgress& progress, double low, double high) {
  if (!progress) return {};
  return [&progress, low, high](double done) { return progress(low + done * (high - low)); };
}

}  // namespace memwall::gui
