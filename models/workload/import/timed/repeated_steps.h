// Steps of a window that nobody marked: its outermost operators come again and again.
//
// A step ends with an optimizer's step (with the last of several, where they take turns). A window without one is cut
// where its operators begin again, if each round has a backward pass: rounds of an inference may as well be layers.
// Internal to the importers of timed captures.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace memwall {

// An outermost operator of the thread that trains.
struct StepOperator {
  std::uint32_t name = 0;        // equal numbers are equal names
  bool ends_optimizer = false;   // it is an optimizer's step
  bool before_backward = false;  // between it and the next one autograd's thread works
};

struct RepeatedSteps {
  std::vector<std::size_t> first;  // by step, its first operator; empty: none are told apart for sure
  std::size_t rounds = 0;          // optimizer steps, else backward passes; 0 or 1: the window is one step
};

RepeatedSteps repeated_steps(const std::vector<StepOperator>& operators);

}  // namespace memwall
