// Whatever the network, the ranks and the settings: is the step sound, and are bytes at rest and on the wire those that
// DeepSpeed's stages have by formula?
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>

#include "sim/engine/simulation.h"
#include "sim/policy/registry.h"
#include "sim/trace/trace_check.h"
#include "tests/support/deepspeed_checks.h"
#include "tests/support/layer_trace.h"
#include "tests/support/live_bytes.h"
#include "tests/support/races.h"
#include "tests/support/test_machine.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

using namespace deepspeed_checks;

template <typename T>
T in_range(T low, T high) {
  return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange<T>(low, high));
}

struct DeepSpeedCase {
  std::vector<Bytes> elements;
  int stage = 0, ranks = 2, passes = 1, steps = 1;
  bool modules = true;
  std::string settings;

  Bytes sum() const {
    Bytes all = 0;
    for (const Bytes n : elements) all += n;
    return all;
  }
  // Padded as stages 1 and 2 do, or as stage 3 does.
  Bytes padded() const {
    const Bytes n = ranks;
    if (stage < 3) return (sum() + 2 * n - 1) / (2 * n) * 2 * n;
    Bytes all = 0;
    for (const Bytes e : elements) all += (e + n - 1) / n * n;
    return all;
  }
  Trace trace() const {
    LayerShape shape = layers(elements, passes, steps);
    shape.modules = modules;
    return layer_trace(shape);
  }
  std::string policy() const { return deepspeed(stage, ranks, settings); }
};

// `even`: every layer divides by 2 * ranks, so that no message is rounded.
DeepSpeedCase any_case(bool even) {
  DeepSpeedCase c;
  c.stage = in_range(0, 4);
  c.ranks = in_range(2, 12);
  c.passes = in_range(1, 4);
  c.steps = in_range(1, 3);
  c.modules = in_range(0, 2) == 1;
  const int count = in_range(1, 10);
  // At least three elements: a state of up to 8 bytes is taken for a step counter.
  for (int i = 0; i < count; ++i)
    c.elements.push_back(even ? 2 * c.ranks * in_range<Bytes>(1, 400) : in_range<Bytes>(3, 5000));
  c.settings = ",reduce_bucket_size=" + std::to_string(in_range(1, 12'000)) +
               ",overlap_comm=" + std::to_string(in_range(0, 2)) +
               ",reduce_scatter=" + std::to_string(in_range(0, 4) > 0 ? 1 : 0);
  return c;
}

// Of stage 3: what is kept, what is fetched ahead.
std::string any_fetching() {
  return ",param_persistence_threshold=" + std::to_string(in_range(0, 2) * in_range(0, 3000)) +
         ",max_reuse_distance=" + std::to_string(in_range(0, 2) * in_range(0, 30'000)) +
         ",prefetch_bucket_size=" + std::to_string(in_range(0, 2) * in_range(0, 10'000)) +
         ",max_live_parameters=" + std::to_string(in_range(0, 20'000)) +
         ",sub_group_size=" + std::to_string(in_range(1, 4000)) +
         ",allgather_sequential=" + std::to_string(in_range(0, 2)) +
         ",zero_quantized_weights=" + std::to_string(in_range(0, 2));
}

std::string any_offload(int stage) {
  if (stage == 0 || in_range(0, 2) == 0) return "";
  if (stage < 3) return ",offload_optimizer=cpu,delayed_parameter_update=" + std::to_string(in_range(0, 2));
  return *rc::gen::element<std::string>(",offload_optimizer=cpu", ",offload_optimizer=cpu,ratio=0.4",
                                        ",offload_optimizer=cpu,offload_param=cpu", ",offload_optimizer=nvme",
                                        ",offload_optimizer=nvme,pipeline_read=1,pipeline_write=1,"
                                        "offload_optimizer_buffer_count=12");
}

std::string any_spreading(const DeepSpeedCase& c) {
  if (c.stage == 0 || c.stage == 3) return "";
  const bool all_reduced = in_range(0, 2) == 1;
  std::string settings = ",use_multi_rank_bucket_allreduce=" + std::to_string(all_reduced ? 1 : 0) +
                         ",round_robin_gradients=" + std::to_string(in_range(0, 2));
  if (c.stage == 1) settings += ",broadcast_partitions=" + std::to_string(in_range(0, 2));
  if (c.stage == 1 && all_reduced && c.ranks % 2 == 0) settings += ",partition_ranks=2";
  return settings;
}

RC_GTEST_PROP(DeepSpeedProperty, StepsAreSoundAndLeaveNothingBehind, ()) {
  DeepSpeedCase c = any_case(false);
  if (c.stage == 3) c.settings += any_fetching();
  c.settings += any_offload(c.stage) + any_spreading(c);
  RC_LOG(c.policy());
  const Trace t = rewritten(c.trace(), c.policy());
  RC_ASSERT(check(t) == std::vector<std::string>{});
  RC_ASSERT(races(t) == std::vector<std::string>{});
  const std::vector<LiveBytes> live = live_bytes(t);
  RC_ASSERT(live.front() == live.back());
  const SimulationResult run = simulated(t);
  RC_ASSERT(run.fits);
  Duration kernels{};
  for (const Op& op : t.ops)
    if (op.kind == OpKind::kernel && !op.added) kernels += op.duration;
  RC_ASSERT(run.gpu_span >= kernels);
}

RC_GTEST_PROP(DeepSpeedProperty, BytesAtRestAreByFormula, ()) {
  DeepSpeedCase c = any_case(false);
  if (c.stage == 3) c.settings += ",param_persistence_threshold=0";
  RC_LOG(c.policy());
  const Trace t = rewritten(c.trace(), c.policy());
  const Bytes whole = c.sum(), padded = c.padded(), n = c.ranks;
  RC_ASSERT(at_rest(t, StorageKind::optimizer_state) == (c.stage == 0 ? 12 * whole : 12 * padded / n));
  RC_ASSERT(at_rest(t, StorageKind::parameter) == (c.stage == 0   ? 2 * whole
                                                   : c.stage == 3 ? 2 * padded / n
                                                                  : 2 * padded));
  RC_ASSERT(at_rest(t, StorageKind::gradient) == (c.stage == 3 ? 2 * padded / n : 0));
}

// 2 P of stage 0, 3 P of stage 1, (2 GA + 1) P of stage 2, 3 P GA of stage 3 per step, times (N-1)/N.
RC_GTEST_PROP(DeepSpeedProperty, BytesOnTheWireAreByFormula, ()) {
  DeepSpeedCase c = any_case(true);
  c.settings += ",param_persistence_threshold=0,max_reuse_distance=0,prefetch_bucket_size=0";
  RC_LOG(c.policy());
  const Trace t = rewritten(c.trace(), c.policy());
  const Bytes part = 2 * c.sum() / c.ranks * (c.ranks - 1), passes = Bytes{c.passes} * c.steps, steps = c.steps;
  const Bytes reduced = sent(t, CollectiveKind::all_reduce), scattered = sent(t, CollectiveKind::reduce_scatter),
              gathered = sent(t, CollectiveKind::all_gather);
  if (c.stage == 0) RC_ASSERT(reduced == 2 * part * steps && gathered == 0);
  if (c.stage == 1) RC_ASSERT(reduced == 2 * part * steps && gathered == part * steps);
  if (c.stage == 2) RC_ASSERT(reduced == 2 * part * passes && gathered == part * steps);
  if (c.stage < 3) return RC_ASSERT(scattered == 0);
  RC_ASSERT(gathered == 2 * part * passes);
  // Without reduce_scatter what was copied into the buffer is all-reduced, what was too large for it is not.
  RC_ASSERT(scattered + reduced / 2 == part * passes);
}

// What is kept or fetched ahead changes when a parameter is gathered, but not that it is at least once per micro-batch,
// and at most once per call of its module.
RC_GTEST_PROP(DeepSpeedProperty, EachParameterIsGatheredOnceOrTwiceInAMicroBatch, ()) {
  DeepSpeedCase c = any_case(true);
  c.stage = 3;
  c.settings += ",param_persistence_threshold=0,max_reuse_distance=" + std::to_string(in_range(0, 30'000)) +
                ",prefetch_bucket_size=" + std::to_string(in_range(0, 10'000)) +
                ",max_live_parameters=" + std::to_string(in_range(0, 20'000));
  RC_LOG(c.policy());
  const Trace t = rewritten(c.trace(), c.policy());
  const Bytes part = 2 * c.sum() / c.ranks * (c.ranks - 1), passes = Bytes{c.passes} * c.steps;
  RC_ASSERT(sent(t, CollectiveKind::all_gather) >= part * passes);
  RC_ASSERT(sent(t, CollectiveKind::all_gather) <= 2 * part * passes);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
