#include "validate/bench/adam.h"

#include <algorithm>
#include <cmath>

#include "validate/bench/benchmark.h"
#include "validate/bench/page_buffer.h"
#include "validate/bench/thread_team.h"
#include "validate/replay/pattern.h"
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

namespace {

constexpr std::size_t kElementsPerLine = 16;
constexpr std::size_t kComparedElements = 64;  // elements that are compared with the reference

// In [0, 1), a function of the element and of the array.
float random_share(std::uint64_t tag, std::size_t i) {
  return static_cast<float>(pattern_word(tag, i) >> 40) * 0x1p-24f;
}

class AdamState {
 public:
  explicit AdamState(std::size_t count) : p_(4 * count), m_(4 * count), v_(4 * count), g_(4 * count) {}

  AdamArrays arrays() const { return {p_.as<float>(), m_.as<float>(), v_.as<float>(), g_.as<float>()}; }

  void randomize(ThreadTeam& team, std::size_t count, std::uint64_t seed) {
    team.run([&](unsigned member) {
      const TeamShare share = share_of(count, member, team.size(), kElementsPerLine);
      for (std::size_t i = share.begin; i < share.end; ++i) {
        const AdamElement e = initial(seed, i);
        p_.as<float>()[i] = static_cast<float>(e.parameter);
        m_.as<float>()[i] = static_cast<float>(e.first_moment);
        v_.as<float>()[i] = static_cast<float>(e.second_moment);
        g_.as<float>()[i] = static_cast<float>(e.gradient);
      }
    });
  }

  // The greatest distance of a parameter from the reference after `steps`, as a share of what is allowed.
  double deviation(std::size_t count, std::uint64_t seed, const AdamSettings& settings, std::uint64_t steps) const {
    double worst = 0;
    for (std::size_t k = 0; k < kComparedElements; ++k) {
      const std::size_t i = k + 1 == kComparedElements ? count - 1 : count / kComparedElements * k;
      AdamElement e = initial(seed, i);
      for (std::uint64_t step = 1; step <= steps; ++step) adam_step_reference(e, settings, step);
      // Each step rounds a parameter of at most 2 or so, and a change of about the rate.
      const double allowed = static_cast<double>(steps) * (2.4e-7 + 1e-5 * settings.rate);
      worst = std::max(worst, std::abs(static_cast<double>(p_.as<float>()[i]) - e.parameter) / allowed);
    }
    return worst;
  }

 private:
  static AdamElement initial(std::uint64_t seed, std::size_t i) {
    const float sign = random_share(seed + 4, i) < 0.5f ? -1.0f : 1.0f;
    return {random_share(seed, i) - 0.5f, 0.1f * (random_share(seed + 1, i) - 0.5f),
            0.1f + 0.1f * random_share(seed + 2, i), sign * (0.1f + random_share(seed + 3, i))};
  }
  PageBuffer p_, m_, v_, g_;
};

void adam_with(BenchmarkRun& run, ThreadTeam& team, AdamState& state, std::size_t count) {
  const AdamSettings settings;
  Measurement m =
      run.row({{"bytes", std::to_string(kAdamBytesPerElement * count)}, {"threads", std::to_string(team.size())}});
  m.bytes = static_cast<double>(kAdamBytesPerElement * count);
  m.flops = 12.0 * static_cast<double>(count);
  state.randomize(team, count, run.settings().seed);
  std::uint64_t step = 0;
  run.sample(m, [&] {
    ++step;
    return team.run([&](unsigned member) {
      const TeamShare share = share_of(count, member, team.size(), kElementsPerLine);
      adam_step(state.arrays(), share.begin, share.end, settings, step);
    });
  });
  const double deviation = state.deviation(count, run.settings().seed, settings, step);
  if (!(deviation <= 1)) {
    m.status = MeasurementStatus::failed;
    m.note = "parameters differ from the reference by " + std::to_string(deviation) + " times what rounding explains";
  }
  run.report(m);
}

void adam_host(BenchmarkRun& run) {
  constexpr std::size_t kLargest = std::size_t{1} << 26, kSmallest = std::size_t{1} << 24;
  std::vector<std::size_t> counts;
  for (std::size_t count = kLargest; count >= kSmallest; count /= 4)
    if (4 * count <= run.settings().largest_buffer) counts.push_back(count);
  if (counts.empty()) counts.push_back(std::max(run.settings().largest_buffer / 4, std::size_t{1024}));
  AdamState state(counts.front());
  for (const unsigned threads : team_sizes()) {
    ThreadTeam team(threads);
    for (const std::size_t count : counts) {
      if (run.out_of_time()) return;
      adam_with(run, team, state, count);
    }
  }
}

const RegisterBenchmark registered_adam_host{
    {"adam_host", "steps of Adam on the CPU over fp32 arrays, as an offloaded optimizer takes them",
     BenchmarkPlace::computer, 21, adam_host}};

}  // namespace
}  // namespace memwall
