// Cycles as training steps are: a chain of layers forward and the same chain backward, at random.
//
// How they are drawn: 8 to 16 layers, of each a slot forward and one backward, which takes twice as long, and at the
// end of the turn, in half of all cases, a slot of its own for its optimizer; else backward updates. A layer has a
// weight (read forward, read backward, updated), an optimizer state (read and written where the weight is updated), one
// or two activations (written forward, read backward) and, where the optimizer comes at the end, a gradient. Sizes of a
// kind are log-uniform over a factor of 8, of a layer within it over a factor of 3; times of layers over a factor of 3.
// The link's rate (one for both directions in half of all cases, else two) is log-uniform, such that what could move
// takes between a third of a turn and three; its latency none in half of all cases, else up to a fiftieth of what the
// mean copy takes. The budget is uniform between the least that any plan keeps to and the peak.
#pragma once

#include "policies/cycle/step_cycle.h"
#include "tests/support/random_cycle.h"

namespace memwall {

struct TrainingCycle {
  CycleProgram program;
  CycleLinks links;
  Bytes budget = 0;
};

struct LayerSizes {
  double weight = 0, state = 0, activation = 0, other = 0;  // other: 0 = there is none
};

// A storage of one layer: its touches as (slot, reads, writes).
inline CycleStorage layer_storage(double bytes, bool across, std::vector<CycleTouch> touches, std::uint32_t slots) {
  CycleStorage s;
  s.held = s.moved = static_cast<Bytes>(bytes);
  s.across = s.from_before = s.to_next = across;
  s.first = across ? 0 : touches.front().slot;
  s.last = across ? slots - 1 : touches.back().slot;
  s.touches.assign(touches.begin(), touches.end());
  return s;
}

inline CycleProgram training_program(RandomNumbers& r, std::size_t fewest = 8, std::size_t most = 16) {
  CycleProgram program;
  const auto layers = static_cast<std::uint32_t>(r.between(fewest, most));
  const bool own_optimizer = r.one_in(2), two = r.one_in(2);
  const std::uint32_t slots = layers * (own_optimizer ? 3 : 2);
  const LayerSizes of_kind{r.log_uniform(1e8, 8e8), r.log_uniform(2e8, 16e8), r.log_uniform(1e8, 8e8),
                           two ? r.log_uniform(1e8, 8e8) : 0};
  program.slots.resize(slots);
  const auto jitter = [&] { return r.log_uniform(0.58, 1.73); };
  for (std::uint32_t layer = 0; layer < layers; ++layer) {
    const std::uint32_t back = 2 * layers - 1 - layer, update = own_optimizer ? 2 * layers + layer : back;
    const double seconds = 0.05 * jitter();
    program.slots[layer].time = program.slots[layer].work = from_seconds(seconds);
    program.slots[back].time = program.slots[back].work = from_seconds(2 * seconds);
    if (own_optimizer) program.slots[update].time = program.slots[update].work = from_seconds(0.1 * seconds);
    const double weight = of_kind.weight * jitter();
    std::vector<CycleTouch> touches = {{layer, true, false}, {back, true, !own_optimizer}};
    if (own_optimizer) touches.push_back({update, true, true});
    program.storages.push_back(layer_storage(weight, true, touches, slots));
    program.storages.push_back(layer_storage(of_kind.state * jitter(), true, {{update, true, true}}, slots));
    for (const double bytes : {of_kind.activation, of_kind.other})
      if (bytes > 0)
        program.storages.push_back(
            layer_storage(bytes * jitter(), false, {{layer, false, true}, {back, true, false}}, slots));
    if (own_optimizer)
      program.storages.push_back(layer_storage(weight, false, {{back, false, true}, {update, true, false}}, slots));
  }
  return program;
}

inline TrainingCycle training_cycle(RandomNumbers& r, std::size_t fewest = 8, std::size_t most = 16) {
  TrainingCycle made{training_program(r, fewest, most), {}, 0};
  const StepCycle cycle(made.program);
  double bytes = 0;
  for (const CycleGap& gap : cycle.gaps()) bytes += static_cast<double>(cycle.storages()[gap.storage].moved);
  const auto rate = [&] { return bytes / (to_seconds(cycle.turn()) * r.log_uniform(1.0 / 3, 3)); };
  CyclePath path;
  path.out_rate = rate();
  path.in_rate = r.one_in(2) ? path.out_rate : rate();
  path.room = Bytes{1} << 60;
  if (r.one_in(2)) {
    const double copy = bytes / static_cast<double>(cycle.gaps().size()) / path.out_rate;
    path.out_latency = path.in_latency = from_seconds(copy * 0.02 * r.part());
  }
  made.links = {{path}, path.out_rate, path.in_rate};
  const std::vector<Bytes> least = cycle.least();
  const Bytes lowest = *std::max_element(least.begin(), least.end());
  made.budget = lowest + static_cast<Bytes>(r.part() * static_cast<double>(cycle.peak() - lowest));
  return made;
}

}  // namespace memwall
