#include "sim/error.h"
#include "traces/plan/realization_text.h"

namespace memwall {
namespace {

using Object = simdjson::dom::object;

class RealizationReader {
 public:
  RealizationReader(const PlanJson& json, const std::vector<TransferStyle>& tiers) : json_(json), tiers_(tiers) {}

  PlanRealization read(Object from) const {
    const std::string at = "realization";
    PlanRealization found;
    found.forwards = json_.count(from, "forwards", at);
    json_.each(from, "recompute", at,
               [&](Object item, const std::string& here) { found.recompute.push_back(modules(item, here)); });
    json_.each(from, "lazy_ops", at, [&](Object item, const std::string& here) {
      OperatorRecompute lazy;
      json_.each(item, "ops", here,
                 [&](Object op, const std::string& there) { lazy.operators.push_back(named(op, there)); });
      lazy.preserve_rng = json_.flag(item, "preserve_rng", here, false);
      found.lazy_operators.push_back(std::move(lazy));
    });
    json_.each(from, "offload", at,
               [&](Object item, const std::string& here) { found.offload.push_back(offload(item, here)); });
    json_.each(from, "homes", at,
               [&](Object item, const std::string& here) { found.homes.push_back(home(item, here)); });
    json_.each(from, "unnamed", at, [&](Object item, const std::string& here) {
      found.unnamed.push_back({json_.text(item, "what", here), json_.text(item, "reason", here),
                               json_.number(item, "storages", here, kMostStorages), json_.bytes(item, "bytes", here)});
    });
    return found;
  }

 private:
  static constexpr std::uint64_t kMostStorages = 0xffffffff;

  NamedOperator named(Object from, const std::string& at) const {
    NamedOperator name{json_.text(from, "module", at), json_.text(from, "op", at)};
    if (!PlanJson::has(from, "calls")) return name;
    const std::string calls = PlanJson::inside(at, "calls");
    json_.each_item(json_.member(from, "calls", at), calls, [&](simdjson::dom::element item, const std::string& here) {
      std::uint64_t call = 0;
      if (item.get_uint64().get(call) || call > kMostStorages) json_.fail(here, "expected a whole number");
      name.calls.push_back(static_cast<std::uint32_t>(call));
    });
    return name;
  }

  ModuleRecompute modules(Object from, const std::string& at) const {
    ModuleRecompute found;
    json_.each_item(
        json_.member(from, "units", at), PlanJson::inside(at, "units"),
        [&](simdjson::dom::element item, const std::string& here) { found.units.push_back(json_.texts(item, here)); });
    found.early_stop = json_.flag(from, "early_stop", at, true);
    found.preserve_rng = json_.flag(from, "preserve_rng", at, false);
    if (PlanJson::has(from, "save_ops"))
      found.save_operators = json_.texts(json_.member(from, "save_ops", at), PlanJson::inside(at, "save_ops"));
    return found;
  }

  std::uint8_t tier(Object from, const std::string& at) const {
    const std::string name = json_.text(from, "tier", at);
    for (std::size_t i = 0; i < tiers_.size(); ++i)
      if (tiers_[i].tier == name) return static_cast<std::uint8_t>(i);
    json_.fail(PlanJson::inside(at, "tier"), fmt::format("\"{}\" is none of the plan's tiers", name));
  }

  NamedOffload offload(Object from, const std::string& at) const {
    NamedOffload found{.tier = tier(from, at)};
    found.storages = json_.number(from, "storages", at, kMostStorages);
    found.bytes = json_.bytes(from, "bytes", at);
    found.min_bytes = json_.bytes(from, "min_bytes", at);
    if (PlanJson::has(from, "first")) found.first = json_.number(from, "first", at, kMostStorages);
    found.buffers = json_.count(from, "buffers", at);
    found.ahead = json_.count(from, "ahead", at);
    json_.each(from, "saved", at, [&](Object item, const std::string& here) {
      found.saved.push_back(
          {named(item, here), json_.number(item, "storages", here, kMostStorages), json_.bytes(item, "bytes", here)});
    });
    return found;
  }

  StorageKind kind(Object from, const std::string& at) const {
    const std::string name = json_.text(from, "kind", at);
    std::vector<std::string> known;
    for (int k = 0; k < kStorageKinds; ++k) {
      known.emplace_back(to_string(static_cast<StorageKind>(k)));
      if (known.back() == name) return static_cast<StorageKind>(k);
    }
    json_.fail(PlanJson::inside(at, "kind"), fmt::format("found \"{}\"; expected one of {}", name, listed(known)));
  }

  NamedHome home(Object from, const std::string& at) const {
    NamedHome found{.tier = tier(from, at), .kind = kind(from, at)};
    found.lives_there = json_.flag(from, "lives_there", at, true);
    found.all = json_.flag(from, "all", at, false);
    if (PlanJson::has(from, "names"))
      found.names = json_.texts(json_.member(from, "names", at), PlanJson::inside(at, "names"));
    found.storages = json_.number(from, "storages", at, kMostStorages);
    found.bytes = json_.bytes(from, "bytes", at);
    return found;
  }

  const PlanJson& json_;
  const std::vector<TransferStyle>& tiers_;
};

}  // namespace

PlanRealization read_realization(const PlanJson& json, Object from, const std::vector<TransferStyle>& tiers) {
  return RealizationReader(json, tiers).read(from);
}

PlanExpectation read_expectation(const PlanJson& json, Object from) {
  const std::string at = "expected";
  PlanExpectation found;
  found.machine = json.text(from, "machine", at);
  found.allocator = json.text(from, "allocator", at);
  found.fits = json.flag(from, "fits", at, true);
  if (PlanJson::has(from, "over_budget_bytes")) found.over_budget = json.bytes(from, "over_budget_bytes", at);
  found.peak_requested = json.bytes(from, "peak_requested_bytes", at);
  found.peak_reserved = json.bytes(from, "peak_reserved_bytes", at);
  found.step_time = json.seconds(from, "step_time_s", at);
  found.recomputed_ops = json.number(from, "recomputed_ops", at, std::uint64_t{1} << 40);
  found.recompute_time = json.seconds(from, "recompute_time_s", at);
  json.each(from, "copied", at, [&](Object item, const std::string& here) {
    found.copies.push_back(
        {json.text(item, "from", here), json.text(item, "to", here), json.bytes(item, "bytes", here)});
  });
  return found;
}

}  // namespace memwall
