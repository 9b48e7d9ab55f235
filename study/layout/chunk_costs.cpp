#include "study/layout/chunk_costs.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "sim/engine/simulation.h"
#include "study/layout/chunk_step.h"

namespace memwall {
namespace {

// Longer chunks are extended from this many layers and one fewer. Three and two give the same to the picosecond
// (asked of GPT-3, Llama 3 and Mixtral under Megatron-LM and torchtitan).
constexpr std::int64_t kLayersTried = 2;

struct DeviceSpan {
  Time first = kNever, last{};
};

DeviceSpan device_span(const SimulationResult& result, OpId begin, OpId end) {
  DeviceSpan span;
  for (OpId id = begin; id < end; ++id) {
    const OpRecord& r = result.records[id];
    if (r.start == kNever) continue;
    span.first = std::min(span.first, r.start);
    span.last = std::max(span.last, r.end);
  }
  return span;
}

SimulationResult simulated(const Trace& trace, const Machine& machine) {
  SimulationOptions options;
  options.allocator = "ideal";
  return simulate(trace, machine, options);
}

PassTime host_time(const Trace& trace, const SimulationResult& result, const PassPlace& place) {
  PassTime time;
  const Time begin = result.records[place.begin].host_start - trace.ops[place.begin].host_gap;
  time.host = result.records[place.end - 1].host_end - begin;
  for (OpId id = place.begin; id < place.end; ++id)
    if (result.records[id].start != kNever) {
      time.to_launch = result.records[id].host_end - begin;
      break;
    }
  return time;
}

void set_tail(const SimulationResult& result, const PassPlace& place, PassTime& time, FoldedPass& pass) {
  if (time.host <= time.device) return;
  const Duration left = device_span(result, place.begin, place.end).last - result.records[place.end - 1].host_end;
  time.tail = std::clamp(left, Duration{}, time.device);
  pass.has_tail = time.tail > Duration{};
}

// Bytes by kind along the ops of one pass, against what was there before it.
FoldedPass memory_of(const Trace& trace, const PassPlace& place) {
  FoldedPass pass;
  BytesByKind now{};
  Bytes total = 0, most = 0;
  const std::uint8_t device = 0;
  for (OpId id = place.load; id < place.end; ++id) {
    const Op& op = trace.ops[id];
    if (op.kind != OpKind::alloc && op.kind != OpKind::free) continue;
    const Storage& s = trace.storages[op.target];
    if (s.place != device) continue;
    const Bytes change = op.kind == OpKind::alloc ? s.bytes : -s.bytes;
    now[static_cast<std::size_t>(s.kind)] += change;
    total += change;
    if (total > most) {
      most = total;
      pass.peak = now;
    }
  }
  pass.after = now;
  if (place.result != kNoStorage && trace.storages[place.result].place == device)
    pass.after[static_cast<std::size_t>(trace.storages[place.result].kind)] -= trace.storages[place.result].bytes;
  return pass;
}

// The first backward pass and the last passes. Gradients that have no buffer are made by the folded program itself.
FoldedChunk memory_of(const Trace& trace, const std::vector<PassPlace>& places, MainGradients gradients) {
  FoldedChunk chunk{memory_of(trace, places[places.size() - 2]), memory_of(trace, places[1]),
                    memory_of(trace, places.back())};
  if (gradients == MainGradients::none)
    chunk.first_backward.after[static_cast<std::size_t>(StorageKind::gradient)] = 0;
  return chunk;
}

}  // namespace

bool drains(const ParallelJob& job) {
  return job.pipeline.ranks > 1 && job.pipeline.chunks == 1 &&
         job.recipe.parallel.framework == ParallelFramework::megatron;
}

namespace {

ChunkCosts simulated_costs(const ParallelJob& job, std::int64_t rank, std::int64_t chunk, const JobPricing& pricing,
                           ChunkPrograms& programs, const std::string& key) {
  const Machine& machine = pricing.machine;
  const bool drained = drains(job);
  const std::int64_t layers = job.stages[static_cast<std::size_t>(chunk * job.pipeline.ranks + rank)].count;
  const auto program = programs.alone().get(fmt::format("{} layers: {}", layers, key),
                                            [&] { return chunk_program(job, rank, chunk, drained); });
  ChunkStep step = priced(ChunkStep(*program), pricing);
  // Here passes follow each other without the messages that hold up the host of a job: it would run ahead until the
  // launch queue is full, and that wait is no time of a pass.
  step.trace.constants.launch_queue_depth = 0;
  for (Rank& one : step.trace.rank_table) one.constants.launch_queue_depth = 0;
  const Trace& trace = step.trace;
  const SimulationResult result = simulated(trace, machine);
  const PassPlace &there = step.forward(), &back = step.backward();
  ChunkCosts costs;
  costs.memory = memory_of(trace, step.passes, job.recipe.parallel.main_gradients);
  costs.forward = host_time(trace, result, there);
  costs.backward = host_time(trace, result, back);
  for (OpId id = there.begin; id < back.end; ++id)
    if (trace.ops[id].phase != Phase::recompute) costs.flops += trace.ops[id].flops;
  if (drained) {
    const DeviceSpan f = device_span(result, there.begin, there.end), b = device_span(result, back.begin, back.end);
    costs.forward.device = f.last - f.first;
    costs.backward.device = b.last - b.first;
    return costs;
  }
  const SimulationResult device = simulated(without_host(trace), machine);
  // What is loaded before the pass is not of it: folded programs load, too.
  const PassPlace& earlier = step.backward_before();
  const Time before = std::max(device_span(device, earlier.begin, earlier.end).last,
                               device_span(device, there.load, there.begin).last);
  const Time between = device_span(device, there.begin, there.end).last;
  costs.forward.device = between - before;
  costs.backward.device = device_span(device, back.begin, back.end).last - between;
  set_tail(result, there, costs.forward, costs.memory.forward);
  set_tail(result, back, costs.backward, costs.memory.backward);
  costs.memory.first_backward.has_tail = costs.memory.backward.has_tail;
  return costs;
}

// The rank with that chunk alone, of so many layers.
ParallelJob alone_with(ParallelJob job, std::int64_t rank, std::int64_t chunk, std::int64_t layers) {
  for (std::int64_t c = 0; c < job.pipeline.chunks; ++c) {
    StageLayers& stage = job.stages[static_cast<std::size_t>(c * job.pipeline.ranks + rank)];
    if (c == chunk)
      stage.count = layers;
    else
      stage = {};
  }
  return job;
}

// What grows by the same with each layer, from two numbers of layers one apart, at `more` beyond the second.
template <class T>
T extended(const T& one, const T& two, std::int64_t more) {
  return two + more * (two - one);
}

PassTime extended(const PassTime& one, const PassTime& two, std::int64_t more) {
  return {extended(one.device, two.device, more), extended(one.host, two.host, more), two.to_launch,
          std::min(two.tail, two.device)};
}

}  // namespace

ChunkCosts chunk_costs(const ParallelJob& job, std::int64_t rank, std::int64_t chunk, const JobPricing& pricing,
                       ChunkPrograms& programs, const std::string& key) {
  const std::int64_t layers = job.stages[static_cast<std::size_t>(chunk * job.pipeline.ranks + rank)].count;
  const ModelParallel& p = job.recipe.parallel;
  // Layers repeat, but where those of a checkpoint or those that have one are counted.
  const bool repeats = job.recipe.checkpoint != ActivationCheckpoint::full ||
                       (p.checkpoint_method == CheckpointMethod::uniform && p.checkpoint_layers == 1);
  const ParallelJob whole = alone_with(job, rank, chunk, layers);
  if (layers <= kLayersTried || !repeats) return simulated_costs(whole, rank, chunk, pricing, programs, key);
  const ChunkCosts one =
      simulated_costs(alone_with(job, rank, chunk, kLayersTried - 1), rank, chunk, pricing, programs, key);
  const ChunkCosts two =
      simulated_costs(alone_with(job, rank, chunk, kLayersTried), rank, chunk, pricing, programs, key);
  const std::int64_t more = layers - kLayersTried;
  ChunkCosts costs;
  costs.memory = *programs.memory().get(key, [&] {
    const StageTrace alone = StageProgram(whole, rank).write_chunk(chunk, 2, false);
    return memory_of(alone.trace, alone.passes, p.main_gradients);
  });
  costs.memory.forward.has_tail = two.memory.forward.has_tail;
  costs.memory.backward.has_tail = costs.memory.first_backward.has_tail = two.memory.backward.has_tail;
  costs.forward = extended(one.forward, two.forward, more);
  costs.backward = extended(one.backward, two.backward, more);
  costs.flops = two.flops + static_cast<double>(more) * (two.flops - one.flops);
  return costs;
}

}  // namespace memwall
