#include "tests/support/tiered_run.h"

#include "sim/policy/registry.h"
#include "tests/support/gpt_trace.h"
#include "tests/support/test_machine.h"
#include "traces/run/run_recorder.h"

namespace memwall {
namespace {

Machine machine_of(const TieredRunOptions& options) {
  Machine machine = test_machine();
  if (options.hbm > 0) machine.tiers[static_cast<std::size_t>(machine.tier("hbm"))].capacity = options.hbm;
  return machine;
}

}  // namespace

std::vector<Move> PagerToHost::make_room(int, Bytes bytes, const PagerView& view) {
  const auto host = static_cast<std::uint8_t>(test_machine().tier("host"));
  std::vector<Move> moves;
  if (bytes <= 0) return moves;
  view.each_movable([&](const ResidentStorage& storage) {
    moves.push_back({MoveKind::evict, storage.storage, host});
    bytes -= storage.bytes;
    return bytes > 0;
  });
  return moves;
}

Trace tiered_trace(const Trace& trace, const TieredRunOptions& options) {
  const Machine machine = machine_of(options);
  std::vector<PolicySpec> specs;
  for (const std::string& policy : options.policies) specs.push_back(parse_policy(policy));
  Trace changed = apply_rewriters(trace, specs, machine, *test_pricer(machine));
  changed.untracked_bytes = options.untracked;
  return changed;
}

Run tiered_run(Trace trace, const TieredRunOptions& options) {
  RunSettings settings;
  settings.policies = options.policies;
  settings.pager_text = options.pager;
  settings.allocator = options.allocator;
  settings.observer = options.observer;
  settings.pager = options.own_pager;
  std::unique_ptr<Pager> pager;
  if (!options.pager.empty()) {
    const PolicySpec spec = parse_policy(options.pager);
    pager = spec.info->make_pager(spec.arguments);
    settings.pager = pager.get();
  }
  return simulate_and_record(std::move(trace), machine_of(options), settings);
}

std::shared_ptr<const Run> paged_run() {
  GptShape shape;
  shape.layers = 3;
  shape.steps = 2;
  shape.hidden = 64;
  shape.sequence = 32;
  shape.flops_per_second = shape.bytes_per_second = 1e10;
  shape.launch_cost = microseconds(5);
  PagerToHost pager;
  TieredRunOptions options;
  options.allocator = "ideal";
  options.hbm = tiered_run(gpt_step(shape), options).result.tiers[0].peak_allocated * 7 / 10;
  options.own_pager = &pager;
  return std::make_shared<const Run>(tiered_run(gpt_step(shape), options));
}

gui::OpenRun opened(std::shared_ptr<const Run> run) {
  gui::OpenRun open;
  open.path = open.name = "test.h5";
  open.source = source_of(std::move(run));
  open.spans = std::make_shared<gui::SpanCache>(open.source);
  open.history = gui::ResidencyHistory::load(*open.source, {});
  return open;
}

}  // namespace memwall
