#include "traces/plan/realization_text.h"

#include <fmt/format.h>

namespace memwall {
namespace {

void write_names(JsonText& json, std::string_view key, const std::vector<std::string>& names) {
  json.key(key).begin_array();
  for (const std::string& name : names) json.value(name);
  json.end_array();
}

void write_numbers(JsonText& json, const char* key, const std::vector<std::uint32_t>& numbers) {
  if (numbers.empty()) return;
  json.key(key).begin_array();
  for (const std::uint32_t number : numbers) json.value(number);
  json.end_array();
}

// Members of the object that is open.
void write_operator(JsonText& json, const NamedOperator& name) {
  json.field("module", name.module).field("op", name.name);
  write_numbers(json, "calls", name.calls);
  write_numbers(json, "keeps", name.keeps);
}

void write_modules(JsonText& json, const ModuleRecompute& recompute) {
  json.begin_object().key("units").begin_array();
  for (const std::vector<std::string>& unit : recompute.units) {
    json.begin_array();
    for (const std::string& module : unit) json.value(module);
    json.end_array();
  }
  json.end_array().field("early_stop", recompute.early_stop).field("preserve_rng", recompute.preserve_rng);
  write_names(json, "save_ops", recompute.save_operators);
  json.end_object();
}

void write_lazy(JsonText& json, const OperatorRecompute& lazy) {
  json.begin_object().key("ops").begin_array();
  for (const NamedOperator& name : lazy.operators) {
    json.begin_object();
    write_operator(json, name);
    json.end_object();
  }
  json.end_array().field("preserve_rng", lazy.preserve_rng).end_object();
}

void write_moves(JsonText& json, const NamedOffload& offload) {
  json.field("count_min_bytes", offload.count_min_bytes).key("moves").begin_array();
  for (const HookMove& move : offload.moves) {
    json.begin_object().field("number", move.number).field("bytes", move.bytes);
    json.field("module", move.made_by.module).field("op", move.made_by.name);
    json.field("call", move.made_by.calls.front());
    json.field("give_back", move.give_back).field("fetch", move.fetch).end_object();
  }
  json.end_array().key("fetch_order").begin_array();
  for (const std::uint64_t number : offload.fetch_order) json.value(number);
  json.end_array();
}

void write_model(JsonText& json, const std::vector<NamedParameter>& parameters) {
  json.begin_object().field("fingerprint", fmt::format("{:016x}", fingerprint_of(parameters)));
  json.field("bytes", total_bytes(parameters)).key("parameters").begin_array();
  for (const NamedParameter& p : parameters) json.begin_array().value(p.name).value(p.bytes).end_array();
  json.end_array().end_object();
}

void write_rerun_ops(JsonText& json, const NamedRerunOps& again) {
  json.begin_object();
  if (again.unit) json.field("unit", *again.unit);
  if (again.lazy) json.field("lazy", *again.lazy);
  json.key("ops").begin_array();
  for (const NamedOperator& op : again.operators) json.begin_array().value(op.module).value(op.name).end_array();
  json.end_array().end_object();
}

void write_offload(JsonText& json, const NamedOffload& offload, const TransferStyle& style) {
  json.begin_object().field("tier", style.tier).field("through", style.through).field("pinned", style.pinned);
  json.field("side_streams", style.side_streams).field("staging", style.staging);
  json.field("storages", offload.storages).field("bytes", offload.bytes).field("min_bytes", offload.min_bytes);
  if (offload.first) json.field("first", *offload.first);
  json.field("buffers", offload.buffers).field("ahead", offload.ahead).key("saved").begin_array();
  for (const NamedStorages& saved : offload.saved) {
    json.begin_object();
    write_operator(json, saved.made_by);
    json.field("storages", saved.storages).field("bytes", saved.bytes).end_object();
  }
  json.end_array();
  if (!offload.moves.empty()) write_moves(json, offload);
  json.end_object();
}

void write_optimizer(JsonText& json, const NamedOptimizer& optimizer) {
  json.begin_object().field("place", optimizer.place).field("through", optimizer.through);
  json.field("implementation", optimizer.implementation).field("pinned", optimizer.pinned);
  json.field("side_streams", optimizer.side_streams).field("near_memory", optimizer.near_memory);
  json.field("pipeline", optimizer.pipeline).field("group_parameters", optimizer.group_parameters);
  json.field("prefetch", optimizer.prefetch).field("buffers", optimizer.buffers);
  json.field("staging", optimizer.staging).end_object();
}

void write_home(JsonText& json, const NamedHome& home, const TransferStyle& style) {
  json.begin_object().field("kind", to_string(home.kind)).field("tier", style.tier);
  json.field("lives_there", home.lives_there).field("all", home.all);
  write_names(json, "names", home.names);
  json.field("storages", home.storages).field("bytes", home.bytes).end_object();
}

}  // namespace

void write_realization(JsonText& json, const PlanRealization& realization, const std::vector<TransferStyle>& tiers) {
  json.begin_object().field("forwards", realization.forwards);
  if (!realization.parameters.empty()) write_model(json.key("model"), realization.parameters);
  json.key("recompute").begin_array();
  for (const ModuleRecompute& recompute : realization.recompute) write_modules(json, recompute);
  json.end_array().key("lazy_ops").begin_array();
  for (const OperatorRecompute& lazy : realization.lazy_operators) write_lazy(json, lazy);
  json.end_array();
  if (!realization.runs_again.empty()) {
    json.key("runs_again").begin_array();
    for (const NamedRerunOps& again : realization.runs_again) write_rerun_ops(json, again);
    json.end_array();
  }
  json.key("offload").begin_array();
  for (const NamedOffload& offload : realization.offload) write_offload(json, offload, tiers[offload.tier]);
  json.end_array().key("homes").begin_array();
  for (const NamedHome& home : realization.homes) write_home(json, home, tiers[home.tier]);
  json.end_array();
  if (realization.optimizer) write_optimizer(json.key("optimizer"), *realization.optimizer);
  json.key("unnamed").begin_array();
  for (const UnnamedDecisions& unnamed : realization.unnamed)
    json.begin_object()
        .field("what", unnamed.what)
        .field("reason", unnamed.reason)
        .field("storages", unnamed.storages)
        .field("bytes", unnamed.bytes)
        .end_object();
  json.end_array().end_object();
}

void write_expectation(JsonText& json, const PlanExpectation& expected) {
  json.begin_object().field("machine", expected.machine).field("allocator", expected.allocator);
  json.field("fits", expected.fits);
  if (expected.over_budget > 0) json.field("over_budget_bytes", expected.over_budget);
  json.field("peak_requested_bytes", expected.peak_requested);
  json.field("peak_reserved_bytes", expected.peak_reserved).seconds("step_time_s", expected.step_time);
  json.field("recomputed_ops", expected.recomputed_ops).seconds("recompute_time_s", expected.recompute_time);
  json.key("copied").begin_array();
  for (const ExpectedCopies& copies : expected.copies)
    json.begin_object().field("from", copies.from).field("to", copies.to).field("bytes", copies.bytes).end_object();
  json.end_array().end_object();
}

}  // namespace memwall
