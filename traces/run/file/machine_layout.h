// The columns of the resolved machine in a run file. Internal to traces/run; see run_layout.h.
#pragma once

#include <string>
#include <utility>

#include "traces/run/file/run_layout.h"

namespace memwall {

template <class F>
void fields(F&& f, Row<Machine>) {
  f("name", &Machine::name);
  f("description", &Machine::description);
  f("gpu_count", &Machine::gpu_count);
  f("hbm_link", &Machine::hbm_link);
  f("dram_link", &Machine::dram_link);
  f("dollars_per_hour", &Machine::dollars_per_hour);
  f("watts", &Machine::watts);
  f("idle_watts", &Machine::idle_watts);
  f("gpu.name", MEMWALL_MEMBER(gpu.name));
  f("gpu.compute_major", MEMWALL_MEMBER(gpu.compute_major));
  f("gpu.compute_minor", MEMWALL_MEMBER(gpu.compute_minor));
  f("gpu.multiprocessors", MEMWALL_MEMBER(gpu.multiprocessors));
  f("gpu.threads_per_multiprocessor", MEMWALL_MEMBER(gpu.threads_per_multiprocessor));
  f("gpu.l2_bytes", MEMWALL_MEMBER(gpu.l2_bytes));
  f("gpu.l2_bandwidth", MEMWALL_MEMBER(gpu.l2_bandwidth));
  f("gpu.collective_multiprocessors", MEMWALL_MEMBER(gpu.collective_multiprocessors));
  f("host.cores", MEMWALL_MEMBER(host.cores));
  f("host.numa_nodes", MEMWALL_MEMBER(host.numa_nodes));
  f("host.optimizer_threads", MEMWALL_MEMBER(host.optimizer_threads));
  f("host.watts", MEMWALL_MEMBER(host.watts));
  f("host.optimizer_bandwidth", MEMWALL_MEMBER(host.optimizer_bandwidth));
  f("host.launch_ps", MEMWALL_MEMBER(host.launch));
  f("host.launch_latency_ps", MEMWALL_MEMBER(host.launch_latency));
  f("host.stream_gap_ps", MEMWALL_MEMBER(host.stream_gap));
  f("host.copy_call_ps", MEMWALL_MEMBER(host.copy_call));
  f("host.event_call_ps", MEMWALL_MEMBER(host.event_call));
  f("host.allocator_call_ps", MEMWALL_MEMBER(host.allocator_call));
  f("host.device_malloc_ps", MEMWALL_MEMBER(host.device_malloc));
  f("host.device_free_ps", MEMWALL_MEMBER(host.device_free));
  f("host.synchronize_return_ps", MEMWALL_MEMBER(host.synchronize_return));
}

template <class F>
void fields(F&& f, Row<Tier>) {
  f("name", &Tier::name);
  f("class", &Tier::tier_class);
  f("capacity", &Tier::capacity);
  f("unavailable", &Tier::unavailable);
  f("compression_ratio", &Tier::compression_ratio);
  f("compute", &Tier::compute);
  f("picojoules_per_byte", &Tier::picojoules_per_byte);
  f("dollars_per_byte", &Tier::dollars_per_byte);
  f("memory_link", &Tier::memory_link);
  f("drives", &Tier::drives);
  f("endurance", &Tier::endurance);
  f("write_link", &Tier::write_link);
}

template <class F>
void fields(F&& f, Row<Link>) {
  f("name", &Link::name);
  f("bandwidth", &Link::bandwidth);
  f("sharers", &Link::sharers);
  f("picojoules_per_byte", &Link::picojoules_per_byte);
  f("write_cache", &Link::write_cache);
  f("sustained", &Link::sustained);
}

template <class F>
void fields(F&& f, Row<Route>) {
  f("name", &Route::name);
  f("from", &Route::from);
  f("to", &Route::to);
  f("pageable", &Route::pageable);
  f("engine", &Route::engine);
  f("weight", &Route::weight);
  f("bandwidth", &Route::bandwidth);
  f("stated_bandwidth", &Route::stated);
  f("latency_ps", &Route::latency);
}

template <class F>
void fields(F&& f, Row<Fabric>) {
  f("name", &Fabric::name);
  f("bus_bandwidth", &Fabric::bus_bandwidth);
  f("step_latency_ps", &Fabric::step_latency);
  f("base_latency_ps", &Fabric::base_latency);
  f("max_ranks", &Fabric::max_ranks);
}

template <class F>
void fields(F&& f, Row<PeakRate>) {
  f("data_type", &PeakRate::data_type);
  f("flops", &PeakRate::flops);
}

template <class F>
void fields(F&& f, Row<KernelEfficiency>) {
  f("operator_class", &KernelEfficiency::operator_class);
  f("compute", &KernelEfficiency::compute);
  f("memory", &KernelEfficiency::memory);
  f("fixed_ps", &KernelEfficiency::fixed);
}

template <class F>
void fields(F&& f, Row<PriceError>) {
  f("kind", &PriceError::kind);
  f("operator_class", &PriceError::operator_class);
  f("residual", &PriceError::residual);
}

template <class F>
void fields(F&& f, Row<Owned<std::uint16_t>>) {
  f("owner", &Owned<std::uint16_t>::owner);
  f("link", &Owned<std::uint16_t>::item);
}

template <class F>
void fields(F&& f, Row<Owned<double>>) {
  f("owner", &Owned<double>::owner);
  f("share", &Owned<double>::item);
}

template <class F>
void fields(F&& f, Row<Owned<CurvePoint>>) {
  f("owner", &Owned<CurvePoint>::owner);
  f("bytes", MEMWALL_MEMBER(item.first));
  f("share", MEMWALL_MEMBER(item.second));
}

// Calls g(table, list) for the lists of a machine that are tables as they stand.
template <class M, class G>
void machine_tables(M& machine, G&& g) {
  g("machine/tiers", machine.tiers);
  g("machine/links", machine.links);
  g("machine/routes", machine.routes);
  g("machine/fabrics", machine.fabrics);
  g("machine/gpu_aliases", machine.gpu.aliases);
  g("machine/gpu_peaks", machine.gpu.peaks);
  g("machine/kernel_efficiencies", machine.gpu.efficiencies);
  g("machine/price_errors", machine.price_errors);
}

// Calls g(table, owners, list of an owner) for lists within the rows of another table.
template <class M, class G>
void machine_lists(M& machine, G&& g) {
  g(
      "machine/route_links", machine.routes, [](auto& route) -> auto& { return route.links; });
  g(
      "machine/route_link_shares", machine.routes, [](auto& route) -> auto& { return route.link_shares; });
  g(
      "machine/route_efficiency", machine.routes, [](auto& route) -> auto& { return route.efficiency.points; });
  g(
      "machine/fabric_links", machine.fabrics, [](auto& fabric) -> auto& { return fabric.links; });
  g(
      "machine/fabric_efficiency", machine.fabrics, [](auto& fabric) -> auto& { return fabric.efficiency.points; });
}

}  // namespace memwall
