#include "validate/bench/adam_state.h"

#include <algorithm>
#include <cmath>

#include "validate/bench/numa_nodes.h"
#include "validate/replay/pattern.h"

namespace memwall {
namespace {

constexpr std::size_t kElementsPerLine = 16;
constexpr std::size_t kComparedElements = 64;  // elements that are compared with the reference

// In [0, 1), a function of the element and of the array.
float random_share(std::uint64_t tag, std::size_t i) {
  return static_cast<float>(pattern_word(tag, i) >> 40) * 0x1p-24f;
}

AdamElement initial_element(std::uint64_t seed, std::size_t i) {
  const float sign = random_share(seed + 4, i) < 0.5f ? -1.0f : 1.0f;
  return {random_share(seed, i) - 0.5f, 0.1f * (random_share(seed + 1, i) - 0.5f),
          0.1f + 0.1f * random_share(seed + 2, i), sign * (0.1f + random_share(seed + 3, i))};
}

}  // namespace

AdamState::AdamState(std::size_t count) : p_(4 * count), m_(4 * count), v_(4 * count), g_(4 * count), room_(count) {}

bool AdamState::bind(int node) {
  for (const PageBuffer* array : {&p_, &m_, &v_, &g_})
    if (!bind_memory(array->as(), 4 * room_, node)) return false;
  return true;
}

void AdamState::randomize(ThreadTeam& team, std::size_t count, std::uint64_t seed) {
  count_ = count;
  seed_ = seed;
  steps_ = 0;
  team.run([&](unsigned member) {
    const TeamShare share = share_of(count, member, team.size(), kElementsPerLine);
    for (std::size_t i = share.begin; i < share.end; ++i) {
      const AdamElement e = initial_element(seed, i);
      p_.as<float>()[i] = static_cast<float>(e.parameter);
      m_.as<float>()[i] = static_cast<float>(e.first_moment);
      v_.as<float>()[i] = static_cast<float>(e.second_moment);
      g_.as<float>()[i] = static_cast<float>(e.gradient);
    }
  });
}

double AdamState::step(ThreadTeam& team, unsigned steps) {
  const double seconds = team.run([&](unsigned member) {
    const TeamShare share = share_of(count_, member, team.size(), kElementsPerLine);
    for (unsigned i = 1; i <= steps; ++i) adam_step(arrays(), share.begin, share.end, settings_, steps_ + i);
  });
  steps_ += steps;
  return seconds;
}

std::string AdamState::fault() const {
  double worst = 0;
  for (std::size_t k = 0; k < kComparedElements; ++k) {
    const std::size_t i = k + 1 == kComparedElements ? count_ - 1 : count_ / kComparedElements * k;
    AdamElement e = initial_element(seed_, i);
    for (std::uint64_t step = 1; step <= steps_; ++step) adam_step_reference(e, settings_, step);
    // Each step rounds a parameter of at most 2 or so, and a change of about the rate.
    const double allowed = static_cast<double>(steps_) * (2.4e-7 + 1e-5 * settings_.rate);
    const double distance = std::abs(static_cast<double>(p_.as<float>()[i]) - e.parameter) / allowed;
    worst = distance > worst || std::isnan(distance) ? distance : worst;
  }
  if (worst <= 1) return "";
  return "parameters differ from the reference by " + std::to_string(worst) + " times what rounding explains";
}

}  // namespace memwall
