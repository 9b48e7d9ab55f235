// Laws of machines with any number of tiers: bytes are conserved per link, no tier holds more than it has, and a faster
// or larger machine is never slower where only one thing at a time goes on.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "models/hw/pricer.h"
#include "tests/support/offload_chain.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

// HBM and `slower` tiers, each with a link each way and a route each way; some compress, some are storage.
Machine random_machine(int slower) {
  Machine machine = test_machine();
  machine.tiers.resize(2);
  machine.routes.clear();
  for (int i = 1; i < slower; ++i) {
    Tier tier;
    tier.name = numbered('t', i);
    tier.tier_class = *rc::gen::arbitrary<bool>() ? TierClass::host : TierClass::storage;
    machine.tiers.push_back(tier);
  }
  for (std::uint8_t t = 1; t < machine.tiers.size(); ++t) {
    machine.tiers[t].capacity = *rc::gen::inRange<Bytes>(1, 9) * kGB;
    machine.tiers[t].compression_ratio = *rc::gen::element(1.0, 2.0, 4.0);
    for (const bool out : {true, false}) {
      Link link;
      link.name = (out ? "out" : "in") + std::to_string(t);
      link.bandwidth = *rc::gen::inRange(1, 30) * 1e9;
      Route route;
      route.from = out ? std::uint8_t{0} : t;
      route.to = out ? t : std::uint8_t{0};
      route.engine = out ? 1 : 0;
      route.links = {static_cast<std::uint16_t>(machine.links.size())};
      route.link_shares = {1 / machine.tiers[t].compression_ratio};
      route.bandwidth = link.bandwidth * machine.tiers[t].compression_ratio;
      machine.links.push_back(link);
      machine.routes.push_back(route);
    }
  }
  return machine;
}

SimulationResult paged(const Trace& trace, const Machine& machine) {
  const PolicySpec spec = parse_policy("lru");
  const auto lru = spec.info->make_pager(spec.arguments);
  SimulationOptions options;
  options.allocator = "ideal";
  options.pager = lru.get();
  return simulate(trace, machine, options);
}

RC_GTEST_PROP(TiersProperty, PagersConserveBytesPerLinkAndExceedNoTier, ()) {
  Machine machine = random_machine(*rc::gen::inRange(1, 6));
  machine.tiers[0].capacity = *rc::gen::inRange<Bytes>(3, 6) * kGB;
  const SimulationResult result = paged(activation_chain(*rc::gen::inRange(3, 20)), machine);
  std::vector<Bytes> moved(machine.links.size(), 0);
  for (const MoveRecord& move : result.moves) {
    const Route* route = machine.route(move.from, move.to, false);
    RC_ASSERT(route != nullptr);
    moved[route->links[0]] += std::llround(static_cast<double>(move.bytes) * route->link_shares[0]);
  }
  for (const Route& route : machine.routes) RC_ASSERT(result.links[route.links[0]].bytes == moved[route.links[0]]);
  // A tier that is not full is never said to be: what nothing had room for is missing on the device alone.
  for (std::size_t t = 1; t < machine.tiers.size(); ++t) {
    RC_ASSERT(result.tiers[t].missing == 0);
    RC_ASSERT(result.tiers[t].peak_allocated <= machine.tiers[t].holds());
  }
  if (result.fits) RC_ASSERT(result.tiers[0].peak_allocated <= machine.tiers[0].capacity);
}

RC_GTEST_PROP(TiersProperty, OffloadMovesEachByteOnceEachWayToAnyTier, ()) {
  Machine machine = random_machine(*rc::gen::inRange(1, 6));
  const auto t = static_cast<std::size_t>(*rc::gen::inRange<int>(1, static_cast<int>(machine.tiers.size())));
  machine.tiers[t].capacity = 1000 * kGB;
  const int layers = *rc::gen::inRange(2, 9);
  const std::string policy = "offload:what=activations,buffers=0,via=none,to=" + machine.tiers[t].name;
  const Trace trace = apply_rewriters(activation_chain(layers), {parse_policy(policy)}, machine, *make_pricer(machine));
  const SimulationResult result = run(trace, machine);
  for (const Route& route : machine.routes) {
    const bool used = route.from == t || route.to == t;
    const double share = route.link_shares[0];
    RC_ASSERT(result.links[route.links[0]].bytes == (used ? layers * std::llround(kGB * share) : 0));
  }
  RC_ASSERT(peak(result, machine, machine.tiers[t].name) == layers * kGB);
}

// Blocking copies in the compute stream: one thing at a time, so that each copy's time counts in full.
RC_GTEST_PROP(TiersProperty, MoreBandwidthOrCompressionIsNeverSlowerOneThingAtATime, ()) {
  Machine machine = random_machine(*rc::gen::inRange(1, 6));
  machine.tiers[1].capacity = 1000 * kGB;
  Machine better = machine;
  const double factor = *rc::gen::inRange(100, 400) / 100.0;
  for (Route& route : better.routes) {
    if (*rc::gen::arbitrary<bool>()) {
      better.links[route.links[0]].bandwidth *= factor;
    } else {
      route.link_shares[0] /= factor;
    }
    route.bandwidth *= factor;
  }
  const auto end = [&](const Machine& m) {
    const Trace trace = apply_rewriters(activation_chain(4), {parse_policy("offload:what=activations,stream=compute")},
                                        m, *make_pricer(m));
    return run(trace, m).end;
  };
  RC_ASSERT(end(better) <= end(machine));
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
