#include "validate/bench/adam.h"

#include <cmath>

#include "validate/replay/vector_clones.h"

namespace memwall {
namespace {

struct AdamFactors {
  float beta1, beta2, gradient1, gradient2, step_size, correction2, epsilon;
};

AdamFactors factors_of(const AdamSettings& s, std::uint64_t step) {
  const double t = static_cast<double>(step);
  return {static_cast<float>(s.beta1),
          static_cast<float>(s.beta2),
          static_cast<float>(1 - s.beta1),
          static_cast<float>(1 - s.beta2),
          static_cast<float>(s.rate / (1 - std::pow(s.beta1, t))),
          static_cast<float>(1 / std::sqrt(1 - std::pow(s.beta2, t))),
          static_cast<float>(s.epsilon)};
}

// Plain pointers, as only parameters can be said not to overlap. This file is compiled without errno for
// square roots, which would keep the loop scalar.
MEMWALL_VECTOR_CLONES void adam_elements(float* __restrict p, float* __restrict m, float* __restrict v,
                                         const float* __restrict g, std::size_t count, const AdamFactors& factors) {
  const AdamFactors f = factors;
  for (std::size_t i = 0; i < count; ++i) {
    m[i] = f.beta1 * m[i] + f.gradient1 * g[i];
    v[i] = f.beta2 * v[i] + f.gradient2 * g[i] * g[i];
    p[i] -= f.step_size * m[i] / (std::sqrt(v[i]) * f.correction2 + f.epsilon);
  }
}

}  // namespace

void adam_step(const AdamArrays& a, std::size_t begin, std::size_t end, const AdamSettings& settings,
               std::uint64_t step) {
  adam_elements(a.parameters + begin, a.first_moment + begin, a.second_moment + begin, a.gradients + begin, end - begin,
                factors_of(settings, step));
}

void adam_step_reference(AdamElement& e, const AdamSettings& s, std::uint64_t step) {
  const double t = static_cast<double>(step);
  e.first_moment = s.beta1 * e.first_moment + (1 - s.beta1) * e.gradient;
  e.second_moment = s.beta2 * e.second_moment + (1 - s.beta2) * e.gradient * e.gradient;
  const double first = e.first_moment / (1 - std::pow(s.beta1, t));
  const double second = e.second_moment / (1 - std::pow(s.beta2, t));
  e.parameter -= s.rate * first / (std::sqrt(second) + s.epsilon);
}

}  // namespace memwall
