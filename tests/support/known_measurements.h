// What benchmarks would measure on a machine whose laws are known: its own prices, times noise. Calibration
// must find the laws again.
#pragma once

#include <map>
#include <random>
#include <string>
#include <vector>

#include "models/hw/kernel_cost.h"
#include "models/hw/pricer.h"
#include "sim/machine/machine.h"
#include "validate/measurement/measurement.h"

namespace memwall {

class KnownMeasurements {
 public:
  // Each median is multiplied by a factor drawn evenly from 1 - noise to 1 + noise.
  KnownMeasurements(const Machine& machine, double noise, std::uint64_t seed)
      : machine_(machine), pricer_(make_pricer(machine)), noise_(noise), random_(seed) {
    const Bytes memory = machine.tiers.front().capacity;
    set.environment = {{"date", "2026-11-21T10:00:00Z"},
                       {"gpu.name", machine.gpu.name},
                       {"gpu.memory_bytes", std::to_string(memory)},
                       {"gpu.multiprocessors", std::to_string(machine.gpu.multiprocessors)}};
    set.environment.emplace_back("backend", machine.gpu.compute_major == 0 ? "host" : "cuda");
  }

  MeasurementSet set;

  Measurement& add(const std::string& benchmark, std::map<std::string, std::string> parameters, double seconds) {
    Measurement m;
    m.benchmark = benchmark;
    m.parameters = std::move(parameters);
    m.median = seconds * (1 + noise_ * (2 * static_cast<double>(random_() >> 11) * 0x1p-53 - 1));
    m.low = m.median * (1 - noise_);
    m.high = m.median * (1 + noise_);
    m.samples = 9;
    return set.measurements.emplace_back(m);
  }

  void copies(const std::string& benchmark, const std::string& from, const std::string& to, bool pageable = false) {
    for (Bytes bytes = KiB(4); bytes <= MiB(256); bytes *= 4)
      add(benchmark, {{"bytes", std::to_string(bytes)}}, to_seconds(pricer_->copy(from, to, bytes, pageable)));
  }

  // Each direction keeps its share of the wire under load from both sides.
  void both_ways(double forward_share, double backward_share) {
    const double in = machine_.links[static_cast<std::size_t>(machine_.link("pcie_h2d"))].bandwidth;
    const double out = machine_.links[static_cast<std::size_t>(machine_.link("pcie_d2h"))].bandwidth;
    for (const Bytes bytes : {MiB(64), MiB(256)}) {
      const auto size = std::to_string(bytes);
      add("copy_both_pinned", {{"bytes", size}, {"direction", "host_to_device"}},
          static_cast<double>(bytes) / (forward_share * in));
      add("copy_both_pinned", {{"bytes", size}, {"direction", "device_to_host"}},
          static_cast<double>(bytes) / (backward_share * out));
    }
  }

  void kernels(const std::string& benchmark, OperatorClass operator_class, const std::string& parameter) {
    for (Bytes bytes = KiB(64); bytes <= GiB(1); bytes *= 2) {
      Op op;
      op.kind = OpKind::kernel;
      op.operator_class = operator_class;
      op.bytes = bytes;
      add(benchmark, {{parameter, std::to_string(bytes)}}, to_seconds(kernel_duration(machine_, op))).bytes =
          static_cast<double>(bytes);
    }
  }

  void products(const std::string& benchmark, DataType type, int largest) {
    for (int n = largest / 32; n <= largest; n *= 2) {
      Op op;
      op.kind = OpKind::kernel;
      op.operator_class = OperatorClass::gemm;
      op.data_type = type;
      op.flops = 2.0 * n * n * n;
      const std::string size = std::to_string(n);
      add(benchmark, {{"m", size}, {"n", size}, {"k", size}}, to_seconds(kernel_duration(machine_, op))).flops =
          op.flops;
    }
  }

  void calls() {
    const HostCosts& host = machine_.host;
    add("call_launch", {}, to_seconds(host.launch));
    add("call_copy", {}, to_seconds(host.copy_call));
    add("call_event", {}, to_seconds(host.event_call));
    add("call_synchronize_return", {}, to_seconds(host.synchronize_return));
    add("launch_latency", {}, to_seconds(host.launch_latency));
    add("stream_gap", {}, to_seconds(host.stream_gap));
    add("call_allocator", {}, to_seconds(host.allocator_call));
    for (const Bytes bytes : {MiB(2), MiB(20), GiB(1)}) {
      const double factor = bytes == MiB(20) ? 1 : 3;  // only a segment's counts
      add("device_malloc", {{"bytes", std::to_string(bytes)}}, factor * to_seconds(host.device_malloc));
      add("device_free", {{"bytes", std::to_string(bytes)}}, factor * to_seconds(host.device_free));
    }
  }

  void computer() {
    const double dram = machine_.links[machine_.dram_link].bandwidth;
    for (const Bytes bytes : {MiB(1), MiB(256), GiB(1)})
      for (const int threads : {1, 8}) {
        const std::map<std::string, std::string> p{{"bytes", std::to_string(bytes)},
                                                   {"threads", std::to_string(threads)}};
        const double share = threads == 8 ? 1 : 0.4;
        const auto moved = static_cast<double>(bytes);
        add("memcpy_host_host", p, 2 * moved / (dram * share)).bytes = moved;
        add("adam_host", p, moved / (machine_.host.optimizer_bandwidth * share)).bytes = moved;
      }
    copies("storage_read", "nvme", "host");
    copies("storage_write", "host", "nvme");
  }

  void collectives(int ranks) {
    const std::pair<const char*, CollectiveKind> kinds[] = {{"nccl_all_gather", CollectiveKind::all_gather},
                                                            {"nccl_reduce_scatter", CollectiveKind::reduce_scatter}};
    for (const auto& [name, kind] : kinds)
      for (Bytes bytes = KiB(64); bytes <= GiB(1); bytes *= 2)
        add(name, {{"bytes", std::to_string(bytes)}, {"ranks", std::to_string(ranks)}},
            to_seconds(pricer_->collective(kind, bytes, static_cast<std::uint32_t>(ranks))));
  }

  // The least that calibration asks for.
  void obligatory() {
    copies("copy_host_hbm_pinned", "host", "hbm");
    copies("copy_hbm_host_pinned", "hbm", "host");
    kernels("hbm_triad", OperatorClass::memory, "working_set");
    if (machine_.gpu.compute_major == 0)
      products("gemm_fp32", DataType::fp32, 1024);
    else
      products("gemm_bf16", DataType::bf16, 16384);
  }

  void everything() {
    obligatory();
    copies("copy_host_hbm_pageable", "host", "hbm", true);
    copies("copy_hbm_host_pageable", "hbm", "host", true);
    copies("copy_hbm_hbm", "hbm", "hbm");
    kernels("hbm_read", OperatorClass::memory, "working_set");
    kernels("kernel_elementwise", OperatorClass::elementwise, "bytes");
    kernels("kernel_normalization", OperatorClass::normalization, "bytes");
    kernels("kernel_reduction", OperatorClass::reduction, "bytes");
    kernels("kernel_softmax", OperatorClass::reduction, "bytes");
    kernels("kernel_optimizer", OperatorClass::optimizer, "bytes");
    calls();
    computer();
  }

 private:
  Machine machine_;
  std::unique_ptr<Pricer> pricer_;
  double noise_;
  std::mt19937_64 random_;
};

}  // namespace memwall
