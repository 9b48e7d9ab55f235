// Adam on the CPU as an offloaded optimizer runs it: parameters, two moments and gradients in fp32.
//
// Kingma, Ba 2015, "Adam: a method for stochastic optimization", algorithm 1; as DeepSpeed's CPU Adam does
// it (Ren et al. 2021, "ZeRO-Offload"): one pass over the four arrays, vectorised, a part per thread.
#pragma once

#include <cstddef>
#include <cstdint>

namespace memwall {

struct AdamSettings {
  double rate = 1e-3, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
};

struct AdamArrays {
  float *parameters = nullptr, *first_moment = nullptr, *second_moment = nullptr;
  const float* gradients = nullptr;
};

// DRAM traffic per element of a step over arrays that no cache holds: four reads, three writes.
inline constexpr std::size_t kAdamBytesPerElement = 7 * sizeof(float);

// Step number `step` (from 1) over elements [begin, end).
void adam_step(const AdamArrays& arrays, std::size_t begin, std::size_t end, const AdamSettings& settings,
               std::uint64_t step);

// One element, in double precision: what the fast one is compared with.
struct AdamElement {
  double parameter = 0, first_moment = 0, second_moment = 0, gradient = 0;
};
void adam_step_reference(AdamElement& element, const AdamSettings& settings, std::uint64_t step);

}  // namespace memwall
